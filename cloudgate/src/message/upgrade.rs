//! What can be done with a connection's bytes, whatever carries them, and who takes it over behind a 101?

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::deadline::Deadline;
use super::pace::Pace;

/// A two-way stream of bytes that never blocks by itself: plain socket, TLS session or memory pipe.
///
/// Reads and writes give [`io::ErrorKind::WouldBlock`] where nothing can be done now, and only
/// [`Duplex::wait`] waits. So no library code ever runs on a stack that is put aside.
pub trait Duplex {
    /// Reads what is there; 0 is the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there, others when the connection failed.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes what there is room for.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room, others when the connection failed.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Writes from several pieces what there is room for.
    ///
    /// # Errors
    /// As [`Duplex::write`].
    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        pieces
            .iter()
            .find(|piece| !piece.is_empty())
            .map_or(Ok(0), |piece| self.write(piece))
    }

    /// As [`Duplex::write`], with the word that more follows at once.
    ///
    /// # Errors
    /// As [`Duplex::write`].
    fn write_more(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    /// Sends up to `length` bytes of `file` from `offset` on; 0 means that the file has no more.
    ///
    /// # Errors
    /// As [`Duplex::write`], and what reading the file gives.
    fn send_file(&mut self, file: &File, offset: u64, length: u64) -> io::Result<usize> {
        let mut piece = vec![0; length.min(32 << 10) as usize];
        let count = file.read_at(&mut piece, offset)?;
        if count == 0 {
            Ok(0)
        } else {
            self.write(&piece[..count])
        }
    }

    /// Waits until the connection may be readable or writable again, or somebody else wakes it.
    /// It may come back early: try again what would have blocked, then wait again. Where the time of
    /// a handler is up it unwinds, with the stream as it is after any other wait.
    ///
    /// # Errors
    /// `TimedOut` once `until` has passed, `ConnectionAborted` when the server cuts the connection.
    fn wait(&mut self, until: Deadline) -> io::Result<()>;

    /// Lets other connections have a turn.
    fn yield_turn(&mut self);

    /// Whether the peer has ended its side, or the connection has failed, as far as that is known without reading.
    fn is_gone(&self) -> bool {
        false
    }

    /// Tells the peer that nothing more will be sent. What is read from then on is to be thrown away: it says that
    /// something came, and over TLS not what.
    ///
    /// # Errors
    /// When the connection is gone already.
    fn close_write(&mut self) -> io::Result<()>;
}

/// What a connection speaks behind a response of status 101 (RFC 9110 section 15.2.2).
///
/// The server runs it on a coroutine of the connection's worker, behind the handler's and with a stack of its own.
pub(crate) trait Protocol: Send {
    /// Goes on with the connection until it is over, or has nothing to do for a while.
    fn run(&mut self, connection: &mut Upgraded<'_>) -> After;

    /// Whether it keeps its coroutine until it is over, and so one of those that the server has.
    fn keeps_coroutine(&self) -> bool;

    /// Whether something has come up since [`Protocol::run`] said that there is nothing to do. Takes no lock.
    fn has_work(&self) -> bool {
        false
    }
}

/// What is to become of an upgraded connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It is closed.
    Over,
    /// It needs no coroutine until bytes come, somebody rouses it, or this point.
    Idle(Deadline),
}

/// What the server does for an upgraded connection.
pub(crate) trait Host {
    /// Where the clock of its deadlines stands, in milliseconds.
    fn now(&self) -> u64;

    /// Whether the server is about to stop.
    fn is_stopping(&self) -> bool;

    /// How much time a transfer that begins now has.
    fn pace(&self) -> Pace;

    /// For how many milliseconds a connection without anything to do keeps its coroutine; 0 for ever.
    fn patience(&self) -> u64;

    /// How others reach the connection; the same for all of its life.
    fn tie(&self) -> &Arc<dyn Tie>;
}

/// How other coroutines and threads reach an upgraded connection, whether it has a coroutine or not.
pub(crate) trait Tie: Send + Sync {
    /// Ends the present or next wait of its coroutine; where it has none it gets one as soon as its socket can be read
    /// or written.
    fn rouse(&self);

    /// As [`Tie::rouse`], and where the connection has no coroutine it gets one now.
    fn call(&self);

    /// Writes what there is room for, past the coroutine of the connection: only while that is known not to write.
    /// `None` where the connection ends, or what is written must go through what only its coroutine has.
    fn write_aside(&self, bytes: &[u8]) -> Option<io::Result<usize>>;

    /// The worker that the connection belongs to.
    fn worker(&self) -> usize;
}

/// A connection that speaks another protocol than HTTP from now on: bytes to read and write, which look blocking.
///
/// ```
/// use cloudgate::{Response, Upgraded};
/// use std::io::{BufRead, BufReader, Write};
///
/// fn shout() -> Response {
///     Response::switching_protocols("shout", |connection: &mut Upgraded<'_>| {
///         let mut line = String::new();
///         BufReader::new(&mut *connection).read_line(&mut line)?;
///         connection.write_all(line.to_uppercase().as_bytes())
///     })
/// }
/// assert_eq!(shout().status(), 101);
/// ```
///
/// A read waits for as long as the peer takes, and a write no longer than for the body of a response
/// ([`Timeouts`](crate::Timeouts)). When the server stops, reads give `ConnectionAborted` at once, and writes after
/// its grace.
pub struct Upgraded<'conn> {
    pub(crate) io: &'conn mut dyn Duplex,
    /// What came behind the request's head and was not read yet.
    pub(crate) leftover: &'conn mut Vec<u8>,
    pub(crate) host: &'conn dyn Host,
}

impl Read for Upgraded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.leftover.is_empty() {
            let count = buffer.len().min(self.leftover.len());
            buffer[..count].copy_from_slice(&self.leftover[..count]);
            self.leftover.drain(..count);
            return Ok(count);
        }
        loop {
            match self.io.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.host.is_stopping() {
                        return Err(ErrorKind::ConnectionAborted.into());
                    }
                    self.io.wait(Deadline::NEVER)?;
                }
                other => return other,
            }
        }
    }
}

impl Write for Upgraded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pace = self.host.pace();
        loop {
            match self.io.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    pace.wait(self.io, || self.host.now())?;
                }
                other => return other,
            }
        }
    }

    /// What was written is on its way already.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Upgraded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgraded")
            .field("leftover", &self.leftover.len())
            .finish_non_exhaustive()
    }
}

/// That a page of the request's origin may use this route, as somebody in front of it has found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginAllowed;

/// The protocol that follows a response of status 101, as a [`Body`](super::Body).
pub struct Upgrade(pub(crate) Box<dyn Protocol>);

impl Upgrade {
    /// A protocol that `talk` speaks; the connection is closed when it returns.
    pub(crate) fn talk(
        talk: impl FnOnce(&mut Upgraded<'_>) -> io::Result<()> + Send + 'static,
    ) -> Upgrade {
        Upgrade(Box::new(Talk(Some(talk))))
    }
}

impl fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Upgrade")
    }
}

struct Talk<F>(Option<F>);

impl<F: FnOnce(&mut Upgraded<'_>) -> io::Result<()> + Send> Protocol for Talk<F> {
    fn run(&mut self, connection: &mut Upgraded<'_>) -> After {
        let talk = self.0.take().map(|talk| talk(connection));
        if let Some(Err(error)) = talk {
            log::debug!("an upgraded connection ended: {error}");
        }
        After::Over
    }

    fn keeps_coroutine(&self) -> bool {
        true
    }
}
