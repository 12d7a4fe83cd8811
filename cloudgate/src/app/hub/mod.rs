//! How does one message reach many sockets?
//!
//! A topic is a list of sockets behind a lock of its own. Who publishes puts the message, encoded once, into the outbox of
//! each; that waits for nobody, so the lock is held for about a tenth of a microsecond a socket, and all sockets of a topic
//! get its messages in one order. What is written when is the outboxes' business.

mod kinds;
mod limits;
mod map;
#[cfg(test)]
mod tests;
mod topic;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::websocket::{Losses, Message, Prepared, SocketSender};
use kinds::Kinds;
pub use limits::{HubError, HubLimits};
use map::Map;
use topic::{Added, Delivered, Delivering, Outcome, Topic};

/// Topics that sockets subscribe to, and that anybody publishes to: handlers, timers, other threads.
///
/// It is a handle: clones are the same hub. As [`State`](crate::State) all handlers share one.
///
/// ```
/// use cloudgate::{App, Hub, Response, State, WebSocketUpgrade, route};
///
/// #[route("/rooms/lobby")]
/// fn lobby(upgrade: WebSocketUpgrade, State(hub): State<Hub>) -> Response {
///     upgrade.accept(move |mut socket| {
///         let _seat = hub.join("lobby", socket.sender())?;
///         while let Some(message) = socket.recv()? {
///             hub.publish("lobby", message);
///         }
///         Ok(())
///     })
/// }
///
/// let hub = Hub::new();
/// let app = App::gather().state(hub.clone());
/// assert_eq!(hub.publish("lobby", "nobody is there").receivers, 0);
/// # drop(app);
/// ```
///
/// # Names
/// A topic has a name of 1 to 256 bytes, such as `news/sport`. A socket that subscribes to `news/*` gets what is published
/// to `news/sport` and to `news/sport/tennis`, not to `news`; one that subscribes to `*` gets everything. A socket gets a
/// message once, in however many ways it is subscribed.
///
/// # Order
/// All sockets of a topic get its messages in one order, and those of one publisher in its order.
///
/// # Slow receivers
/// A message for a socket whose peer does not read waits in its outbox, up to a limit; past it the socket's
/// [`SlowReceiver`](crate::SlowReceiver) says what is lost, and [`Hub::counts`] how much was.
#[derive(Clone, Default)]
pub struct Hub(Arc<Inner>);

#[derive(Default)]
struct Inner {
    limits: HubLimits,
    topics: Map,
    /// What each socket is subscribed to.
    subscriptions: Mutex<HashMap<u64, Vec<Arc<Topic>>>>,
    /// How many subscriptions are to more than one topic.
    wildcards: AtomicUsize,
    counts: Mutex<HubCounts>,
    /// How many bytes all topics keep.
    kept: AtomicUsize,
    /// In which ways subscribers compress: few, one for most applications.
    kinds: Mutex<Kinds>,
}

/// What has become of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// How many sockets were subscribed.
    pub receivers: usize,
    /// How many of them did not get it: they are closed, or read too slowly.
    pub dropped: usize,
}

/// What has become of all messages of a hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubCounts {
    /// How many messages were published.
    pub published: u64,
    /// How often one was put into an outbox, or sent.
    pub delivered: u64,
    /// What was lost, by reason; also what waited in an outbox already and was published by others.
    pub losses: Losses,
}

impl Hub {
    /// A hub without topics, with [`HubLimits::default`].
    pub fn new() -> Hub {
        Hub::default()
    }

    /// A hub with other limits.
    pub fn with_limits(limits: HubLimits) -> Hub {
        Hub(Arc::new(Inner {
            limits,
            ..Inner::default()
        }))
    }

    /// A hub that keeps the last `messages` of each topic for those who subscribe later.
    pub fn with_replay(messages: usize) -> Hub {
        Hub::with_limits(HubLimits {
            replay: messages,
            ..HubLimits::default()
        })
    }

    /// Lets a socket have what is published to a topic from now on, and first what the topic has kept
    /// ([`Hub::with_replay`]; nothing where the name ends in `*`): without a gap, and nothing twice. A socket that is
    /// subscribed already stays so. It leaves when it ends.
    ///
    /// What was kept takes up to half of the room that the socket's outbox has; where it is more, the oldest are left out.
    ///
    /// # Errors
    /// [`HubError`]: a name that is none, or a limit that is reached.
    pub fn subscribe(&self, topic: &str, socket: &SocketSender) -> Result<(), HubError> {
        self.subscribe_to(topic, socket).map(drop)
    }

    /// As [`Hub::subscribe`], until what comes back is dropped.
    ///
    /// # Errors
    /// As [`Hub::subscribe`].
    pub fn join(&self, topic: &str, socket: SocketSender) -> Result<Seat, HubError> {
        let topic = self.subscribe_to(topic, &socket)?;
        Ok(Seat {
            hub: self.clone(),
            topic,
            socket: socket.id(),
        })
    }

    fn subscribe_to(&self, name: &str, socket: &SocketSender) -> Result<Arc<Topic>, HubError> {
        limits::check_name(name)?;
        let inner = &*self.0;
        let first = {
            let mut subscriptions = lock(&inner.subscriptions);
            let most = inner.limits.topics_per_socket;
            match subscriptions.get(&socket.id()) {
                Some(all) if all.len() >= most && !all.iter().any(|topic| topic.name() == name) => {
                    return Err(HubError::TooManySubscriptions { most });
                }
                Some(_) => false,
                None => subscriptions.insert(socket.id(), Vec::new()).is_none(),
            }
        };
        if first {
            let hub = Arc::downgrade(&self.0);
            let id = socket.id();
            let kind = socket.compresses().filter(|how| !how.coding.takeover);
            if let Some(how) = kind {
                lock(&inner.kinds).enter(how);
            }
            socket.at_end(move || {
                if let Some(hub) = hub.upgrade() {
                    if let Some(how) = kind {
                        lock(&hub.kinds).leave(how);
                    }
                    hub.leave_all(id);
                }
            });
        }
        let topic = loop {
            let topic = inner.topics.get_or_make(name, inner.limits.topics)?;
            match topic.add(socket) {
                Added::New => break topic,
                Added::Known => return Ok(topic),
                // It was given up between the two steps.
                Added::Gone => {}
            }
        };
        if topic.is_wildcard() {
            inner.wildcards.fetch_add(1, Ordering::SeqCst);
        }
        let noted = match lock(&inner.subscriptions).get_mut(&socket.id()) {
            Some(all) => {
                all.push(Arc::clone(&topic));
                true
            }
            None => false,
        };
        if !noted {
            // The socket has ended meanwhile.
            inner.leave(&topic, socket.id());
        }
        Ok(topic)
    }

    /// Takes a socket out of a topic; false where it was not in it.
    pub fn unsubscribe(&self, topic: &str, socket: &SocketSender) -> bool {
        match self.0.topics.get(topic) {
            Some(topic) => self.0.unsubscribe(&topic, socket.id()),
            None => false,
        }
    }

    /// Sends a message to all sockets that are subscribed to a topic. It is encoded once, and compressed once, for all. Nobody
    /// is waited for, but a message of 64 KiB or more that is compressed is so on another thread meanwhile.
    ///
    /// A name that is none reaches nobody, and the log says so.
    pub fn publish(&self, topic: &str, message: impl Into<Message>) -> Published {
        self.0.publish(topic, None, message.into())
    }

    /// As [`Hub::publish`], for all but the socket that it comes from.
    pub fn publish_from(
        &self,
        socket: &SocketSender,
        topic: &str,
        message: impl Into<Message>,
    ) -> Published {
        self.0.publish(topic, Some(socket.id()), message.into())
    }

    /// How many sockets are subscribed to a topic by its own name.
    pub fn presence(&self, topic: &str) -> usize {
        self.0.topics.get(topic).map_or(0, |topic| topic.presence())
    }

    /// The names of all topics that have sockets, or keep messages, in no order.
    pub fn topics(&self) -> Vec<String> {
        self.0.topics.names()
    }

    /// Drops the messages that a topic has kept.
    pub fn forget(&self, topic: &str) {
        if let Some(topic) = self.0.topics.get(topic) {
            topic.forget(&self.0.kept);
            self.0.topics.remove_if_unused(&topic);
        }
    }

    /// What has become of all messages so far.
    pub fn counts(&self) -> HubCounts {
        *lock(&self.0.counts)
    }
}

impl Inner {
    fn publish(&self, name: &str, except: Option<u64>, message: Message) -> Published {
        if let Err(error) = limits::check_name(name).and_then(|()| limits::check_target(name)) {
            log::error!("a message was published to {name:?} and reaches nobody: {error}");
            return Published::default();
        }
        let message = Arc::new(Prepared::new(message));
        // Before anything is locked.
        message.prepare(lock(&self.kinds).frequent());
        // Kept over all of it: who is subscribed by a pattern gets a topic's messages in the order of the others.
        let wildcards = self.wildcards.load(Ordering::SeqCst) > 0;
        let _order = wildcards.then(|| self.topics.order(name));
        let mut delivery = Delivering {
            message: &message,
            topic: map::key(name),
            except,
            seen: wildcards.then(HashSet::new),
            outcome: Outcome::default(),
        };
        while let Some(topic) = self.target(name) {
            match topic.deliver(&mut delivery, Some((&self.limits, &self.kept))) {
                Delivered::Kept => break,
                Delivered::Unused => {
                    self.topics.remove_if_unused(&topic);
                    break;
                }
                // It was given up between the two steps: who is there now, or comes, is in another.
                Delivered::Gone => {}
            }
        }
        if wildcards {
            for pattern in limits::patterns(name) {
                // One that is given up meanwhile has lost its last socket: who subscribes now comes after this message.
                if let Some(topic) = self.topics.get(&pattern) {
                    topic.deliver(&mut delivery, None);
                }
            }
        }
        let outcome = delivery.outcome;
        let mut counts = lock(&self.counts);
        counts.published += 1;
        counts.delivered += (outcome.receivers - outcome.dropped) as u64;
        counts.losses = counts.losses.and(&outcome.losses);
        Published {
            receivers: outcome.receivers,
            dropped: outcome.dropped,
        }
    }

    /// The topic that is published to.
    fn target(&self, name: &str) -> Option<Arc<Topic>> {
        if self.limits.replay > 0 {
            // Where there is no room for another topic its messages are not kept.
            self.topics.get_or_make(name, self.limits.topics).ok()
        } else {
            self.topics.get(name)
        }
    }

    /// Takes a socket out of a topic, and the topic out of what the socket is in.
    fn unsubscribe(&self, topic: &Arc<Topic>, socket: u64) -> bool {
        if let Some(all) = lock(&self.subscriptions).get_mut(&socket) {
            all.retain(|other| !Arc::ptr_eq(other, topic));
        }
        self.leave(topic, socket)
    }

    fn leave(&self, topic: &Arc<Topic>, socket: u64) -> bool {
        let left = topic.remove(socket);
        if left && topic.is_wildcard() {
            self.wildcards.fetch_sub(1, Ordering::SeqCst);
        }
        self.topics.remove_if_unused(topic);
        left
    }

    fn leave_all(&self, socket: u64) {
        let all = lock(&self.subscriptions).remove(&socket);
        for topic in all.into_iter().flatten() {
            self.leave(&topic, socket);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A socket's place in a topic; dropping it lets the socket leave. A socket is in a topic once, however often it joined
/// it: the first of its seats that is dropped lets it leave.
#[must_use = "the socket leaves when this is dropped; `Hub::subscribe` lets it stay"]
pub struct Seat {
    hub: Hub,
    topic: Arc<Topic>,
    socket: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.hub.0.unsubscribe(&self.topic, self.socket);
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat")
            .field("topic", &self.topic.name())
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("limits", &self.0.limits)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
