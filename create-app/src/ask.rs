//! Which question may be asked, and how?
//!
//! One: the name, when none was given. Signals are not caught yet while it waits, so Ctrl-C ends the
//! program as it ends any other, and nothing has been written.

use std::io::{BufRead, IsTerminal, Write, stdin, stdout};

use crate::failure::Failure;
use crate::say;
use crate::target::Target;

pub(crate) const DEFAULT_NAME: &str = "my-app-1";

/// Whether somebody is there to answer: a script or a CI job would wait for ever.
pub(crate) fn possible() -> bool {
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    stdin().is_terminal() && stdout().is_terminal() && !in_ci
}

/// Asks until the name is a good one.
pub(crate) fn target() -> Result<Target, Failure> {
    loop {
        let mut out = stdout().lock();
        let _ = write!(out, "Name of the new app [{DEFAULT_NAME}]: ").and_then(|()| out.flush());
        drop(out);

        let mut line = String::new();
        match stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => {
                say::err("");
                return Err(Failure::cancelled());
            }
            Ok(_) => {}
        }
        let answer = match line.trim() {
            "" => DEFAULT_NAME,
            answer => answer,
        };
        match Target::resolve(answer.as_ref()) {
            Ok(target) => return Ok(target),
            Err(failure) => say::failure(&failure, false),
        }
    }
}
