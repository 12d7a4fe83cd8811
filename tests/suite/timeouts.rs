//! Does the server let go of clients that are too slow?

use std::time::{Duration, Instant};

use cloudgate::{Response, Running, Settings};
use cloudgate_suite::{Wire, start_with, wait_for};

/// Short enough for a test, and far longer than the sweeper's tick.
const SHORT: Duration = Duration::from_millis(400);

fn impatient(change: impl FnOnce(&mut Settings)) -> Running {
    let app = crate::app().get("/timeouts/large", || {
        Response::html("").with_body(vec![b'x'; 32 << 20])
    });
    start_with(app, change)
}

/// Checks that it took about [`SHORT`], with room for a busy machine.
#[track_caller]
fn check_since(began: Instant) {
    let took = began.elapsed();
    assert!(took >= SHORT, "{took:?}");
    assert!(took < 20 * SHORT, "{took:?}");
}

#[test]
fn a_head_that_drips_in_is_ended_with_408() {
    let server = impatient(|settings| settings.timeouts.head = SHORT);
    let began = Instant::now();
    let mut wire = Wire::open(server.addr());
    wire.send("GET /routes/get HTTP/1.1\r\nX: ");
    let dripping = std::thread::spawn({
        let mut drip = Wire::open(server.addr());
        move || {
            drip.send("GET / HTTP/1.1\r\nX: ");
            while began.elapsed() < 2 * SHORT {
                drip.send("x");
                std::thread::sleep(SHORT / 20);
            }
            drip.answer().status
        }
    });
    let answer = wire.answer();
    assert_eq!(
        (answer.status, answer.header("connection")),
        (408, Some("close"))
    );
    check_since(began);
    assert_eq!(dripping.join().expect("an answer"), 408);
}

#[test]
fn connections_without_a_request_end_without_a_word() {
    let server = impatient(|settings| {
        settings.timeouts.head = SHORT;
        settings.timeouts.idle = SHORT;
    });
    let began = Instant::now();
    let mut silent = Wire::open(server.addr());
    let mut idle = Wire::open(server.addr());
    assert_eq!(idle.send_get("/routes/get").answer().status, 200);
    silent.ends();
    idle.ends();
    check_since(began);
    wait_for("the connections to end", || server.connections() == 0);
}

#[test]
fn a_body_that_stops_coming_is_ended_with_408() {
    let server = impatient(|settings| {
        settings.timeouts.grace = SHORT;
        settings.timeouts.stall = SHORT;
    });
    let began = Instant::now();
    let mut wire = Wire::open(server.addr());
    wire.send("POST /extract/text HTTP/1.1\r\nHost: h\r\nContent-Length: 500\r\n\r\nhello");
    let answer = wire.answer();
    assert_eq!(
        (answer.status, answer.header("connection")),
        (408, Some("close"))
    );
    assert_eq!(
        answer.text(),
        "408 Request Timeout: the request body came too slowly\n"
    );
    check_since(began);
}

#[test]
fn a_client_that_does_not_read_is_cut() {
    let server = impatient(|settings| {
        settings.timeouts.grace = SHORT;
        settings.timeouts.stall = SHORT;
    });
    let began = Instant::now();
    let mut wire = Wire::open(server.addr());
    wire.send_get("/timeouts/large").take(1);
    wait_for("the connection to be cut", || server.connections() == 0);
    check_since(began);
    assert!(wire.rest().len() < 32 << 20);
}

#[test]
fn a_client_that_is_refused_can_read_why_although_it_sends_on() {
    let server = impatient(|_| ());
    let mut wire = Wire::open(server.addr());
    wire.send("GET / HTTP/1.1\r\n\r\n");
    for _ in 0..100 {
        wire.send(vec![b'x'; 10_000]);
    }
    let answer = wire.end_sending().answer();
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.text(),
        "400 Bad Request: the Host field is missing\n"
    );
    wire.ends();
}

#[test]
fn the_first_connection_after_a_long_rest_has_its_whole_time() {
    let server = impatient(|settings| settings.timeouts.head = SHORT);
    assert_eq!(
        Wire::open(server.addr())
            .send_get("/routes/get")
            .answer()
            .status,
        200
    );
    wait_for("the server to be without connections", || {
        server.connections() == 0
    });
    // Longer than a head may take: time goes on although nobody watches the clock.
    std::thread::sleep(SHORT + SHORT / 2);
    let mut wire = Wire::open(server.addr());
    wait_for("the connection", || server.connections() == 1);
    // Long enough for the server to have begun its wait.
    std::thread::sleep(SHORT / 4);
    assert_eq!(wire.send_get("/routes/get").answer().status, 200);
}
