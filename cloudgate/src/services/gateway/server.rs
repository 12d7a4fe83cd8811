//! What is one of the servers that requests are passed on to?

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::address::Address;
use super::balance::key_of;
use super::error::{Cause, Phase, UpstreamError};
use super::health::{self, Health, milliseconds};
use super::link::{Ask, Link, Pool};
use super::stats::{Now, ServerStats};
use crate::net::dial::{Dialer, Place};
use crate::net::home::{self, Notify};
use crate::net::resolve::Name;
use crate::net::stream::Stream;
use crate::net::tls::client::Connector;

/// A server, and what is known of it.
pub(crate) struct Server {
    pub(crate) address: Address,
    pub(crate) weight: u32,
    /// What stands for it where requests are shared out by a key.
    pub(crate) key: u64,
    pub(crate) health: Health,
    pub(crate) pool: Pool,
    pub(crate) stats: Arc<ServerStats>,
    connector: Option<Connector>,
    at: At,
    /// Which of several addresses is tried first.
    turn: AtomicUsize,
    /// The most requests at once; 0 for any number.
    most: usize,
    in_flight: Count,
    waiting: AtomicUsize,
    line: Notify,
    asked_at: AtomicU64,
    being_asked: AtomicBool,
}

/// Where it is.
enum At {
    /// Always there.
    Fixed(Place),
    Named(Name),
}

impl Server {
    pub(crate) fn new(
        service: &str,
        address: Address,
        weight: u32,
        most: usize,
        connector: Option<Connector>,
    ) -> Server {
        let bare = address.host.trim_start_matches('[').trim_end_matches(']');
        let at = match (&address.socket, bare.parse()) {
            (Some(path), _) => At::Fixed(Place::Unix(path.clone())),
            (None, Ok(ip)) => At::Fixed(Place::Tcp(SocketAddr::new(ip, address.port))),
            (None, Err(_)) => At::Named(Name::new(&address.host, address.port)),
        };
        Server {
            key: key_of(address.to_string().as_bytes()),
            weight: weight.max(1),
            health: Health::new(),
            pool: Pool::new(),
            stats: ServerStats::new(service, &address.to_string()),
            address,
            connector,
            at,
            turn: AtomicUsize::new(0),
            most,
            in_flight: Count::new(most == 0),
            waiting: AtomicUsize::new(0),
            line: Notify::new(),
            asked_at: AtomicU64::new(0),
            being_asked: AtomicBool::new(false),
        }
    }

    /// Whether it is time to ask it whether it is well, and nobody does; if so, somebody does now.
    pub(crate) fn is_due(&self, now: u64, interval: u64) -> bool {
        let due = self
            .asked_at
            .load(Ordering::Relaxed)
            .saturating_add(interval)
            <= now;
        if !due || self.being_asked.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.asked_at.store(now, Ordering::Relaxed);
        true
    }

    /// Notes that it was asked.
    pub(crate) fn was_asked(&self) {
        self.being_asked.store(false, Ordering::Release);
    }

    /// What there is of it at the moment.
    pub(crate) fn look(&self) -> Now {
        Now {
            up: self.health.is_well(health::now()),
            active: self.active(),
            idle: self.pool.len(),
            queued: self.waiting(),
        }
    }

    /// How many requests it has now.
    pub(crate) fn active(&self) -> usize {
        self.in_flight.sum()
    }

    /// How many requests wait for one of its own to end.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Counts one more request, if it may have one.
    pub(crate) fn try_enter(&self) -> bool {
        if self.most == 0 {
            self.in_flight.own().fetch_add(1, Ordering::Relaxed);
            return true;
        }
        self.in_flight
            .own()
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                (count < self.most as isize).then_some(count + 1)
            })
            .is_ok()
    }

    /// Waits until one of its requests ends, in a line of at most `room`; says whether the request is counted now.
    pub(crate) fn enter(&self, room: usize, limit: Duration) -> bool {
        let due = Instant::now() + limit;
        let lined_up = self
            .waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                (count < room).then_some(count + 1)
            });
        if lined_up.is_err() {
            return false;
        }
        // Also where the wait is unwound.
        let _place = InLine(self);
        loop {
            if self.try_enter() {
                return true;
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.line.wait_timeout(left) {
                return self.try_enter();
            }
        }
    }

    /// Counts one request less.
    pub(crate) fn leave(&self) {
        self.in_flight.own().fetch_sub(1, Ordering::AcqRel);
        if self.most != 0 && self.waiting() > 0 {
            self.line.notify_one();
        }
    }

    /// An idle connection of this worker.
    pub(crate) fn idle_link(&self, dialer: &Dialer, most: Duration, ask: Ask) -> Option<Link> {
        let (now, most) = (dialer.now(), milliseconds(most));
        match &self.at {
            At::Fixed(_) => self.pool.take(now, most, ask, |_| true),
            At::Named(name) => {
                // Connections to where it was before are not used any more.
                let there = name.known();
                self.pool.take(
                    now,
                    most,
                    ask,
                    |place| matches!(place, Place::Tcp(address) if there.contains(address)),
                )
            }
        }
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// [`UpstreamError`], for the last of its addresses.
    pub(crate) fn connect(&self, dialer: &Dialer, limit: Duration) -> Result<Link, UpstreamError> {
        let due = Instant::now() + limit;
        let left = || milliseconds(due.saturating_duration_since(Instant::now()));
        let places = match &self.at {
            At::Fixed(place) => return self.connect_to(dialer, place, left()),
            At::Named(name) => name
                .addresses(limit)
                .map_err(|error| failed(Phase::Resolve, error))?,
        };
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut outcome = Err(failed(Phase::Connect, io::ErrorKind::NotFound.into()));
        for step in 0..places.len() {
            let place = Place::Tcp(places[(first + step) % places.len()]);
            // What one address may take is left for the others too.
            let share = left() / (places.len() - step) as u64;
            outcome = self.connect_to(dialer, &place, share);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    fn connect_to(
        &self,
        dialer: &Dialer,
        place: &Place,
        limit: u64,
    ) -> Result<Link, UpstreamError> {
        // Zero would mean no limit.
        let limit = limit.max(1);
        let began = Instant::now();
        let plain = dialer
            .dial(place, limit)
            .map_err(|error| failed(Phase::Connect, error))?;
        let stream = match &self.connector {
            None => Stream::Plain(plain),
            Some(connector) => {
                let left = limit.saturating_sub(milliseconds(began.elapsed())).max(1);
                dialer
                    .secure(plain, connector, &self.address.host, left)
                    .map_err(|error| failed(Phase::Handshake, error))?
            }
        };
        Ok(Link::new(stream, place.clone()))
    }
}

fn failed(phase: Phase, error: io::Error) -> UpstreamError {
    UpstreamError {
        phase,
        cause: Cause::Io(error),
        reused: false,
        sent: false,
    }
}

/// A count that workers do not contend for, unless there is a limit that holds for all of them.
struct Count(Box<[Shard]>);

#[derive(Default)]
#[repr(align(128))]
struct Shard(AtomicIsize);

impl Count {
    fn new(sharded: bool) -> Count {
        let shards = if sharded { home::workers() } else { 1 };
        Count((0..shards).map(|_| Shard::default()).collect())
    }

    /// The part that the calling worker counts in. What was counted by one may be taken off by another.
    fn own(&self) -> &AtomicIsize {
        let worker = home::current().unwrap_or_default();
        &self.0[worker % self.0.len()].0
    }

    fn sum(&self) -> usize {
        let shards = self.0.iter();
        let sum: isize = shards.map(|shard| shard.0.load(Ordering::Relaxed)).sum();
        usize::try_from(sum).unwrap_or_default()
    }
}

/// A request that waits for others to end.
struct InLine<'s>(&'s Server);

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
