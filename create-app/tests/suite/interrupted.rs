//! Does an interrupted generator leave nothing behind?
//!
//! A `git` that hangs holds the generator at its last step, when all files are written.
#![cfg(unix)]

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Answer, Sandbox};

fn interrupt(sandbox: &Sandbox, signal: &str, arguments: &[&str]) -> Answer {
    let mark = sandbox.path("git-was-called");
    sandbox.program(
        "git",
        &format!(
            "[ \"$1\" = rev-parse ] && exit 128\nmkdir -p .git/objects; : > '{}'\nexec sleep 60",
            mark.display()
        ),
    );
    let child = sandbox
        .command(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while !mark.exists() {
        assert!(Instant::now() < deadline, "git was never called");
        thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    Answer::new(child.wait_with_output().unwrap())
}

#[test]
fn a_new_folder_is_gone_again() {
    for signal in ["-INT", "-TERM"] {
        let sandbox = Sandbox::new();
        interrupt(&sandbox, signal, &["some/where/my-app-1"])
            .fails(130, "cancelled, nothing was left behind");
        assert_eq!(fs::read_dir(sandbox.work()).unwrap().count(), 0);
        sandbox.assert_nothing_was_left_behind();
    }
}

#[test]
fn an_existing_folder_is_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.write("my-app-1/main.rs", "mine");
    sandbox.write("my-app-1/api/other.rs", "mine");
    let before = sandbox.files();
    interrupt(&sandbox, "-INT", &["my-app-1", "--force"]).fails(130, "cancelled");
    assert_eq!(sandbox.files(), before);
    assert_eq!(sandbox.read("my-app-1/main.rs"), "mine");
    assert!(!sandbox.work().join("my-app-1/.git").exists());
    sandbox.assert_no_temporary_files();
}
