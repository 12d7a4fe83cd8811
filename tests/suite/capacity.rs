//! What happens when there are more connections than there is room for?

use std::io::{Read, Write};

use cloudgate::Server;
use cloudgate_suite::{PROGRAM, Program, Wire, get, start_with, wait_for};
use rustix::process::{Resource, Rlimit, setrlimit};

#[test]
fn the_seat_past_the_cap_gets_503_and_the_others_go_on() {
    const SEATS: usize = 4;
    let server = start_with(crate::app(), |settings| {
        settings.max_connections = Some(SEATS);
    });
    assert_eq!(server.max_connections(), SEATS);
    let mut seated: Vec<_> = (0..SEATS).map(|_| Wire::open(server.addr())).collect();
    for _ in 0..3 {
        for wire in &mut seated {
            assert_eq!(wire.send_get("/load/hit").answer().status, 200);
        }
        let mut late = Wire::open(server.addr());
        let answer = late.send_get("/load/hit").answer();
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.header("connection"), Some("close"));
        assert_eq!(
            answer.text(),
            "503 Service Unavailable: too many connections"
        );
        late.ends();
    }
    seated.pop();
    wait_for("the seat that is free again", || {
        get(server.addr(), "/load/hit").status == 200
    });
}

#[test]
fn one_address_cannot_take_more_seats_than_it_may() {
    let server = start_with(crate::app(), |settings| {
        settings.max_connections_per_ip = Some(2);
    });
    let mut seated: Vec<_> = (0..2).map(|_| Wire::open(server.addr())).collect();
    for wire in &mut seated {
        assert_eq!(wire.send_get("/load/hit").answer().status, 200);
    }
    let answer = Wire::open(server.addr()).send_get("/load/hit").answer();
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    seated.pop();
    wait_for("the seat that is free again", || {
        get(server.addr(), "/load/hit").status == 200
    });
}

#[test]
fn a_server_without_descriptors_turns_clients_away_and_recovers() {
    const CLIENTS: usize = 120;
    let mut program = Program::start("capacity::starved_program", &[]);
    let address = program.address();
    for _ in 0..2 {
        let mut wires: Vec<_> = (0..CLIENTS).map(|_| Wire::open(address)).collect();
        for wire in &mut wires {
            wire.send_get("/routes/get");
        }
        // Nobody hangs: each is served, told that there is no room, or cut.
        let (mut served, mut told) = (0, 0);
        for wire in &mut wires {
            let first = wire.take_some();
            served += usize::from(first.starts_with(b"HTTP/1.1 200"));
            told += usize::from(first.starts_with(b"HTTP/1.1 503"));
        }
        assert!(served >= 10, "{served} of {CLIENTS} were served");
        assert!(told > 0, "nobody was told");
        drop(wires);
        wait_for("an answer when there is room again", || {
            let mut wire = Wire::open(address);
            wire.send_get("/routes/get")
                .take_some()
                .starts_with(b"HTTP/1.1 200")
        });
    }
    program.close_input();
    assert_eq!(program.ended().code, Some(0));
}

#[test]
#[ignore = "the program of the test above"]
#[allow(clippy::print_stdout, reason = "the other process reads it")]
fn starved_program() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    let few = Some(64);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: few,
            maximum: few,
        },
    )
    .expect("a lower limit");
    let mut settings = cloudgate::Settings::default();
    settings.workers.workers = 2;
    settings.max_connections = Some(10_000);
    let server = Server::bind("127.0.0.1:0")
        .map(|server| server.with_settings(settings))
        .and_then(|server| server.serve(crate::app()))
        .expect("a server");
    println!("http://{}", server.addr());
    std::io::stdout().flush().expect("somebody who reads");
    // Runs until the other process lets go.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}
