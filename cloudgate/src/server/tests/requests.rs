//! Which requests are answered, in which order, and which are refused?

use super::script::{Case, check, check_with, echo};
use crate::message::{Request, Response};

/// A request with these lines behind the request line.
fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

#[test]
fn a_connection_lives_on_as_both_sides_want() {
    // RFC 9112 section 9.3
    check(get("/a", ""), "200 /a; open");
    check(
        get("/a", "") + &get("/b", "Connection: close\r\n"),
        "200 /a, 200 close /b; Finished",
    );
    check(
        get("/a", "Connection: close\r\n") + &get("/b", ""),
        "200 close /a; Finished",
    );
    check("GET /a HTTP/1.0\r\n\r\n", "200 close /a; Finished");
    check(
        "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
        "200 keep-alive /a, 200 close /b; Finished",
    );
    check(
        get("/a", "Connection: foo, ClOsE\r\n"),
        "200 close /a; Finished",
    );
    // A later minor version is 1.1 to us (RFC 9110 section 2.5).
    check("GET /a HTTP/1.2\r\nHost: h\r\n\r\n", "200 /a; open");
    // An empty line in front of a request is skipped (RFC 9112 section 2.2).
    check(
        format!("\r\n{}\r\n{}", get("/a", ""), get("/b", "")),
        "200 /a, 200 /b; open",
    );
    check("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "200 *; open");
    check(
        "GET http://h/x?y HTTP/1.1\r\nHost: h\r\n\r\n",
        "200 /x; open",
    );
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let post = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";
    let chunked =
        "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    check(
        get("/1", "") + post + &get("/2", "") + chunked + &get("/3", ""),
        "200 /1, 200 hello, 200 /2, 200 abc, 200 /3; open",
    );
}

#[test]
fn more_requests_than_a_turn_takes_are_all_answered() {
    let input: String = (0..40)
        .map(|number| get(&format!("/{number}"), ""))
        .collect();
    let outcome = Case::new(echo).send(input).run();
    let want: Vec<_> = (0..40).map(|number| format!("200 /{number}")).collect();
    assert_eq!(outcome.brief(), want.join(", ") + "; open");
    assert_eq!(outcome.turns, 1);
}

#[test]
fn malformed_heads_get_their_status_and_the_connection_ends() {
    for (head, status) in [
        // Request lines: RFC 9112 section 3
        ("GET /\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400),
        (" GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET / http/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /#a HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        ("GET / HTTP/0.9\r\nHost: h\r\n\r\n", 505),
        ("\x16\x03\x01\x02\r\n\r\n", 400),
        // Line ends: section 2.2
        ("GET / HTTP/1.1\nHost: h\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", 400),
        // Fields: section 5
        ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\n A: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\n A: b\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nA\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nA: b\0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nA\0: b\r\n\r\n", 400),
        // Host: section 3.2
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        // Framing: section 6.3, and the request smuggling cases of CVE-2019-16276 and its kin
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\na",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\na",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551616\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\x0bchunked\r\n\r\n",
            400,
        ),
        (
            "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        // Expectations: RFC 9110 section 10.1.1
        ("POST / HTTP/1.1\r\nHost: h\r\nExpect: coffee\r\n\r\n", 417),
    ] {
        // What comes behind a refused head is never answered: nobody knows where it begins.
        let input = format!("{head}{}", get("/smuggled", ""));
        let case = |input: &str| Case::new(echo).send(input);
        let whole = case(&input).run();
        assert!(whole.lingered, "{head:?}");
        let end = &whole.end;
        assert!(end.starts_with("Refused("), "{head:?}: {end}");
        check(head, &format!("{status} close; {end}"));
        assert_eq!(whole.brief(), format!("{status} close; {end}"), "{head:?}");
        let behind_a_good_one = case(&(get("/a", "") + head)).run().brief();
        assert_eq!(behind_a_good_one, format!("200 /a, {status} close; {end}"));
    }
}

#[test]
fn limits_on_heads_hold_at_the_limit_and_one_past_it() {
    let refused = |status: u16, rule: &str| format!("{status} close; Refused({rule})");
    let target = |length: usize| get(&format!("/{}", "a".repeat(length - 1)), "");
    let small = |case: Case| {
        case.with(|settings| {
            settings.limits.target = 20;
            settings.limits.head = 120;
            settings.limits.fields = 3;
        })
    };
    let answered = |length: usize| format!("200 /{}; open", "a".repeat(length - 1));
    check_with(small, target(20).as_bytes(), &answered(20));
    check_with(small, target(21).as_bytes(), &refused(414, "TargetTooLong"));
    let head = |length: usize| get("/a", &format!("A: {}\r\n", "b".repeat(length - 33)));
    assert_eq!(head(120).len(), 120);
    check_with(small, head(120).as_bytes(), "200 /a; open");
    check_with(small, head(121).as_bytes(), &refused(431, "HeadTooLarge"));
    let fields = |count: usize| get("/a", &"A: b\r\n".repeat(count - 1));
    check_with(small, fields(3).as_bytes(), "200 /a; open");
    check_with(small, fields(4).as_bytes(), &refused(431, "TooManyFields"));

    // The defaults: 8 KiB, 64 KiB, 100 fields.
    let brief = |input: String| Case::new(echo).send(input).run().brief();
    assert_eq!(brief(target(8 << 10)), answered(8 << 10));
    assert_eq!(brief(target((8 << 10) + 1)), refused(414, "TargetTooLong"));
    assert_eq!(brief(head(64 << 10)), "200 /a; open");
    assert_eq!(brief(head((64 << 10) + 1)), refused(431, "HeadTooLarge"));
    assert_eq!(brief(fields(100)), "200 /a; open");
    assert_eq!(brief(fields(101)), refused(431, "TooManyFields"));
    // A head that never ends is refused at its limit too.
    assert_eq!(
        brief(head(1 << 20)[..1 << 19].to_owned()),
        refused(431, "HeadTooLarge")
    );
    assert_eq!(
        brief(format!("GET /{}", "a".repeat(1 << 19))),
        refused(414, "TargetTooLong")
    );
}

#[test]
fn buffers_of_a_large_request_do_not_reach_the_next_one() {
    let large = get("/large", &format!("A: {}\r\n", "b".repeat(60 << 10)));
    let outcome = Case::new(|request: &mut Request<'_>| {
        let a = request.header("a").map_or(0, str::len);
        Response::text_plain(format!("{} {a}", request.path()))
    })
    .send(large)
    .advance(2000)
    .send(get("/small", ""))
    .run();
    assert_eq!(outcome.brief(), "200 /large 61440, 200 /small 0; open");
}
