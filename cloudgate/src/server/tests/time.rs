//! When does a connection end by itself?

use std::io::{self, Write};
use std::sync::Arc;

use super::script::{Case, Outcome, echo};
use crate::message::{Body, FileRange, Request, Response};
use crate::server::conn::COMFORTABLE;
use http::StatusCode as Status;

const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

fn case() -> Case {
    Case::new(echo)
}

#[track_caller]
fn check(case: Case, want: &str, ended_at: u64) {
    let outcome = case.run();
    assert_eq!(outcome.brief(), want);
    assert_eq!(outcome.ended_at, ended_at);
}

#[test]
fn a_head_has_ten_seconds_in_total() {
    // From the start of a new connection. Nothing was asked, so nothing is answered.
    check(case().advance(9_999), "; open", 9_999);
    check(case().advance(10_000), "; Idle", 10_000);
    // Half a head is told why.
    let half = || case().advance(4_000).send(&GET[..10]);
    check(half().advance(5_999), "; open", 9_999);
    check(half().advance(6_000), "408 close; HeadTimeout", 10_000);
    check(
        half().advance(5_999).send(&GET[10..]),
        "200 /a; open",
        9_999,
    );
    // A byte now and then does not help (slowloris).
    let long = format!("GET /a HTTP/1.1\r\nA: {}", "x".repeat(100));
    let drip = long
        .bytes()
        .fold(case(), |case, byte| case.send([byte]).advance(500));
    let outcome = drip.run();
    assert_eq!(outcome.brief(), "408 close; HeadTimeout");
    // Then it is read on for the two seconds of lingering.
    assert_eq!(outcome.ended_at, 12_000);
    // On a kept connection from the head's first byte.
    let second = || case().send(GET).advance(50_000).send(&GET[..10]);
    check(second().advance(9_999), "200 /a; open", 59_999);
    check(
        second().advance(10_000),
        "200 /a, 408 close; HeadTimeout",
        60_000,
    );
    // Zero turns the limit off.
    let off = case().with(|settings| settings.timeouts.head = std::time::Duration::ZERO);
    check(off.send("G").advance(1_000_000), "; open", 1_000_000);
}

#[test]
fn a_quiet_connection_is_closed_without_a_word() {
    check(case().send(GET).advance(74_999), "200 /a; open", 74_999);
    check(case().send(GET).advance(75_000), "200 /a; Idle", 75_000);
    let busy = (0..10).fold(case(), |case, _| case.send(GET).advance(60_000));
    let outcome = busy.run();
    assert_eq!(outcome.end, "open");
    assert_eq!(outcome.brief().matches("200 /a").count(), 10);
}

#[test]
fn a_quiet_connection_is_put_aside_and_taken_up_again() {
    let outcome = case()
        .send(GET)
        .advance(999)
        .send(GET)
        .advance(1_000)
        .advance(5_000)
        .send(GET)
        .advance(74_999)
        .send(GET)
        .advance(74_999)
        .advance(1)
        .run();
    assert_eq!(outcome.brief(), "200 /a, 200 /a, 200 /a, 200 /a; Idle");
    assert_eq!(outcome.parked, 3);
    // A head that has begun is no quiet connection.
    let half = case()
        .send(GET)
        .send(&GET[..10])
        .advance(5_000)
        .send(&GET[10..])
        .run();
    assert_eq!((&*half.brief(), half.parked), ("200 /a, 200 /a; open", 0));
    let never = case()
        .with(|settings| settings.timeouts.park = std::time::Duration::ZERO)
        .send(GET)
        .advance(50_000)
        .send(GET)
        .run();
    assert_eq!((&*never.brief(), never.parked), ("200 /a, 200 /a; open", 0));
}

#[test]
fn a_crowd_is_put_aside_sooner() {
    for (active, waits) in [(1, 1_000), (COMFORTABLE, 1_000), (COMFORTABLE * 10, 10)] {
        let parked = |wait| case().beside(active).send(GET).advance(wait).run().parked;
        assert_eq!((parked(waits - 1), parked(waits)), (0, 1), "{active}");
    }
    let never = case()
        .with(|settings| settings.timeouts.park = std::time::Duration::ZERO)
        .beside(COMFORTABLE * 10)
        .send(GET)
        .advance(50_000);
    assert_eq!(never.run().parked, 0);
}

/// A body of 10,000 bytes that comes at this many bytes a second for 30 seconds.
fn upload(bytes_a_second: usize) -> Outcome {
    let head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 10000\r\n\r\n";
    let piece = "x".repeat(bytes_a_second);
    (0..30)
        .fold(case().send(head), |case, _| case.advance(1000).send(&piece))
        .run()
}

#[test]
fn a_body_has_to_come_at_240_bytes_a_second_after_a_grace_of_ten() {
    let fast = upload(241);
    assert_eq!((&*fast.brief(), fast.ended_at), ("; open", 30_000));
    let slow = upload(100);
    assert_eq!(slow.brief(), "408 close; Finished");
    // 10 s, and 4.1 s for each 1,000 bytes.
    assert!(
        (10_000..20_000).contains(&slow.ended_at),
        "{}",
        slow.ended_at
    );
    let none = upload(0);
    assert_eq!(none.brief(), "408 close; Finished");
}

fn large(kind: &str) -> Response {
    let data = vec![b'x'; 1 << 20];
    match kind {
        "bytes" => Response::new(Status::OK).with_body(data),
        "reader" => Response::new(Status::OK).with_body(Body::Reader {
            reader: Box::new(io::Cursor::new(data)),
            length: None,
        }),
        "writer" => Response::stream(move |out| out.write_all(&data)),
        _ => {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&data).unwrap();
            Response::file(FileRange::new(Arc::new(file), 0, 1 << 20))
        }
    }
}

#[test]
fn a_reader_that_stalls_ends_the_connection_and_a_slow_one_does_not() {
    for kind in ["bytes", "reader", "writer", "file"] {
        let download = || {
            Case::new(move |_: &mut Request<'_>| large(kind))
                .capacity(64 << 10)
                .stop_reading()
                .send(GET)
        };
        let stalled = download().advance(29_999).advance(1).run();
        // The peer's doing, and not a body of ours that failed.
        assert_eq!(stalled.end, "Failed(TimedOut)", "{kind}");
        assert_eq!(stalled.ended_at, 30_000, "{kind}");
        // After a fast start it may rest for 30 seconds and no longer.
        let rested = (0..30)
            .fold(download().take(60_000), |case, _| case.advance(1_000))
            .run();
        assert!(rested.end.contains("Failed"), "{kind}: {}", rested.end);
        // 64 KiB every 25 seconds are more than 240 bytes a second.
        let slow = (0..17).fold(download().advance(5_000).take(64 << 10), |case, _| {
            case.advance(25_000).take(64 << 10)
        });
        let outcome = slow.run();
        assert_eq!(outcome.end, "open", "{kind}");
        assert!(outcome.received.len() > 1 << 20, "{kind}");
    }
}

#[test]
fn a_client_that_ends_its_side_is_answered_and_then_the_connection_closes() {
    // RFC 9112 section 9.6
    check(case().send(GET).end(), "200 /a; Peer", 0);
    check(
        case().send(GET.repeat(3)).end(),
        "200 /a, 200 /a, 200 /a; Peer",
        0,
    );
    check(case().end(), "; Peer", 0);
    check(case().send(&GET[..10]).end(), "; Truncated", 0);
    check(case().send(GET).send("GE").end(), "200 /a; Truncated", 0);
}

#[test]
fn after_a_refusal_the_client_has_two_seconds_to_read_why() {
    let refused = || case().send("GET /\r\n\r\n");
    let want = "400 close; Refused(InvalidRequestLine)";
    // It goes on sending: nothing of it is looked at, and the answer stays readable.
    let busy = (0..30).fold(refused(), |case, _| {
        case.send("x".repeat(10_000)).advance(100)
    });
    let outcome = busy.run();
    assert!(outcome.lingered);
    assert_eq!((&*outcome.brief(), outcome.ended_at), (want, 2_000));
    // It has gone.
    check(refused().advance(500).end().advance(500), want, 500);
    let at_once = case()
        .with(|settings| settings.timeouts.linger = std::time::Duration::ZERO)
        .send("GET /\r\n\r\n");
    let outcome = at_once.advance(500).run();
    assert_eq!((outcome.lingered, outcome.ended_at), (false, 0));
}

#[test]
fn a_stopping_server_closes_idle_connections_and_lets_active_ones_finish() {
    check(case().stop_server(), "; Stopping", 0);
    check(case().send(GET).stop_server(), "200 /a; Stopping", 0);
    // Half a head is a request on its way.
    let half = case().send(&GET[..10]).stop_server();
    check(half.send(&GET[10..]), "200 close /a; Finished", 0);
    let post = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n";
    check(
        case().send(post).stop_server().send("hello"),
        "200 close hello; Finished",
        0,
    );
    // Of several requests the first is answered, and says that the others will not be.
    check(
        case()
            .send(post)
            .stop_server()
            .send(format!("hello{GET}{GET}")),
        "200 close hello; Finished",
        0,
    );
}
