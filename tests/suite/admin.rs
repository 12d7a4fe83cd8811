//! Do those who operate a program hear over a real port how it is?

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;

use cloudgate::{Admin, App, IpFilter, Network, Readiness, Server};
use cloudgate_suite::{Answer, Wire, ask, get, start};

fn head(address: SocketAddr, target: &str) -> Answer {
    let mut wire = Wire::open(address);
    wire.send(format!("HEAD {target} HTTP/1.1\r\nHost: h\r\n\r\n"))
        .answer_to_head()
}

/// The samples of an exposition, each a name with its labels and a number. Fails where a line is none of the format, where
/// a sample stands outside of its family, and where anything comes twice.
#[track_caller]
fn samples(text: &str) -> Vec<(String, f64)> {
    assert!(text.ends_with('\n'), "{text}");
    let mut heads = HashSet::new();
    let mut family = String::new();
    let mut found: Vec<(String, f64)> = Vec::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            family = help.split(' ').next().unwrap_or_default().to_owned();
            assert!(heads.insert(line.to_owned()), "{line} comes twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a kind");
            assert_eq!(name, family);
            assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{line}");
            assert!(heads.insert(name.to_owned()), "{line} comes twice");
        } else {
            let (name, value) = line.rsplit_once(' ').expect("a sample");
            assert!(name.starts_with(&family), "{line} is not of {family}");
            let value = value.replace("+Inf", "inf");
            let value = value.parse().expect("a number");
            assert!(
                found.iter().all(|(known, _)| known != name),
                "{name} comes twice"
            );
            found.push((name.to_owned(), value));
        }
    }
    found
}

#[track_caller]
fn value(samples: &[(String, f64)], name: &str) -> f64 {
    let found = samples.iter().find(|(known, _)| known == name);
    assert!(found.is_some(), "no {name} in {samples:?}");
    found.map_or(f64::NAN, |(_, value)| *value)
}

#[test]
fn probes_hear_whether_the_program_lives_and_is_ready() {
    let readiness = Readiness::new();
    readiness.check("catalogue", || Err("is not loaded yet".to_owned()));
    let server = start(Admin::new(readiness.clone()));
    let at = server.addr();
    let alive = get(at, "/healthz");
    assert_eq!((alive.status, &*alive.text()), (200, "ok\n"));
    assert_eq!(alive.header("cache-control"), Some("no-store"));
    let unready = get(at, "/readyz");
    assert_eq!(unready.status, 503);
    assert_eq!(unready.text(), "catalogue: is not loaded yet\n");
    assert_eq!(head(at, "/readyz").status, 503);
    readiness.check("catalogue", || Ok(()));
    assert_eq!(get(at, "/readyz").text(), "ready\n");
    assert_eq!(head(at, "/readyz").header("content-length"), Some("6"));
    readiness.set_stopping();
    assert_eq!(get(at, "/readyz").text(), "stopping\n");
    assert_eq!(get(at, "/healthz").status, 200);
    assert_eq!(get(at, "/").status, 404);
    let refused = ask(
        at,
        "POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!(refused.status, 405);
    assert_eq!(refused.header("allow"), Some("GET, HEAD"));
}

#[test]
fn metrics_are_of_the_whole_process() {
    let others = [(); 2].map(|()| start(App::new().get("/", || "hello")));
    let mut wires = others.each_ref().map(|server| Wire::open(server.addr()));
    for wire in &mut wires {
        // Answered, so it counts as open.
        assert_eq!(wire.send_get("/").answer().status, 200);
    }
    let own: Network = "127.0.0.0/8".parse().expect("a network");
    let server = start(
        App::new()
            .mount("/internal", Admin::new(Readiness::new()))
            .wrap_at("/internal", IpFilter::new().allow(own)),
    );
    let answer = get(server.addr(), "/internal/metrics");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let samples = samples(&answer.text());
    // Other tests have servers in this process as well.
    assert!(value(&samples, "cloudgate_connections") >= 3.0);
    assert!(value(&samples, "process_open_fds") >= 6.0);
    for name in [
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_max_fds",
        "process_start_time_seconds",
        "process_threads",
    ] {
        assert!(value(&samples, name) > 0.0, "{name}");
    }
    let empty = head(server.addr(), "/internal/metrics");
    assert_eq!(empty.status, 200);
    assert!(empty.body.is_empty());
}

#[test]
fn a_peer_on_a_unix_socket_is_in_no_network_that_is_allowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    let own: Network = "127.0.0.0/8".parse().expect("a network");
    let app = App::new()
        .get("/", || "hello")
        .get("/guarded", || "hello")
        .wrap_at("/guarded", IpFilter::new().allow(own));
    let server = Server::bind("127.0.0.1:0")
        .expect("a free port")
        .and_bind_unix(&path)
        .expect("a socket")
        .serve(app)
        .expect("a server that starts");
    assert_eq!(get(server.addr(), "/guarded").status, 200);
    let status = |target: &str| {
        let mut stream = UnixStream::connect(&path).expect("a connection");
        write!(
            stream,
            "GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        )
        .expect("a connection");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(status("/"), "HTTP/1.1 200 OK");
    assert_eq!(status("/guarded"), "HTTP/1.1 403 Forbidden");
}
