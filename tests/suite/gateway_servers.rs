//! Which of several servers is asked, and what happens when some of them fail?

use std::collections::HashMap;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use cloudgate::{App, Gateway, HashBy, Server, TlsClient, UnixSocket};
use cloudgate_suite::{LIMIT, SelfSigned, Upstream, Wire, ask, get, response, start, wait_for};

use crate::gateway::serve;

/// A server that says its name.
fn named(name: &'static str) -> Upstream {
    Upstream::answering(move |_| response("200 OK", "", name))
}

fn gateway<'u>(upstreams: impl IntoIterator<Item = &'u Upstream>) -> Gateway {
    let urls: Vec<String> = upstreams.into_iter().map(Upstream::url).collect();
    Gateway::to(urls.iter().map(String::as_str)).expect("URLs")
}

/// A port at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("its number"))
}

fn counts(address: std::net::SocketAddr, requests: usize) -> HashMap<String, usize> {
    let mut wire = Wire::open(address);
    let mut counts = HashMap::new();
    for _ in 0..requests {
        *counts
            .entry(wire.send_get("/").answer().text())
            .or_default() += 1;
    }
    counts
}

#[test]
fn servers_take_turns_by_weight() {
    let (a, b) = (named("a"), named("b"));
    let server = serve(gateway([&a, &b]));
    assert_eq!(
        counts(server.addr(), 20),
        HashMap::from([("a".to_owned(), 10), ("b".to_owned(), 10)])
    );
    let weighted = gateway([&a]).server(&b.url(), 3).unwrap();
    let server = serve(weighted);
    assert_eq!(
        counts(server.addr(), 20),
        HashMap::from([("a".to_owned(), 5), ("b".to_owned(), 15)])
    );
}

#[test]
fn a_client_stays_with_its_server() {
    let all = [named("a"), named("b"), named("c")];
    let server = serve(gateway(&all).hash_by(HashBy::Cookie("session".to_owned())));
    let by_cookie = |value: usize| {
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\nCookie: x=1; session={value}\r\n\r\n");
        ask(server.addr(), request).text()
    };
    let first: Vec<String> = (0..60).map(by_cookie).collect();
    assert_eq!(first, (0..60).map(by_cookie).collect::<Vec<_>>());
    for name in ["a", "b", "c"] {
        let share = first.iter().filter(|answer| *answer == name).count();
        assert!((5..=40).contains(&share), "{name} has {share}");
    }
    // Without it they stay by their address.
    let by_address = serve(gateway(&all).hash_by(HashBy::Address));
    assert_eq!(counts(by_address.addr(), 10).len(), 1);
    let by_header = serve(gateway(&all).hash_by(HashBy::Header("X-User".to_owned())));
    assert_eq!(counts(by_header.addr(), 10).len(), 1);
}

#[test]
fn the_least_busy_server_is_asked() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let slow = Upstream::answering(move |_| {
        let _ = wait.lock().unwrap().recv_timeout(LIMIT);
        response("200 OK", "", "slow")
    });
    let fast = named("fast");
    for balanced in [Gateway::least_connections, Gateway::two_choices] {
        let asked = slow.asked().len();
        let server = serve(balanced(gateway([&slow, &fast])));
        let mut first = Wire::open(server.addr());
        // Until one hangs at the slow one.
        while slow.asked().len() == asked {
            let all = || slow.asked().len() + fast.asked().len();
            let before = all();
            first = Wire::open(server.addr());
            first.send_get("/");
            wait_for("the request", || all() > before);
        }
        assert_eq!(
            counts(server.addr(), 20),
            HashMap::from([("fast".to_owned(), 20)])
        );
        go.send(()).unwrap();
        assert_eq!(first.answer().text(), "slow");
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_passed_over_for_any_method() {
    let up = named("up");
    let urls = [nobody(), up.url()];
    let server = serve(Gateway::to(urls.iter().map(String::as_str)).unwrap());
    for _ in 0..20 {
        let answer = ask(
            server.addr(),
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi",
        );
        assert_eq!((answer.status, &*answer.text()), (200, "up"));
    }
    assert!(up.asked().iter().all(|asked| asked.body == b"hi"));
}

#[test]
fn a_request_that_may_be_made_twice_goes_to_the_next_server_with_its_body() {
    let breaking = Upstream::start(|talk| {
        talk.request();
    });
    let up = Upstream::answering(|asked| response("200 OK", "", &asked.body));
    let server = serve(gateway([&breaking, &up]).leave_out(0, Duration::ZERO, Duration::ZERO));
    let put = |size: usize| {
        let body = "x".repeat(size);
        ask(
            server.addr(),
            format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n{body}"),
        )
    };
    for _ in 0..4 {
        let answer = put(64 << 10);
        assert_eq!((answer.status, answer.body.len()), (200, 64 << 10));
    }
    // One byte more than is kept to be sent again.
    let statuses: Vec<u16> = (0..4).map(|_| put((64 << 10) + 1).status).collect();
    assert!(statuses.contains(&502), "{statuses:?}");
    assert!(statuses.contains(&200), "{statuses:?}");
}

#[test]
fn retries_have_a_budget() {
    let breaking = Upstream::start(|talk| {
        talk.request();
    });
    let up = named("up");
    let gateway = gateway([&breaking, &up])
        .leave_out(0, Duration::ZERO, Duration::ZERO)
        .retries(2, 0);
    let server = serve(gateway);
    let statuses: Vec<u16> = (0..40).map(|_| get(server.addr(), "/").status).collect();
    let refused = statuses.iter().filter(|status| **status == 502).count();
    // Who met the broken one was asked again, ten times.
    assert!(refused > 0);
    assert_eq!(breaking.asked().len() - refused, 10);
}

#[test]
fn a_failing_server_is_left_out_and_comes_back() {
    let broken = Arc::new(AtomicBool::new(true));
    let theirs = Arc::clone(&broken);
    let flaky = Upstream::start(move |talk| {
        while talk.request().is_some() {
            if theirs.load(Ordering::SeqCst) || !talk.ok("flaky") {
                return;
            }
        }
    });
    let up = named("up");
    let out = Duration::from_millis(300);
    let server = serve(gateway([&flaky, &up]).leave_out(2, Duration::from_secs(10), out));
    for _ in 0..20 {
        assert_eq!(get(server.addr(), "/").text(), "up");
    }
    let asked = flaky.asked().len();
    assert!(asked < 20, "{asked}");
    broken.store(false, Ordering::SeqCst);
    wait_for("it to come back", || {
        get(server.addr(), "/").text() == "flaky"
    });
}

#[test]
fn when_all_are_out_all_are_asked() {
    let urls = [nobody(), nobody()];
    let out = Duration::from_secs(600);
    let gateway = Gateway::to(urls.iter().map(String::as_str))
        .unwrap()
        .leave_out(1, Duration::from_secs(10), out);
    let server = serve(gateway);
    assert_eq!(get(server.addr(), "/").status, 502);
    let port: u16 = urls[0].rsplit(':').next().unwrap().parse().unwrap();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let _up = Upstream::on(
        listener,
        |mut talk| {
            while talk.request().is_some() && talk.ok("up") {}
        },
    );
    assert_eq!(get(server.addr(), "/").text(), "up");
}

#[test]
fn servers_are_asked_whether_they_are_well() {
    let well = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&well);
    let checked = Upstream::answering(move |asked| {
        let status = match (asked.target(), theirs.load(Ordering::SeqCst)) {
            ("/health", false) => "500 Internal Server Error",
            _ => "200 OK",
        };
        response(status, "", "checked")
    });
    let up = named("up");
    let often = Duration::from_millis(1);
    let server = serve(gateway([&checked, &up]).health_check("/health", often, LIMIT));
    // Without a request of a client.
    wait_for("the checks", || checked.asked().len() >= 4);
    assert!(
        checked
            .asked()
            .iter()
            .all(|asked| asked.target() == "/health")
    );
    assert_eq!(
        counts(server.addr(), 10),
        HashMap::from([("up".to_owned(), 10)])
    );
    well.store(true, Ordering::SeqCst);
    wait_for("it to be well", || {
        get(server.addr(), "/").text() == "checked"
    });
}

#[test]
fn a_circuit_breaker_spares_a_server_that_fails() {
    let failing = Arc::new(AtomicBool::new(true));
    let theirs = Arc::clone(&failing);
    let upstream = Upstream::answering(move |_| match theirs.load(Ordering::SeqCst) {
        true => response("500 Internal Server Error", "", "bad"),
        false => response("200 OK", "", "good"),
    });
    let open = Duration::from_millis(300);
    let server = serve(gateway([&upstream]).circuit_breaker(50, 4, LIMIT, open));
    let statuses: Vec<u16> = (0..8).map(|_| get(server.addr(), "/").status).collect();
    assert_eq!(statuses, [500, 500, 500, 500, 503, 503, 503, 503]);
    assert_eq!(upstream.asked().len(), 4);
    failing.store(false, Ordering::SeqCst);
    wait_for("it to close", || get(server.addr(), "/").status == 200);
    assert_eq!(get(server.addr(), "/").status, 200);
}

#[test]
fn a_server_has_no_more_requests_than_it_may_and_the_line_has_an_end() {
    let (most, now) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let (theirs, peak) = (Arc::clone(&now), Arc::clone(&most));
    let upstream = Upstream::answering(move |_| {
        let count = theirs.fetch_add(1, Ordering::SeqCst) + 1;
        peak.fetch_max(count, Ordering::SeqCst);
        let _ = wait.lock().unwrap().recv_timeout(LIMIT);
        theirs.fetch_sub(1, Ordering::SeqCst);
        response("200 OK", "", "done")
    });
    let server = serve(gateway([&upstream]).limit(1, 2, LIMIT));
    let mut wires: Vec<Wire> = (0..3)
        .map(|_| {
            let mut wire = Wire::open(server.addr());
            wire.send_get("/");
            wire
        })
        .collect();
    wait_for("the first to be asked", || !upstream.asked().is_empty());
    let queued = || cloudgate::metrics().contains(&format!("server=\"{}\"}} 2\n", upstream.url()));
    wait_for("two in the line", queued);
    let refused = get(server.addr(), "/");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    for _ in 0..3 {
        go.send(()).unwrap();
    }
    for wire in &mut wires {
        assert_eq!(wire.answer().text(), "done");
    }
    assert_eq!(most.load(Ordering::SeqCst), 1);
    // Who waits too long is told so.
    let server = serve(gateway([&upstream]).limit(1, 1, Duration::from_millis(100)));
    let mut first = Wire::open(server.addr());
    first.send_get("/");
    wait_for("it to be asked", || upstream.asked().len() == 4);
    assert_eq!(get(server.addr(), "/").status, 503);
    go.send(()).unwrap();
    assert_eq!(first.answer().text(), "done");
}

#[test]
fn a_server_on_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let app = App::new().get("/who", |request: &mut cloudgate::Request<'_>| {
        request.host().unwrap_or_default().to_owned()
    });
    let _behind = Server::bind_unix(UnixSocket::new(&path))
        .unwrap()
        .serve(app)
        .unwrap();
    let server = serve(Gateway::to([&*format!("unix:{}", path.display())]).unwrap());
    assert_eq!(get(server.addr(), "/who").text(), "localhost");
    let gone = folder.path().join("gone.sock");
    drop(UnixListener::bind(&gone).unwrap());
    let server = serve(Gateway::to([&*format!("unix:{}", gone.display())]).unwrap());
    assert_eq!(get(server.addr(), "/").status, 502);
}

#[test]
fn a_server_by_tls_is_the_one_that_was_meant_or_none() {
    let made = SelfSigned::new();
    let app = App::new().get("/", || "secret");
    let behind = Server::bind_tls("127.0.0.1:0", made.identity())
        .unwrap()
        .serve(app)
        .unwrap();
    let url = format!("https://localhost:{}", behind.addr().port());
    let to = || Gateway::to([&*url]).unwrap();
    // Nobody vouches for it.
    assert_eq!(get(serve(to()).addr(), "/").status, 502);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, &made.certificate).unwrap();
    let trusting = || TlsClient::new().trust_file(&ca).unwrap();
    let server = serve(to().tls(trusting()));
    let mut wire = Wire::open(server.addr());
    for _ in 0..5 {
        assert_eq!(wire.send_get("/").answer().text(), "secret");
    }
    let other = serve(to().tls(trusting().server_name("other.test")));
    assert_eq!(get(other.addr(), "/").status, 502);
    let anybody = serve(to().tls(TlsClient::new().dangerously_trust_anybody()));
    assert_eq!(get(anybody.addr(), "/").text(), "secret");
}

#[test]
fn a_gateway_may_stand_in_front_of_a_gateway() {
    let upstream = Upstream::answering(|asked| response("200 OK", "", asked.head.as_bytes()));
    let inner = App::new()
        .trust_proxies(cloudgate::ForwardedBy::XForwardedFor, ["127.0.0.1"])
        .mount("/", gateway([&upstream]));
    let inner = start(inner);
    let outer = serve(Gateway::to([&*format!("http://{}", inner.addr())]).unwrap());
    let head = get(outer.addr(), "/").text();
    assert!(
        head.contains("\r\nX-Forwarded-For: 127.0.0.1, 127.0.0.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("\r\nVia: 1.1 cloudgate, 1.1 cloudgate\r\n"),
        "{head}"
    );
    assert!(head.contains("\r\nX-Forwarded-Host: h\r\n"), "{head}");
}
