//! Are idle connections put aside and taken up again without anybody noticing?

use std::time::{Duration, Instant};

use cloudgate::{Running, Settings};
use cloudgate_suite::{LIMIT, Wire, start_with, wait_for};

const SOON: Duration = Duration::from_millis(50);

fn parking(change: impl FnOnce(&mut Settings)) -> Running {
    start_with(crate::app(), |settings| {
        settings.timeouts.park = SOON;
        change(settings);
    })
}

#[test]
fn parked_connections_are_served_as_before() {
    const CONNECTIONS: usize = 100;
    let server = parking(|_| ());
    let mut wires: Vec<_> = (0..CONNECTIONS)
        .map(|_| Wire::open(server.addr()))
        .collect();
    for _ in 0..3 {
        for wire in &mut wires {
            assert_eq!(wire.send_get("/routes/get").answer().text(), "get");
        }
        wait_for("all to be parked", || server.parked() == CONNECTIONS);
        assert_eq!(server.connections(), CONNECTIONS);
    }
    // Pipelined, in pieces, and with a body: a connection that was parked is like any other.
    wires[0].send_get("/routes/get").send_get("/routes/items/7");
    assert_eq!(wires[0].answer().text(), "get");
    assert_eq!(wires[0].answer().text(), "id=7");
    for byte in b"POST /extract/text HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi" {
        wires[1].send([*byte]);
    }
    assert_eq!(wires[1].answer().text(), "hi");
    drop(wires);
    wait_for("the connections to end", || server.connections() == 0);
}

#[test]
fn a_new_connection_without_a_byte_is_parked_and_served_later() {
    let server = parking(|_| ());
    let mut wire = Wire::open(server.addr());
    wait_for("it to be parked", || server.parked() == 1);
    assert_eq!(wire.send_get("/routes/get").answer().text(), "get");
}

#[test]
fn deadlines_go_on_while_a_connection_is_parked() {
    const SHORT: Duration = Duration::from_millis(400);
    let server = parking(|settings| {
        settings.timeouts.idle = SHORT;
        settings.timeouts.head = SHORT;
    });
    let began = Instant::now();
    let mut silent = Wire::open(server.addr());
    let mut idle = Wire::open(server.addr());
    assert_eq!(idle.send_get("/routes/get").answer().status, 200);
    silent.ends();
    idle.ends();
    assert!(began.elapsed() >= SHORT);
    wait_for("the connections to end", || server.connections() == 0);
}

#[test]
fn a_stopping_server_closes_what_is_parked() {
    let server = parking(|_| ());
    let mut wires: Vec<_> = (0..10).map(|_| Wire::open(server.addr())).collect();
    wait_for("all to be parked", || server.parked() == 10);
    assert_eq!(server.shutdown(LIMIT), 0);
    for wire in &mut wires {
        wire.ends();
    }
}

#[test]
fn a_client_that_leaves_while_its_connection_is_parked_frees_its_seat() {
    let server = parking(|settings| settings.max_connections = Some(1));
    let first = Wire::open(server.addr());
    wait_for("it to be parked", || server.parked() == 1);
    let mut second = Wire::open(server.addr());
    assert_eq!(second.send_get("/routes/get").answer().status, 503);
    drop(first);
    wait_for("its seat", || server.connections() == 0);
    let mut third = Wire::open(server.addr());
    assert_eq!(third.send_get("/routes/get").answer().status, 200);
}

#[test]
fn requests_that_come_at_the_moment_of_parking_are_not_lost() {
    let server = start_with(crate::app(), |settings| {
        settings.timeouts.park = Duration::from_millis(1);
    });
    let address = server.addr();
    let client = move |seed: u64| {
        let mut wire = Wire::open(address);
        for round in 0..30_u64 {
            // Pauses of all lengths around the sweeper's tick, so that all moments are met.
            let pause = (seed * 7919 + round * 104_729) % 70_000;
            std::thread::sleep(Duration::from_micros(pause));
            let answer = wire.send_get(&format!("/routes/items/{round}")).answer();
            assert_eq!(answer.text(), format!("id={round}"));
        }
    };
    let clients: Vec<_> = (0..40)
        .map(|seed| std::thread::spawn(move || client(seed)))
        .collect();
    for client in clients {
        client.join().expect("a client that got what it wanted");
    }
    assert_eq!(cloudgate::thread_changes(), 0);
    wait_for("the connections to end", || server.connections() == 0);
}
