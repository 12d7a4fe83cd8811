//! How does a connection live on that speaks another protocol now?
//!
//! Its [`Protocol`] has a coroutine while there is work, as a connection of HTTP has, and is parked while there is
//! none, if it allows that. Others reach it in either state by its [`Tie`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::{SendFlags, send};

use super::Shared;
use super::accept::Guest;
use super::conn::Surroundings;
use crate::message::{After, Deadline, Host, Pace, Protocol, Tie, Upgrade, Upgraded};
use crate::net::home::{self, Waker};
use crate::net::park::Ticket;
use crate::net::transport::Plain;

/// How long a connection that cannot be parked waits until that is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// A connection's descriptor, while it has no coroutine.
pub(super) enum Held {
    /// Nobody else has it.
    Alone(OwnedFd),
    /// Its tie has it too, and may write.
    WithTie(Arc<OwnedFd>),
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Held::Alone(socket) => socket.as_fd(),
            Held::WithTie(socket) => socket.as_fd(),
        }
    }
}

/// What a connection has that speaks another protocol.
pub(super) struct Talk {
    protocol: Box<dyn Protocol>,
    leftover: Vec<u8>,
    tie: Arc<SocketTie>,
    /// What the protocol sees of its tie.
    shown: Arc<dyn Tie>,
    _kept: Option<Kept>,
}

/// One connection in the count of those that keep their coroutines.
struct Kept(Arc<Shared>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.around.kept.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Talk {
    /// A protocol that begins on a connection of this worker; `leftover` came behind the request.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        worker: usize,
        upgrade: Upgrade,
        leftover: Vec<u8>,
    ) -> Box<Talk> {
        let kept = upgrade.0.keeps_coroutine().then(|| {
            shared.around.kept.fetch_add(1, Ordering::Relaxed);
            Kept(Arc::clone(shared))
        });
        let tie = Arc::new(SocketTie {
            shared: Arc::clone(shared),
            worker,
            place: Mutex::new(Place::Between),
        });
        Box::new(Talk {
            protocol: upgrade.0,
            leftover,
            shown: Arc::clone(&tie) as Arc<dyn Tie>,
            tie,
            _kept: kept,
        })
    }

    /// Takes the descriptor from the tie, which no longer writes to it.
    pub(super) fn take_socket(&self, held: Held) -> OwnedFd {
        *self.tie.lock() = Place::Between;
        match held {
            Held::Alone(socket) => socket,
            // The tie's was the other reference.
            Held::WithTie(socket) => {
                Arc::into_inner(socket).expect("a connection and its tie alone have its descriptor")
            }
        }
    }

    /// Goes on with the protocol until the connection is over or parked.
    pub(super) fn run(
        mut self: Box<Self>,
        mut io: Plain,
        waker: Waker,
        around: &Surroundings,
    ) -> Left {
        *self.tie.lock() = Place::Busy(waker);
        loop {
            let host = HostOf {
                around,
                tie: &self.shown,
            };
            let mut connection = Upgraded {
                io: &mut io,
                leftover: &mut self.leftover,
                host: &host,
            };
            let protocol = &mut self.protocol;
            let after = home::catch_panic(|| protocol.run(&mut connection));
            if matches!(after, Ok(After::Idle(_))) && around.stopping.load(Ordering::Relaxed) {
                // It looks whether the server stops.
                continue;
            }
            // Before the descriptor leaves the poller, where a wake-up would meet the next one of its number.
            *self.tie.lock() = Place::Between;
            return match after {
                Ok(After::Idle(until)) => Left::Idle(self, io, until),
                Ok(After::Over) | Err(_) => Left::Over,
            };
        }
    }
}

/// How a protocol has left its coroutine.
pub(super) enum Left {
    Over,
    Idle(Box<Talk>, Plain, Deadline),
}

/// Puts a connection aside. Gives it back where it has something to do already.
pub(super) fn park(shared: &Shared, mut guest: Guest, until: Deadline) -> Option<Guest> {
    let Some(talk) = &guest.talk else {
        return Some(guest);
    };
    let tie = Arc::clone(&talk.tie);
    // Who has something for the connection says so first and asks for this lock then: either it is seen here, or the
    // connection is found parked.
    let mut place = tie.lock();
    if talk.protocol.has_work() {
        return Some(guest);
    }
    let socket = match guest.socket {
        Held::Alone(socket) => Arc::new(socket),
        Held::WithTie(socket) => socket,
    };
    guest.socket = Held::WithTie(Arc::clone(&socket));
    match shared.lot.park(guest, until) {
        Ok(ticket) => {
            *place = Place::Parked(socket, ticket);
            None
        }
        Err(guest) => {
            drop(place);
            drop(socket);
            if !shared.around.stopping.load(Ordering::Relaxed) {
                home::sleep(AGAIN);
            }
            Some(guest)
        }
    }
}

/// How others reach a connection of this server.
struct SocketTie {
    shared: Arc<Shared>,
    worker: usize,
    place: Mutex<Place>,
}

/// Where the connection is.
enum Place {
    /// On its way from one state to another, or at its end: whoever goes on with it looks for what has come up.
    Between,
    /// In its coroutine.
    Busy(Waker),
    Parked(Arc<OwnedFd>, Ticket),
}

impl SocketTie {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tie for SocketTie {
    fn wake(&self) -> bool {
        match &*self.lock() {
            Place::Between => true,
            Place::Busy(waker) => {
                waker.wake();
                true
            }
            Place::Parked(..) => false,
        }
    }

    fn rouse(&self) {
        match &*self.lock() {
            Place::Between => {}
            Place::Busy(waker) => waker.wake(),
            Place::Parked(socket, ticket) => self.shared.lot.rouse(*ticket, socket),
        }
    }

    fn call(&self) {
        let place = self.lock();
        match &*place {
            Place::Between => {}
            Place::Busy(waker) => waker.wake(),
            Place::Parked(_, ticket) => {
                let ticket = *ticket;
                drop(place);
                self.shared.lot.call(ticket);
            }
        }
    }

    fn write_aside(&self, bytes: &[u8]) -> Option<io::Result<usize>> {
        match &*self.lock() {
            Place::Parked(socket, _) => {
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                Some(send(socket, bytes, flags).map_err(Into::into))
            }
            Place::Between | Place::Busy(_) => None,
        }
    }

    fn worker(&self) -> usize {
        self.worker
    }
}

/// What the server does for one connection.
struct HostOf<'s> {
    around: &'s Surroundings,
    tie: &'s Arc<dyn Tie>,
}

impl Host for HostOf<'_> {
    fn now(&self) -> u64 {
        self.around.clock.now()
    }

    fn is_stopping(&self) -> bool {
        self.around.stopping.load(Ordering::Relaxed)
    }

    fn pace(&self) -> Pace {
        self.around.rules.pace()
    }

    fn patience(&self) -> u64 {
        self.around.patience()
    }

    fn tie(&self) -> &Arc<dyn Tie> {
        self.tie
    }
}
