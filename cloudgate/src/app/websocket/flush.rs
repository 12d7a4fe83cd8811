//! Who sends to sockets that rest?
//!
//! A message for ten thousand idle sockets would wake or start as many coroutines. In place of that each worker has a line of
//! sockets with something to send, and one coroutine that writes to one after the other for as long as there are any.
//! A socket is in its line once, so the line is no longer than there are sockets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::outbox::Outbox;
use crate::net::home;

/// How many sockets are written to before others on the worker get a turn.
const A_TURN: usize = 32;

#[derive(Default)]
struct Line {
    waiting: VecDeque<Arc<Outbox>>,
    /// Whether a coroutine is at it.
    served: bool,
}

/// A line for each worker.
static LINES: [Mutex<Line>; 64] = [const {
    Mutex::new(Line {
        waiting: VecDeque::new(),
        served: false,
    })
}; 64];

fn with<T>(worker: usize, look: impl FnOnce(&mut Line) -> T) -> T {
    let line = &LINES[worker % LINES.len()];
    look(&mut line.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Puts a socket of a worker into its line; once, until it was written to.
pub(super) fn line_up(outbox: &Arc<Outbox>, worker: usize) {
    let start = with(worker, |line| {
        line.waiting.push_back(Arc::clone(outbox));
        !std::mem::replace(&mut line.served, true)
    });
    if start && let Err(error) = home::spawn(worker, "flush", move || serve(worker)) {
        log::error!("no coroutine to send messages with: {error}");
        // Whoever is next tries again; those in the line are written to then.
        with(worker, |line| line.served = false);
    }
}

fn serve(worker: usize) {
    loop {
        let batch: Vec<_> = with(worker, |line| {
            let count = line.waiting.len().min(A_TURN);
            line.served = count > 0;
            line.waiting.drain(..count).collect()
        });
        if batch.is_empty() {
            return;
        }
        for outbox in batch {
            outbox.flush();
        }
        home::yield_now();
    }
}
