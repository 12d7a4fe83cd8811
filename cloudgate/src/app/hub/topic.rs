//! Who gets what is published to a topic, and what is kept of it?

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::limits::HubLimits;
use super::{lock, map};
use crate::app::websocket::{Delivery, Losses, Prepared, SocketSender};

/// What a kept message costs besides its bytes.
const OVERHEAD: usize = 64;

pub(super) struct Topic {
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sockets: Vec<SocketSender>,
    /// Where in that list a socket is.
    places: HashMap<u64, usize>,
    kept: VecDeque<Arc<Prepared>>,
    kept_bytes: usize,
    /// It is not in the map any more.
    gone: bool,
}

/// What has become of a wish to subscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    New,
    Known,
    /// The topic has been given up: another has its name now, or none.
    Gone,
}

/// What a topic has done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivered {
    /// Those who are subscribed have it, or it is kept.
    Kept,
    /// Nobody is subscribed, and nothing is kept.
    Unused,
    /// Nothing: it has been given up.
    Gone,
}

/// What is published.
pub(super) struct Delivering<'a> {
    pub(super) message: &'a Arc<Prepared>,
    /// The number of the topic that it is published to.
    pub(super) topic: u64,
    /// The socket that does not get it.
    pub(super) except: Option<u64>,
    /// Who has it already, where a socket may be subscribed in more than one way.
    pub(super) seen: Option<HashSet<u64>>,
    pub(super) outcome: Outcome,
}

/// What has become of it.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) receivers: usize,
    pub(super) dropped: usize,
    pub(super) losses: Losses,
}

impl Topic {
    pub(super) fn new(name: &str) -> Topic {
        Topic {
            name: name.to_owned(),
            state: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it stands for others.
    pub(super) fn is_wildcard(&self) -> bool {
        self.name.ends_with('*')
    }

    pub(super) fn presence(&self) -> usize {
        lock(&self.state).sockets.len()
    }

    /// Lets a socket have what was kept, and what comes.
    pub(super) fn add(&self, socket: &SocketSender) -> Added {
        let mut state = lock(&self.state);
        if state.gone {
            return Added::Gone;
        }
        if state.places.contains_key(&socket.id()) {
            return Added::Known;
        }
        let topic = map::key(&self.name);
        // The rest is for what comes before the first of it is written.
        let mut room = socket.room() / 2;
        let fits = |message: &&Arc<Prepared>| {
            let left = room.checked_sub(socket.cost_of(message));
            room = left.unwrap_or(0);
            left.is_some()
        };
        let count = state.kept.iter().rev().take_while(fits).count();
        for message in state.kept.range(state.kept.len() - count..) {
            // What is lost is in the socket's own count.
            let _ = socket.publish(message, topic);
        }
        let place = state.sockets.len();
        state.sockets.push(socket.clone());
        state.places.insert(socket.id(), place);
        Added::New
    }

    pub(super) fn remove(&self, socket: u64) -> bool {
        let mut state = lock(&self.state);
        let Some(place) = state.places.remove(&socket) else {
            return false;
        };
        state.sockets.swap_remove(place);
        if let Some(moved) = state.sockets.get(place).map(SocketSender::id) {
            state.places.insert(moved, place);
        }
        if state.sockets.is_empty() {
            state.sockets = Vec::new();
            state.places = HashMap::new();
        }
        true
    }

    /// Puts a message into all outboxes, and keeps it if that is wanted: within limits, and with what all topics keep.
    pub(super) fn deliver(
        &self,
        delivery: &mut Delivering<'_>,
        keeping: Option<(&HubLimits, &AtomicUsize)>,
    ) -> Delivered {
        let mut state = lock(&self.state);
        if state.gone {
            return Delivered::Gone;
        }
        state.put(delivery);
        if let Some((limits, all)) = keeping.filter(|(limits, _)| limits.replay > 0) {
            state.keep(delivery.message, limits, all);
        }
        if state.is_unused() {
            Delivered::Unused
        } else {
            Delivered::Kept
        }
    }

    /// Drops what is kept; `all` is what all topics keep.
    pub(super) fn forget(&self, all: &AtomicUsize) {
        let mut state = lock(&self.state);
        state.kept = VecDeque::new();
        all.fetch_sub(std::mem::take(&mut state.kept_bytes), Ordering::Relaxed);
    }

    /// Whether it can be taken out of the map, which is then to be done.
    pub(super) fn give_up_if_unused(&self) -> bool {
        let mut state = lock(&self.state);
        let unused = state.is_unused() && !state.gone;
        state.gone |= unused;
        unused
    }
}

impl State {
    fn is_unused(&self) -> bool {
        self.sockets.is_empty() && self.kept.is_empty()
    }

    fn put(&self, delivery: &mut Delivering<'_>) {
        for socket in &self.sockets {
            let id = socket.id();
            let has_it = |seen: &mut HashSet<u64>| !seen.insert(id);
            if delivery.except == Some(id) || delivery.seen.as_mut().is_some_and(has_it) {
                continue;
            }
            let (put, lost) = socket.publish(delivery.message, delivery.topic);
            let outcome = &mut delivery.outcome;
            outcome.receivers += 1;
            outcome.dropped += usize::from(matches!(put, Delivery::Dropped(_)));
            if lost != Losses::default() {
                outcome.losses = outcome.losses.and(&lost);
            }
        }
    }

    fn keep(&mut self, message: &Arc<Prepared>, limits: &HubLimits, all: &AtomicUsize) {
        let cost = |message: &Prepared| message.len() + OVERHEAD;
        self.kept.push_back(Arc::clone(message));
        self.kept_bytes += cost(message);
        all.fetch_add(cost(message), Ordering::Relaxed);
        while self.kept.len() > limits.replay
            || self.kept_bytes > limits.replay_bytes
            || all.load(Ordering::Relaxed) > limits.replay_total_bytes
        {
            match self.kept.pop_front() {
                Some(old) => {
                    self.kept_bytes -= cost(&old);
                    all.fetch_sub(cost(&old), Ordering::Relaxed);
                }
                None => return,
            }
        }
    }
}
