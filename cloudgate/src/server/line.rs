//! What is left of a connection that nobody serves?

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{SendFlags, send};

use super::upgraded::Held;
use crate::net::stream::Secure;

/// A socket and what it has of TLS. Where it is dropped the peer of a session hears that nothing more comes, as far as that
/// goes at once (RFC 8446 section 6.1).
pub(super) struct Line {
    /// There until the line is taken apart, which is its end.
    socket: Option<Held>,
    secure: Option<Box<Secure>>,
}

impl Line {
    pub(super) fn new(socket: Held, secure: Secure) -> Line {
        Line {
            socket: Some(socket),
            secure: secure.boxed(),
        }
    }

    /// The socket.
    pub(super) fn held(&self) -> &Held {
        self.socket
            .as_ref()
            .expect("only `into_parts` takes it, and leaves no line behind")
    }

    /// Takes both, to go on with the connection.
    pub(super) fn into_parts(mut self) -> Option<(Held, Secure)> {
        let socket = self.socket.take()?;
        Some((socket, Secure::unboxed(self.secure.take())))
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.held().as_fd()
    }
}

/// Writes what goes at once.
struct AtOnce<'s>(BorrowedFd<'s>);

impl Write for AtOnce<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        send(self.0, bytes, flags).map_err(Into::into)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let (Some(socket), Some(secure)) = (&self.socket, &mut self.secure)
            && let Secure::Session(engine, _) = &mut **secure
        {
            engine.say_goodbye();
            while engine.wants_write() && engine.send(&mut AtOnce(socket.as_fd())).is_ok() {}
        }
    }
}
