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
use crate::net::home::{self, Socket, Waker};
use crate::net::park::{Lot, Ticket};
use crate::net::stream::{Secure, Stream};
use crate::net::transport::Plain;

/// How long a connection that cannot be parked waits until that is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// The descriptor of a connection that has no coroutine.
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
        secure: &Secure,
    ) -> Box<Talk> {
        let kept = upgrade.0.keeps_coroutine().then(|| {
            shared.around.kept.fetch_add(1, Ordering::Relaxed);
            Kept(Arc::clone(shared))
        });
        let tie = Arc::new(SocketTie {
            lot: Arc::clone(&shared.lot),
            worker,
            plain: matches!(secure, Secure::Plain),
            place: Mutex::new(Place::Away),
        });
        Box::new(Talk {
            protocol: upgrade.0,
            leftover,
            shown: Arc::clone(&tie) as Arc<dyn Tie>,
            tie,
            _kept: kept,
        })
    }

    /// Goes on with the protocol until the connection is over or has nothing to do.
    pub(super) fn run(
        mut self: Box<Self>,
        socket: Socket<Arc<OwnedFd>>,
        secure: Secure,
        shared: &Arc<Shared>,
    ) -> Left {
        let waker = socket.waker();
        *self.tie.lock() = Place::Busy(Arc::clone(socket.get()), waker.clone());
        let plain = Plain::new(socket, shared.list.register(waker));
        let around = &shared.around;
        // It has its session already, so that nothing can fail.
        let Ok(mut io) = Stream::open(
            plain,
            secure,
            Deadline::NEVER,
            &shared.lanes[self.tie.worker],
        ) else {
            *self.tie.lock() = Place::Away;
            return Left::Over;
        };
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
            return match after {
                Ok(After::Idle(until)) => {
                    // Before the descriptor leaves the poller, where a wake-up would meet the next one of its number.
                    self.tie.leave_coroutine();
                    Left::Idle(self, io.into_parts(), until)
                }
                Ok(After::Over) | Err(_) => {
                    io.say_goodbye();
                    *self.tie.lock() = Place::Away;
                    Left::Over
                }
            };
        }
    }
}

/// How a protocol has left its coroutine.
pub(super) enum Left {
    Over,
    Idle(Box<Talk>, (Arc<OwnedFd>, Secure), Deadline),
}

/// Puts a connection aside. Gives it back where it has something to do already.
pub(super) fn park(shared: &Shared, guest: Guest, until: Deadline) -> Option<Guest> {
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
    let Held::WithTie(socket) = guest.line.held() else {
        return Some(guest);
    };
    let socket = Arc::clone(socket);
    match shared.lot.park(guest, until) {
        Ok(ticket) => {
            *place = Place::Parked(socket, ticket);
            None
        }
        Err(guest) => {
            drop(place);
            if !shared.around.stopping.load(Ordering::Relaxed) {
                home::sleep(AGAIN);
            }
            Some(guest)
        }
    }
}

/// How others reach a connection of this server.
struct SocketTie {
    // Not the server: whoever keeps a sender would keep that, and with it the application that keeps the sender.
    lot: Arc<Lot<Guest>>,
    worker: usize,
    /// Whether bytes go over the connection as they are.
    plain: bool,
    place: Mutex<Place>,
}

/// Where the connection is.
enum Place {
    /// It has not begun, or has ended.
    Away,
    /// On its way from a coroutine to the table of parked ones, or back: whoever goes on with it looks for what has
    /// come up.
    Between(Arc<OwnedFd>),
    /// In its coroutine.
    Busy(Arc<OwnedFd>, Waker),
    Parked(Arc<OwnedFd>, Ticket),
}

impl SocketTie {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that there is no coroutine to wake any more.
    fn leave_coroutine(&self) {
        let mut place = self.lock();
        if let Place::Busy(socket, _) = &*place {
            *place = Place::Between(Arc::clone(socket));
        }
    }
}

impl Tie for SocketTie {
    fn rouse(&self) {
        match &*self.lock() {
            Place::Away | Place::Between(_) => {}
            Place::Busy(_, waker) => waker.wake(),
            Place::Parked(socket, ticket) => self.lot.rouse(*ticket, socket),
        }
    }

    fn call(&self) {
        let place = self.lock();
        match &*place {
            Place::Away | Place::Between(_) => {}
            Place::Busy(_, waker) => waker.wake(),
            Place::Parked(_, ticket) => {
                let ticket = *ticket;
                drop(place);
                self.lot.call(ticket);
            }
        }
    }

    fn write_aside(&self, bytes: &[u8]) -> Option<io::Result<usize>> {
        if !self.plain {
            return None;
        }
        match &*self.lock() {
            Place::Away => None,
            Place::Between(socket) | Place::Busy(socket, _) | Place::Parked(socket, _) => {
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                Some(send(socket, bytes, flags).map_err(Into::into))
            }
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
