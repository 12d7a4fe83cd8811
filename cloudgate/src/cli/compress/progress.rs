//! How far is it, and how do people see that?
//!
//! A line of our own: what draws bars in general brings six packages along for it.

use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::super::say;

/// The line is drawn again after this time at the earliest.
const PAUSE: Duration = Duration::from_millis(100);

/// Goes to the start of the line and clears it.
const CLEAR: &str = "\r\x1b[K";

/// What is done of all bytes, shown in one line of standard error where that is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    total: u64,
    done: AtomicU64,
    line: Option<Mutex<Line>>,
}

#[derive(Debug)]
struct Line {
    drawn: Option<Instant>,
}

impl Progress {
    pub(super) fn new(total: u64, quiet: bool) -> Progress {
        let shown = !quiet && io::stderr().is_terminal();
        Progress {
            total,
            done: AtomicU64::new(0),
            line: shown.then(|| Mutex::new(Line { drawn: None })),
        }
    }

    /// Notes that bytes of this file are done.
    fn advance(&self, count: u64, path: &Path) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        // Where another thread draws, this one has no news.
        let Some(Ok(mut line)) = self.line.as_ref().map(Mutex::try_lock) else {
            return;
        };
        if line.drawn.is_some_and(|drawn| drawn.elapsed() < PAUSE) {
            return;
        }
        line.drawn = Some(Instant::now());
        let text = text(done, self.total, path);
        let shown: String = text.chars().take(columns().saturating_sub(1)).collect();
        let _ = write!(io::stderr(), "{CLEAR}{shown}");
    }

    /// Writes a line about something that went wrong, above the line of progress.
    pub(super) fn error(&self, text: &str) {
        let line = self.line.as_ref().map(Mutex::lock);
        if line.is_some() {
            let _ = write!(io::stderr(), "{CLEAR}");
        }
        say::error(text);
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        if self.line.is_some() {
            let _ = write!(io::stderr(), "{CLEAR}");
        }
    }
}

fn text(done: u64, total: u64, path: &Path) -> String {
    // A file that has grown since it was found is no more than all of it.
    let done = done.min(total);
    let percent = u128::from(done) * 100 / u128::from(total.max(1));
    format!(
        "{percent:>3} %  {} of {}  {}",
        say::bytes(done),
        say::bytes(total),
        say::path(path)
    )
}

/// The width of the terminal.
fn columns() -> usize {
    rustix::termios::tcgetwinsize(io::stderr()).map_or(80, |size| size.ws_col.max(20).into())
}

/// A file whose reading is seen, and ends when the program is to stop.
#[derive(Debug)]
pub(super) struct Watched<'r, F> {
    pub(super) file: F,
    pub(super) path: &'r Path,
    pub(super) progress: &'r Progress,
    pub(super) stop: &'r AtomicBool,
}

impl<F: Read> Read for Watched<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::Error::other("interrupted"));
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let count = read?;
                    self.progress.advance(count as u64, self.path);
                    return Ok(count);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is() {
        for (done, total, want) in [
            (0, 0, "  0 %  0 B of 0 B  a.js"),
            (500, 2000, " 25 %  500 B of 2.0 kB  a.js"),
            (3000, 2000, "100 %  2.0 kB of 2.0 kB  a.js"),
        ] {
            assert_eq!(text(done, total, Path::new("a.js")), want);
        }
    }

    #[test]
    fn a_reader_ends_when_the_program_is_to_stop() {
        let progress = Progress::new(10, true);
        let stop = AtomicBool::new(false);
        let mut reader = Watched {
            file: &b"0123456789"[..],
            path: Path::new("a"),
            progress: &progress,
            stop: &stop,
        };
        let mut buffer = [0; 4];
        assert_eq!(reader.read(&mut buffer).unwrap(), 4);
        assert_eq!(progress.done.load(Ordering::Relaxed), 4);
        stop.store(true, Ordering::Relaxed);
        assert!(reader.read(&mut buffer).is_err());
    }
}
