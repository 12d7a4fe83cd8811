//! How does an address get into the user's browser?

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::super::say;

/// What opens an address, the more particular first: `wslview` is only where Windows is around.
const OPENERS: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else {
    &["wslview", "xdg-open"]
};

/// Opens an address; what goes wrong is a line for people, for the server runs all the same.
///
/// On a thread of its own: what opens it may stay for as long as the browser does. And starting a program
/// keeps signals off the thread that does, so one for the main thread would come to a worker.
pub(super) fn open(url: String) {
    thread::spawn(move || {
        if let Err(reason) = open_by(OPENERS, &url) {
            say::error(&format!(
                "no browser could be opened: {reason} - open {url} yourself"
            ));
        }
    });
}

/// Opens an address by the first of these programs that is there, and waits for its end.
fn open_by(openers: &[&str], url: &str) -> Result<(), String> {
    let started = openers
        .iter()
        .find_map(|opener| Some((*opener, start(opener, url).ok()?)));
    let Some((opener, mut child)) = started else {
        return Err(format!("there is no {}", openers.join(" and no ")));
    };
    match child.wait() {
        Ok(status) if !status.success() => Err(format!("{opener} ended with {status}")),
        _ => Ok(()),
    }
}

fn start(opener: &str, url: &str) -> io::Result<Child> {
    Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C ends the server, not the browser.
        .process_group(0)
        .spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_there_opens_it() {
        for (openers, want) in [
            (&["/nonexistent/a", "true", "false"][..], Ok(())),
            (
                &["false"],
                Err("false ended with exit status: 1".to_owned()),
            ),
            (
                &["/nonexistent/a", "/nonexistent/b"],
                Err("there is no /nonexistent/a and no /nonexistent/b".to_owned()),
            ),
        ] {
            assert_eq!(open_by(openers, "http://localhost"), want);
        }
    }
}
