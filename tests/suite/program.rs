//! Does a program that serves an application behave as a good program should?

use std::net::TcpListener;
use std::process::{ExitCode, Termination};

use cloudgate::{Config, Server};
use cloudgate_suite::{Ended, PROGRAM, Program, Wire, get, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const NAME: &str = "program::serves";

#[test]
#[ignore = "the program of the tests below"]
fn serves() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    // What `fn main() -> cloudgate::Result<()>` does.
    let main = || {
        let folder = std::env::var("FOLDER").unwrap_or_default();
        let app = crate::app().files(&folder);
        match std::env::var("SOCKET") {
            Ok(socket) => app.run_on(Server::bind("127.0.0.1:0")?.and_bind_unix(&*socket)?),
            Err(_) => app.run(Config::from_env()?),
        }
    };
    let code = main().report();
    std::process::exit(i32::from(code != ExitCode::SUCCESS));
}

fn folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("index.html"), "<h1>page</h1>").expect("a file");
    let name = folder.path().display().to_string();
    (folder, name)
}

fn signal(program: &Program, signal: Signal) {
    let id = i32::try_from(program.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process id"), signal).expect("a process that runs");
}

#[test]
fn it_says_in_one_line_where_and_what_it_serves() {
    let (_folder, folder) = folder();
    let mut program = Program::start(
        NAME,
        &[("PORT", "0"), ("THREADS", "3"), ("FOLDER", &folder)],
    );
    let line = program.line();
    let parts: Vec<_> = line.split(" \u{b7} ").collect();
    let [name, url, routes, served, workers, seats, ready] = parts[..] else {
        unreachable!("seven parts in {line}")
    };
    assert_eq!(name, concat!("cloudgate ", env!("CARGO_PKG_VERSION")));
    let address = Program::address_in(&line);
    assert!(address.ip().is_loopback() && address.port() > 0, "{url}");
    assert!(
        routes.ends_with(" routes") && routes != "0 routes",
        "{routes}"
    );
    assert_eq!(served, format!("{folder}/"));
    assert_eq!(workers, "3 workers");
    assert!(
        seats.starts_with("up to ") && seats.ends_with(" connections"),
        "{seats}"
    );
    assert!(
        ready.starts_with("ready in ") && ready.ends_with(" ms"),
        "{ready}"
    );

    assert_eq!(get(address, "/").text(), "<h1>page</h1>");
    assert_eq!(get(address, "/routes/get").text(), "get");
    signal(&program, Signal::TERM);
    let ended = program.ended();
    assert_eq!((ended.code, ended.lines.len()), (Some(0), 0), "{ended:?}");
    assert_eq!(ended.errors, "");
}

#[test]
fn it_listens_where_it_is_told_to() {
    let (_folder, folder) = folder();
    for (host, url) in [
        ("127.0.0.1", "http://127.0.0.1:"),
        ("localhost", "http://127.0.0.1:"),
        ("0.0.0.0", "http://localhost:"),
    ] {
        let mut program =
            Program::start(NAME, &[("PORT", "0"), ("HOST", host), ("FOLDER", &folder)]);
        let line = program.line();
        assert!(line.contains(url), "{line}");
        let address = Program::address_in(&line);
        assert_eq!(get(address, "/routes/get").status, 200);
        signal(&program, Signal::TERM);
        assert_eq!(program.ended().code, Some(0));
    }
}

#[test]
fn with_ssl_it_serves_tls_and_says_so() {
    let (_folder, folder) = folder();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let files = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        let path = files.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let certificate = write("cert.pem", made.cert.pem());
    let key = write("key.pem", made.signing_key.serialize_pem());
    let mut program = Program::start(
        NAME,
        &[
            ("SSL", "1"),
            ("SSL_PORT", "0"),
            ("SSL_CERT", &certificate),
            ("SSL_KEY", &key),
            ("FOLDER", &folder),
        ],
    );
    let line = program.line();
    assert!(line.contains(" · https://127.0.0.1:"), "{line}");
}

#[test]
fn who_comes_in_plain_text_is_sent_to_tls_and_a_hang_up_reads_certificates_again() {
    let (_folder, folder) = folder();
    let files = tempfile::tempdir().expect("a folder");
    let path = files.path().join("both.pem");
    let write = || {
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let text = format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem());
        std::fs::write(&path, text).expect("a file");
    };
    write();
    let mut program = Program::start(
        NAME,
        &[
            ("PORT", "0"),
            ("SSL", "1"),
            ("SSL_PORT", "0"),
            ("SSL_CERT", path.to_str().expect("a path")),
            ("SSL_REDIRECT", "8443"),
            ("FOLDER", &folder),
        ],
    );
    let line = program.line();
    let plain = line
        .split(" \u{b7} ")
        .find_map(|part| part.strip_prefix("http://"))
        .and_then(|address| address.parse().ok());
    let answer = get(plain.expect("an address"), "/a?b");
    assert_eq!(answer.status, 308);
    assert!(
        answer.head.contains("Location: https://h:8443/a?b"),
        "{}",
        answer.head
    );
    // It does not end by it, and goes on to end as it should.
    write();
    signal(&program, Signal::HUP);
    assert_eq!(get(plain.expect("an address"), "/").status, 308);
    signal(&program, Signal::TERM);
    assert_eq!(program.ended().code, Some(0));
}

#[test]
fn it_runs_on_a_server_that_it_has_prepared() {
    let (kept, folder) = folder();
    let socket = kept.path().join("app.sock").display().to_string();
    let mut program = Program::start(NAME, &[("SOCKET", &socket), ("FOLDER", &folder)]);
    let line = program.line();
    assert!(
        line.contains(&format!(" \u{b7} unix:{socket} \u{b7} ")),
        "{line}"
    );
    let address = Program::address_in(&line);
    assert_eq!(get(address, "/routes/get").text(), "get");
    signal(&program, Signal::TERM);
    assert_eq!(program.ended().code, Some(0));
    assert!(!std::path::Path::new(&socket).exists(), "it is removed");
}

/// Starts the program with settings that it cannot start with: one line, and exit code 1.
#[track_caller]
fn check_refused(variables: &[(&str, &str)], want: &[&str]) {
    let Ended {
        code,
        lines,
        errors,
    } = Program::start(NAME, variables).ended();
    assert_eq!(code, Some(1), "{errors}");
    assert!(lines.is_empty(), "{lines:?}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    for want in want {
        assert!(errors.contains(want), "{want:?} is not in {errors:?}");
    }
}

#[test]
fn what_keeps_it_from_starting_is_one_line_and_exit_code_1() {
    let (_folder, folder) = folder();
    let good = [("PORT", "0"), ("FOLDER", &*folder)];
    let with = |name, value| {
        let mut variables = good.to_vec();
        variables.push((name, value));
        variables
    };
    for (name, value) in [
        ("PORT", "abc"),
        ("PORT", "65536"),
        ("HOST", "example.org"),
        ("THREADS", "0"),
        ("THREADS", "many"),
        ("SSL", "yes"),
    ] {
        check_refused(&with(name, value), &[name, value, "must be"]);
    }
    let mut tls = with("SSL", "1");
    tls.push(("SSL_KEY", "key.pem"));
    check_refused(&tls, &["SSL_KEY", "key.pem", "SSL_CERT be given"]);
    let mut tls = with("SSL", "1");
    tls.extend([("SSL_CERT", "no-such.pem"), ("SSL_KEY", "key.pem")]);
    check_refused(&tls, &["TLS cannot start", "no-such.pem cannot be read"]);
    check_refused(
        &with("FOLDER", "no-such-folder"),
        &["no-such-folder", "looked for it in"],
    );
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("an address").port().to_string();
    check_refused(&with("PORT", &port), &[&port, "in use", "PORT="]);
}

const POST: &str = "POST /extract/text HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe";

/// A program that has got this signal while half of a body is on its way, and has begun to stop.
fn stopping(first: Signal) -> (Program, Wire) {
    let (_folder, folder) = folder();
    let mut program = Program::start(NAME, &[("PORT", "0"), ("FOLDER", &folder)]);
    let address = program.address();
    let mut busy = Wire::open(address);
    busy.send(POST);
    let mut idle = Wire::open(address);
    assert_eq!(idle.send_get("/routes/get").answer().status, 200);
    // The request that is on its way has to be read before the signal comes.
    wait_for("the half body", || {
        get(address, "/load/sleep/2000").status == 200
    });
    signal(&program, first);
    idle.ends();
    (program, busy)
}

#[test]
fn a_signal_lets_active_requests_finish_and_the_exit_code_is_0() {
    for first in [Signal::TERM, Signal::INT] {
        let (program, mut busy) = stopping(first);
        let answer = busy.send("llo").answer();
        assert_eq!((answer.status, &*answer.text()), (200, "hello"));
        assert_eq!(answer.header("connection"), Some("close"));
        let ended = program.ended();
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (program, mut busy) = stopping(Signal::INT);
    let began = std::time::Instant::now();
    signal(&program, Signal::INT);
    assert_eq!(program.ended().code, Some(130));
    // The first one would have waited for ten seconds.
    assert!(began.elapsed() < std::time::Duration::from_secs(8));
    busy.rest();
}
