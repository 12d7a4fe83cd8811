//! What does a client get for each thing that a handler may return?

use std::borrow::Cow;

use cloudgate::{Bytes, Html, HttpError, IntoResponse, Json, Response, Status, route};
use cloudgate_suite::{Wire, ask, get, start};
use serde_json::{Value, json};

#[route("/replies/nothing")]
fn nothing() {}

#[route("/replies/str")]
fn text() -> &'static str {
    "text"
}

#[route("/replies/cow")]
fn cow() -> Cow<'static, str> {
    Cow::Borrowed("cow")
}

#[route("/replies/html")]
fn html() -> Html<String> {
    Html("<p>".to_owned())
}

#[route("/replies/json")]
fn value() -> Json<Value> {
    Json(json!({"a": [1, null]}))
}

#[route("/replies/bytes")]
fn bytes() -> Bytes {
    Bytes::from_static(b"\0\xff")
}

#[route("/replies/vector")]
fn vector() -> Vec<u8> {
    vec![1, 2]
}

#[route("/replies/status")]
fn status() -> Status {
    Status::IM_A_TEAPOT
}

#[route("/replies/created")]
fn created() -> (Status, &'static str) {
    (Status::CREATED, "made")
}

#[route("/replies/none")]
fn none() -> Option<&'static str> {
    None
}

#[route("/replies/refused")]
fn refused() -> Result<&'static str, HttpError> {
    Err(HttpError::new(Status::CONFLICT, "it is there already"))
}

#[route("/replies/failed")]
fn failed() -> Result<String, HttpError> {
    Ok(std::fs::read_to_string("/nowhere/secret-name")?)
}

#[route("/replies/own")]
fn own() -> impl IntoResponse {
    Response::html("own")
        .with_status(Status::ACCEPTED)
        .header("X-One", "1")
}

#[route("/replies/panic")]
fn panics() -> &'static str {
    unreachable!("secret-reason")
}

#[route("/replies/blocking-panic")]
fn panics_on_the_pool() -> &'static str {
    cloudgate::blocking(panics)
}

#[test]
fn every_reply_has_its_status_type_and_body() {
    const TEXT: &str = "text/plain; charset=utf-8";
    let server = start(crate::app());
    for (target, status, content_type, body) in [
        ("/replies/nothing", 204, None, &b""[..]),
        ("/replies/str", 200, Some(TEXT), b"text"),
        ("/replies/cow", 200, Some(TEXT), b"cow"),
        (
            "/replies/html",
            200,
            Some("text/html; charset=utf-8"),
            b"<p>",
        ),
        (
            "/replies/json",
            200,
            Some("application/json"),
            b"{\"a\":[1,null]}",
        ),
        (
            "/replies/bytes",
            200,
            Some("application/octet-stream"),
            b"\0\xff",
        ),
        (
            "/replies/vector",
            200,
            Some("application/octet-stream"),
            b"\x01\x02",
        ),
        ("/replies/status", 418, Some(TEXT), b"418 I'm a teapot\n"),
        ("/replies/created", 201, Some(TEXT), b"made"),
        ("/replies/none", 404, Some(TEXT), b"404 Not Found\n"),
        (
            "/replies/refused",
            409,
            Some(TEXT),
            b"409 Conflict: it is there already\n",
        ),
        (
            "/replies/own",
            202,
            Some("text/html; charset=utf-8"),
            b"own",
        ),
        // What went wrong inside stays inside.
        (
            "/replies/failed",
            500,
            Some(TEXT),
            b"500 Internal Server Error\n",
        ),
        (
            "/replies/panic",
            500,
            Some(TEXT),
            b"500 Internal Server Error\n",
        ),
        (
            "/replies/blocking-panic",
            500,
            Some(TEXT),
            b"500 Internal Server Error\n",
        ),
    ] {
        let answer = get(server.addr(), target);
        assert_eq!(
            (answer.status, answer.header("content-type"), &*answer.body),
            (status, content_type, body),
            "{target}"
        );
        assert!(answer.header("date").is_some(), "{target}");
    }
    assert_eq!(
        get(server.addr(), "/replies/own").header("x-one"),
        Some("1")
    );
}

#[test]
fn a_panic_ends_its_connection_and_nothing_else() {
    let server = start(crate::app());
    let mut other = Wire::open(server.addr());
    assert_eq!(other.send_get("/replies/str").answer().status, 200);
    for _ in 0..20 {
        let mut wire = Wire::open(server.addr());
        let answer = wire.send_get("/replies/panic").answer();
        assert_eq!(
            (answer.status, answer.header("connection")),
            (500, Some("close"))
        );
        wire.ends();
    }
    assert_eq!(other.send_get("/replies/str").answer().text(), "text");
}

#[route("/replies/broken")]
fn broken() -> Response {
    Response::stream(|out| {
        std::io::Write::write_all(out, b"part")?;
        Err(std::io::Error::other("no more"))
    })
}

#[test]
fn a_body_that_fails_does_not_destroy_the_answers_in_front_of_it() {
    let server = start(crate::app());
    let mut wire = Wire::open(server.addr());
    wire.send(
        "GET /replies/str HTTP/1.1\r\nHost: h\r\n\r\nGET /replies/broken HTTP/1.1\r\nHost: h\r\n\r\n",
    );
    assert_eq!(wire.answer().text(), "text");
    let rest = wire.rest();
    assert!(
        !rest.ends_with(b"0\r\n\r\n"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
}

#[test]
fn a_panic_leaves_nothing_behind_for_the_next_connection() {
    let server = start(crate::app());
    for _ in 0..20 {
        assert_eq!(get(server.addr(), "/replies/panic").status, 500);
        // What the connection left behind is the next one's.
        let missing =
            "GET /missing HTTP/1.1\r\nHost: h\r\nAccept: text/html\r\nConnection: close\r\n\r\n";
        let page = ask(server.addr(), missing);
        let form = page.header("content-type");
        assert_eq!((page.status, form), (404, Some("text/html; charset=utf-8")));
    }
}
