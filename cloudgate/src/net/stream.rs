//! Does a connection speak TLS or not?

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

use super::tls::Tls;
use super::transport::Plain;
use crate::message::{Deadline, Duplex};

/// What a connection has of TLS, while nobody serves it.
pub(crate) enum Secure {
    /// Nothing: it is plain.
    Plain,
    /// The handshake is still to come.
    Awaited(Arc<ServerConfig>),
    /// A session, between two reads, with nothing to write.
    Session(Box<ServerConnection>),
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
    Tls(Tls<Plain<S>>),
}

impl<S: AsFd + AsRawFd> Stream<S> {
    /// The connection, and its session if it has one; a handshake takes place until `until`.
    ///
    /// # Errors
    /// As [`Tls::handshake`].
    pub(crate) fn open(io: Plain<S>, secure: Secure, until: Deadline) -> io::Result<Stream<S>> {
        Ok(match secure {
            Secure::Plain => Stream::Plain(io),
            Secure::Awaited(config) => {
                let mut tls = Tls::accept(io, &config)?;
                tls.handshake(until)?;
                // It has computed for longer than a request takes.
                tls.yield_turn();
                Stream::Tls(tls)
            }
            Secure::Session(session) => Stream::Tls(Tls::resume(io, session)),
        })
    }

    /// Takes it apart, to be put aside.
    pub(crate) fn into_parts(self) -> (S, Secure) {
        match self {
            Stream::Plain(io) => (io.into_socket(), Secure::Plain),
            Stream::Tls(tls) => {
                let (io, session) = tls.into_parts();
                (io.into_socket(), Secure::Session(session))
            }
        }
    }

    /// Says that nothing more is sent, where there are words for that.
    pub(crate) fn say_goodbye(&mut self) {
        if let Stream::Tls(tls) = self {
            // Who is gone, or does not read, hears nothing.
            let _ = tls.say_goodbye();
        }
    }
}

impl<S: AsFd + AsRawFd> Duplex for Stream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.read(buffer),
            Stream::Tls(io) => io.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.write(bytes),
            Stream::Tls(io) => io.write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.write_vectored(pieces),
            Stream::Tls(io) => io.write_vectored(pieces),
        }
    }

    fn write_more(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.write_more(bytes),
            Stream::Tls(io) => io.write_more(bytes),
        }
    }

    fn send_file(&mut self, file: &File, offset: u64, length: u64) -> io::Result<usize> {
        match self {
            Stream::Plain(io) => io.send_file(file, offset, length),
            Stream::Tls(io) => io.send_file(file, offset, length),
        }
    }

    fn wait(&mut self, until: Deadline) -> io::Result<()> {
        match self {
            Stream::Plain(io) => io.wait(until),
            Stream::Tls(io) => io.wait(until),
        }
    }

    fn yield_turn(&mut self) {
        match self {
            Stream::Plain(io) => io.yield_turn(),
            Stream::Tls(io) => io.yield_turn(),
        }
    }

    fn close_write(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(io) => io.close_write(),
            Stream::Tls(io) => io.close_write(),
        }
    }
}
