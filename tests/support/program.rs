//! How does a test see a whole program: its lines, its exit code, its answer to signals?
//!
//! The test binary starts itself again with the name of an ignored test, which is the program.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use crate::wait::{LIMIT, wait_for};

/// The environment variable that tells an ignored test that it is a program now.
pub const PROGRAM: &str = "CLOUDGATE_SUITE_PROGRAM";

/// A program that runs; dropping it kills it.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// Open as long as the program should run, for programs that wait for its end.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
}

/// What a program left behind.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; `None` when a signal has killed it.
    pub code: Option<i32>,
    /// The lines of standard output that nobody has read before.
    pub lines: Vec<String>,
    /// What it wrote to standard error.
    pub errors: String,
}

impl Program {
    /// Starts the ignored test of this name as a program, with only these variables set for it.
    ///
    /// # Panics
    /// When it cannot be started.
    #[track_caller]
    pub fn start(test: &str, variables: &[(&str, &str)]) -> Program {
        let mut command = Command::new(std::env::current_exe().expect("a path to this program"));
        // More than one thread, or the harness would write the test's name in front of its output.
        command
            .args([
                test,
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=2",
            ])
            .env(PROGRAM, "1")
            .env_remove("RUST_BACKTRACE");
        for name in [
            "PORT", "HOST", "THREADS", "SSL", "SSL_PORT", "SSL_CERT", "SSL_KEY",
        ] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        Program::spawn(command)
    }

    /// Starts a program that is not this one.
    ///
    /// # Panics
    /// When it cannot be started.
    #[track_caller]
    pub fn spawn(mut command: Command) -> Program {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut stderr = child.stderr.take().expect("a pipe");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // What the test harness says first is not the program's.
                let of_harness = line.is_empty() || line == "running 1 test";
                if !of_harness && send.send(line).is_err() {
                    break;
                }
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            // What was read counts, also when the rest is no text.
            let _ = stderr.read_to_string(&mut text);
            text
        });
        Program {
            stdin: child.stdin.take(),
            child,
            lines,
            errors: Some(errors),
        }
    }

    /// The next line of standard output.
    ///
    /// # Panics
    /// When none comes.
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.lines
            .recv_timeout(LIMIT)
            .expect("a line of standard output")
    }

    /// The address in the next line of standard output; see [`Program::address_in`].
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn address(&mut self) -> SocketAddr {
        Program::address_in(&self.line())
    }

    /// The address behind `http://` in a start-up line.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn address_in(line: &str) -> SocketAddr {
        line.split_whitespace()
            .find_map(|word| word.strip_prefix("http://"))
            .and_then(|address| address.replace("localhost", "127.0.0.1").parse().ok())
            .expect("an address in the start-up line")
    }

    /// The process id, to send signals to.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes standard input, which ends programs that wait for it.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When it does not end.
    #[track_caller]
    pub fn ended(mut self) -> Ended {
        let mut status = None;
        wait_for("the end of the program", || {
            status = self.child.try_wait().expect("the state of a child");
            status.is_some()
        });
        let errors = self.errors.take().map(JoinHandle::join);
        Ended {
            code: status.and_then(|status| status.code()),
            lines: self.lines.iter().collect(),
            errors: errors.and_then(Result::ok).unwrap_or_default(),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
