//! How does one piece of code wait for a word from another?

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Somebody who waits. Whoever sets the flag has chosen it, so a word is never spent twice.
pub(super) struct Waiter {
    parker: Parker,
    chosen: AtomicBool,
}

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
            chosen: AtomicBool::new(false),
        })
    }

    /// Ends its wait.
    pub(super) fn choose(&self) {
        self.chosen.store(true, Ordering::Release);
        self.parker.unpark();
    }

    /// Waits until it is chosen.
    pub(super) fn wait(&self) {
        while !self.chosen.load(Ordering::Acquire) {
            self.parker.park();
        }
    }

    /// Waits until it is chosen, at most until `due`; says whether it was.
    fn wait_until(&self, due: Instant) -> bool {
        timer::wake_at(due, &self.parker);
        while !self.chosen.load(Ordering::Acquire) {
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
        if let Some(waiter) = self.line_up() {
            waiter.wait();
        }
    }

    /// Waits for a word, at most for `limit`; says whether it came.
    pub fn wait_timeout(&self, limit: Duration) -> bool {
        let Some(waiter) = self.line_up() else {
            return true;
        };
        let Some(due) = Instant::now().checked_add(limit) else {
            waiter.wait();
            return true;
        };
        if waiter.wait_until(due) {
            return true;
        }
        let mut state = self.lock();
        state.waiting.retain(|other| !Arc::ptr_eq(other, &waiter));
        // Chosen in the last moment: then the word was ours, and nobody else has heard it.
        waiter.chosen.load(Ordering::Acquire)
    }

    /// Lets one that waits go on, the longest waiting first. If nobody waits, the word is kept for
    /// the next one that does; only one is kept.
    pub fn notify_one(&self) {
        let mut state = self.lock();
        match state.waiting.pop_front() {
            Some(waiter) => waiter.choose(),
            None => state.kept = true,
        }
    }

    /// Lets all that wait go on. Nothing is kept.
    pub fn notify_all(&self) {
        for waiter in std::mem::take(&mut self.lock().waiting) {
            waiter.choose();
        }
    }

    /// A place in the line, unless a word is kept already.
    fn line_up(&self) -> Option<Arc<Waiter>> {
        let mut state = self.lock();
        if std::mem::take(&mut state.kept) {
            return None;
        }
        let waiter = Waiter::new();
        state.waiting.push_back(Arc::clone(&waiter));
        Some(waiter)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        home::start(home::Settings {
            workers: 2,
            ..home::Settings::default()
        })
        .unwrap();
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
        home::start(home::Settings {
            workers: 2,
            ..home::Settings::default()
        })
        .unwrap();
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
        while notify.lock().waiting.len() < 10 {
            std::thread::yield_now();
        }
        notify.notify_all();
        for _ in 0..10 {
            hears.recv_timeout(LONG).unwrap();
        }
    }
}
