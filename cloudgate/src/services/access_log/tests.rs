//! Does each request get the line that it should?

use std::sync::Mutex;

use super::*;
use bytes::Bytes;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The lines of one request that is answered like this and whose body is then treated like that.
fn lines(
    request: &mut Request<'_>,
    response: fn() -> Response,
    then: fn(Response),
) -> Vec<serde_json::Value> {
    let kept = Kept::default();
    let log = AccessLog::writer(kept.clone()).format(LogFormat::JsonLines);
    then(log.handle(request, Next::new(&[], &move |_| response())));
    assert!(log.flush());
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn read(response: Response) {
    response.bytes();
}

fn reader(length: Option<u64>) -> Response {
    Response::default().with_body(Body::Reader {
        reader: Box::new(&b"hello"[..]),
        length,
    })
}

#[test]
fn a_line_says_how_much_was_sent_and_whether_it_was_all() {
    type Case = (&'static str, fn() -> Response, fn(Response), u64, bool);
    let cases: [Case; 9] = [
        ("bytes", || Response::html("hello"), drop, 5, false),
        ("nothing", Response::default, drop, 0, false),
        (
            "304",
            || Response::html("a").with_status(StatusCode::NOT_MODIFIED),
            drop,
            0,
            false,
        ),
        (
            "writer",
            || Response::stream(|out| out.write_all(b"hello")),
            read,
            5,
            false,
        ),
        (
            "unread writer",
            || Response::stream(|out| out.write_all(b"a")),
            drop,
            0,
            true,
        ),
        (
            "broken writer",
            || {
                Response::stream(|out| {
                    out.write_all(b"hel")?;
                    Err(io::Error::other("gone"))
                })
            },
            |mut response| {
                let Body::Writer(write) = response.take_body() else {
                    unreachable!("a closure")
                };
                struct Nowhere;
                impl BodySink for Nowhere {
                    fn write_all(&mut self, _: &[u8]) -> io::Result<()> {
                        Ok(())
                    }
                    fn flush(&mut self) -> io::Result<()> {
                        Ok(())
                    }
                }
                assert!(write(&mut BodyWriter::new(&mut Nowhere)).is_err());
            },
            3,
            true,
        ),
        ("reader", || reader(None), read, 5, false),
        ("sized reader", || reader(Some(3)), read, 3, false),
        ("short reader", || reader(Some(6)), read, 5, true),
    ];
    for (name, response, then, bytes, aborted) in cases {
        let lines = lines(&mut Request::get("/"), response, then);
        let [line] = &lines[..] else {
            unreachable!("one line for {name}: {lines:?}")
        };
        assert_eq!(line["bytes"], bytes, "{name}");
        assert_eq!(line["aborted"] == true, aborted, "{name}");
    }
    let mut head = Request::new(Method::HEAD, "/");
    let lines = lines(&mut head, || Response::html("hello"), drop);
    assert_eq!((lines.len(), &lines[0]["bytes"]), (1, &0.into()));
}

#[test]
fn a_panic_is_a_line_too() {
    let kept = Kept::default();
    let log = AccessLog::writer(kept.clone());
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        log.handle(
            &mut Request::get("/"),
            Next::new(&[], &|_| unreachable!("this is what is tested")),
        )
    }));
    assert!(caught.is_err());
    assert!(log.flush());
    let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("\" 500 - "), "{text}");
}

#[test]
fn the_line_knows_the_client_the_user_and_the_id() {
    let mut request = Request::get("/?k=hush");
    request.client = Some("192.0.2.1".parse().unwrap());
    let kept = Kept::default();
    let log = AccessLog::writer(kept.clone()).format(LogFormat::JsonLines);
    let layers = [
        crate::message::Layer::new(crate::services::request_id::RequestIds::new().from_anyone()),
        crate::message::Layer::new(crate::services::auth::BasicAuth::new("a").verify(|_, _| true)),
        crate::message::Layer::new(crate::services::auth::ApiKeyAuth::new(["hush"]).query("k")),
    ];
    let end = |request: &mut Request<'_>| {
        // What happens to the request inside is not what came in.
        let _ = request.headers_mut().set("User-Agent", "forged");
        Response::html(Bytes::from_static(b"in"))
    };
    let mut request = request
        .with_header("X-Request-Id", "id-1")
        .with_header("User-Agent", "curl")
        .with_header("Authorization", "Basic bjpw");
    let response = log.handle(&mut request, Next::new(&layers, &end));
    assert_eq!(response.text(), "in");
    assert!(log.flush());
    let line: serde_json::Value = serde_json::from_slice(&kept.0.lock().unwrap()).unwrap();
    for (name, want) in [
        ("client", "192.0.2.1"),
        ("user", "n"),
        ("id", "id-1"),
        ("agent", "curl"),
        ("target", "/?k=***"),
    ] {
        assert_eq!(line[name], want, "{name}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_an_error_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let log = AccessLog::file(folder.path().join("missing/access.log"));
    let error = log.start().unwrap_err().to_string();
    assert!(
        error.contains("missing/access.log") && error.contains("make its folder"),
        "{error}"
    );
    assert!(
        AccessLog::file(folder.path().join("access.log"))
            .start()
            .is_ok()
    );
}
