//! Which listening sockets was this program started with?
//!
//! Socket activation as systemd does it: `LISTEN_FDS` descriptors from number 3 on, meant for the
//! process `LISTEN_PID`, with names in `LISTEN_FDNAMES`.

use std::env;
use std::os::fd::OwnedFd;

use listenfd::ListenFd;

use crate::error::{Error, Result};
use crate::net::listener::Listener;

/// The most sockets that a program can be given: far more than anybody has, far less than memory.
const MOST: usize = 1024;

/// The first descriptor that is passed.
const FIRST: usize = 3;

/// The name of a socket without one, as systemd has it.
const UNNAMED: &str = "unknown";

/// Takes the sockets, each with its name. Once they are taken there are none.
///
/// # Errors
/// [`Error::Setting`] that names the variable, or the descriptor that is unusable.
pub(super) fn take() -> Result<Vec<(String, Listener)>> {
    let variable = |name| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let Some(names) = expected(
        variable("LISTEN_FDS").as_deref(),
        variable("LISTEN_PID").as_deref(),
        variable("LISTEN_FDNAMES").as_deref(),
        std::process::id(),
    )?
    else {
        return Ok(Vec::new());
    };
    let mut passed = ListenFd::from_env();
    let count = names.len();
    let take_one = |(index, name): (usize, String)| {
        let unusable = || Error::Setting {
            place: format!(
                "descriptor {} ({name}) of LISTEN_FDS={count}",
                FIRST + index
            ),
            value: "closed or something else".to_owned(),
            wanted: "a listening stream socket of TCP or Unix",
        };
        let socket: OwnedFd = match passed.take_tcp_listener(index) {
            Ok(Some(socket)) => socket.into(),
            _ => passed
                .take_unix_listener(index)
                .ok()
                .flatten()
                .ok_or_else(unusable)?
                .into(),
        };
        let listener = Listener::inherited(socket).map_err(|_| unusable())?;
        Ok((name, listener))
    };
    names.into_iter().enumerate().map(take_one).collect()
}

/// The names of the sockets that the variables tell of; `None` where there are none for this process.
fn expected(
    fds: Option<&str>,
    pid: Option<&str>,
    names: Option<&str>,
    this_process: u32,
) -> Result<Option<Vec<String>>> {
    let Some(fds) = fds.filter(|fds| !fds.is_empty()) else {
        return Ok(None);
    };
    let wrong = |name: &str, value: &str, wanted| Error::Setting {
        place: format!("environment variable {name}"),
        value: value.to_owned(),
        wanted,
    };
    if let Some(pid) = pid.filter(|pid| !pid.is_empty()) {
        let pid: u32 = pid
            .parse()
            .map_err(|_| wrong("LISTEN_PID", pid, "the number of this process"))?;
        // They were for a parent process, which did not remove the variables.
        if pid != this_process {
            return Ok(None);
        }
    }
    let count: usize = fds
        .parse()
        .ok()
        .filter(|count| *count <= MOST)
        .ok_or_else(|| wrong("LISTEN_FDS", fds, "a number of sockets, at most 1024"))?;
    if count == 0 {
        return Ok(None);
    }
    let names: Vec<String> = match names.filter(|names| !names.is_empty()) {
        Some(names) => names.split(':').map(str::to_owned).collect(),
        None => vec![UNNAMED.to_owned(); count],
    };
    if names.len() != count {
        let names = names.join(":");
        return Err(wrong(
            "LISTEN_FDNAMES",
            &names,
            "as many names as LISTEN_FDS says, with colons between them",
        ));
    }
    Ok(Some(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fds: &str, pid: &str, names: &str, want: &[&str]) {
        let found = expected(Some(fds), Some(pid), Some(names), 42).unwrap();
        assert_eq!(found.unwrap_or_default(), want);
    }

    #[track_caller]
    fn refused(fds: &str, pid: &str, names: &str, in_text: &str) {
        let error = expected(Some(fds), Some(pid), Some(names), 42).unwrap_err();
        assert!(error.to_string().contains(in_text), "{error}");
    }

    #[test]
    fn the_variables_tell_how_many_sockets_there_are_and_their_names() {
        check("2", "42", "web:admin", &["web", "admin"]);
        check("2", "42", "web:web", &["web", "web"]);
        check("2", "42", "", &["unknown", "unknown"]);
        check("1", "", "x", &["x"]);
        check("0", "42", "", &[]);
        check("", "42", "web", &[]);
        // Those of another process are not ours, whatever they say.
        check("2", "43", "", &[]);
        assert!(matches!(expected(None, None, None, 42), Ok(None)));
    }

    #[test]
    fn malformed_variables_are_named() {
        refused("two", "42", "", "LISTEN_FDS is \"two\"");
        refused("-1", "42", "", "LISTEN_FDS is \"-1\"");
        refused("1025", "42", "", "at most 1024");
        refused("99999999999999999999", "42", "", "LISTEN_FDS");
        refused("1", "x", "", "LISTEN_PID is \"x\"");
        refused("2", "42", "web", "LISTEN_FDNAMES is \"web\"");
        refused("1", "42", "a:b", "LISTEN_FDNAMES is \"a:b\"");
    }
}
