//! How does a piece of a file reach the client?
//!
//! ```text
//!  head ─▶ all but the last 64 KiB ─▶ still the same version? ─▶ the rest
//! ```
//!
//! The system sends the file's own pages, so whoever changes the file while it is sent changes what goes
//! out. The client has been told a length and validators; the only honest thing then is to end the
//! connection before the end, from which it can tell that what it has is worth nothing. What changes
//! behind the last look could still reach it: up to 64 KiB, and what waits in the socket. So a file that has
//! changed in the last ten seconds is not sent by the system: it is read, and compared after each piece.
//! What remains is the first writing into a file that had rest, while it is sent. Programs that replace a
//! file by a new one never have that.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

use super::conn::{Close, Surroundings};
use super::respond::{wait_to_go_on, write_all};
use crate::message::{Duplex, FileRange, Pace};
use crate::net::home;
use crate::net::page_cache::Window;

/// How many bytes are held back until the version was looked at.
const HELD: u64 = 64 << 10;

/// How much is read at once where the system cannot send a file by itself, in bytes.
const PIECE: u64 = 64 << 10;

/// Sends `output` and then the piece of the file.
pub(super) fn send_file<D: Duplex>(
    io: &mut D,
    output: &mut Vec<u8>,
    range: &FileRange,
    around: &Surroundings,
) -> Result<(), Close> {
    let mut pace = around.rules.pace();
    write_all(around, io, output.len(), &mut pace, |io, at| {
        io.write_more(&output[at..])
    })?;
    output.clear();
    let mut window = Window::new();
    let mut sends_itself = !range.is_restless(around.rules.restless, SystemTime::now());
    let mut left = range.length;
    let mut held = if range.has_version() && sends_itself {
        HELD
    } else {
        0
    };
    while left > 0 {
        if left <= held {
            check(range)?;
            held = 0;
        }
        let most = (left - held).min(around.turn() as u64);
        let at = range.offset + (range.length - left);
        if !sends_itself {
            left -= send_read(io, range, at, most, around, &mut pace)?;
            continue;
        }
        let ready = window.ready(&range.file, at, range.offset.saturating_add(range.length));
        match io.send_file(&range.file, at, most.min(ready)) {
            Ok(0) => return Err(became_shorter()),
            Ok(count) => {
                left -= count as u64;
                if pace.moved(count, around.turn()) {
                    io.yield_turn();
                }
            }
            // Some file systems have no sendfile.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidInput | ErrorKind::Unsupported
                ) =>
            {
                sends_itself = false;
            }
            Err(error) => {
                wait_to_go_on(io, error, around, &mut pace)?;
                window.forget();
            }
        }
    }
    Ok(())
}

/// Sends up to `most` bytes from `at` on by reading them; says how many.
fn send_read<D: Duplex>(
    io: &mut D,
    range: &FileRange,
    at: u64,
    most: u64,
    around: &Surroundings,
    pace: &mut Pace,
) -> Result<u64, Close> {
    let theirs = range.clone();
    let read = home::blocking(move || {
        let mut piece = vec![0; most.min(PIECE) as usize];
        let count = theirs.file.read_at(&mut piece, at)?;
        piece.truncate(count);
        // Behind the reading: what was read is of the version, whatever happens to the file now.
        Ok((piece, theirs.is_current()?))
    });
    let (piece, is_current) = read.map_err(Close::BodyFailed)?;
    if !is_current {
        return Err(changed());
    }
    if piece.is_empty() {
        return Err(became_shorter());
    }
    write_all(around, io, piece.len(), pace, |io, at| {
        io.write(&piece[at..])
    })?;
    Ok(piece.len() as u64)
}

fn check(range: &FileRange) -> Result<(), Close> {
    match range.is_current() {
        Ok(true) => Ok(()),
        Ok(false) => Err(changed()),
        Err(error) => Err(Close::BodyFailed(error)),
    }
}

fn changed() -> Close {
    Close::BodyFailed(io::Error::new(
        ErrorKind::InvalidData,
        "the file changed while it was sent",
    ))
}

// The length is on its way already.
fn became_shorter() -> Close {
    Close::BodyFailed(io::Error::new(
        ErrorKind::UnexpectedEof,
        "the file became shorter while it was sent",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::time::Duration;

    use crate::message::{Deadline, FileVersion, Request, Response};
    use crate::net::deadline::Clock;
    use crate::proto::pipe::Pipe;
    use crate::server::settings::{Rules, Settings};

    /// A pipe of a system that cannot send files.
    struct Plain(Pipe, ErrorKind);

    impl Duplex for Plain {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }

        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn send_file(&mut self, _: &File, _: u64, _: u64) -> io::Result<usize> {
            Err(self.1.into())
        }

        fn wait(&mut self, until: Deadline) -> io::Result<()> {
            self.0.wait(until)
        }

        fn yield_turn(&mut self) {}

        fn close_write(&mut self) -> io::Result<()> {
            self.0.close_write()
        }
    }

    #[test]
    fn without_sendfile_a_file_is_read() {
        let around = Surroundings {
            service: Box::new(|_: &mut Request<'_>| Response::default()),
            rules: Rules {
                restless: Duration::ZERO,
                ..Rules::new(&Settings::default())
            },
            clock: Arc::new(Clock::new()),
            stopping: AtomicBool::new(false),
            active: AtomicUsize::new(1),
            kept: AtomicUsize::new(0),
            most_kept: 1,
        };
        let content: Vec<u8> = (0..300_000).map(|at| (at % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        let version = FileVersion::of(&file.metadata().unwrap());
        let range = FileRange::new(file, 5, 299_000).of_version(version);
        for kind in [ErrorKind::InvalidInput, ErrorKind::Unsupported] {
            let (server, mut client) = Pipe::pair(1 << 20);
            let (mut server, mut output) = (Plain(server, kind), b"head".to_vec());
            send_file(&mut server, &mut output, &range, &around).unwrap();
            drop(server);
            let mut received = vec![0; 1 << 20];
            let count = client.read(&mut received).unwrap();
            assert_eq!(&received[..4], b"head");
            assert!(received[4..count] == content[5..299_005]);
        }
        range.file.set_len(290_000).unwrap();
        let (server, mut client) = Pipe::pair(1 << 20);
        let mut server = Plain(server, ErrorKind::Unsupported);
        let failed = send_file(&mut server, &mut Vec::new(), &range, &around);
        assert!(matches!(failed, Err(Close::BodyFailed(_))));
        // What was read is of another version already.
        let nothing = client.read(&mut vec![0; 1 << 20]).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    }
}
