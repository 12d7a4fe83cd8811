//! How does a coroutine wait for time to pass?

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::agent::Parker;
use super::current;
use super::limit::Limit;

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
    let due = Instant::now().checked_add(duration);
    let _alarm = due.map(|due| unpark_at(due, &parker));
    while due.is_none_or(|due| Instant::now() < due) {
        parker.park();
    }
}

/// Unparks `parker` at `due`, unless the process ends or the alarm is dropped before.
pub(super) fn unpark_at(due: Instant, parker: &Parker) -> Alarm {
    timer().add(due, Call::Unpark(parker.clone()))
}

/// Tells `limit` when it is due; see [`unpark_at`].
pub(super) fn ring_at(due: Instant, limit: Arc<Limit>) -> Alarm {
    timer().add(due, Call::Ring(limit))
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

/// Something that happens at its time; dropping it prevents that, and frees its place.
pub(super) struct Alarm(Key);

impl Drop for Alarm {
    fn drop(&mut self) {
        let call = timer().lock().calls.remove(&self.0);
        drop(call);
    }
}

/// When, and a number that no other call has.
type Key = (Instant, u64);

enum Call {
    Unpark(Parker),
    Ring(Arc<Limit>),
}

struct Timer {
    queue: Mutex<Queue>,
    earlier: Condvar,
}

struct Queue {
    calls: BTreeMap<Key, Call>,
    next_number: u64,
    /// When the thread looks again without being told: it need not be told of what is due later.
    looks_at: Option<Instant>,
}

impl Timer {
    fn add(&self, due: Instant, call: Call) -> Alarm {
        let mut queue = self.lock();
        let key = (due, queue.next_number);
        queue.next_number += 1;
        queue.calls.insert(key, call);
        if queue.looks_at.is_none_or(|at| due < at) {
            queue.looks_at = Some(due);
            self.earlier.notify_one();
        }
        Alarm(key)
    }

    fn run(&self) {
        let mut queue = self.lock();
        loop {
            let now = Instant::now();
            let Some(first) = queue.calls.first_entry() else {
                queue.looks_at = None;
                queue = self
                    .earlier
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let due = first.key().0;
            if due <= now {
                let call = first.remove();
                // A limit that rings may take the timer's lock.
                drop(queue);
                match call {
                    Call::Unpark(parker) => parker.unpark(),
                    Call::Ring(limit) => limit.ring(),
                }
                queue = self.lock();
                continue;
            }
            queue.looks_at = Some(due);
            queue = self
                .earlier
                .wait_timeout(queue, due - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn timer() -> &'static Timer {
    static TIMER: OnceLock<&'static Timer> = OnceLock::new();
    TIMER.get_or_init(|| {
        static QUEUE: Timer = Timer {
            queue: Mutex::new(Queue {
                calls: BTreeMap::new(),
                next_number: 0,
                looks_at: None,
            }),
            earlier: Condvar::new(),
        };
        std::thread::Builder::new()
            .name("cloudgate-timer".to_owned())
            .spawn(|| QUEUE.run())
            .expect("a thread for the timer, started with the first sleep");
        &QUEUE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_alarm_leaves_nothing_behind() {
        let parker = Parker::new();
        let later = |seconds| Instant::now() + Duration::from_secs(seconds);
        let alarms = [3600, 7200].map(|seconds| unpark_at(later(seconds), &parker));
        let keys: Vec<_> = alarms.iter().map(|alarm| alarm.0).collect();
        let kept = || {
            let queue = timer().lock();
            keys.iter()
                .map(|key| queue.calls.contains_key(key))
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(), [true, true]);
        drop(alarms);
        assert_eq!(kept(), [false, false]);
        // The timer is on time after one that it would have slept for is gone.
        let _alarm = unpark_at(later(0), &parker);
        parker.park();
    }
}
