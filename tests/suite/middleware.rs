//! Do the ready-made middlewares do over a real port what they promise, alone and all together?

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use cloudgate::{
    AccessLog, ApiKeyAuth, App, AuthUser, BasicAuth, Body, Compression, Config, Cors, Files,
    LogFormat, Notify, Request, RequestIds, Response, SecurityHeaders, Server, Status,
};
use cloudgate_suite::{Answer, PROGRAM, Program, Wire, ask, start, wait_for};
use rustix::process::{Pid, Signal, kill_process};

const ORIGIN: &str = "https://app.example.com";

/// A log that a test can read.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0
            .lock()
            .expect("nobody panics here")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn log(&self) -> AccessLog {
        AccessLog::writer(self.clone()).format(LogFormat::JsonLines)
    }

    /// The lines, as soon as there are so many.
    #[track_caller]
    fn lines(&self, count: usize) -> Vec<serde_json::Value> {
        let read = || {
            let text = self.0.lock().expect("nobody panics here").clone();
            let text = String::from_utf8(text).expect("text");
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        wait_for("the lines of the log", || read().len() >= count);
        let lines = read();
        assert_eq!(lines.len(), count, "{lines:?}");
        lines
            .iter()
            .map(|line| serde_json::from_str(line).expect("a line of JSON"))
            .collect()
    }
}

fn unzip(answer: &Answer) -> Vec<u8> {
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&answer.body[..])
        .read_to_end(&mut plain)
        .expect("a whole gzip stream");
    plain
}

fn fetch(wire: &mut Wire, target: &str, fields: &str) -> Answer {
    wire.send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"))
        .answer()
}

/// All of them, in the order in which they belong.
fn complete(log: AccessLog) -> App {
    App::new()
        .get("/words", || "words ".repeat(1000))
        .get("/who", |request: &mut Request<'_>| {
            let user = request.extensions().get::<AuthUser>().cloned();
            user.map_or_else(String::new, |user| user.to_string())
        })
        .get("/panic", || -> &'static str {
            unreachable!("this is what is tested")
        })
        .wrap(log)
        .wrap(RequestIds::new().from_anyone())
        .wrap(Cors::new().origin(ORIGIN).credentials())
        .wrap(SecurityHeaders::new())
        .wrap(Compression::new())
        .wrap(BasicAuth::new("Office").user("Aladdin", "open sesame"))
}

#[test]
fn all_of_them_work_together() {
    let kept = Kept::default();
    let server = start(complete(kept.log()));
    let mut wire = Wire::open(server.addr());
    let origin = format!("Origin: {ORIGIN}\r\nX-Request-Id: id-1\r\n");

    // A preflight has no password, and needs none.
    let preflight = wire
        .send(format!(
            "OPTIONS /words HTTP/1.1\r\nHost: h\r\n{origin}Access-Control-Request-Method: GET\r\n\r\n"
        ))
        .answer();
    // A refusal can be read by the page that gets it.
    let refused = fetch(&mut wire, "/words", &origin);
    let password = "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
    let fields = format!("{origin}{password}Accept-Encoding: gzip\r\n");
    let words = fetch(&mut wire, "/words", &fields);
    let missing = fetch(&mut wire, "/missing", &fields);
    for (answer, status) in [
        (&preflight, 204),
        (&refused, 401),
        (&words, 200),
        (&missing, 404),
    ] {
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("access-control-allow-origin"), Some(ORIGIN));
        assert_eq!(answer.header("x-request-id"), Some("id-1"));
        assert!(
            answer
                .header("vary")
                .is_some_and(|vary| vary.contains("Origin"))
        );
        // What Cors answers by itself has no body that a browser would show.
        let has = answer.header("x-content-type-options") == Some("nosniff");
        assert_eq!(has, status != 204, "{status}");
    }
    assert!(refused.header("www-authenticate").is_some());
    assert_eq!(words.header("vary"), Some("Accept-Encoding, Origin"));
    assert_eq!(unzip(&words), "words ".repeat(1000).as_bytes());
    assert_eq!(fetch(&mut wire, "/who", &fields).text(), "Aladdin");
    assert_eq!(fetch(&mut wire, "/panic", &fields).status, 500);

    let lines = kept.lines(6);
    let of = |name: &str| lines.iter().map(|line| &line[name]).collect::<Vec<_>>();
    assert_eq!(of("status"), [204, 401, 200, 404, 200, 500]);
    assert!(of("id").iter().all(|id| **id == "id-1"));
    assert_eq!(lines[2]["bytes"], words.body.len());
    assert_eq!(lines[2]["user"], "Aladdin");
    assert_eq!(lines[1]["user"], serde_json::Value::Null);
    let text = String::from_utf8(kept.0.lock().expect("a log").clone()).expect("text");
    assert!(!text.contains("sesame") && !text.contains("QWxh"));
}

#[test]
fn a_refusal_that_was_compressed_stays_what_it_was_compressed_from() {
    let kept = Kept::default();
    let server = start(complete(kept.log()));
    let mut wire = Wire::open(server.addr());
    let html = "Accept: text/html\r\n";
    let page = fetch(&mut wire, "/who", html);
    assert_eq!(page.status, 401);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let fields = format!("{html}Accept-Encoding: gzip, identity;q=0\r\n");
    let zipped = fetch(&mut wire, "/who", &fields);
    let text = String::from_utf8(unzip(&zipped)).expect("text");
    assert_eq!(text, "401 Unauthorized\n");
    assert_eq!(
        zipped.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    // The page was made of a shorter text behind the log's back.
    let lines = kept.lines(2);
    assert_eq!(lines[0]["bytes"], serde_json::Value::Null);
    assert_eq!(lines[1]["bytes"], zipped.body.len());
}

#[test]
fn a_flush_reaches_the_client_through_a_coder() {
    let go = Arc::new(Notify::new());
    let theirs = Arc::clone(&go);
    let app = App::new()
        .get("/events", move || {
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
        })
        .wrap(Compression::new().also("text/event-stream"));
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    wire.send("GET /events HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n");
    let head = wire.answer_to_head();
    assert_eq!(head.header("content-encoding"), Some("gzip"));
    let mut framed = Vec::new();
    for number in 0..3 {
        // Nothing more is sent before this one can be read.
        let event = format!("data: {number}\n\n");
        while !decode_chunks(&framed).contains(&event) {
            framed.extend_from_slice(&wire.take_some());
        }
        go.notify_one();
    }
    while !framed.ends_with(b"0\r\n\r\n") {
        framed.extend_from_slice(&wire.take_some());
    }
    assert_eq!(decode_chunks(&framed), "data: 0\n\ndata: 1\n\ndata: 2\n\n");
}

/// What can be read of a gzip stream in chunks that is not all there yet.
fn decode_chunks(framed: &[u8]) -> String {
    let (mut rest, mut zipped) = (framed, Vec::new());
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("the size of a chunk");
        let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
        let data = &rest[end + 2..];
        zipped.extend_from_slice(&data[..size.min(data.len())]);
        rest = data.get(size + 2..).unwrap_or_default();
    }
    let mut decoder = flate2::read::GzDecoder::new(&zipped[..]);
    let (mut text, mut piece) = (Vec::new(), vec![0; 1024]);
    while let Ok(count @ 1..) = decoder.read(&mut piece) {
        text.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(text).expect("text")
}

/// A body of this many bytes, in lines.
fn lines(length: usize) -> Vec<u8> {
    let mut text: Vec<u8> = (0..)
        .flat_map(|number: u64| format!("line {number}\n").into_bytes())
        .take(length)
        .collect();
    text[length - 1] = b'.';
    text
}

#[test]
fn large_bodies_of_every_kind_arrive_compressed() {
    const LENGTH: usize = 1_000_000;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.txt"), lines(100_000)).expect("a file");
    std::fs::write(folder.path().join("large.txt"), lines(LENGTH)).expect("a file");
    std::fs::write(folder.path().join("huge.txt"), lines(2 * LENGTH)).expect("a file");
    let app = App::new()
        .get("/bytes", || Response::text_plain(lines(LENGTH)))
        .get("/reader", || {
            Response::text_plain("").with_body(Body::Reader {
                reader: Box::new(std::io::Cursor::new(lines(LENGTH))),
                length: Some(LENGTH as u64),
            })
        })
        .get("/writer", || {
            Response::stream(|out| out.write_all(&lines(LENGTH)))
                .header("Content-Type", "text/plain")
        })
        .fallback(Files::new(folder.path()))
        .wrap(Compression::new());
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    for (target, length, sized) in [
        ("/bytes", LENGTH, true),
        ("/reader", LENGTH, false),
        ("/writer", LENGTH, false),
        ("/small.txt", 100_000, true),
        // Files compress these themselves, and know how long that has made them.
        ("/large.txt", LENGTH, true),
        ("/huge.txt", 2 * LENGTH, false),
    ] {
        let answer = fetch(&mut wire, target, "Accept-Encoding: gzip\r\n");
        assert!(unzip(&answer) == lines(length), "{target}");
        assert!(answer.body.len() < length / 2, "{target}");
        assert_eq!(answer.header("content-length").is_some(), sized, "{target}");
        // HEAD says the same about it, but for the time. The tag stands elsewhere where it was weak before.
        let head = wire
            .send(format!(
                "HEAD {target} HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n"
            ))
            .answer_to_head();
        let fields = |answer: &Answer| {
            let fields = answer
                .head
                .lines()
                .filter(|line| !line.starts_with("Date:"));
            let mut fields: Vec<_> = fields.map(str::to_owned).collect();
            fields.sort();
            fields
        };
        assert_eq!(fields(&head), fields(&answer), "{target}");
        let plain = fetch(&mut wire, target, "");
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.header("vary"), Some("Accept-Encoding"), "{target}");
        assert!(plain.body == lines(length), "{target}");
        // A client of HTTP/1.0 learns by the end of the connection where the body ends.
        let mut old = Wire::open(server.addr());
        old.send(format!(
            "GET {target} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"
        ));
        assert!(unzip(&old.answer()) == lines(length), "{target}");
    }
}

#[test]
fn a_tag_of_a_compressed_file_is_weak_and_still_saves_the_next_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.txt"), lines(5000)).expect("a file");
    let app = App::new()
        .fallback(Files::new(folder.path()).compress(false))
        .wrap(Compression::new());
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    let answer = fetch(&mut wire, "/a.txt", "Accept-Encoding: gzip\r\n");
    let tag = answer.header("etag").expect("a tag").to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    let fields = format!("Accept-Encoding: gzip\r\nIf-None-Match: {tag}\r\n");
    let again = fetch(&mut wire, "/a.txt", &fields);
    assert_eq!(again.status, 304);
    assert_eq!(again.header("vary"), Some("Accept-Encoding"));
}

#[test]
fn other_codings_fit_on_a_coroutine_too() {
    let app = App::new()
        .get("/bytes", || Response::text_plain(lines(60_000)))
        .get("/writer", || {
            Response::stream(|out| out.write_all(&lines(60_000)))
                .header("Content-Type", "text/plain")
        })
        .wrap(Compression::new().level(9));
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    for coding in ["br", "zstd"] {
        for target in ["/bytes", "/writer"] {
            let fields = format!("Accept-Encoding: {coding}\r\n");
            let answer = fetch(&mut wire, target, &fields);
            assert_eq!(answer.header("content-encoding"), Some(coding));
            assert!(
                (1..30_000).contains(&answer.body.len()),
                "{coding} {target}"
            );
        }
    }
}

#[test]
fn a_body_that_broke_off_says_so_in_the_log() {
    let kept = Kept::default();
    let app = App::new()
        .get("/broken", || {
            Response::stream(|out| {
                out.write_all(b"half")?;
                Err(std::io::Error::other("the other half is missing"))
            })
        })
        .get("/panicked", || {
            Response::stream(|_| unreachable!("this is what is tested"))
        })
        .get("/whole", || Response::stream(|out| out.write_all(b"whole")))
        .wrap(kept.log());
    let server = start(app);
    for target in ["/broken", "/panicked"] {
        let mut wire = Wire::open(server.addr());
        wire.send_get(target).rest();
    }
    assert_eq!(
        Wire::open(server.addr()).send_get("/whole").answer().text(),
        "whole"
    );
    let lines = kept.lines(3);
    for (line, bytes, aborted) in [
        (&lines[0], 4, true),
        (&lines[1], 0, true),
        (&lines[2], 5, false),
    ] {
        assert_eq!(
            (&line["status"], &line["bytes"]),
            (&200.into(), &bytes.into())
        );
        assert_eq!(line["aborted"] == true, aborted, "{line}");
    }
}

#[test]
fn a_client_that_left_is_an_aborted_line() {
    let kept = Kept::default();
    let app = App::new()
        .get("/endless", || {
            Response::stream(|out| {
                loop {
                    out.write_all(&[b'a'; 1000])?;
                    out.flush()?;
                    cloudgate::sleep(std::time::Duration::from_millis(1));
                }
            })
        })
        .wrap(kept.log());
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    wire.send_get("/endless").take(5000);
    drop(wire);
    let lines = kept.lines(1);
    assert_eq!(lines[0]["aborted"], true);
    assert!(lines[0]["bytes"].as_u64() >= Some(4000), "{lines:?}");
}

#[test]
fn a_key_in_the_query_is_not_in_the_log() {
    let kept = Kept::default();
    let app = App::new()
        .get("/", || "in")
        .wrap(kept.log())
        .wrap(ApiKeyAuth::new(["hush"]).query("k"));
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    assert_eq!(wire.send_get("/?k=hush").answer().status, 200);
    assert_eq!(wire.send_get("/?k=hush2").answer().status, 401);
    for line in kept.lines(2) {
        assert_eq!(line["target"], "/?k=***");
    }
}

#[test]
fn a_mistake_in_a_middleware_is_an_error_at_start() {
    let app = App::new()
        .get("/", || "in")
        .wrap(Cors::new().any_origin().credentials());
    let error = Server::bind("127.0.0.1:0")
        .expect("a free port")
        .serve(app)
        .expect_err("a mistake");
    assert!(error.to_string().contains("name the origins"), "{error}");
}

#[test]
fn a_panic_of_a_handler_is_still_the_end_of_its_connection() {
    let server = start(complete(Kept::default().log()));
    let answer = ask(
        server.addr(),
        "GET /panic HTTP/1.1\r\nHost: h\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n",
    );
    assert_eq!(answer.status, Status::INTERNAL_SERVER_ERROR.as_u16());
    assert_eq!(answer.header("connection"), Some("close"));
}

const LOGS: &str = "middleware::logs";

#[test]
#[ignore = "the program of the test below"]
fn logs() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    let app = App::new().get("/", || "hello").wrap(AccessLog::new());
    let run = || app.run(Config::from_env()?);
    std::process::exit(i32::from(run().is_err()));
}

#[test]
fn a_program_that_is_told_to_stop_writes_its_last_line() {
    let mut program = Program::start(LOGS, &[("PORT", "0")]);
    let address = program.address();
    let mut wire = Wire::open(address);
    for _ in 0..20 {
        assert_eq!(wire.send_get("/").answer().text(), "hello");
    }
    let id = i32::try_from(program.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process id"), Signal::TERM).expect("a process that runs");
    let ended = program.ended();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // Standard output is no terminal here.
    let lines: Vec<_> = ended
        .lines
        .iter()
        .filter(|line| line.contains("\"GET / HTTP/1.1\" 200 5 \"-\" \"-\""))
        .collect();
    assert_eq!(lines.len(), 20, "{:?}", ended.lines);
}
