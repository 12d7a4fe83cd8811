//! Does a server that is told to stop finish what it has begun, and nothing else?

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cloudgate::{App, Response, Running, Server};
use cloudgate_suite::{LIMIT, Wire, get, start, start_with, wait_for};

/// A server that is being shut down: its idle connection has been closed already.
struct Stopping {
    count: JoinHandle<usize>,
}

impl Stopping {
    /// Tells the server to stop, and returns when it has begun to.
    #[track_caller]
    fn begin(server: Running, grace: Duration) -> Stopping {
        let mut idle = Wire::open(server.addr());
        assert_eq!(idle.send_get("/routes/get").answer().status, 200);
        let count = thread::spawn(move || server.shutdown(grace));
        idle.ends();
        Stopping { count }
    }

    /// How many connections were cut.
    #[track_caller]
    fn cut(self) -> usize {
        self.count.join().expect("a number")
    }
}

const POST: &str = "POST /extract/text HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe";

#[test]
fn connections_without_a_request_are_closed_at_once() {
    let server = start(crate::app());
    let mut nothing_sent = Wire::open(server.addr());
    let mut idle = Wire::open(server.addr());
    assert_eq!(idle.send_get("/routes/get").answer().status, 200);
    wait_for("both connections", || server.connections() == 2);
    assert_eq!(server.shutdown(LIMIT), 0);
    nothing_sent.ends();
    idle.ends();
}

#[test]
fn requests_on_their_way_are_answered() {
    let server = start(crate::app());
    let address = server.addr();
    let mut half_head = Wire::open(address);
    half_head.send("GET /routes/get HT");
    let mut half_body = Wire::open(address);
    half_body.send(POST);
    let mut in_handler = Wire::open(address);
    in_handler.send_get("/load/sleep/300000");
    let mut streaming = Wire::open(address);
    let head = streaming.send_get("/load/stream/300").answer_to_head();
    assert_eq!(head.status, 200);
    wait_for("the connections", || server.connections() == 4);
    // The half head must have been read, or its connection counts as one without a request.
    for _ in 0..10 {
        assert_eq!(get(address, "/load/sleep/2000").status, 200);
    }
    let stopping = Stopping::begin(server, LIMIT);

    half_head.send("TP/1.1\r\nHost: h\r\n\r\n");
    half_body.send("llo");
    for (mut wire, text) in [
        (half_head, "get"),
        (half_body, "hello"),
        (in_handler, "300000"),
    ] {
        let answer = wire.answer();
        assert_eq!((answer.status, &*answer.text()), (200, text));
        assert_eq!(answer.header("connection"), Some("close"), "{text}");
        wire.ends();
    }
    let rest = streaming.rest();
    assert!(
        rest.ends_with(b"\r\n0\r\n\r\n"),
        "the stream came to its end"
    );
    assert_eq!(stopping.cut(), 0);
}

#[test]
fn what_takes_longer_than_the_grace_is_cut_and_counted() {
    let app = crate::app().get("/shutdown/large", || {
        Response::html("").with_body(vec![b'x'; 32 << 20])
    });
    let server = start(app);
    let address = server.addr();
    let mut half_head = Wire::open(address);
    half_head.send("GET /routes/get HT");
    let mut half_body = Wire::open(address);
    half_body.send(POST);
    let mut not_reading = Wire::open(address);
    not_reading.send_get("/shutdown/large").take(1);
    wait_for("the connections", || server.connections() == 3);
    for _ in 0..10 {
        assert_eq!(get(address, "/routes/get").status, 200);
    }
    let stopping = Stopping::begin(server, Duration::from_millis(300));
    assert_eq!(stopping.cut(), 3);
    half_head.rest();
    half_body.rest();
    assert!(not_reading.rest().len() < 32 << 20, "it was cut, not ended");
}

#[test]
fn a_port_that_is_taken_is_refused_and_free_again_after_shutdown() {
    let server = start(crate::app());
    let address = server.addr();
    let error = Server::bind(address)
        .expect_err("a port that is taken")
        .to_string();
    let port = address.port();
    assert!(
        error.starts_with(&format!("port {port} of 127.0.0.1 is in use")),
        "{error}"
    );
    assert!(error.contains("PORT="), "{error}");
    assert_eq!(server.shutdown(LIMIT), 0);
    wait_for("the port to be free", || Server::bind(address).is_ok());
}

#[test]
fn nobody_connects_once_shutdown_has_returned() {
    for _ in 0..50 {
        let server = start(crate::app());
        let address = server.addr();
        assert_eq!(server.shutdown(LIMIT), 0);
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}

#[test]
fn a_server_that_stops_under_load_answers_whole_or_not_at_all() {
    for round in 0..10_u64 {
        let server = start_with(crate::app(), |settings| {
            settings.timeouts.park = Duration::from_millis(1);
        });
        let address = server.addr();
        let (answered, answers) = channel();
        let clients: Vec<_> = (0..16_u64)
            .map(|client| {
                let answered = answered.clone();
                thread::spawn(move || {
                    let mut wire = Wire::open(address);
                    loop {
                        let pause = (client + round) % 4 * 300;
                        wire.send_get(&format!("/load/sleep/{pause}"));
                        let first = wire.take_some();
                        if first.is_empty() {
                            return;
                        }
                        let whole = format!("\r\n\r\n{pause}");
                        assert!(first.ends_with(whole.as_bytes()));
                        // The receiver may have heard enough.
                        let _ = answered.send(());
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            answers.recv_timeout(LIMIT).expect("an answer");
        }
        assert_eq!(server.shutdown(LIMIT), 0);
        for client in clients {
            client.join().expect("whole answers");
        }
    }
}

#[test]
fn dropping_a_server_ends_it_at_once() {
    let server = start(crate::app());
    let mut wire = Wire::open(server.addr());
    wire.send_get("/routes/get").answer();
    let mut half = Wire::open(server.addr());
    half.send(POST);
    wait_for("both connections", || server.connections() == 2);
    drop(server);
    wire.ends();
    half.rest();
}

#[test]
fn a_stream_that_is_read_as_fast_as_it_comes_is_cut_after_the_grace_too() {
    let app = App::new().get("/endless", || {
        Response::stream(|out| {
            loop {
                out.write_all(&[b'x'; 1000])?;
                out.flush()?;
                cloudgate::sleep(Duration::from_millis(1));
            }
        })
    });
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    wire.send_get("/endless").take(10_000);
    let ended = Arc::new(AtomicBool::new(false));
    let reading = thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            while !wire.take_some().is_empty() {}
            ended.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(server.shutdown(Duration::from_millis(100)), 1);
    // Shutting down has waited for the connection that it cut.
    wait_for("the end of the stream", || ended.load(Ordering::Relaxed));
    reading.join().expect("an end");
}
