//! How does TLS go over a connection without ever waiting by itself (RFC 8446, RFC 5246)?
//!
//! rustls takes bytes and gives bytes. The coroutine reads and writes the socket between its calls, and waits outside of
//! them, so no library's frames are on a stack that is put aside.

pub mod identity;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use crate::message::{Deadline, Duplex};

/// The most that one call encrypts, in bytes: four records (RFC 8446 section 5.1), which go out by one call.
const AT_ONCE: usize = 64 << 10;

/// A connection that speaks TLS as its server.
pub(crate) struct Tls<D> {
    io: D,
    session: Box<ServerConnection>,
    /// How many bytes were encrypted by a write that could not send them all: the next one, which begins with the same
    /// bytes, goes on with that.
    encrypted: usize,
}

/// Lets rustls read and write a connection that would block.
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

impl<D: Duplex> Tls<D> {
    /// A session that begins.
    ///
    /// # Errors
    /// When the configuration cannot serve at all.
    pub(crate) fn accept(io: D, config: &Arc<ServerConfig>) -> io::Result<Tls<D>> {
        let mut session = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        // What is written waits in the socket alone, so that who writes hears when it is full.
        session.set_buffer_limit(Some(AT_ONCE));
        Ok(Tls::resume(io, Box::new(session)))
    }

    /// A session that was put aside.
    pub(crate) fn resume(io: D, session: Box<ServerConnection>) -> Tls<D> {
        Tls {
            io,
            session,
            encrypted: 0,
        }
    }

    /// What carries it, and the session: to be put aside between two reads, with nothing to write.
    pub(crate) fn into_parts(self) -> (D, Box<ServerConnection>) {
        (self.io, self.session)
    }

    /// Tells the peer that nothing more is sent, as far as that goes at once.
    ///
    /// # Errors
    /// When the connection is gone.
    pub(crate) fn say_goodbye(&mut self) -> io::Result<()> {
        self.session.send_close_notify();
        self.send_pending().map(drop)
    }

    /// Agrees on keys with the peer.
    ///
    /// # Errors
    /// `TimedOut` past `until`, `InvalidData` when the peer breaks the protocol or nothing can be agreed on, others when
    /// the connection fails.
    pub(crate) fn handshake(&mut self, until: Deadline) -> io::Result<()> {
        loop {
            let sent = self.send_pending()?;
            if !self.session.is_handshaking() {
                // Tickets may be left to send; what comes meanwhile is for who reads next.
                if sent {
                    return Ok(());
                }
                self.io.wait(until)?;
                continue;
            }
            match self.receive() {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.io.wait(until)?,
                Err(error) => {
                    // What is wrong is told by an alert, as far as that goes at once.
                    let _ = self.send_pending();
                    return Err(error);
                }
            }
        }
    }

    /// Reads once and decrypts; 0 at the end of the connection.
    fn receive(&mut self) -> io::Result<usize> {
        let count = self.session.read_tls(&mut Bytes(&mut self.io))?;
        if count > 0 {
            self.session
                .process_new_packets()
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
        Ok(count)
    }

    /// Sends what is encrypted; says whether that is all.
    fn send_pending(&mut self) -> io::Result<bool> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Bytes(&mut self.io)) {
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

impl<D: Duplex> Duplex for Tls<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => return other,
            }
            let received = self.receive();
            // Answers of the protocol, such as to a change of keys.
            self.send_pending()?;
            match received {
                Ok(0) => {
                    // 0 if the peer had said so, else an error, for somebody may have cut the connection.
                    return self.session.reader().read(buffer);
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
            // No more than the session's limit, which is all free.
            self.encrypted = self.session.writer().write_vectored(pieces)?;
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

    fn close_write(&mut self) -> io::Result<()> {
        // Where there is no room for it the peer sees the end of the connection.
        self.say_goodbye()?;
        self.io.close_write()
    }
}
