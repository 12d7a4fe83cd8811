//! What carries a connection's bytes?

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, shutdown};

use super::deadline::Registration;
use super::home::{self, Socket};
use crate::message::{Deadline, Duplex};

/// How much of a file one call hands to the system, in bytes: between two calls the connection can be
/// cut, and others can have a turn.
const FILE_PIECE: u64 = 1 << 20;

/// A plain connection of one worker, by TCP or a Unix socket. Its descriptor may be somebody else's too.
pub(crate) struct Plain<S: AsFd + AsRawFd = OwnedFd> {
    // Before the socket: the sweeper must not wake a descriptor that is somebody else's already.
    registration: Registration,
    socket: Socket<S>,
    /// Whether a read may find something. A read that did not fill its buffer has emptied the
    /// socket, and whatever comes after it is a new event, so asking again would be a wasted call.
    readable: bool,
    /// Whether the peer has ended its side: then there is no further event, and reads go on to the end.
    hung_up: bool,
}

impl<S: AsFd + AsRawFd> Plain<S> {
    pub(crate) fn new(socket: Socket<S>, registration: Registration) -> Plain<S> {
        Plain {
            registration,
            socket,
            readable: true,
            hung_up: false,
        }
    }

    /// Fails once the server has given the connection up: a peer that always reads never lets its
    /// connection wait, and so would never be cut.
    fn check_cut(&self) -> io::Result<()> {
        if self.registration.watch().is_cut() {
            Err(ErrorKind::ConnectionAborted.into())
        } else {
            Ok(())
        }
    }

    /// Has the next read ask the system, although no wait has said that there is something.
    pub(crate) fn look_again(&mut self) {
        self.readable = true;
    }

    /// Whether nothing has come since the last wait, as far as the worker knows: it costs no call of the system.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let events = self.socket.so_far();
        self.readable |= events.readable();
        self.hung_up |= events.hung_up();
        !self.readable
    }

    /// The socket, for what the system knows of it.
    pub(crate) fn socket(&self) -> &S {
        self.socket.get()
    }

    /// The socket, taken off the worker's poller and off the list of deadlines.
    pub(crate) fn into_socket(self) -> S {
        self.socket.into_inner()
    }

    /// Looks at the bytes that are there and leaves them; 0 is the end of the stream.
    ///
    /// # Errors
    /// As [`Duplex::read`].
    pub(crate) fn peek(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (_, count) = rustix::net::recv(self.socket.get(), buffer, RecvFlags::PEEK)?;
        Ok(count)
    }

    /// Whether the peer has ended its side, so that nothing follows the bytes that are there.
    pub(crate) fn has_ended(&self) -> bool {
        self.hung_up
    }
}

impl<S: AsFd + AsRawFd> Duplex for Plain<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.readable {
            return Err(ErrorKind::WouldBlock.into());
        }
        let room = buffer.len();
        match rustix::net::recv(self.socket.get(), buffer, RecvFlags::empty()) {
            Ok((_, count)) => {
                self.readable = self.hung_up || count == room || count == 0;
                Ok(count)
            }
            Err(error) => {
                if error == Errno::WOULDBLOCK {
                    self.readable = false;
                }
                Err(error.into())
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check_cut()?;
        Ok(rustix::net::send(
            self.socket.get(),
            bytes,
            SendFlags::NOSIGNAL,
        )?)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.check_cut()?;
        // `writev` would raise SIGPIPE where the peer is gone, which ends a program that has not ignored it.
        Ok(rustix::net::sendmsg(
            self.socket.get(),
            pieces,
            &mut SendAncillaryBuffer::default(),
            SendFlags::NOSIGNAL,
        )?)
    }

    #[cfg(target_os = "linux")]
    fn write_more(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check_cut()?;
        Ok(rustix::net::send(
            self.socket.get(),
            bytes,
            SendFlags::MORE | SendFlags::NOSIGNAL,
        )?)
    }

    #[cfg(target_os = "linux")]
    fn send_file(&mut self, file: &File, mut offset: u64, length: u64) -> io::Result<usize> {
        self.check_cut()?;
        let count = length.min(FILE_PIECE) as usize;
        Ok(rustix::fs::sendfile(
            self.socket.get(),
            file,
            Some(&mut offset),
            count,
        )?)
    }

    fn wait(&mut self, until: Deadline) -> io::Result<()> {
        // The wake-up for it may have ended an earlier wait that did not look.
        self.check_cut()?;
        let watch = self.registration.watch();
        watch.set(until);
        let events = self.socket.wait();
        watch.set(Deadline::NEVER);
        self.readable |= events.readable();
        self.hung_up |= events.hung_up();
        if watch.is_cut() {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        home::unwind_if_late();
        if until.has_passed(self.registration.clock().now()) {
            return Err(ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    fn yield_turn(&mut self) {
        self.registration.watch().wake();
        let events = self.socket.wait();
        self.readable |= events.readable();
        self.hung_up |= events.hung_up();
        home::unwind_if_late();
    }

    fn is_gone(&self) -> bool {
        let mut looked = [PollFd::new(self.socket.get(), PollFlags::RDHUP)];
        let now = Timespec::default();
        // A word of the system that is no answer says nothing of the peer.
        let found = rustix::event::poll(&mut looked, Some(&now)).is_ok_and(|count| count > 0);
        found || self.registration.watch().is_cut()
    }

    fn close_write(&mut self) -> io::Result<()> {
        Ok(shutdown(self.socket.get(), Shutdown::Write)?)
    }
}
