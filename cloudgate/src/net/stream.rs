//! Does a connection speak TLS or not?

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use super::tls::engine::{Acceptor, Engine};
use super::tls::lane::Lane;
use super::tls::session::{NoSession, Session};
use super::transport::Plain;
use crate::message::{Deadline, Duplex, TlsSession};

/// What a connection has of TLS, while nobody serves it.
pub(crate) enum Secure {
    /// Nothing: it is plain.
    Plain,
    /// The handshake is still to come.
    Awaited(Arc<dyn Acceptor>),
    /// A session, between two reads, with nothing to write.
    Session(Box<dyn Engine>, Arc<TlsSession>),
}

impl Secure {
    /// In the space of a pointer, which is all that a plain connection needs.
    pub(crate) fn boxed(self) -> Option<Box<Secure>> {
        match self {
            Secure::Plain => None,
            other => Some(Box::new(other)),
        }
    }

    /// The other way round.
    pub(crate) fn unboxed(secure: Option<Box<Secure>>) -> Secure {
        secure.map_or(Secure::Plain, |secure| *secure)
    }
}

/// A connection of one worker, plain or by TLS.
pub(crate) enum Stream<S: AsFd + AsRawFd = OwnedFd> {
    Plain(Plain<S>),
    Tls(Session<Plain<S>>, Arc<TlsSession>),
}

impl<S: AsFd + AsRawFd> Stream<S> {
    /// The connection, and its session if it has one; a handshake takes place until `until`, in its worker's `lane`.
    ///
    /// # Errors
    /// As [`Session::accept`], with the connection.
    pub(crate) fn open(
        io: Plain<S>,
        secure: Secure,
        until: Deadline,
        lane: &Lane,
    ) -> Result<Stream<S>, (Plain<S>, NoSession)> {
        Ok(match secure {
            Secure::Plain => Stream::Plain(io),
            Secure::Awaited(acceptor) => {
                let engine = match acceptor.begin() {
                    Ok(engine) => engine,
                    Err(error) => return Err((io, error.into())),
                };
                let mut session = Session::new(io, engine);
                if let Err(error) = session.accept(until, lane) {
                    return Err((session.into_parts().0, error));
                }
                let agreed = Arc::new(session.engine().agreed());
                Stream::Tls(session, agreed)
            }
            Secure::Session(engine, agreed) => Stream::Tls(Session::new(io, engine), agreed),
        })
    }

    /// A connection to another server, by a session whose handshake takes place until `until`.
    ///
    /// # Errors
    /// As [`Session::handshake`].
    pub(crate) fn connect(
        io: Plain<S>,
        engine: Box<dyn Engine>,
        until: Deadline,
        lane: &Lane,
    ) -> io::Result<Stream<S>> {
        let mut session = Session::new(io, engine);
        session.handshake(until, lane)?;
        let agreed = Arc::new(session.engine().agreed());
        Ok(Stream::Tls(session, agreed))
    }

    /// What was agreed on, where TLS is spoken.
    pub(crate) fn agreed(&self) -> Option<&Arc<TlsSession>> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(_, agreed) => Some(agreed),
        }
    }

    /// As [`Plain::is_quiet`].
    pub(crate) fn is_quiet(&mut self) -> bool {
        match self {
            Stream::Plain(io) => io.is_quiet(),
            Stream::Tls(session, _) => session.io_mut().is_quiet(),
        }
    }

    /// As [`Plain::look_again`].
    pub(crate) fn look_again(&mut self) {
        match self {
            Stream::Plain(io) => io.look_again(),
            Stream::Tls(session, _) => session.io_mut().look_again(),
        }
    }

    /// Takes it apart, to be put aside.
    pub(crate) fn into_parts(self) -> (S, Secure) {
        match self {
            Stream::Plain(io) => (io.into_socket(), Secure::Plain),
            Stream::Tls(session, agreed) => {
                let (io, engine) = session.into_parts();
                (io.into_socket(), Secure::Session(engine, agreed))
            }
        }
    }

    /// Says that nothing more is sent, where there are words for that.
    pub(crate) fn say_goodbye(&mut self) {
        if let Stream::Tls(session, _) = self {
            // Who is gone, or does not read, hears nothing.
            let _ = session.say_goodbye();
        }
    }

    /// Whether the last that was said is why the connection ends.
    pub(crate) fn ends_by_alert(&self) -> bool {
        matches!(self, Stream::Tls(session, _) if session.is_broken())
    }
}

impl<S: AsFd + AsRawFd> Duplex for Stream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.read(buffer),
            Stream::Tls(io, _) => io.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.write(bytes),
            Stream::Tls(io, _) => io.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.write_vectored(pieces),
            Stream::Tls(io, _) => io.write_vectored(pieces),
        }
    }

    fn write_more(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.write_more(bytes),
            Stream::Tls(io, _) => io.write_more(bytes),
        }
    }

    fn send_file(&mut self, file: &File, offset: u64, length: u64) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.send_file(file, offset, length),
            Stream::Tls(io, _) => io.send_file(file, offset, length),
        }
    }

    fn wait(&mut self, until: Deadline) -> io::Result<()> {
        match self {
            Stream::Plain(io) => io.wait(until),
            Stream::Tls(io, _) => io.wait(until),
        }
    }

    fn yield_turn(&mut self) {
        match self {
            Stream::Plain(io) => io.yield_turn(),
            Stream::Tls(io, _) => io.yield_turn(),
        }
    }

    fn is_gone(&self) -> bool {
        match self {
            Stream::Plain(io) => io.is_gone(),
            Stream::Tls(io, _) => io.is_gone(),
        }
    }

    fn close_write(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(io) => io.close_write(),
            Stream::Tls(io, _) => io.close_write(),
        }
    }
}
