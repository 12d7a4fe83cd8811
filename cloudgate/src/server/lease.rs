//! Which buffers does a request in flight use?
//!
//! A connection that waits for a request holds none: it takes a set when bytes come and gives it
//! back when the last answer is out. The set that was given back last is taken first, so that all
//! connections of a busy worker work in the same few pages, which the processor has at hand.

use std::sync::{Arc, Mutex, PoisonError};

use crate::message::RequestHead;
use crate::message::request::Scope;
use crate::net::buffer::ReadBuffer;
use crate::net::home;

/// How many sets one worker keeps; what is given back beyond that is freed.
const KEPT: usize = 64;

/// The largest output buffer that is kept, in bytes.
const LARGEST_OUTPUT: usize = 64 << 10;

/// The buffers of one connection with a request in flight.
pub(super) struct Lease {
    /// What was read and not used yet.
    pub(super) input: ReadBuffer,
    /// What is to be written.
    pub(super) output: Vec<u8>,
    pub(super) head: Arc<RequestHead>,
    pub(super) scope: Scope,
}

/// Boxed, so that a pointer moves from pool to connection and back.
#[allow(clippy::vec_box, reason = "see above")]
type Pool = Vec<Box<Lease>>;

/// One pool for each worker, so that its lock is never waited for; the last one is for threads that
/// are no worker. Larger worker numbers share.
static POOLS: [Mutex<Pool>; 65] = [const { Mutex::new(Vec::new()) }; 65];

fn pool() -> &'static Mutex<Pool> {
    &POOLS[home::current().map_or(64, |worker| worker % 64)]
}

/// A set of empty buffers.
pub(super) fn take() -> Box<Lease> {
    let kept = pool().lock().unwrap_or_else(PoisonError::into_inner).pop();
    kept.unwrap_or_else(|| {
        Box::new(Lease {
            input: ReadBuffer::new(),
            output: Vec::new(),
            head: Arc::default(),
            scope: Scope::default(),
        })
    })
}

/// Takes a set back.
pub(super) fn give_back(mut lease: Box<Lease>) {
    lease.input.empty();
    lease.output.clear();
    if lease.output.capacity() > LARGEST_OUTPUT {
        lease.output = Vec::new();
    }
    let mut pool = pool().lock().unwrap_or_else(PoisonError::into_inner);
    if pool.len() < KEPT {
        pool.push(lease);
    }
}

/// The head's buffers for the next request; new ones if somebody kept the last request's.
pub(super) fn exclusive(head: &mut Arc<RequestHead>) -> &mut RequestHead {
    // No weak references are made, so the count is the whole truth; `get_mut` would ask twice, and
    // atomic operations are a good part of what a small request costs.
    if Arc::strong_count(head) != 1 {
        *head = Arc::default();
    }
    Arc::get_mut(head).expect("no other reference to a head that was just checked or made")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_comes_back_empty_and_the_last_one_first() {
        let mut lease = take();
        lease
            .input
            .fill(16, |space| {
                space[0] = b'x';
                Ok(1)
            })
            .unwrap();
        lease.output = vec![0; LARGEST_OUTPUT + 1];
        let address = std::ptr::from_ref(&*lease);
        give_back(lease);
        let again = take();
        assert_eq!(std::ptr::from_ref(&*again), address);
        assert!(again.input.is_empty() && again.output.is_empty());
        assert_eq!(again.output.capacity(), 0);
        give_back(again);
    }
}
