//! How does a coroutine wait for one socket, and for another one at the same time?
//!
//! It waits for the first, and a small coroutine beside it for the second, which says so where the first is waited for.

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, sendmsg, shutdown};

use super::home::{self, Socket, Waker};
use super::stream::{Secure, Stream};
use super::tls::session::Session;
use crate::message::{Deadline, Duplex};

/// A connection of this worker that somebody else waits for.
pub(crate) struct Watched {
    stream: Kind,
    watch: Arc<Watch>,
    waker: Waker,
}

enum Kind {
    Plain(Raw),
    Tls(Session<Raw>),
}

struct Watch {
    /// Whether something may have come, or there may be room again.
    ready: AtomicBool,
    over: AtomicBool,
}

impl Watched {
    /// Has `rouse` called whenever there is something to do with this connection.
    ///
    /// # Errors
    /// When there is no stack for who waits, or the system's poller refuses the socket.
    pub(crate) fn new(stream: Stream, rouse: impl Fn() + Send + 'static) -> io::Result<Watched> {
        let worker = home::current()
            .ok_or_else(|| io::Error::other("connections are waited for by coroutines"))?;
        let (socket, secure) = stream.into_parts();
        let socket = Arc::new(socket);
        let watch = Arc::new(Watch {
            ready: AtomicBool::new(true),
            over: AtomicBool::new(false),
        });
        let raw = Raw {
            socket: Arc::clone(&socket),
            watch: Arc::clone(&watch),
        };
        let stream = match secure {
            Secure::Plain | Secure::Awaited(_) => Kind::Plain(raw),
            Secure::Session(engine, _) => Kind::Tls(Session::new(raw, engine)),
        };
        let waiting = Socket::at_home(worker, socket)?;
        let waker = waiting.waker();
        let theirs = Arc::clone(&watch);
        home::spawn(worker, "watch", move || {
            loop {
                waiting.wait();
                if theirs.over.load(Ordering::Acquire) {
                    return;
                }
                theirs.ready.store(true, Ordering::Release);
                rouse();
            }
        })?;
        Ok(Watched {
            stream,
            watch,
            waker,
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watch.over.store(true, Ordering::Release);
        self.waker.wake();
    }
}

impl Duplex for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Kind::Plain(io) => io.read(buffer),
            Kind::Tls(io) => io.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            Kind::Plain(io) => io.write(bytes),
            Kind::Tls(io) => io.write(bytes),
        }
    }

    /// Others wait for it.
    fn wait(&mut self, _until: Deadline) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn yield_turn(&mut self) {
        home::yield_now();
    }

    fn close_write(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Kind::Plain(io) => io.close_write(),
            Kind::Tls(io) => io.close_write(),
        }
    }
}

/// The socket itself.
struct Raw {
    socket: Arc<OwnedFd>,
    watch: Arc<Watch>,
}

impl Duplex for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // What comes from here on is a new event.
        if !self.watch.ready.swap(false, Ordering::AcqRel) {
            return Err(ErrorKind::WouldBlock.into());
        }
        let (_, count) = recv(&*self.socket, buffer, RecvFlags::empty())?;
        // There may be more, and at the end of the stream no event follows.
        self.watch.ready.store(true, Ordering::Release);
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        Ok(sendmsg(
            &*self.socket,
            pieces,
            &mut nothing,
            SendFlags::NOSIGNAL,
        )?)
    }

    fn wait(&mut self, _until: Deadline) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn yield_turn(&mut self) {
        home::yield_now();
    }

    fn close_write(&mut self) -> io::Result<()> {
        Ok(shutdown(&*self.socket, Shutdown::Write)?)
    }
}
