//! How does TLS go over a connection without ever waiting inside of a library?

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;

use super::engine::{AT_ONCE, Engine};
use super::lane::Lane;
use crate::message::{Deadline, Duplex};

/// The most that is read to see whether a client speaks TLS at all, in bytes.
const FIRST: usize = 2048;

/// A connection that speaks TLS.
pub(crate) struct Session<D> {
    io: D,
    engine: Box<dyn Engine>,
    /// How many bytes were encrypted by a write that could not send them all: the next one, which begins with the same
    /// bytes, goes on with that.
    encrypted: usize,
    /// The peer has broken the protocol, which ends the session.
    broken: bool,
    /// Whether nothing more is sent, and what comes is thrown away.
    closed: bool,
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// The client speaks HTTP, in plain.
    PlainHttp,
    /// It was too slow, broke the protocol, or could not agree on anything; or the connection failed.
    Failed(io::Error),
}

impl From<io::Error> for NoSession {
    fn from(error: io::Error) -> NoSession {
        NoSession::Failed(error)
    }
}

/// Lets an engine read and write a connection that would block.
struct Bytes<'d, D>(&'d mut D);

impl<D: Duplex> Read for Bytes<'_, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<D: Duplex> Write for Bytes<'_, D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<D: Duplex> Session<D> {
    /// A session that begins, or one that was put aside.
    pub(crate) fn new(io: D, engine: Box<dyn Engine>) -> Session<D> {
        Session {
            io,
            engine,
            encrypted: 0,
            broken: false,
            closed: false,
        }
    }

    /// What carries it, and the rest: to be put aside between two reads, with nothing to write.
    pub(crate) fn into_parts(self) -> (D, Box<dyn Engine>) {
        (self.io, self.engine)
    }

    /// What carries it.
    pub(crate) fn io_mut(&mut self) -> &mut D {
        &mut self.io
    }

    /// Whether the peer has broken the protocol.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// What drives it.
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// Tells the peer that nothing more is sent, as far as that goes at once.
    ///
    /// # Errors
    /// When the connection is gone.
    pub(crate) fn say_goodbye(&mut self) -> io::Result<()> {
        // An alert that is fatal was the last word (RFC 8446 section 6.2).
        if !self.broken {
            self.engine.say_goodbye();
        }
        self.send_pending().map(drop)
    }

    /// Agrees on keys with a client.
    ///
    /// # Errors
    /// [`NoSession`]; what failed is `TimedOut` past `until`, `InvalidData` when the peer breaks the protocol or nothing
    /// can be agreed on, others when the connection fails.
    pub(crate) fn accept(&mut self, until: Deadline, lane: &Lane) -> Result<(), NoSession> {
        let mut first = vec![0; FIRST];
        let count = loop {
            match self.io.read(&mut first) {
                Ok(count) => break count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.io.wait(until)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        };
        // A record of TLS does not begin with a letter (RFC 8446 section 5.1), and every method of HTTP does.
        if first[..count].first().is_some_and(u8::is_ascii_alphabetic) {
            return Err(NoSession::PlainHttp);
        }
        if count == 0 {
            return Err(NoSession::Failed(ErrorKind::UnexpectedEof.into()));
        }
        let slot = lane.enter();
        let mut rest = &first[..count];
        while !rest.is_empty() {
            if self.checked(|engine, _| engine.receive(&mut rest))? == 0 {
                break;
            }
        }
        self.send_pending()?;
        self.io.yield_turn();
        drop(slot);
        Ok(self.handshake(until, lane)?)
    }

    /// Agrees on keys with the peer, in its turn among the others of the `lane`.
    ///
    /// # Errors
    /// `TimedOut` past `until`, `InvalidData` when the peer breaks the protocol or nothing can be agreed on, others when
    /// the connection fails.
    pub(crate) fn handshake(&mut self, until: Deadline, lane: &Lane) -> io::Result<()> {
        loop {
            let sent = self.send_pending()?;
            if !self.engine.is_handshaking() {
                // Tickets may be left to send; what comes meanwhile is for who reads next.
                if sent {
                    return Ok(());
                }
                self.io.wait(until)?;
                continue;
            }
            let slot = lane.enter();
            match self.checked(|engine, io| engine.receive(&mut Bytes(io))) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {
                    self.send_pending()?;
                    self.io.yield_turn();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    drop(slot);
                    self.io.wait(until)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Does something with the engine, and tells the peer by an alert what is wrong, as far as that goes at once.
    fn checked(
        &mut self,
        work: impl FnOnce(&mut dyn Engine, &mut D) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let done = work(&mut *self.engine, &mut self.io);
        if done
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::InvalidData)
        {
            self.broken = true;
            let _ = self.send_pending();
        }
        done
    }

    /// Sends what is encrypted; says whether that is all.
    fn send_pending(&mut self) -> io::Result<bool> {
        while self.engine.wants_write() {
            match self.engine.send(&mut Bytes(&mut self.io)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl<D: Duplex> Duplex for Session<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.closed {
            // Not shown to the engine: rustls 0.23 answers what is wrong with an alert behind its close_notify, and in builds
            // with debug assertions it panics at that.
            let count = self.io.read(buffer)?;
            buffer[..count].fill(0);
            return Ok(count);
        }
        loop {
            match self.engine.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
            let received = self.checked(|engine, io| engine.receive(&mut Bytes(io)));
            // Answers of the protocol, such as to a change of keys.
            self.send_pending()?;
            match received {
                Ok(0) => {
                    // 0 if the peer had said so, else an error, for somebody may have cut the connection.
                    return self.engine.read(buffer);
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.encrypted == 0 {
            if !self.send_pending()? {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.encrypted = self.engine.write(pieces)?;
        }
        if !self.send_pending()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(std::mem::take(&mut self.encrypted))
    }

    fn send_file(&mut self, file: &File, offset: u64, length: u64) -> io::Result<usize> {
        if self.encrypted > 0 {
            return self.write(&[]);
        }
        let mut piece = vec![0; length.min(AT_ONCE as u64) as usize];
        let count = file.read_at(&mut piece, offset)?;
        if count == 0 {
            return Ok(0);
        }
        self.write(&piece[..count])
    }

    fn wait(&mut self, until: Deadline) -> io::Result<()> {
        self.io.wait(until)
    }

    fn yield_turn(&mut self) {
        self.io.yield_turn();
    }

    fn is_gone(&self) -> bool {
        self.io.is_gone()
    }

    fn close_write(&mut self) -> io::Result<()> {
        // Where there is no room for it the peer sees the end of the connection.
        self.closed = true;
        self.say_goodbye()?;
        self.io.close_write()
    }
}
