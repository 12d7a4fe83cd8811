//! Does the server stay exact and fair when much happens at once?

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cloudgate::{Path, State, route};
use cloudgate_suite::{LIMIT, Wire, get, start, wait_for};

/// How often `/load/hit` was asked for.
#[derive(Default)]
pub(crate) struct Hits(AtomicU64);

#[route("/load/hit")]
fn hit(State(hits): State<Hits>) -> String {
    format!("{}", hits.0.fetch_add(1, Ordering::Relaxed) + 1)
}

#[route("/load/hits")]
fn hits(State(hits): State<Hits>) -> String {
    format!("{}", hits.0.load(Ordering::Relaxed))
}

/// Handlers wait here until a test opens it.
#[derive(Default)]
pub(crate) struct Gate {
    open: AtomicBool,
    waiting: AtomicU64,
}

impl Gate {
    fn wait_by(&self, sleep: impl Fn(Duration)) -> String {
        let number = self.waiting.fetch_add(1, Ordering::Relaxed);
        while !self.open.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(5));
        }
        format!("{number}")
    }
}

#[route("/load/gate")]
fn gate(State(gate): State<Gate>) -> String {
    gate.wait_by(cloudgate::sleep)
}

#[route("/load/blocking-gate")]
fn blocking_gate(State(gate): State<Gate>) -> String {
    // The thread that waits here is one of the pool, and not a worker.
    cloudgate::blocking(move || gate.wait_by(thread::sleep))
}

#[route("/load/waiting")]
fn waiting(State(gate): State<Gate>) -> String {
    format!("{}", gate.waiting.load(Ordering::Relaxed))
}

#[route("/load/open")]
fn open(State(gate): State<Gate>) {
    gate.open.store(true, Ordering::Relaxed);
}

#[route("/load/sleep/{micros}")]
fn sleep(Path(micros): Path<u64>) -> String {
    cloudgate::sleep(Duration::from_micros(micros));
    format!("{micros}")
}

#[route("/load/blocking/{number}")]
fn blocking(Path(number): Path<u64>) -> String {
    let result = cloudgate::blocking(move || {
        thread::sleep(Duration::from_micros(200));
        number
    });
    cloudgate::yield_now();
    format!("{result}")
}

#[route("/load/stream/{lines}")]
fn stream(Path(lines): Path<u32>) -> cloudgate::Response {
    cloudgate::Response::stream(move |out| {
        for line in 0..lines {
            writeln!(out, "{line}")?;
            out.flush()?;
            cloudgate::sleep(Duration::from_micros(100));
        }
        io::Result::Ok(())
    })
}

/// While `count` requests wait in `target`, others are answered; then these are too.
#[track_caller]
fn check_waiting_handlers(target: &str, count: usize) {
    let server = start(crate::app());
    let mut waiting: Vec<_> = (0..count)
        .map(|_| {
            let mut wire = Wire::open(server.addr());
            wire.send_get(target);
            wire
        })
        .collect();
    // With so many of them both workers have some: nobody is answered if one of them holds its worker.
    let mut wires: Vec<_> = (0..20).map(|_| Wire::open(server.addr())).collect();
    wait_for("all handlers to wait", || {
        wires.iter_mut().all(|wire| {
            let text = wire.send_get("/load/waiting").answer().text();
            text == count.to_string()
        })
    });
    get(server.addr(), "/load/open");
    let mut numbers: Vec<usize> = waiting
        .iter_mut()
        .map(|wire| wire.answer().text().parse().expect("a number"))
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
}

#[test]
fn a_handler_that_sleeps_delays_nobody() {
    check_waiting_handlers("/load/gate", 60);
}

#[test]
fn a_handler_that_blocks_on_the_pool_delays_nobody() {
    check_waiting_handlers("/load/blocking-gate", 20);
}

#[test]
fn shared_state_is_exact_and_nobody_changes_threads_under_mixed_load() {
    const CLIENTS: u64 = 8;
    const ROUNDS: u64 = 50;
    let server = start(crate::app());
    let address = server.addr();
    let client = move |client: u64| {
        let mut wire = Wire::open(address);
        for round in 0..ROUNDS {
            let number = client * ROUNDS + round;
            assert_eq!(wire.send_get("/load/hit").answer().status, 200);
            let micros = number % 700;
            let slept = wire.send_get(&format!("/load/sleep/{micros}")).answer();
            assert_eq!(slept.text(), micros.to_string());
            let blocked = wire.send_get(&format!("/load/blocking/{number}")).answer();
            assert_eq!(blocked.text(), number.to_string());
            let streamed = wire.send_get("/load/stream/3").answer();
            assert_eq!(streamed.text(), "0\n1\n2\n");
            // Pipelined: three answers in their order.
            wire.send_get("/load/hit")
                .send_get("/load/sleep/5")
                .send_get("/load/hit");
            assert_eq!(wire.answer().status, 200);
            assert_eq!(wire.answer().text(), "5");
            assert_eq!(wire.answer().status, 200);
        }
    };
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| thread::spawn(move || client(number)))
        .collect();
    for client in clients {
        client.join().expect("a client that got what it wanted");
    }
    let want = (CLIENTS * ROUNDS * 3).to_string();
    assert_eq!(get(address, "/load/hits").text(), want);
    assert_eq!(cloudgate::thread_changes(), 0);
    wait_for("the connections to end", || server.connections() == 0);
}

#[test]
fn two_thousand_quick_connections_leave_nothing_behind() {
    let server = start(crate::app());
    let address = server.addr();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(move || {
                for round in 0..500 {
                    let mut wire = Wire::open(address);
                    match round % 4 {
                        // Gone without a word, or in the middle of a request.
                        0 => {}
                        1 => {
                            wire.send("GET /load/h");
                        }
                        2 => assert_eq!(get(address, "/load/hit").status, 200),
                        _ => assert_eq!(wire.send_get("/load/hit").answer().status, 200),
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("a client that got what it wanted");
    }
    assert_eq!(get(address, "/load/hits").text(), "1000");
    wait_for("the connections to end", || server.connections() == 0);
    assert_eq!(server.shutdown(LIMIT), 0);
}

#[test]
fn five_hundred_connections_are_served_at_once() {
    let server = start(crate::app());
    let mut wires: Vec<_> = (0..500).map(|_| Wire::open(server.addr())).collect();
    for round in 0..3_u64 {
        for wire in &mut wires {
            wire.send_get("/load/hit");
        }
        let mut numbers: Vec<u64> = wires
            .iter_mut()
            .map(|wire| wire.answer().text().parse().expect("a number"))
            .collect();
        numbers.sort_unstable();
        let want: Vec<_> = (round * 500 + 1..=(round + 1) * 500).collect();
        assert_eq!(numbers, want);
    }
    assert_eq!(server.connections(), 500);
    drop(wires);
    wait_for("the connections to end", || server.connections() == 0);
}
