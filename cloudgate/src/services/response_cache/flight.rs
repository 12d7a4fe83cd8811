//! How do many requests for one thing make one answer?
//!
//! The first makes it, the others wait on a [`Notify`] and look again. No lock is held meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::store::Store;
use crate::net::home::Notify;

/// An answer that is being made.
#[derive(Debug, Default)]
pub(super) struct Flight {
    landed: Notify,
    awaited: AtomicBool,
}

/// What a request does that found no answer.
pub(super) enum Part<'a> {
    /// It makes the answer, and others wait for it until this is dropped.
    Makes(Making<'a>),
    /// It has waited: there may be an answer now.
    Waited,
}

/// Ends the wait of the others when it is dropped, also by a panic.
pub(super) struct Making<'a> {
    store: &'a Store,
    hash: u64,
    flight: Arc<Flight>,
}

impl Making<'_> {
    /// Whether somebody waits, or has waited.
    pub(super) fn is_awaited(&self) -> bool {
        self.flight.is_awaited()
    }
}

impl Flight {
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Acquire)
    }
}

/// Makes the answer, or waits for the one that makes it, at most for `limit`.
pub(super) fn join(store: &Store, hash: u64, limit: Duration) -> Part<'_> {
    let flight = {
        let mut shard = store.shard(hash);
        match shard.flights.get(&hash) {
            Some(flight) => {
                flight.awaited.store(true, Ordering::Release);
                Arc::clone(flight)
            }
            None => {
                let flight = Arc::new(Flight::default());
                shard.flights.insert(hash, Arc::clone(&flight));
                return Part::Makes(Making {
                    store,
                    hash,
                    flight,
                });
            }
        }
    };
    if flight.landed.wait_timeout(limit) {
        // The one word is handed on from one to the next, so whoever comes late finds it.
        flight.landed.notify_one();
    }
    Part::Waited
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.store.shard(self.hash).flights.remove(&self.hash);
        self.flight.landed.notify_one();
    }
}
