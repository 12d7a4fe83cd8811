//! Can a handler take a body that is larger than memory should hold?

use std::io::Read;

use cloudgate::{HttpError, Request, route};
use cloudgate_suite::{Wire, start};

const LIMIT: u64 = 64 << 20;

/// Counts and sums what comes, 64 KiB at a time.
#[route(POST, "/uploads/count")]
fn count(request: &mut Request<'_>) -> Result<String, HttpError> {
    request.body().set_limit(LIMIT);
    let mut piece = vec![0; 64 << 10];
    let (mut count, mut sum) = (0, 0_u64);
    loop {
        match request.body().read(&mut piece)? {
            0 => return Ok(format!("{count} {sum}")),
            read => {
                count += read;
                sum += piece[..read]
                    .iter()
                    .map(|byte| u64::from(*byte))
                    .sum::<u64>();
            }
        }
    }
}

fn piece() -> Vec<u8> {
    (0..1 << 20).map(|at: u32| (at % 251) as u8).collect()
}

fn want(pieces: u64) -> String {
    let sum: u64 = piece().iter().map(|byte| u64::from(*byte)).sum();
    format!("{} {}", pieces << 20, pieces * sum)
}

#[test]
fn a_large_body_streams_through_a_handler() {
    let server = start(crate::app());
    let piece = piece();
    let mut wire = Wire::open(server.addr());
    let head =
        format!("POST /uploads/count HTTP/1.1\r\nHost: h\r\nContent-Length: {LIMIT}\r\n\r\n");
    wire.send(head);
    for _ in 0..64 {
        wire.send(&piece);
    }
    assert_eq!(wire.answer().text(), want(64));
    // The same in chunks, on the same connection.
    wire.send("POST /uploads/count HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    for _ in 0..8 {
        wire.send("100000\r\n").send(&piece).send("\r\n");
    }
    assert_eq!(wire.send("0\r\n\r\n").answer().text(), want(8));
    assert_eq!(wire.send_get("/routes/get").answer().text(), "get");
}

#[test]
fn one_byte_past_the_limit_is_413_before_anything_is_sent() {
    let server = start(crate::app());
    let mut wire = Wire::open(server.addr());
    let length = LIMIT + 1;
    let answer = wire
        .send(format!(
            "POST /uploads/count HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"
        ))
        .answer();
    assert_eq!(answer.status, 413);
    assert!(
        answer.text().contains(&format!("has {length} bytes")),
        "{}",
        answer.text()
    );
}

#[test]
fn a_client_that_sends_too_much_can_read_the_refusal() {
    let server = start(crate::app());
    let mut wire = Wire::open(server.addr());
    wire.send("POST /extract/text HTTP/1.1\r\nHost: h\r\nContent-Length: 3145728\r\n\r\n");
    for _ in 0..3 {
        wire.send(piece());
    }
    let answer = wire.answer();
    assert_eq!(
        (answer.status, answer.header("connection")),
        (413, Some("close"))
    );
}

#[test]
fn trailers_are_there_for_who_asks_once_the_body_is_read() {
    // RFC 9110 section 6.5
    let app = cloudgate::App::new().post("/trailers", |request: &mut cloudgate::Request<'_>| {
        let body = request.body();
        let early = body.trailers().is_some();
        let read = body.read_all().is_ok();
        let field = |name| body.trailers().and_then(|trailers| trailers.get(name));
        format!("{early} {read} {:?} {:?}", field("x-sum"), field("host"))
    });
    let server = cloudgate_suite::start(app);
    let answer = cloudgate_suite::Wire::open(server.addr())
        .send(
            "POST /trailers HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
             5\r\nhello\r\n0\r\nX-Sum: 7\r\nHost: evil\r\n\r\n",
        )
        .answer();
    assert_eq!(answer.text(), "false true Some(\"7\") None");
}
