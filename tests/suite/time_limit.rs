//! Does a handler end when its time is up, and everything else go on?

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use cloudgate::{
    App, Next, Notify, Request, Response, Running, TimeLimit, blocking, channel, sleep,
};
use cloudgate_suite::{Wire, start, wait_for};
use rustix::process::{Resource, getrlimit, setrlimit};

const LONG: Duration = Duration::from_secs(600);
const LIMIT: Duration = Duration::from_millis(60);

fn limited(app: App) -> Running {
    start(app.wrap(TimeLimit::new(LIMIT)).get("/quick", || "quick"))
}

#[test]
fn every_kind_of_wait_ends_with_a_503_and_the_connection_goes_on() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let released = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&released);
    let app = App::new()
        .get("/sleeps", || {
            let _counted = Counted;
            sleep(LONG);
        })
        .get("/notify", || {
            let _counted = Counted;
            Notify::new().wait();
        })
        .get("/channel", || {
            let _counted = Counted;
            let (_sender, receiver) = channel::<()>(1);
            receiver.recv();
        })
        .get("/blocking", move || {
            let _counted = Counted;
            let released = Arc::clone(&theirs);
            blocking(move || {
                while !released.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
            });
        })
        .get("/nested", || {
            let _counted = Counted;
            App::new()
                .get("/", || sleep(LONG))
                .wrap(TimeLimit::new(LIMIT / 2))
                .call(&mut Request::get("/"))
        });
    let server = limited(app);
    let mut wire = Wire::open(server.addr());
    let targets = ["/sleeps", "/notify", "/channel", "/blocking", "/nested"];
    for target in targets {
        let answer = wire.send_get(target).answer();
        assert_eq!(answer.status, 503, "{target}");
        assert_eq!(answer.text(), "503 Service Unavailable\n");
        assert_eq!(answer.header("connection"), None);
        assert_eq!(wire.send_get("/quick").answer().text(), "quick");
    }
    assert_eq!(DROPPED.load(Ordering::Relaxed), targets.len());
    assert_eq!(cloudgate::thread_changes(), 0);
    released.store(true, Ordering::Relaxed);
}

#[test]
fn a_body_that_never_comes_is_not_waited_for_and_the_connection_closes() {
    let app = App::new().post("/", |request: &mut Request<'_>| {
        match request.body().read_all() {
            Ok(body) => body.len().to_string(),
            Err(error) => error.to_string(),
        }
    });
    let server = limited(app);
    let mut wire = Wire::open(server.addr());
    // The answer in front of it is whole.
    wire.send("GET /quick HTTP/1.1\r\nHost: h\r\n\r\nPOST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12");
    assert_eq!(wire.answer().text(), "quick");
    let answer = wire.answer();
    assert_eq!(
        (answer.status, answer.header("connection")),
        (503, Some("close"))
    );
    wire.end_sending().ends();
}

#[test]
fn after_a_body_that_has_come_the_connection_goes_on() {
    let app = App::new()
        .post("/read", |request: &mut Request<'_>| {
            let read = request.body().read_all().is_ok();
            sleep(LONG);
            read.to_string()
        })
        .post("/unread", || sleep(LONG));
    let server = limited(app);
    let mut wire = Wire::open(server.addr());
    for target in ["/read", "/unread"] {
        wire.send(format!(
            "POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12345"
        ));
        let answer = wire.answer();
        assert_eq!((answer.status, answer.header("connection")), (503, None));
        assert_eq!(wire.send_get("/quick").answer().text(), "quick");
    }
}

#[test]
fn what_of_a_body_comes_later_can_still_be_read() {
    static LATE: AtomicBool = AtomicBool::new(false);
    fn reads_the_rest(request: &mut Request<'_>, next: Next<'_>) -> Response {
        let answer = next.run(request);
        if answer.status() != 503 {
            return answer;
        }
        LATE.store(true, Ordering::Relaxed);
        let mut rest = String::new();
        match request.body().read_to_string(&mut rest) {
            Ok(_) => Response::text_plain(rest),
            Err(error) => Response::text_plain(format!("failed: {error}")),
        }
    }
    let app = App::new()
        .post("/", |request: &mut Request<'_>| {
            let mut buffer = [0; 4];
            let first = request.body().read(&mut buffer).is_ok();
            (first && request.body().read_all().is_ok()).to_string()
        })
        .wrap(reads_the_rest)
        .wrap(TimeLimit::new(LIMIT));
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    wire.send(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n6\r\nef",
    );
    wait_for("the handler to be late", || LATE.load(Ordering::Relaxed));
    wire.send("ghij\r\n0\r\n\r\n");
    let text = wire.answer().text();
    // What the handler had read before is gone with it.
    assert!(
        "efghij".ends_with(&text) && text.ends_with("ghij"),
        "{text}"
    );
    // Nothing of the body is left between this request and the next.
    wire.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n123456");
    assert_eq!(wire.answer().text(), "true");
}

#[test]
fn a_stream_may_write_for_longer() {
    let app = App::new().get("/", || {
        Response::stream(|out| {
            for _ in 0..4 {
                sleep(LIMIT);
                out.write_all(b"piece ")?;
                out.flush()?;
            }
            Ok(())
        })
    });
    let server = limited(app);
    let mut wire = Wire::open(server.addr());
    assert_eq!(
        wire.send_get("/").answer().text(),
        "piece piece piece piece "
    );
}

#[test]
fn a_panic_is_a_500_as_ever() {
    #[allow(clippy::panic, reason = "this is what is tested")]
    fn panics() {
        panic!("on purpose")
    }
    let server = limited(App::new().get("/", panics));
    let answer = Wire::open(server.addr()).send_get("/").answer();
    assert_eq!(answer.status, 500);
}

#[test]
fn a_request_is_its_outer_applications_again() {
    fn names_the_path(request: &mut Request<'_>, next: Next<'_>) -> Response {
        let answer = next.run(request);
        let seen = format!(
            "{} {}",
            request.local_path(),
            request.parameter("name").unwrap_or("-")
        );
        answer.header("X-Seen", &seen)
    }
    let inner = App::new().get("/in/{name}", || sleep(LONG));
    let app = App::new()
        .mount("/outer", inner)
        .get("/{name}", |request: &mut Request<'_>| {
            request.parameter("name").unwrap_or("-").to_owned()
        })
        .wrap(names_the_path)
        .wrap(TimeLimit::new(LIMIT));
    let server = start(app);
    let mut wire = Wire::open(server.addr());
    for _ in 0..2 {
        let answer = wire.send_get("/outer/in/Ada").answer();
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header("x-seen"), Some("/outer/in/Ada -"));
        let answer = wire.send_get("/Grace").answer();
        assert_eq!(answer.text(), "Grace");
        assert_eq!(answer.header("x-seen"), Some("/Grace Grace"));
    }
}

#[test]
fn a_thousand_handlers_are_late_at_once_and_others_are_served_meanwhile() {
    const CLIENTS: usize = 1000;
    static WAITING: AtomicUsize = AtomicUsize::new(0);
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("as many descriptors as there may be");
    let app = App::new()
        .get("/waits", || {
            WAITING.fetch_add(1, Ordering::Relaxed);
            Notify::new().wait();
        })
        .get("/quick", || "quick")
        .wrap_at("/waits", TimeLimit::new(Duration::from_secs(3)));
    let server = start(app);
    let mut wires: Vec<_> = (0..CLIENTS).map(|_| Wire::open(server.addr())).collect();
    for wire in &mut wires {
        wire.send_get("/waits");
    }
    wait_for("all handlers to begin", || {
        WAITING.load(Ordering::Relaxed) == CLIENTS
    });
    let mut other = Wire::open(server.addr());
    for _ in 0..10 {
        assert_eq!(other.send_get("/quick").answer().text(), "quick");
    }
    for wire in &mut wires {
        assert_eq!(wire.answer().status, 503);
    }
    assert_eq!(wires[0].send_get("/quick").answer().text(), "quick");
    assert_eq!(cloudgate::thread_changes(), 0);
}
