//! Do redirects, downloads, events and error answers reach the client as it can read them?

use std::io::ErrorKind;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use cloudgate::{
    App, Download, Headers, HttpError, Json, LastEventId, Method, NotLocal, Notify, Problem, Query,
    Redirect, Rejection, Sse, SseEvent, Status, Version, route,
};
use cloudgate_suite::{Answer, LIMIT, Wire, ask, get, start, start_with};
use serde::Deserialize;

#[derive(Deserialize)]
struct Next {
    next: String,
}

#[route("/answers/found")]
fn found(Query(Next { next }): Query<Next>) -> Redirect {
    Redirect::found(&next)
}

#[route("/answers/local")]
fn local(Query(Next { next }): Query<Next>) -> Result<Redirect, NotLocal> {
    Redirect::to_local(&next)
}

#[test]
fn a_redirect_is_encoded_and_cannot_split_the_response() {
    let server = start(crate::app());
    for (next, want) in [
        ("/a?b=c%23d", "/a?b=c#d"),
        ("/caf%C3%A9+1", "/caf%C3%A9%201"),
        (
            "/%0D%0ASet-Cookie:+a=b%0D%0A%0D%0A%3Chtml%3E",
            "/%0D%0ASet-Cookie:%20a=b%0D%0A%0D%0A%3Chtml%3E",
        ),
        ("https://example.com/%25zz", "https://example.com/%25zz"),
    ] {
        let answer = get(server.addr(), &format!("/answers/found?next={next}"));
        assert_eq!(answer.status, 302);
        assert_eq!(answer.header("location"), Some(want), "{next}");
        assert!(answer.header("set-cookie").is_none() && answer.body.is_empty());
    }
}

#[test]
fn a_target_that_the_client_chose_stays_on_the_site() {
    let server = start(crate::app());
    for (next, want) in [
        ("/cart?id=7", Some("/cart?id=7")),
        ("//evil.example", None),
        ("/%09/evil.example", None),
        ("/%5Cevil.example", None),
        ("https://evil.example", None),
    ] {
        let answer = get(server.addr(), &format!("/answers/local?next={next}"));
        let status = if want.is_some() { 303 } else { 400 };
        assert_eq!((answer.status, answer.header("location")), (status, want));
    }
}

#[route("/answers/download")]
fn download(Query(Next { next }): Query<Next>) -> Download {
    Download::bytes(next, "data")
}

#[test]
fn a_download_has_a_name_that_is_harmless() {
    let server = start(crate::app());
    for (name, want) in [
        ("a.csv", "attachment; filename=\"a.csv\""),
        (
            "%E2%82%AC+%22x%22.csv",
            "attachment; filename=\"_ _x_.csv\"; filename*=UTF-8''%E2%82%AC%20%22x%22.csv",
        ),
        (
            "..%2F..%2Fa%0D%0ASet-Cookie:b.csv",
            "attachment; filename=\"a__Set-Cookie:b.csv\"",
        ),
    ] {
        let answer = get(server.addr(), &format!("/answers/download?next={name}"));
        assert_eq!(answer.header("content-disposition"), Some(want));
        assert_eq!(
            answer.header("content-type"),
            Some("text/csv; charset=utf-8")
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(answer.header("set-cookie").is_none());
        assert_eq!(answer.text(), "data");
    }
}

#[test]
fn a_file_is_downloaded_whole_and_one_that_is_not_there_is_a_404() {
    let folder = tempfile::tempdir().expect("a folder");
    let content = vec![b'x'; 1 << 20];
    std::fs::write(folder.path().join("big.bin"), &content).expect("a file");
    let root = folder.path().to_owned();
    let server = start(App::new().get(
        "/get/{name}",
        move |request: &mut cloudgate::Request<'_>| {
            Download::file(root.join(request.parameter("name").unwrap_or_default()))
        },
    ));
    let answer = get(server.addr(), "/get/big.bin");
    assert_eq!(answer.header("content-length"), Some("1048576"));
    assert!(answer.body == content, "{} bytes", answer.body.len());
    assert_eq!(get(server.addr(), "/get/other.bin").status, 404);
}

#[test]
fn a_download_that_broke_off_goes_on_and_a_known_one_does_not_come_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.bin");
    let content: Vec<u8> = (0..700_000).map(|at| (at % 251) as u8).collect();
    std::fs::write(&path, &content).expect("a file");
    let server = start(App::new().get("/a", move || Download::file(&path)));
    let mut wire = Wire::open(server.addr());
    let mut ask = |fields: &str| {
        wire.send(format!("GET /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        wire.answer()
    };
    let whole = ask("");
    assert_eq!((whole.status, whole.body.len()), (200, content.len()));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    let tag = whole.header("etag").expect("an entity-tag").to_owned();
    let rest = ask("Range: bytes=1000-\r\n");
    assert_eq!(rest.status, 206);
    assert_eq!(
        rest.header("content-range"),
        Some("bytes 1000-699999/700000")
    );
    assert!(rest.body == content[1000..]);
    let parts = ask("Range: bytes=5-104,-200000\r\n");
    assert_eq!(parts.status, 206);
    let boundary = parts
        .header("content-type")
        .and_then(|value| value.split_once("; boundary="));
    let boundary = boundary.expect("a boundary").1;
    let mut want = Vec::new();
    for (line_break, start, end) in [("", 5, 105), ("\r\n", 500_000, 700_000)] {
        let last = end - 1;
        want.extend_from_slice(
            format!(
                "{line_break}--{boundary}\r\nContent-Type: application/octet-stream\r\n\
                 Content-Range: bytes {start}-{last}/700000\r\n\r\n"
            )
            .as_bytes(),
        );
        want.extend_from_slice(&content[start..end]);
    }
    want.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    assert!(
        parts.body == want,
        "{} bytes, not {}",
        parts.body.len(),
        want.len()
    );
    let past = ask("Range: bytes=700000-\r\n");
    assert_eq!(
        (past.status, past.header("content-range")),
        (416, Some("bytes */700000"))
    );
    let known = ask(&format!("If-None-Match: {tag}\r\nRange: bytes=1-2\r\n"));
    assert_eq!((known.status, known.body.len()), (304, 0));
    assert_eq!(ask("If-Match: \"other\"\r\n").status, 412);
}

#[test]
fn events_end_by_themselves_when_the_server_stops() {
    let server = start(App::new().get("/events", || {
        Sse::new(|events| {
            loop {
                events.keep_alive()?;
                cloudgate::sleep(Duration::from_millis(5));
            }
        })
    }));
    let mut wire = Wire::open(server.addr());
    wire.send("GET /events HTTP/1.1\r\nHost: h\r\n\r\n");
    wire.answer_to_head();
    assert_eq!(wire.take(8), b"3\r\n:\n\n\r\n");
    assert_eq!(server.shutdown(LIMIT), 0, "it was not cut");
    let rest = wire.rest();
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.ends_with("0\r\n\r\n"), "the body is whole: {rest:?}");
}

#[test]
fn events_arrive_one_by_one_and_the_sender_hears_that_the_client_left() {
    let go = Arc::new(Notify::new());
    let (ended, ends) = mpsc::channel();
    let theirs = Arc::clone(&go);
    let server = start(
        App::new().get("/events", move |request: &mut cloudgate::Request<'_>| {
            let go = Arc::clone(&theirs);
            let ended = ended.clone();
            let last = request.header("last-event-id").unwrap_or("0").to_owned();
            Sse::new(move |events| {
                go.wait();
                events.send(
                    SseEvent::data(format!("after {last}\nline"))
                        .id("8")
                        .name("n"),
                )?;
                go.wait();
                let failed = loop {
                    if let Err(error) = events.keep_alive() {
                        break error;
                    }
                    cloudgate::sleep(Duration::from_millis(1));
                };
                // The test may have failed and gone already.
                let _ = ended.send(failed.kind());
                Err(failed)
            })
        }),
    );
    let mut wire = Wire::open(server.addr());
    wire.send("GET /events HTTP/1.1\r\nHost: h\r\nLast-Event-ID: 7\r\n\r\n");
    // The head comes before the first event: the page knows that it is connected.
    let head = wire.answer_to_head();
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("cache-control"), Some("no-store"));
    go.notify_one();
    let event = "id: 8\nevent: n\ndata: after 7\ndata: line\n\n";
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    assert_eq!(String::from_utf8_lossy(&wire.take(chunk.len())), chunk);
    go.notify_one();
    assert_eq!(wire.take(8), b"3\r\n:\n\n\r\n");
    drop(wire);
    let kind = ends.recv_timeout(LIMIT).expect("the sender's end");
    assert!(
        matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
        "{kind:?}"
    );
}

#[route("/answers/conflict")]
fn conflict() -> Result<&'static str, HttpError> {
    Err(HttpError::new(Status::CONFLICT, "<there> already"))
}

#[route("/answers/problem")]
fn problem() -> Problem {
    Problem::new(Status::FORBIDDEN)
        .type_uri("https://example.com/credit")
        .with("balance", 30)
}

#[test]
fn an_error_answer_has_the_form_that_the_client_asks_for() {
    let server = start(crate::app());
    let send = |line: &str, accept: &str| -> Answer {
        ask(
            server.addr(),
            format!("{line} HTTP/1.1\r\nHost: h\r\nAccept: {accept}\r\nContent-Length: 0\r\n\r\n"),
        )
    };
    for (line, status) in [
        ("GET /answers/conflict", 409),
        ("GET /answers/nothing", 404),
        ("DELETE /answers/conflict", 405),
        ("GET /extract/path/x", 400),
        ("GET /replies/failed", 500),
    ] {
        let json = send(line, "application/json");
        assert_eq!(json.status, status, "{line}");
        assert_eq!(
            json.header("content-type"),
            Some("application/problem+json")
        );
        assert_eq!(json.json()["status"], status);
        let html = send(line, "text/html,application/xhtml+xml,*/*;q=0.8");
        assert_eq!(html.status, status, "{line}");
        assert_eq!(
            html.header("content-type"),
            Some("text/html; charset=utf-8")
        );
        assert_eq!(html.header("vary"), Some("Accept"));
        let text = send(line, "*/*");
        assert_eq!(
            text.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        for answer in [&json, &html, &text] {
            assert_eq!(answer.header("allow").is_some(), status == 405, "{line}");
            assert!(!answer.text().contains("secret"), "{}", answer.text());
            assert!(answer.header("date").is_some());
        }
    }
    let html = send("GET /answers/conflict", "text/html").text();
    assert!(html.contains("&lt;there&gt; already"), "{html}");
    let problem = send("GET /answers/problem", "text/html");
    assert_eq!(
        problem.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(problem.json()["balance"], 30);
}

#[route(POST, "/answers/optional")]
fn optional(body: Option<Json<u8>>) -> String {
    format!("{:?}", body.map(|Json(number)| number))
}

#[route(POST, "/answers/result")]
fn result(body: Result<Json<u8>, Rejection>) -> String {
    format!(
        "{:?}",
        body.map_err(|rejection| rejection.status().as_u16())
    )
}

#[test]
fn an_optional_body_that_could_not_be_read_is_not_taken_for_none() {
    let server = start_with(crate::app(), |settings| settings.body_limit = 3);
    let chunked = "Transfer-Encoding: chunked\r\n\r\n";
    for (path, body, status, text) in [
        ("optional", "Content-Length: 1\r\n\r\n7", 200, "Some(7)"),
        ("optional", "Content-Length: 0\r\n\r\n", 200, "None"),
        ("optional", "Content-Length: 1\r\n\r\nx", 200, "None"),
        ("optional", "Content-Length: 3\r\n\r\n007", 200, "None"),
        (
            "optional",
            "Content-Length: 4\r\n\r\n1   ",
            413,
            "413 Payload Too Large",
        ),
        (
            "optional",
            &format!("{chunked}4\r\n1   \r\n0\r\n\r\n"),
            413,
            "413 Payload Too Large",
        ),
        (
            "optional",
            &format!("{chunked}x\r\n"),
            400,
            "400 Bad Request",
        ),
        ("result", "Content-Length: 4\r\n\r\n1   ", 200, "Err(413)"),
    ] {
        let answer = ask(
            server.addr(),
            format!(
                "POST /answers/{path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n{body}"
            ),
        );
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        assert!(answer.text().starts_with(text), "{body}: {}", answer.text());
    }
}

#[route(GET, PUT, "/answers/head")]
fn head(headers: Headers, method: Method, version: Version, last: LastEventId) -> String {
    format!(
        "{method} {version:?} {:?} {:?}",
        headers.get("x-one"),
        last.0
    )
}

#[test]
fn the_parts_of_a_head_are_arguments() {
    let server = start(crate::app());
    let answer = ask(
        server.addr(),
        "PUT /answers/head HTTP/1.0\r\nHost: h\r\nx-ONE: 1\r\nLast-Event-ID: 9\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(answer.text(), "PUT Http10 Some(\"1\") Some(\"9\")");
}
