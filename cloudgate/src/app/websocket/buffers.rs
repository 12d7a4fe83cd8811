//! Which buffers does a socket use that has something to read or to write?
//!
//! One that waits holds none. The one that was given back last is taken first, so the sockets of a busy worker
//! work in the same few pages.

use std::sync::{Mutex, PoisonError};

use crate::net::home;

/// What is read at once, in bytes.
const SIZE: usize = 16 << 10;

/// How many buffers one worker keeps.
const KEPT: usize = 64;

/// One pool for each worker, so that its lock is never waited for; the last one is for threads that are no worker.
/// Larger worker numbers share.
static POOLS: [Mutex<Vec<Vec<u8>>>; 65] = [const { Mutex::new(Vec::new()) }; 65];

fn pool() -> &'static Mutex<Vec<Vec<u8>>> {
    &POOLS[home::current().map_or(64, |worker| worker % 64)]
}

/// A buffer to read into.
pub(super) fn take() -> Vec<u8> {
    let kept = pool().lock().unwrap_or_else(PoisonError::into_inner).pop();
    kept.unwrap_or_else(|| vec![0; SIZE])
}

/// Takes a buffer back; one that was not made here is freed.
pub(super) fn give_back(buffer: Vec<u8>) {
    if buffer.len() != SIZE {
        return;
    }
    let mut pool = pool().lock().unwrap_or_else(PoisonError::into_inner);
    if pool.len() < KEPT {
        pool.push(buffer);
    }
}
