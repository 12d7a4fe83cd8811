//! How does a coroutine wait for time to pass?

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::agent::Parker;
use super::current;

/// Lets the calling coroutine sleep while its worker serves others; a plain thread just sleeps.
///
/// The precision is about a tenth of a millisecond.
///
/// ```
/// cloudgate::sleep(std::time::Duration::from_millis(1));
/// ```
pub fn sleep(duration: Duration) {
    if current().is_none() {
        std::thread::sleep(duration);
        return;
    }
    let parker = Parker::new();
    // Past what the clock can express is for ever.
    if let Some(due) = Instant::now().checked_add(duration) {
        timer().add(due, parker.clone());
    }
    parker.park();
}

/// Unparks `parker` at `due`, unless the process ends before.
pub(super) fn wake_at(due: Instant, parker: &Parker) {
    timer().add(due, parker.clone());
}

/// Lets other coroutines of the same worker, and its sockets, have a turn.
pub fn yield_now() {
    if current().is_none() {
        std::thread::yield_now();
        return;
    }
    // Through the inbox, so that the worker polls its sockets before it comes back here.
    let parker = Parker::new();
    parker.unpark();
    parker.park();
}

struct Timer {
    queue: Mutex<BinaryHeap<Reverse<Entry>>>,
    earlier: Condvar,
}

struct Entry {
    due: Instant,
    parker: Parker,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.due == other.due
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

impl Timer {
    fn add(&self, due: Instant, parker: Parker) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let first = queue.peek().is_none_or(|Reverse(entry)| due < entry.due);
        queue.push(Reverse(Entry { due, parker }));
        if first {
            self.earlier.notify_one();
        }
    }

    fn run(&self) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            while queue.peek().is_some_and(|Reverse(entry)| entry.due <= now) {
                if let Some(Reverse(entry)) = queue.pop() {
                    entry.parker.unpark();
                }
            }
            let left = queue
                .peek()
                .map(|Reverse(entry)| entry.due.saturating_duration_since(now));
            queue = match left {
                None => self
                    .earlier
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    self.earlier
                        .wait_timeout(queue, left)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
            };
        }
    }
}

fn timer() -> &'static Timer {
    static TIMER: OnceLock<&'static Timer> = OnceLock::new();
    TIMER.get_or_init(|| {
        static QUEUE: Timer = Timer {
            queue: Mutex::new(BinaryHeap::new()),
            earlier: Condvar::new(),
        };
        std::thread::Builder::new()
            .name("cloudgate-timer".to_owned())
            .spawn(|| QUEUE.run())
            .expect("a thread for the timer, started with the first sleep");
        &QUEUE
    })
}
