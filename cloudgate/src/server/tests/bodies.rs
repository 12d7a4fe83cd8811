//! Does a request's body reach the handler whole, or not at all?

use std::io::Read;
use std::sync::{Arc, Mutex};

use super::script::{Case, check, check_with, echo};
use crate::message::{Request, Response};
use http::StatusCode as Status;

fn sized(body: &str) -> String {
    let length = body.len();
    format!("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn chunked(framed: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{framed}")
}

const NEXT: &str = "GET /next HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn a_large_body_comes_in_whole_and_the_next_request_behind_it() {
    let large = "x".repeat(1 << 20);
    let outcome = Case::new(echo)
        .capacity(64 << 10)
        .send(sized(&large) + NEXT)
        .run();
    assert_eq!(outcome.brief(), format!("200 {large}, 200 /next; open"));
}

#[test]
fn a_body_that_is_cut_off_is_never_handed_over_as_complete() {
    // RFC 9112 section 8
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    for input in [
        sized("hello"),
        chunked("5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n"),
    ] {
        let body_at = input.find("\r\n\r\n").unwrap() + 4;
        for end in body_at..input.len() {
            let seen = Arc::clone(&outcomes);
            let service = move |request: &mut Request<'_>| {
                let body = request.body().read_all();
                // Whoever tries again is told again.
                assert_eq!(body.is_err(), request.body().read_all().is_err());
                seen.lock().unwrap().push(body.is_ok());
                Response::new(Status::OK)
            };
            let outcome = Case::new(service).send(&input[..end]).end().run();
            assert_eq!(
                outcome.brief(),
                "200 close; Finished",
                "{:?}",
                &input[..end]
            );
        }
    }
    let outcomes = outcomes.lock().unwrap();
    assert!(outcomes.len() > 20 && outcomes.iter().all(|whole| !whole));
    // The extractors' own answer.
    let outcome = Case::new(echo)
        .send(sized("hello").trim_end_matches("lo"))
        .end()
        .run();
    assert_eq!(outcome.brief(), "400 close; Finished");
}

#[test]
fn the_body_limit_holds_at_the_limit_and_one_past_it() {
    let limited = |case: Case| case.with(|settings| settings.body_limit = 5);
    check_with(
        limited,
        (sized("hello") + NEXT).as_bytes(),
        "200 hello, 200 /next; open",
    );
    check_with(
        limited,
        (chunked("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n") + NEXT).as_bytes(),
        "200 hello, 200 /next; open",
    );
    // Refused by the head alone: none of the body was sent.
    let head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n";
    check_with(limited, head.as_bytes(), "413 close; Finished");
    // A chunk's size is known before its bytes are.
    let outcome = limited(Case::new(echo)).send(chunked("6\r\n")).run();
    assert_eq!(outcome.brief(), "413 close; Finished");

    // The default is 2 MiB.
    let most = "x".repeat(2 << 20);
    let brief = |body: &str| Case::new(echo).send(sized(body)).run().brief();
    assert_eq!(brief(&most), format!("200 {most}; open"));
    assert!(brief(&format!("{most}x")).starts_with("413 close"));
}

#[test]
fn limits_on_chunk_framing_hold_at_the_limit_and_one_past_it() {
    let limited = |case: Case| {
        case.with(|settings| {
            settings.limits.chunk_extensions = 4;
            settings.limits.trailers = 8;
        })
    };
    check_with(
        limited,
        chunked("1;abcd\r\nx\r\n0\r\n\r\n").as_bytes(),
        "200 x; open",
    );
    check_with(
        limited,
        chunked("1;abcde\r\nx\r\n0\r\n\r\n").as_bytes(),
        "400 close; Finished",
    );
    check_with(
        limited,
        chunked("0\r\nA: b\r\n\r\n").as_bytes(),
        "200; open",
    );
}

#[test]
fn a_small_body_that_nobody_reads_is_skipped_and_a_large_one_ends_the_connection() {
    let post = |length: usize| {
        let body = "x".repeat(length);
        format!("POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    let run = |input: String| Case::new(echo).send(input + NEXT).run();
    assert_eq!(run(post(1000)).brief(), "200 /unread, 200 /next; open");
    let large = run(post(200 << 10));
    assert_eq!(large.brief(), "200 close /unread; Finished");
    assert!(large.lingered);
    // Not all of it is there yet: waiting for it would hold the answer up.
    let late = Case::new(echo).send(&post(1000)[..500]).run();
    assert_eq!(late.brief(), "200 close /unread; Finished");

    let first_byte = |request: &mut Request<'_>| {
        let mut byte = [0];
        request.body().read_exact(&mut byte).unwrap();
        Response::text_plain(String::from_utf8_lossy(&byte).into_owned())
    };
    let outcome = Case::new(first_byte).send(post(1000) + &post(7)).run();
    assert_eq!(outcome.brief(), "200 x, 200 x; open");
}

const EXPECT: &str =
    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";

#[test]
fn leave_to_send_is_given_when_the_handler_reads_and_only_then() {
    // RFC 9110 section 10.1.1
    let brief = |case: Case| case.run().brief();
    let waiting = || Case::new(echo).send(EXPECT);
    assert_eq!(
        brief(waiting().send("hello").send(NEXT)),
        "100, 200 hello, 200 /next; open"
    );
    // The client did not wait: it needs no leave.
    let at_once = Case::new(echo).send(EXPECT.to_owned() + "hello" + NEXT);
    assert_eq!(brief(at_once), "200 hello, 200 /next; open");
    // The handler does not want it: whether it comes now, nobody can know.
    let unread = EXPECT.replace("/echo", "/unread");
    let refused = Case::new(echo).send(&unread).send("hello").send(NEXT);
    assert_eq!(brief(refused), "200 close /unread; Finished");
    // Too large by its own word.
    let limited = Case::new(echo).with(|settings| settings.body_limit = 4);
    assert_eq!(brief(limited.send(EXPECT)), "413 close; Finished");
    // It never comes.
    assert_eq!(brief(waiting().advance(9_999)), "100; open");
    assert_eq!(brief(waiting().advance(10_000)), "100, 408 close; Finished");
    assert_eq!(brief(waiting().end()), "100, 400 close; Finished");
    // HTTP/1.0 clients do not know it, and a request without a body does not need it.
    let old = EXPECT.replace("HTTP/1.1", "HTTP/1.0");
    assert_eq!(
        brief(Case::new(echo).send(old).send("hello")),
        "200 close hello; Finished"
    );
    let bodiless = "GET /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n";
    check(bodiless, "200 /a; open");
}

#[test]
fn earlier_answers_do_not_wait_for_a_body() {
    let outcome = Case::new(echo)
        .send(NEXT.to_owned() + sized("hello").trim_end_matches("lo"))
        .run();
    assert_eq!(outcome.brief(), "200 /next; open");
}

#[test]
fn a_body_is_read_piece_by_piece_as_it_comes() {
    let sizes = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&sizes);
    let service = move |request: &mut Request<'_>| {
        assert_eq!(request.body().length(), Some(300 << 10));
        request.body().set_limit(1 << 20);
        let mut buffer = vec![0; 1 << 20];
        loop {
            match request.body().read(&mut buffer).unwrap() {
                0 => break,
                count => seen.lock().unwrap().push(count),
            }
        }
        Response::new(Status::NO_CONTENT)
    };
    let outcome = Case::new(service)
        .capacity(10 << 10)
        .send(sized(&"x".repeat(300 << 10)) + NEXT)
        .with(|settings| settings.body_limit = 10)
        .run();
    assert!(outcome.brief().starts_with("204, "), "{}", outcome.brief());
    let sizes = sizes.lock().unwrap();
    assert_eq!(sizes.iter().sum::<usize>(), 300 << 10);
    // Never more than the pipe holds: nothing is gathered behind the handler's back.
    assert!(sizes.iter().all(|size| *size <= 16 << 10), "{sizes:?}");
}
