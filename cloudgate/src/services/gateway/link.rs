//! What is a connection to a server, in use and between two uses?

use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::message::Duplex;
use crate::net::buffer::ReadBuffer;
use crate::net::dial::Place;
use crate::net::home;
use crate::net::stream::Stream;

/// The most idle connections that are kept of one server, on each worker.
const MOST_IDLE: usize = 1024;

/// A connection to a server.
pub(crate) struct Link {
    pub(crate) stream: Stream,
    pub(crate) place: Place,
    /// Whether it has carried a request before.
    pub(crate) reused: bool,
    /// Since when it is idle, on the dialer's clock.
    since: u64,
}

impl Link {
    pub(crate) fn new(stream: Stream, place: Place) -> Link {
        Link {
            stream,
            place,
            reused: false,
            since: 0,
        }
    }

    /// Whether the server has neither ended it nor said something that nobody has asked for.
    fn is_quiet(&mut self, ask: Ask) -> bool {
        // A read may have taken what an event has told of later.
        if self.stream.is_quiet() && ask == Ask::Worker {
            return true;
        }
        self.stream.look_again();
        let read = self.stream.read(&mut [0]);
        matches!(read, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }
}

/// Who is asked whether an idle connection is still one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The worker, who knows what had come when it last asked the system: enough for a request that can be made again.
    Worker,
    /// The system itself.
    System,
}

/// The idle connections to one server, those of each worker for themselves.
pub(crate) struct Pool(Box<[Mutex<Vec<Link>>]>);

impl Pool {
    pub(crate) fn new() -> Pool {
        Pool((0..home::workers()).map(|_| Mutex::default()).collect())
    }

    /// The connection of this worker that was used last, if it still is one: to one of the places where the server is,
    /// and idle for less than `most` milliseconds.
    pub(crate) fn take(
        &self,
        now: u64,
        most: u64,
        ask: Ask,
        is_there: impl Fn(&Place) -> bool,
    ) -> Option<Link> {
        let links = self.0.get(home::current()?)?;
        loop {
            // Those that are too old are closed when the lock has been given back.
            let mut link = lock(links).pop()?;
            if link.since.saturating_add(most) <= now {
                // The others have been idle for longer.
                let old = std::mem::take(&mut *lock(links));
                drop(old);
                return None;
            }
            if is_there(&link.place) && link.is_quiet(ask) {
                link.reused = true;
                return Some(link);
            }
        }
    }

    /// Keeps a connection of this worker for the next request.
    pub(crate) fn put(&self, mut link: Link, now: u64) {
        link.since = now;
        let Some(links) = home::current().and_then(|worker| self.0.get(worker)) else {
            return;
        };
        let mut links = lock(links);
        if links.len() < MOST_IDLE {
            links.push(link);
        }
    }

    /// Closes those of this worker that were idle for too long, or that the server has ended.
    pub(crate) fn prune(&self, now: u64, most: u64) {
        let Some(links) = home::current().and_then(|worker| self.0.get(worker)) else {
            return;
        };
        let all = std::mem::take(&mut *lock(links));
        let (kept, closed): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|link| link.since.saturating_add(most) > now && !link.stream.is_gone());
        drop(closed);
        let mut links = lock(links);
        // What came back meanwhile was used later.
        let later = std::mem::replace(&mut *links, kept);
        links.extend(later);
    }

    /// How many there are, on all workers.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|links| lock(links).len()).sum()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The largest buffers that are kept for the next request, in bytes.
const LARGEST_KEPT: usize = 64 << 10;

/// The most sets of buffers that are kept for the next requests, on each worker.
const MOST_KEPT: usize = 64;

/// What an exchange with a server is read into and written from.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) input: ReadBuffer,
    pub(crate) output: Vec<u8>,
}

/// Buffers for the next exchanges, those of each worker for themselves.
pub(crate) struct Shelf(Box<[Mutex<Vec<Buffers>>]>);

impl Shelf {
    pub(crate) fn new() -> Shelf {
        Shelf((0..home::workers()).map(|_| Mutex::default()).collect())
    }

    /// A set of buffers with nothing in them.
    pub(crate) fn take(&self) -> Buffers {
        let shelf = home::current().and_then(|worker| self.0.get(worker));
        shelf
            .and_then(|shelf| lock(shelf).pop())
            .unwrap_or_default()
    }

    /// Keeps the memory of buffers for others.
    pub(crate) fn put(&self, mut buffers: Buffers) {
        buffers.input.empty();
        buffers.output.clear();
        if buffers.output.capacity() > LARGEST_KEPT {
            return;
        }
        if let Some(shelf) = home::current().and_then(|worker| self.0.get(worker)) {
            let mut shelf = lock(shelf);
            if shelf.len() < MOST_KEPT {
                shelf.push(buffers);
            }
        }
    }
}

/// Reads once from a server; the end of the stream is an error.
pub(crate) fn fill(input: &mut ReadBuffer, stream: &mut Stream, most: usize) -> io::Result<usize> {
    loop {
        match input.fill(most, |space| stream.read(space)) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
