//! How does one piece of code wait for a word from another?

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::agent::Parker;
use super::timer;

/// Lets coroutines and threads wait until some other coroutine or thread says go.
///
/// ```
/// use cloudgate::Notify;
/// use std::sync::Arc;
///
/// let ready = Arc::new(Notify::new());
/// let theirs = Arc::clone(&ready);
/// std::thread::spawn(move || theirs.notify_one());
/// ready.wait();
/// ```
#[derive(Debug, Default)]
pub struct Notify {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A word that came while nobody waited.
    kept: bool,
    waiting: VecDeque<Arc<Waiter>>,
}

/// Somebody who waits. Whoever takes it out of its line chooses it, so a word is never spent twice.
pub(super) struct Waiter {
    parker: Parker,
    chosen: AtomicU8,
}

/// Not chosen.
const WAITING: u8 = 0;
/// Chosen by a word that one alone hears.
const ALONE: u8 = 1;
/// Chosen with all others.
const WITH_ALL: u8 = 2;

impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter")
            .field("chosen", &self.chosen)
            .finish_non_exhaustive()
    }
}

impl Waiter {
    /// The calling coroutine or thread.
    pub(super) fn new() -> Arc<Waiter> {
        Arc::new(Waiter {
            parker: Parker::new(),
            chosen: AtomicU8::new(WAITING),
        })
    }

    /// Ends its wait.
    pub(super) fn choose(&self) {
        self.end_wait(ALONE);
    }

    fn end_wait(&self, how: u8) {
        self.chosen.store(how, Ordering::Release);
        self.parker.unpark();
    }

    /// Whether its wait was ended by a word that nobody else hears.
    pub(super) fn is_chosen_alone(&self) -> bool {
        self.chosen.load(Ordering::Acquire) == ALONE
    }

    fn is_chosen(&self) -> bool {
        self.chosen.load(Ordering::Acquire) != WAITING
    }

    /// Waits until it is chosen.
    pub(super) fn wait(&self) {
        while !self.is_chosen() {
            self.parker.park();
        }
    }

    /// Waits until it is chosen, at most until `due`; says whether it was.
    pub(super) fn wait_until(&self, due: Instant) -> bool {
        let _alarm = timer::unpark_at(due, &self.parker);
        while !self.is_chosen() {
            if Instant::now() >= due {
                return false;
            }
            self.parker.park();
        }
        true
    }
}

impl Notify {
    /// Nobody waits, and no word is kept.
    pub const fn new() -> Notify {
        Notify {
            state: Mutex::new(State {
                kept: false,
                waiting: VecDeque::new(),
            }),
        }
    }

    /// Waits for a word; takes the kept one at once if there is one.
    pub fn wait(&self) {
        if let Some(mut place) = self.line_up() {
            place.waiter.wait();
            place.left = true;
        }
    }

    /// Waits for a word, at most for `limit`; says whether it came.
    pub fn wait_timeout(&self, limit: Duration) -> bool {
        let Some(mut place) = self.line_up() else {
            return true;
        };
        let heard = match Instant::now().checked_add(limit) {
            Some(due) => place.waiter.wait_until(due),
            None => {
                place.waiter.wait();
                true
            }
        };
        if !heard {
            self.lock().remove(&place.waiter);
        }
        place.left = true;
        // Chosen in the last moment: then the word was ours, and nobody else has heard it.
        heard || place.waiter.is_chosen()
    }

    /// Lets one that waits go on, the longest waiting first. If nobody waits, the word is kept for
    /// the next one that does; only one is kept.
    pub fn notify_one(&self) {
        self.lock().say();
    }

    /// Lets all that wait go on. Nothing is kept.
    pub fn notify_all(&self) {
        for waiter in std::mem::take(&mut self.lock().waiting) {
            waiter.end_wait(WITH_ALL);
        }
    }

    /// A place in the line, unless a word is kept already.
    fn line_up(&self) -> Option<Place<'_>> {
        let mut state = self.lock();
        if std::mem::take(&mut state.kept) {
            return None;
        }
        let waiter = Waiter::new();
        state.waiting.push_back(Arc::clone(&waiter));
        Some(Place {
            notify: self,
            waiter,
            left: false,
        })
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn say(&mut self) {
        match self.waiting.pop_front() {
            Some(waiter) => waiter.choose(),
            None => self.kept = true,
        }
    }

    fn remove(&mut self, waiter: &Arc<Waiter>) {
        self.waiting.retain(|other| !Arc::ptr_eq(other, waiter));
    }
}

/// A place in the line, which is given up when the wait is unwound.
struct Place<'n> {
    notify: &'n Notify,
    waiter: Arc<Waiter>,
    /// Whether it was left as it should be.
    left: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.left {
            return;
        }
        let mut state = self.notify.lock();
        state.remove(&self.waiter);
        // The word that this one can no longer hear is for the next.
        if self.waiter.is_chosen_alone() {
            state.say();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::home;
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_word_is_kept_once_when_nobody_waits() {
        let notify = Notify::new();
        notify.notify_one();
        notify.notify_one();
        notify.wait();
        assert!(!notify.wait_timeout(Duration::from_millis(5)));
        notify.notify_all();
        assert!(!notify.wait_timeout(Duration::from_millis(5)));
    }

    #[test]
    fn every_word_reaches_exactly_one_across_coroutines_and_threads() {
        home::start_for_tests();
        let notify = Arc::new(Notify::new());
        let (heard, hears) = mpsc::channel();
        for who in 0..40 {
            let (notify, heard) = (Arc::clone(&notify), heard.clone());
            let body = move || {
                // Some give up now and then; no word may be lost by that.
                while !notify.wait_timeout(Duration::from_micros(200 * (who % 4) + 50)) {}
                heard.send(home::current()).unwrap();
            };
            if who % 4 == 0 {
                std::thread::spawn(body);
            } else {
                home::spawn(who as usize % 2, "test", body).unwrap();
            }
        }
        for _ in 0..40 {
            notify.notify_one();
            hears.recv_timeout(LONG).unwrap();
        }
        assert!(hears.try_recv().is_err());
        assert_eq!(home::thread_changes(), 0);
    }

    #[test]
    fn all_that_wait_are_told_at_once() {
        home::start_for_tests();
        let notify = Arc::new(Notify::new());
        let (heard, hears) = mpsc::channel();
        for who in 0..10 {
            let (notify, heard) = (Arc::clone(&notify), heard.clone());
            home::spawn(who % 2, "test", move || {
                notify.wait();
                heard.send(()).unwrap();
            })
            .unwrap();
        }
        while notify.waiting() < 10 {
            std::thread::yield_now();
        }
        notify.notify_all();
        for _ in 0..10 {
            hears.recv_timeout(LONG).unwrap();
        }
    }
}
