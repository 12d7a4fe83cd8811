//! Does a response that is written bit by bit reach the client bit by bit, and does its writer hear when nobody listens any more?

use std::io::Write;
use std::sync::mpsc;

use cloudgate::{App, Notify, Request, Response, Status};
use cloudgate_suite::{LIMIT, Wire, start};
use std::sync::Arc;

#[test]
fn events_arrive_as_they_are_sent() {
    let go = Arc::new(Notify::new());
    let theirs = Arc::clone(&go);
    let app = App::new().get("/events", move || {
        let go = Arc::clone(&theirs);
        Response::stream(move |out| {
            for number in 0..3 {
                write!(out, "data: {number}\n\n")?;
                out.flush()?;
                go.wait();
            }
            Ok(())
        })
        .header("Content-Type", "text/event-stream")
    });
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    wire.send_get("/events");
    let mut received = String::new();
    for number in 0..3 {
        // Nothing more is sent before this one has arrived.
        let event = format!("data: {number}\n\n");
        while !received.contains(&event) {
            received.push_str(&String::from_utf8_lossy(&wire.take(1)));
        }
        assert!(!received.contains(&format!("data: {}", number + 1)));
        go.notify_one();
    }
    while !received.ends_with("0\r\n\r\n") {
        received.push_str(&String::from_utf8_lossy(&wire.take(1)));
    }
    // The connection goes on behind the last chunk.
    go.notify_one();
    assert_eq!(wire.send_get("/nothing").answer().status, 404);
}

#[test]
fn a_client_that_left_is_an_error_at_one_of_the_next_sends() {
    let (ended, ends) = mpsc::channel();
    let app = App::new().get("/events", move || {
        let ended = ended.clone();
        Response::stream(move |out| {
            let failed = loop {
                if let Err(error) = out.write_all(b"data: tick\n\n").and_then(|()| out.flush()) {
                    break error;
                }
                cloudgate::sleep(std::time::Duration::from_millis(1));
            };
            // The test may have failed and gone already.
            let _ = ended.send(failed.kind());
            Err(failed)
        })
    });
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    wire.send_get("/events").take(20);
    drop(wire);
    let kind = ends.recv_timeout(LIMIT).expect("the writer's end");
    assert!(
        matches!(
            kind,
            std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset
        ),
        "{kind:?}"
    );
}

#[test]
fn a_body_reader_of_unknown_length_is_sent_in_chunks() {
    let app = App::new().get("/reader", |_: &mut Request<'_>| {
        let reader = std::io::Cursor::new(vec![b'x'; 100_000]);
        Response::new(Status::OK).with_body(cloudgate::Body::Reader {
            reader: Box::new(reader),
            length: None,
        })
    });
    let server = start(app);
    let answer = Wire::open(server.addr()).send_get("/reader").answer();
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.text().len(), 100_000);
}
