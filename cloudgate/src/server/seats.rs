//! Who may come in, and which worker takes it?

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Shared;

/// How many coroutines may wait for their first turn: some milliseconds of work.
const MOST_STARTING: usize = 512;

/// How many more connections than the least busy one a worker may have before a new one goes there.
const TOLERANCE: usize = 8;

/// The places for connections: how many there are, and how many coroutines each worker runs.
pub(super) struct Seats {
    capacity: usize,
    taken: AtomicUsize,
    /// How many connections may have a coroutine at once; the others stay parked meanwhile.
    most_active: usize,
    active: Vec<AtomicUsize>,
    /// How many coroutines were started and had no turn yet.
    starting: AtomicUsize,
    by_peer: Option<ByPeer>,
}

/// Connections by the address they come from.
struct ByPeer {
    most: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

impl Seats {
    pub(super) fn new(
        workers: usize,
        capacity: usize,
        most_active: usize,
        per_peer: Option<usize>,
    ) -> Seats {
        Seats {
            capacity,
            taken: AtomicUsize::new(0),
            most_active,
            active: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            starting: AtomicUsize::new(0),
            by_peer: per_peer.map(|most| ByPeer {
                most,
                counts: Mutex::default(),
            }),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many connections there are, parked ones included.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    fn take(&self, peer: IpAddr) -> bool {
        if self.taken.fetch_add(1, Ordering::SeqCst) >= self.capacity {
            self.taken.fetch_sub(1, Ordering::SeqCst);
            return false;
        }
        let fits = self.take_as(peer);
        if !fits {
            self.taken.fetch_sub(1, Ordering::SeqCst);
        }
        fits
    }

    fn leave(&self, peer: IpAddr) {
        self.leave_as(peer);
        self.taken.fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts one more connection of this address, if it may have one more.
    fn take_as(&self, peer: IpAddr) -> bool {
        self.limit_for(peer)
            .is_none_or(|by_peer| by_peer.take(peer))
    }

    fn leave_as(&self, peer: IpAddr) {
        if let Some(by_peer) = self.limit_for(peer) {
            by_peer.leave(peer);
        }
    }

    /// Peers without an address, behind a Unix socket, are many and have no limit together.
    fn limit_for(&self, peer: IpAddr) -> Option<&ByPeer> {
        self.by_peer.as_ref().filter(|_| !peer.is_unspecified())
    }

    /// The worker that polls descriptor `fd` anyway, or the least busy one if that has far less to do.
    pub(super) fn worker_for(&self, fd: usize) -> usize {
        let load = |worker: &usize| self.active[*worker].load(Ordering::Relaxed);
        let natural = fd % self.active.len();
        let least = (0..self.active.len()).min_by_key(load).unwrap_or(natural);
        if load(&natural) > load(&least) + TOLERANCE {
            least
        } else {
            natural
        }
    }

    /// Whether one more connection may have a coroutine now. When thousands of idle ones wake at
    /// once, a stack for each of them, long before its turn, would only take memory.
    pub(super) fn has_room_for_work(&self) -> bool {
        self.starting.load(Ordering::Relaxed) < MOST_STARTING
            && self
                .active
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .sum::<usize>()
                < self.most_active
    }
}

impl ByPeer {
    fn take(&self, peer: IpAddr) -> bool {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(peer).or_insert(0);
        let fits = *count < self.most;
        *count += usize::from(fits);
        fits
    }

    fn leave(&self, peer: IpAddr) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&peer);
            }
        }
    }
}

/// The part of an address that one customer has: all of IPv4, the first half of IPv6 (RFC 6177).
fn customer(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// One taken place; dropping it frees it, however the connection ends.
pub(super) struct Seat {
    pub(super) shared: Arc<Shared>,
    peer: IpAddr,
}

impl Seat {
    /// Takes a place; `None` when all are taken, or all that this peer may have.
    pub(super) fn take(shared: &Arc<Shared>, peer: IpAddr) -> Option<Seat> {
        let peer = customer(peer);
        shared.seats.take(peer).then(|| Seat {
            shared: Arc::clone(shared),
            peer,
        })
    }

    /// Counts the place for another address from now on; false where that has all that it may have.
    pub(super) fn count_for(&mut self, peer: IpAddr) -> bool {
        let peer = customer(peer);
        if !self.shared.seats.take_as(peer) {
            return false;
        }
        self.shared.seats.leave_as(self.peer);
        self.peer = peer;
        true
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.seats.leave(self.peer);
    }
}

/// A connection's coroutine in the count of its worker; dropping it takes it out.
pub(super) struct Work {
    shared: Arc<Shared>,
    pub(super) worker: usize,
    /// Whether it has yet to have its first turn.
    starting: bool,
}

impl Work {
    pub(super) fn on(shared: &Arc<Shared>, worker: usize) -> Work {
        shared.seats.active[worker].fetch_add(1, Ordering::Relaxed);
        shared.around.active.fetch_add(1, Ordering::Relaxed);
        shared.seats.starting.fetch_add(1, Ordering::Relaxed);
        Work {
            shared: Arc::clone(shared),
            worker,
            starting: true,
        }
    }

    /// Notes that the coroutine has its first turn.
    pub(super) fn begin(&mut self) {
        if std::mem::take(&mut self.starting) {
            self.shared.seats.starting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.begin();
        self.shared.seats.active[self.worker].fetch_sub(1, Ordering::Relaxed);
        self.shared.around.active.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

    #[test]
    fn the_last_seat_is_taken_and_none_past_it() {
        let seats = Seats::new(2, 2, 10, None);
        assert!(seats.take(ANY) && seats.take(ANY));
        assert!(!seats.take(ANY));
        seats.leave(ANY);
        assert!(seats.take(ANY) && !seats.take(ANY));
        assert_eq!(seats.taken(), 2);
    }

    #[test]
    fn a_peer_has_its_own_limit_and_ipv6_counts_by_network() {
        let seats = Seats::new(1, 100, 10, Some(2));
        let take = |peer: &str| seats.take(customer(peer.parse().unwrap()));
        assert!(take("10.0.0.1") && take("::ffff:10.0.0.1") && !take("10.0.0.1"));
        assert!(take("10.0.0.2"));
        assert!(
            take("2001:db8::1")
                && take("2001:db8::2")
                && !take("2001:db8::3")
                && take("2001:db8:0:1::1")
        );
        seats.leave("10.0.0.1".parse().unwrap());
        assert!(take("10.0.0.1") && !take("10.0.0.1"));
        assert_eq!(seats.taken(), 6);
    }

    #[test]
    fn peers_without_an_address_are_not_counted_together() {
        let seats = Seats::new(1, 100, 10, Some(1));
        let nobody = customer("0.0.0.0".parse().unwrap());
        assert!(seats.take(nobody) && seats.take(nobody));
        seats.leave(nobody);
        assert!(seats.take_as(ANY) && !seats.take_as(ANY));
        seats.leave_as(ANY);
        assert!(seats.take(ANY));
        assert_eq!(seats.taken(), 2);
    }

    #[test]
    fn the_natural_worker_is_chosen_until_it_has_far_more_to_do() {
        let seats = Seats::new(2, 100, 4 + TOLERANCE, None);
        assert_eq!((seats.worker_for(4), seats.worker_for(7)), (0, 1));
        seats.active[0].store(TOLERANCE, Ordering::Relaxed);
        assert_eq!(seats.worker_for(4), 0);
        seats.active[0].store(TOLERANCE + 1, Ordering::Relaxed);
        assert_eq!(seats.worker_for(4), 1);
        assert!(seats.has_room_for_work());
        seats.active[1].store(3, Ordering::Relaxed);
        assert!(!seats.has_room_for_work());
    }
}
