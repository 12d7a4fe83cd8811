//! How do values go from one coroutine or thread to another?

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::notify::Waiter;

/// A queue of at most `capacity` values: who sends into a full one waits, and so does who receives
/// from an empty one. Both ends can be cloned, and used from coroutines and threads alike.
///
/// ```
/// let (sender, receiver) = cloudgate::channel(10);
/// std::thread::spawn(move || {
///     for number in 1..=3 {
///         sender.send(number).unwrap();
///     }
/// });
/// assert_eq!(receiver.iter().sum::<i32>(), 6);   // ends when the last sender is gone
/// ```
///
/// # Panics
/// When `capacity` is 0: somebody would wait for ever.
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a channel holds at least one value");
    let state = State {
        values: VecDeque::new(),
        capacity,
        senders: 1,
        receivers: 1,
        full: VecDeque::new(),
        empty: VecDeque::new(),
    };
    let shared = Arc::new(Mutex::new(state));
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

struct State<T> {
    values: VecDeque<T>,
    capacity: usize,
    senders: usize,
    receivers: usize,
    /// Those who wait for room.
    full: Line,
    /// Those who wait for a value.
    empty: Line,
}

/// The end of a [`channel`] that values go into.
pub struct Sender<T>(Arc<Mutex<State<T>>>);

/// The end of a [`channel`] that values come out of.
pub struct Receiver<T>(Arc<Mutex<State<T>>>);

/// Why a value was not sent; it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError<T> {
    /// The channel is full, and waiting was not asked for.
    Full(T),
    /// Every receiver is gone.
    Closed(T),
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::Full(_) => "the channel is full",
            SendError::Closed(_) => "every receiver of the channel is gone",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for SendError<T> {}

/// Why [`Receiver::recv_timeout`] gave no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecvError {
    /// None came in time.
    TimedOut,
    /// The channel is empty, and every sender is gone.
    Closed,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecvError::TimedOut => "no value came through the channel in time",
            RecvError::Closed => "every sender of the channel is gone",
        })
    }
}

impl std::error::Error for RecvError {}

fn lock<T>(shared: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the wait of the first in a line. It looks again for itself, so one that finds nothing to do
/// lines up once more.
fn call(line: &mut Line) {
    if let Some(waiter) = line.pop_front() {
        waiter.choose();
    }
}

type Line = VecDeque<Arc<Waiter>>;

/// A place in one of the lines, which is given up when the wait is unwound.
struct Place<'c, T> {
    shared: &'c Mutex<State<T>>,
    line: fn(&mut State<T>) -> &mut Line,
    waiter: Arc<Waiter>,
    /// Whether it was left as it should be.
    left: bool,
}

impl<'c, T> Place<'c, T> {
    /// The last place of a line of `state`, which is what `shared` holds.
    fn new(
        shared: &'c Mutex<State<T>>,
        state: &mut State<T>,
        line: fn(&mut State<T>) -> &mut Line,
    ) -> Place<'c, T> {
        let waiter = Waiter::new();
        line(state).push_back(Arc::clone(&waiter));
        Place {
            shared,
            line,
            waiter,
            left: false,
        }
    }

    fn wait(mut self) {
        self.waiter.wait();
        self.left = true;
    }

    /// As [`Place::wait`], at most until `due`; then the place is given up.
    fn wait_until(mut self, due: Instant) {
        self.left = self.waiter.wait_until(due);
    }
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let mut state = lock(self.shared);
        let line = (self.line)(&mut state);
        line.retain(|other| !Arc::ptr_eq(other, &self.waiter));
        // What it was called for is there for the next one.
        if self.waiter.is_chosen_alone() {
            call(line);
        }
    }
}

impl<T> Sender<T> {
    /// Sends a value, waiting for room where there is none.
    ///
    /// # Errors
    /// [`SendError::Closed`] with the value when every receiver is gone.
    pub fn send(&self, mut value: T) -> Result<(), SendError<T>> {
        loop {
            let mut state = lock(&self.0);
            match state.push(value) {
                Err(SendError::Full(back)) => value = back,
                sent => return sent,
            }
            let place = Place::new(&self.0, &mut state, |state| &mut state.full);
            drop(state);
            place.wait();
        }
    }

    /// Sends a value if there is room now.
    ///
    /// # Errors
    /// [`SendError`] with the value when there is none, or every receiver is gone.
    pub fn try_send(&self, value: T) -> Result<(), SendError<T>> {
        lock(&self.0).push(value)
    }

    /// Whether every receiver is gone: nothing that is sent from now on arrives.
    pub fn is_closed(&self) -> bool {
        lock(&self.0).receivers == 0
    }
}

impl<T> Receiver<T> {
    /// The next value, waited for where there is none; `None` when there will be no other.
    pub fn recv(&self) -> Option<T> {
        loop {
            let mut state = lock(&self.0);
            if let Some(value) = state.pop() {
                return Some(value);
            }
            if state.senders == 0 {
                return None;
            }
            let place = Place::new(&self.0, &mut state, |state| &mut state.empty);
            drop(state);
            place.wait();
        }
    }

    /// The next value, waited for at most for `limit`. One that is there is given however short that is.
    ///
    /// ```
    /// use cloudgate::RecvError;
    /// use std::time::Duration;
    ///
    /// let (sender, receiver) = cloudgate::channel(1);
    /// sender.send("news").unwrap();
    /// assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok("news"));
    /// assert_eq!(receiver.recv_timeout(Duration::ZERO), Err(RecvError::TimedOut));
    /// ```
    ///
    /// # Errors
    /// [`RecvError::TimedOut`] when none came, [`RecvError::Closed`] when there will be no other.
    pub fn recv_timeout(&self, limit: Duration) -> Result<T, RecvError> {
        let Some(due) = Instant::now().checked_add(limit) else {
            return self.recv().ok_or(RecvError::Closed);
        };
        loop {
            let mut state = lock(&self.0);
            if let Some(value) = state.pop() {
                return Ok(value);
            }
            if state.senders == 0 {
                return Err(RecvError::Closed);
            }
            if Instant::now() >= due {
                return Err(RecvError::TimedOut);
            }
            let place = Place::new(&self.0, &mut state, |state| &mut state.empty);
            drop(state);
            place.wait_until(due);
        }
    }

    /// The next value if there is one now.
    pub fn try_recv(&self) -> Option<T> {
        lock(&self.0).pop()
    }

    /// How many wait for room, and for a value.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> (usize, usize) {
        let state = lock(&self.0);
        (state.full.len(), state.empty.len())
    }

    /// The values as they come, until the last sender is gone.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        std::iter::from_fn(|| self.recv())
    }
}

impl<T> State<T> {
    fn push(&mut self, value: T) -> Result<(), SendError<T>> {
        if self.receivers == 0 {
            return Err(SendError::Closed(value));
        }
        if self.values.len() == self.capacity {
            return Err(SendError::Full(value));
        }
        self.values.push_back(value);
        call(&mut self.empty);
        Ok(())
    }

    fn pop(&mut self) -> Option<T> {
        let value = self.values.pop_front()?;
        call(&mut self.full);
        Some(value)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        lock(&self.0).senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        lock(&self.0).receivers += 1;
        Receiver(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.senders -= 1;
        while state.senders == 0 && !state.empty.is_empty() {
            call(&mut state.empty);
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.receivers -= 1;
        if state.receivers > 0 {
            return;
        }
        while !state.full.is_empty() {
            call(&mut state.full);
        }
        // Values may be senders themselves: they are dropped when the lock is free.
        let values = std::mem::take(&mut state.values);
        drop(state);
        drop(values);
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("waiting", &lock(&self.0).values.len())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("waiting", &lock(&self.0).values.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::home;
    use std::sync::mpsc;

    #[test]
    fn the_capacity_is_held_at_it_and_one_past_it() {
        let (sender, receiver) = channel(2);
        assert_eq!((sender.try_send(1), sender.try_send(2)), (Ok(()), Ok(())));
        assert_eq!(sender.try_send(3), Err(SendError::Full(3)));
        assert_eq!((receiver.try_recv(), sender.try_send(3)), (Some(1), Ok(())));
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(receiver.try_recv(), None);
    }

    #[test]
    fn a_wait_with_a_limit_ends_by_a_value_by_the_limit_and_by_the_end_of_the_senders() {
        let (sender, receiver) = channel(1);
        let short = Duration::from_millis(5);
        assert_eq!(receiver.recv_timeout(short), Err(RecvError::TimedOut));
        assert!(
            lock(&receiver.0).empty.is_empty(),
            "it still stands in line"
        );
        sender.send(1).unwrap();
        assert_eq!(receiver.recv_timeout(Duration::ZERO), Ok(1));
        // Past what the clock can express is without a limit.
        for limit in [Duration::from_secs(60), Duration::MAX] {
            let waiting = std::thread::spawn({
                let receiver = receiver.clone();
                move || receiver.recv_timeout(limit)
            });
            while lock(&sender.0).empty.is_empty() {
                std::thread::yield_now();
            }
            sender.send(2).unwrap();
            assert_eq!(waiting.join().unwrap(), Ok(2));
        }
        let waiting = std::thread::spawn({
            let receiver = receiver.clone();
            move || receiver.recv_timeout(Duration::from_secs(60))
        });
        while lock(&sender.0).empty.is_empty() {
            std::thread::yield_now();
        }
        drop(sender);
        assert_eq!(waiting.join().unwrap(), Err(RecvError::Closed));
        assert_eq!(receiver.recv_timeout(short), Err(RecvError::Closed));
    }

    #[test]
    fn a_sender_knows_when_the_last_receiver_is_gone() {
        let (sender, receiver) = channel::<u8>(1);
        let other = receiver.clone();
        drop(receiver);
        assert!(!sender.is_closed());
        drop(other);
        assert!(sender.is_closed());
    }

    #[test]
    fn a_gone_receiver_is_an_error_with_the_value() {
        let (sender, receiver) = channel(1);
        sender.send(1).unwrap();
        let waiting = std::thread::spawn({
            let sender = sender.clone();
            move || sender.send(2)
        });
        while lock(&sender.0).full.is_empty() {
            std::thread::yield_now();
        }
        drop(receiver);
        assert_eq!(waiting.join().unwrap(), Err(SendError::Closed(2)));
        assert_eq!(sender.send(3), Err(SendError::Closed(3)));
    }

    #[test]
    fn nothing_is_lost_or_doubled_between_coroutines_and_threads() {
        const SENDERS: usize = 8;
        const EACH: usize = 2000;
        home::start_for_tests();
        let (sender, receiver) = channel(7);
        let (done, sums) = mpsc::channel();
        for who in 0..SENDERS {
            let sender = sender.clone();
            let body =
                move || (0..EACH).for_each(|number| sender.send(who * EACH + number).unwrap());
            if who % 2 == 0 {
                std::thread::spawn(body);
            } else {
                home::spawn(who / 2 % 2, "test", body).unwrap();
            }
        }
        drop(sender);
        for who in 0..4 {
            let (receiver, done) = (receiver.clone(), done.clone());
            let body = move || {
                let (mut count, mut sum) = (0, 0);
                loop {
                    // Some give up now and then; no value may be lost by that.
                    let value = if who % 2 == 0 {
                        receiver.recv().ok_or(RecvError::Closed)
                    } else {
                        receiver.recv_timeout(Duration::from_micros(50 * who as u64))
                    };
                    match value {
                        Ok(value) => (count, sum) = (count + 1, sum + value),
                        Err(RecvError::TimedOut) => {}
                        Err(RecvError::Closed) => break,
                    }
                }
                done.send((count, sum)).unwrap();
            };
            if who == 0 {
                std::thread::spawn(body);
            } else {
                home::spawn(who % 2, "test", body).unwrap();
            }
        }
        let totals = (0..4).map(|_| sums.recv_timeout(Duration::from_secs(60)).unwrap());
        let (count, sum) = totals.fold((0, 0), |(count, sum), one| (count + one.0, sum + one.1));
        let total = SENDERS * EACH;
        assert_eq!((count, sum), (total, total * (total - 1) / 2));
        assert_eq!(home::thread_changes(), 0);
    }
}
