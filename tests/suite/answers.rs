//! Do redirects, downloads and events reach the client as it can read them?

use std::io::ErrorKind;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use cloudgate::{App, Download, NotLocal, Notify, Query, Redirect, Sse, SseEvent, route};
use cloudgate_suite::{LIMIT, Wire, get, start};
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
