//! What waits to be sent to a WebSocket, and what if its peer reads too slowly?
//!
//! Anybody may put a message in, from any coroutine or thread; only who has the socket takes them out: its coroutine,
//! or, while it has none, `flush`.

use std::collections::VecDeque;
use std::fmt;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::delivery::{Delivery, Dropped, Losses, SlowReceiver};
use super::flush;
use super::message::{Compresses, Load, Message, Prepared};
use crate::message::Tie;
use crate::proto::ws::encode::Encoder;
use crate::proto::ws::violation::code;

/// What a message costs besides its bytes, in bytes: so the limit bounds their number too.
pub(super) const OVERHEAD: usize = 64;

/// What waits for one socket, and how it is reached.
pub(super) struct Outbox {
    pub(super) id: u64,
    tie: Arc<dyn Tie>,
    compresses: Option<Compresses>,
    /// The most bytes that may wait.
    limit: usize,
    policy: SlowReceiver,
    /// Whether there is something for the socket's coroutine to do.
    has_work: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Entry>,
    /// What the queue costs, and what the coroutine has taken out and not sent yet.
    cost: usize,
    /// What of it the coroutine has.
    on_its_way: usize,
    /// How much of the frame in front was sent already.
    sent_of_first: usize,
    /// Whether the socket's coroutine waits, or there is none, so that nobody writes to the connection but whoever has
    /// this lock.
    resting: bool,
    /// Whether the coroutine was told that there is something to do besides.
    roused: bool,
    /// Whether it is in the line of `flush`.
    in_line: bool,
    close: Option<CloseRequest>,
    ended: bool,
    /// Counts the messages that were taken.
    taken: u64,
    losses: Losses,
    /// What is called at its end.
    at_end: Vec<Box<dyn FnOnce() + Send>>,
}

/// What is to be done once the lock is given back.
enum Then {
    Nothing,
    Rouse,
    Call,
    LineUp,
}

struct Entry {
    load: Load,
    topic: u64,
}

impl Entry {
    fn cost(&self) -> usize {
        self.load.len() + OVERHEAD
    }
}

/// The wish to close a socket.
#[derive(Clone, Debug)]
pub(super) struct CloseRequest {
    pub(super) code: u16,
    pub(super) reason: String,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Outbox {
    pub(super) fn new(
        tie: Arc<dyn Tie>,
        compresses: Option<Compresses>,
        limit: usize,
        policy: SlowReceiver,
    ) -> Arc<Outbox> {
        Arc::new(Outbox {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            tie,
            compresses,
            limit,
            policy,
            has_work: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    /// Whether there is something for the socket's coroutine to do.
    pub(super) fn has_work(&self) -> bool {
        self.has_work.load(Ordering::SeqCst)
    }

    /// Takes a message in, and sees to it that it is sent; says what was lost by that. `at_once` writes it here and
    /// now where the socket has no coroutine; else that is left to its worker.
    fn put(self: &Arc<Self>, load: Load, topic: u64, at_once: bool) -> (Delivery, Losses) {
        let mut state = self.lock();
        let before = state.losses;
        let (delivery, then) = self.put_in(&mut state, Entry { load, topic }, at_once);
        let lost = state.losses.since(&before);
        drop(state);
        match then {
            Then::Nothing => {}
            Then::Rouse => self.tie.rouse(),
            Then::Call => self.tie.call(),
            Then::LineUp => flush::line_up(self, self.tie.worker()),
        }
        (delivery, lost)
    }

    fn put_in(&self, state: &mut State, entry: Entry, at_once: bool) -> (Delivery, Then) {
        if state.ended || state.close.is_some() {
            state.losses.closed += 1;
            return (Delivery::Dropped(Dropped::Closed), Then::Nothing);
        }
        if entry.cost() > self.limit + OVERHEAD {
            state.losses.too_large += 1;
            return (Delivery::Dropped(Dropped::TooLarge), Then::Nothing);
        }
        if state.cost + entry.cost() > self.limit + OVERHEAD && !self.make_room(state, &entry) {
            let then = if state.close.is_some() {
                Then::Call
            } else {
                Then::Nothing
            };
            return (Delivery::Dropped(Dropped::Slow), then);
        }
        state.taken += 1;
        let mut sent = 0;
        let mut then = Then::Nothing;
        if at_once
            && state.resting
            && state.cost == 0
            && let Load::Frame(frame) = &entry.load
        {
            match self.tie.write_aside(frame) {
                Some(Ok(count)) if count == frame.len() => {
                    return (Delivery::Sent, Then::Nothing);
                }
                Some(Ok(count)) => (sent, then) = (count, Then::Rouse),
                Some(Err(error)) if is_temporary(error.kind()) => then = Then::Rouse,
                Some(Err(_)) => {
                    // The socket's coroutine finds out what is wrong.
                    state.losses.closed += 1;
                    return (Delivery::Dropped(Dropped::Closed), Then::Call);
                }
                None => then = Then::Rouse,
            }
            state.sent_of_first = sent;
        }
        state.cost += entry.cost();
        state.queue.push_back(entry);
        self.has_work.store(true, Ordering::SeqCst);
        if matches!(then, Then::Rouse) {
            state.roused = true;
        } else if state.resting && !state.roused && !std::mem::replace(&mut state.in_line, true) {
            then = Then::LineUp;
        }
        (Delivery::Queued, then)
    }

    /// Makes room for an entry as the policy says; false where there is none.
    fn make_room(&self, state: &mut State, entry: &Entry) -> bool {
        // The first may be on its way in part, and then the rest of it has to follow.
        let first = usize::from(state.sent_of_first > 0);
        let fits = |cost: usize| cost + entry.cost() <= self.limit + OVERHEAD;
        let begun: usize = state.queue.iter().take(first).map(Entry::cost).sum();
        if self.policy != SlowReceiver::Close && !fits(state.on_its_way + begun) {
            // Nothing that could be dropped would help.
            state.losses.newest += 1;
            return false;
        }
        match self.policy {
            SlowReceiver::Close => {
                let waiting = state.queue.len().saturating_sub(first);
                state.losses.closed_slow += waiting as u64 + 1;
                let gone: usize = state
                    .queue
                    .drain(first.min(state.queue.len())..)
                    .map(|old| old.cost())
                    .sum();
                state.cost -= gone;
                state.close = Some(CloseRequest {
                    code: code::TRY_AGAIN_LATER,
                    reason: "messages are read too slowly".to_owned(),
                });
                self.has_work.store(true, Ordering::SeqCst);
                return false;
            }
            SlowReceiver::DropNewest => {}
            SlowReceiver::DropOldest => {
                while !fits(state.cost) && state.queue.len() > first {
                    if let Some(old) = state.queue.remove(first) {
                        state.cost -= old.cost();
                        state.losses.oldest += 1;
                    }
                }
            }
            SlowReceiver::Coalesce => {
                let (mut at, mut gone, mut count) = (0, 0, 0);
                state.queue.retain(|old| {
                    let keep = at < first || old.topic != entry.topic;
                    at += 1;
                    if !keep {
                        gone += old.cost();
                        count += 1;
                    }
                    keep
                });
                state.cost -= gone;
                state.losses.coalesced += count;
            }
        }
        if !fits(state.cost) {
            state.losses.newest += 1;
        }
        fits(state.cost)
    }

    /// Asks for a close behind what waits; the first who asks says with what.
    pub(super) fn ask_to_close(&self, code: u16, reason: &str) {
        let mut state = self.lock();
        if state.ended {
            return;
        }
        state.close.get_or_insert_with(|| CloseRequest {
            code,
            reason: reason.to_owned(),
        });
        self.has_work.store(true, Ordering::SeqCst);
        state.roused = true;
        drop(state);
        self.tie.call();
    }

    /// Notes that the socket's coroutine is about to wait with nothing to write, or ends; false where there is something
    /// to do first.
    pub(super) fn rest(&self) -> bool {
        let mut state = self.lock();
        state.resting = state.queue.is_empty() && state.close.is_none();
        state.resting
    }

    /// Notes that the socket's coroutine goes on. Nobody else writes from here on.
    pub(super) fn resume(&self) {
        let mut state = self.lock();
        state.resting = false;
        state.roused = false;
    }

    /// How many messages were ever put in.
    pub(super) fn count(&self) -> u64 {
        self.lock().taken
    }

    /// Notes that what the socket's coroutine took is sent.
    pub(super) fn sent(&self, cost: usize) {
        let mut state = self.lock();
        state.cost -= cost;
        state.on_its_way -= cost;
    }

    /// What is to be sent next, up to `room` bytes and at least one message: for the socket's coroutine. It is no more
    /// than half of what may wait, because what is on its way is not dropped for what is newer.
    pub(super) fn take(&self, room: usize) -> Taken {
        let mut state = self.lock();
        let mut taken = Taken {
            skip: std::mem::take(&mut state.sent_of_first),
            ..Taken::default()
        };
        let mut bytes = 0;
        while let Some(entry) = state.queue.front() {
            let half = taken.cost + entry.cost() > (self.limit + OVERHEAD) / 2;
            if bytes > 0 && (half || bytes + entry.load.len() > room) {
                break;
            }
            bytes += entry.load.len();
            taken.cost += entry.cost();
            taken
                .loads
                .extend(state.queue.pop_front().map(|entry| entry.load));
        }
        state.on_its_way += taken.cost;
        if state.queue.is_empty() {
            taken.close = state.close.take();
            // The next thing that is sent is the close.
            state.ended |= taken.close.is_some();
        }
        self.has_work
            .store(!state.queue.is_empty(), Ordering::SeqCst);
        taken
    }

    /// Sends what waits, past the socket's coroutine, if that rests.
    pub(super) fn flush(&self) {
        let mut state = self.lock();
        state.in_line = false;
        if !state.resting || state.roused {
            // Whoever goes on looks here.
            return;
        }
        while let Some(entry) = state.queue.front() {
            let Load::Frame(frame) = &entry.load else {
                state.roused = true;
                drop(state);
                return self.tie.rouse();
            };
            let rest = &frame[state.sent_of_first..];
            match self.tie.write_aside(rest) {
                Some(Ok(count)) if count == rest.len() => {
                    state.sent_of_first = 0;
                    if let Some(entry) = state.queue.pop_front() {
                        state.cost -= entry.cost();
                    }
                }
                Some(Ok(count)) => state.sent_of_first += count,
                Some(Err(error)) if !is_temporary(error.kind()) => {
                    state.roused = true;
                    drop(state);
                    return self.tie.call();
                }
                Some(Err(_)) | None => {
                    state.roused = true;
                    drop(state);
                    return self.tie.rouse();
                }
            }
        }
        self.has_work.store(state.close.is_some(), Ordering::SeqCst);
    }

    /// Notes that nothing more is sent.
    pub(super) fn shut(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.losses.closed += state.queue.len() as u64;
        let gone: usize = state.queue.drain(..).map(|entry| entry.cost()).sum();
        state.cost -= gone;
        state.queue = VecDeque::new();
    }

    /// Notes that the socket is gone.
    pub(super) fn end(&self) {
        self.shut();
        let mut state = self.lock();
        let at_end = std::mem::take(&mut state.at_end);
        drop(state);
        for call in at_end {
            call();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_temporary(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// What was taken out of an outbox.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) loads: Vec<Load>,
    /// How much of the first one was sent already.
    pub(super) skip: usize,
    pub(super) cost: usize,
    /// What is to be done behind it.
    pub(super) close: Option<CloseRequest>,
}

/// Sends messages to a WebSocket from anywhere: another coroutine, a thread, a timer.
///
/// It never waits. What cannot be sent at once waits in the socket's outbox, up to a limit
/// ([`WebSocketUpgrade::outbox`](super::WebSocketUpgrade::outbox)).
///
/// ```
/// use cloudgate::{Delivery, Response, WebSocketUpgrade, route};
///
/// #[route("/ws-ticks")]
/// fn ticks(upgrade: WebSocketUpgrade) -> Response {
///     upgrade.accept(|mut socket| {
///         let sender = socket.sender();
///         std::thread::spawn(move || {
///             while !matches!(sender.send("tick"), Delivery::Dropped(_)) {
///                 std::thread::sleep(std::time::Duration::from_secs(1));
///             }
///         });
///         while let Some(_message) = socket.recv()? {}
///         Ok(())
///     })
/// }
/// ```
#[derive(Clone)]
pub struct SocketSender(pub(super) Arc<Outbox>);

impl SocketSender {
    /// Sends a message.
    pub fn send(&self, message: impl Into<Message>) -> Delivery {
        let message = message.into();
        let load = match self.0.compresses {
            // The socket's own encoder keeps what it needs for that.
            Some(how) if message.len() >= how.how.threshold => Load::Message(Arc::new(message)),
            _ => Load::Frame(super::message::frame(&message, &mut Encoder::server())),
        };
        self.0.put(load, 0, true).0
    }

    /// Sends a message of a topic that many sockets get, and says what was lost by that.
    pub(in crate::app) fn publish(&self, message: &Prepared, topic: u64) -> (Delivery, Losses) {
        self.0.put(message.load(self.0.compresses), topic, false)
    }

    /// Closes the socket behind what waits to be sent, with a code of 1000, 1001, 1003, 1007 to 1014 or 3000 to 4999, and
    /// a reason of at most 123 bytes; another code becomes 1000, and a longer reason is cut.
    pub fn close(&self, code: u16, reason: &str) {
        self.0.ask_to_close(code, reason);
    }

    /// Whether the socket takes messages.
    pub fn is_open(&self) -> bool {
        let state = self.0.lock();
        !state.ended && state.close.is_none()
    }

    /// How many bytes wait to be sent, with 64 a message for its own.
    pub fn waiting(&self) -> usize {
        self.0.lock().cost
    }

    /// How much more may wait.
    pub(in crate::app) fn room(&self) -> usize {
        (self.0.limit + OVERHEAD).saturating_sub(self.waiting())
    }

    /// How much of that a message takes.
    pub(in crate::app) fn cost_of(&self, message: &Prepared) -> usize {
        message.load(self.0.compresses).len() + OVERHEAD
    }

    /// How many messages were not sent.
    pub fn losses(&self) -> Losses {
        self.0.lock().losses
    }

    /// A number that no other socket of this process has.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// How it compresses.
    pub(in crate::app) fn compresses(&self) -> Option<Compresses> {
        self.0.compresses
    }

    /// Calls `call` when the socket has ended; at once if it has. It runs on a worker and must not block.
    pub(in crate::app) fn at_end(&self, call: impl FnOnce() + Send + 'static) {
        let mut state = self.0.lock();
        if state.ended {
            drop(state);
            call();
        } else {
            state.at_end.push(Box::new(call));
        }
    }
}

impl fmt::Debug for SocketSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketSender")
            .field("id", &self.id())
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

/// Whether it is the same socket.
impl PartialEq for SocketSender {
    fn eq(&self, other: &SocketSender) -> bool {
        self.id() == other.id()
    }
}

impl Eq for SocketSender {}
