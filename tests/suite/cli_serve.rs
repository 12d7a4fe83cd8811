//! Does `cloudgate serve` serve a folder, and tell people where?

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use cloudgate_suite::{Answer, Program, ask, get, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::cli::{command, ended};

/// A folder with a page and a folder without one.
fn folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("index.html"), "<h1>page</h1>").expect("a file");
    fs::create_dir(folder.path().join("sub")).expect("a folder");
    fs::write(folder.path().join("sub/a.txt"), "text").expect("a file");
    let name = folder.path().display().to_string();
    (folder, name)
}

/// Starts it, and reads what it says.
#[track_caller]
fn start(folder: &str, command: Command) -> (Program, SocketAddr) {
    let mut program = Program::spawn(command);
    let first = program.line();
    assert_eq!(
        first,
        format!("cloudgate {} serves {folder}", env!("CARGO_PKG_VERSION"))
    );
    let address = program.address();
    (program, address)
}

#[track_caller]
fn stop(program: Program) -> Vec<String> {
    let id = i32::try_from(program.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process id"), Signal::TERM).expect("a process that runs");
    let ended = program.ended();
    assert_eq!(
        (ended.code, ended.errors.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
    ended.lines
}

#[test]
fn it_serves_a_folder_and_says_where() {
    let (_kept, folder) = folder();
    let (program, address) = start(&folder, command(&["serve", &folder, "--port", "0"]));
    assert!(address.ip().is_loopback());
    assert_eq!(get(address, "/").text(), "<h1>page</h1>");
    assert_eq!(get(address, "/sub/a.txt").text(), "text");
    assert_eq!(get(address, "/none").status, 404);
    let log = stop(program);
    assert_eq!(log.len(), 3, "a line for each request: {log:?}");
    assert!(log[1].contains("GET /sub/a.txt"), "{log:?}");
}

#[test]
fn it_serves_the_working_folder_unless_told_otherwise_and_quietly_if_told_so() {
    let (kept, _) = folder();
    let mut command = command(&["serve", "--quiet"]);
    command
        .current_dir(kept.path())
        .env("PORT", "0")
        .env("HOST", "localhost");
    let (program, address) = start(".", command);
    assert_eq!(get(address, "/").text(), "<h1>page</h1>");
    assert_eq!(stop(program), [] as [&str; 0]);
}

#[test]
fn an_argument_wins_over_the_environment() {
    let (_kept, folder) = folder();
    let mut command = command(&["serve", &folder, "--port", "0", "--host", "::1"]);
    command.env("PORT", "nonsense").env("HOST", "nonsense");
    // A machine without version 6 of the protocol cannot show it.
    if TcpListener::bind("[::1]:0").is_ok() {
        let (program, address) = start(&folder, command);
        assert!(address.is_ipv6());
        stop(program);
    }
}

#[test]
fn without_a_terminal_there_is_no_square_for_the_network() {
    let (_kept, folder) = folder();
    let (program, address) = start(
        &folder,
        command(&[
            "serve", &folder, "--port", "0", "--host", "0.0.0.0", "--quiet",
        ]),
    );
    assert_eq!(get(address, "/").status, 200);
    for line in stop(program) {
        assert!(
            line.starts_with("  http://") && line.ends_with(" on the network"),
            "{line}"
        );
    }
}

#[test]
fn what_keeps_it_from_starting_is_one_line() {
    let missing = ended(&["serve", "no/such/folder", "--port", "0"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing
            .errors
            .starts_with("cloudgate: the folder no/such/folder cannot be served: ")
    );
    assert_eq!(missing.errors.lines().count(), 1);

    let (_kept, folder) = folder();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let busy = ended(&["serve", &folder, "--port", &port]);
    assert_eq!(busy.code, Some(1));
    let want = format!(
        "cloudgate: port {port} of 127.0.0.1 is in use by another program - stop that, or "
    );
    assert!(busy.errors.starts_with(&want), "{busy:?}");
    assert_eq!(busy.errors.lines().count(), 1);
}

#[test]
fn pages_of_others_are_let_in_only_if_told_so() {
    let (_kept, folder) = folder();
    let request =
        b"GET /sub/a.txt HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\nConnection: close\r\n\r\n";
    let field = |answer: &Answer| {
        answer
            .header("access-control-allow-origin")
            .map(str::to_owned)
    };
    for (argument, want) in [("--cors", Some("*".to_owned())), ("--quiet", None)] {
        let (program, address) = start(&folder, command(&["serve", &folder, "--port=0", argument]));
        assert_eq!(field(&ask(address, request)), want);
        stop(program);
    }
}

#[test]
fn it_opens_the_browser_at_its_address() {
    let (_kept, folder) = folder();
    let programs = tempfile::tempdir().expect("a folder");
    let (opener, noted) = (
        programs.path().join("xdg-open"),
        programs.path().join("noted"),
    );
    let script = format!("#!/bin/sh\necho \"$1\" > {}\n", noted.display());
    fs::write(&opener, script).expect("a file");
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut command = command(&["serve", &folder, "--port=0", "--open", "--quiet"]);
    command.env("PATH", programs.path());
    let (program, address) = start(&folder, command);
    wait_for("the address", || {
        fs::read_to_string(&noted).is_ok_and(|text| text.ends_with('\n'))
    });
    let text = fs::read_to_string(&noted).expect("a file");
    assert_eq!(text, format!("http://{address}\n"));
    stop(program);
}

#[test]
fn what_a_folder_gives_is_what_was_asked_for() {
    let (kept, folder) = folder();
    fs::write(kept.path().join("404.html"), "<h1>lost</h1>").expect("a file");
    fs::write(kept.path().join("style.css"), "a{b:c}".repeat(1000)).expect("a file");
    let page = |path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
        )
    };
    // Arguments, path, status, a part of the body, coding, Cache-Control.
    let cases = [
        ("--quiet", "/none", 404, "lost", None, None),
        ("--quiet", "/sub/", 404, "lost", None, None),
        ("--listing", "/sub/", 200, "a.txt", None, None),
        ("--spa", "/none", 200, "page", None, None),
        ("--spa", "/none.js", 404, "", None, None),
        (
            "--quiet",
            "/style.css",
            200,
            "",
            Some("gzip"),
            Some("no-cache"),
        ),
        (
            "--no-compress",
            "/style.css",
            200,
            "a{b:c}",
            None,
            Some("no-cache"),
        ),
        ("--cache=none", "/style.css", 200, "", Some("gzip"), None),
        (
            "--cache=by-type",
            "/style.css",
            200,
            "",
            Some("gzip"),
            Some("604800"),
        ),
    ];
    for (argument, path, status, text, coding, cache) in cases {
        let (program, address) = start(&folder, command(&["serve", &folder, "--port=0", argument]));
        let answer = ask(address, page(path).as_bytes());
        assert_eq!(answer.status, status, "{argument} {path}");
        assert!(
            String::from_utf8_lossy(&answer.body).contains(text),
            "{argument} {path}"
        );
        if path == "/style.css" {
            assert_eq!(
                answer.header("content-encoding"),
                coding,
                "{argument} {path}"
            );
            let said = answer.header("cache-control");
            assert_eq!(said.is_some(), cache.is_some(), "{argument}: {said:?}");
            let fits = cache.is_none_or(|part| said.is_some_and(|said| said.contains(part)));
            assert!(fits, "{argument}: {said:?}");
        }
        stop(program);
    }
}
