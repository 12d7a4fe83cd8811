//! Who ends a wait whose time is up?
//!
//! Each connection keeps its deadline in an atomic of its own, so setting one costs a store. One
//! thread a server, the sweeper, moves the clock on and wakes every connection that is late.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::home::{self, Waker};
use crate::message::Deadline;

/// How often the sweeper looks, and so how late a deadline may be noticed.
const TICK: Duration = Duration::from_millis(50);

/// A coarse clock: milliseconds since it was made, moved on by the sweeper. Reading it is one load.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    now: AtomicU64,
}

impl Clock {
    /// A clock that stands at 0.
    pub fn new() -> Clock {
        Clock {
            start: Instant::now(),
            now: AtomicU64::new(0),
        }
    }

    /// Where it stands, in milliseconds.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Sets it, for tests whose time stands still otherwise.
    #[cfg(test)]
    pub fn set(&self, milliseconds: u64) {
        self.now.store(milliseconds, Ordering::Relaxed);
    }

    /// Moves it on to the present, and says where it stands.
    pub(crate) fn tick(&self) -> u64 {
        let now = self.start.elapsed().as_millis() as u64;
        self.now.fetch_max(now, Ordering::Relaxed).max(now)
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}

/// What the sweeper knows of one connection.
pub(crate) struct Watch {
    deadline: AtomicU64,
    cut: AtomicBool,
    waker: Waker,
}

impl Watch {
    /// Sets when the coming wait must end.
    pub(crate) fn set(&self, deadline: Deadline) {
        self.deadline.store(deadline.as_millis(), Ordering::Relaxed);
    }

    /// Whether the server has given the connection up.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Lets the connection's wait end soon without a reason of its own: it has a turn after others.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }
}

/// All connections of one server, for the sweeper and for shutting down.
pub(crate) struct WatchList {
    clock: Arc<Clock>,
    slots: Mutex<Slots>,
    changed: Condvar,
}

#[derive(Default)]
struct Slots {
    list: Vec<Option<Arc<Watch>>>,
    free: Vec<usize>,
    live: usize,
    stopped: bool,
    /// Whether all were given up: who was let in before and comes here only now is given up too.
    cut: bool,
}

/// A connection's place in a [`WatchList`]; dropping it takes the connection off the list.
pub(crate) struct Registration {
    list: Arc<WatchList>,
    slot: usize,
    watch: Arc<Watch>,
}

impl WatchList {
    /// An empty list with its sweeper running.
    ///
    /// # Errors
    /// When there is no thread for the sweeper.
    pub(crate) fn start(clock: Arc<Clock>) -> std::io::Result<Arc<WatchList>> {
        let list = Arc::new(WatchList {
            clock,
            slots: Mutex::default(),
            changed: Condvar::new(),
        });
        let sweeper = Arc::clone(&list);
        std::thread::Builder::new()
            .name("cloudgate-sweeper".to_owned())
            .spawn(move || sweeper.sweep())?;
        Ok(list)
    }

    /// The clock that deadlines are measured by.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Adds a connection.
    pub(crate) fn register(self: &Arc<Self>, waker: Waker) -> Registration {
        let mut slots = self.lock();
        let watch = Arc::new(Watch {
            deadline: AtomicU64::new(Deadline::NEVER.as_millis()),
            cut: AtomicBool::new(slots.cut),
            waker,
        });
        let slot = slots.free.pop().unwrap_or(slots.list.len());
        if slot == slots.list.len() {
            slots.list.push(None);
        }
        slots.list[slot] = Some(Arc::clone(&watch));
        slots.live += 1;
        if slots.live == 1 {
            // The sweeper slept, so the clock may be far behind.
            self.clock.tick();
            self.changed.notify_all();
        }
        Registration {
            list: Arc::clone(self),
            slot,
            watch,
        }
    }

    /// Wakes every connection, so that each looks whether the server stops.
    pub(crate) fn wake_all(&self) {
        for watch in self.lock().list.iter().flatten() {
            watch.waker.wake();
        }
    }

    /// Gives every connection up: its next wait fails.
    pub(crate) fn cut_all(&self) {
        let mut slots = self.lock();
        slots.cut = true;
        for watch in slots.list.iter().flatten() {
            watch.cut.store(true, Ordering::Relaxed);
            watch.waker.wake();
        }
    }

    /// Ends the sweeper.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    fn sweep(&self) {
        let mut late = Vec::new();
        let mut slots = self.lock();
        while !slots.stopped {
            if slots.live == 0 {
                slots = self
                    .changed
                    .wait(slots)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let now = self.clock.tick();
            late.extend(
                slots
                    .list
                    .iter()
                    .flatten()
                    .filter(|watch| watch.deadline.load(Ordering::Relaxed) <= now)
                    .cloned(),
            );
            drop(slots);
            for watch in late.drain(..) {
                watch.waker.wake();
            }
            home::watchdog::sample();
            std::thread::sleep(TICK);
            slots = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registration {
    /// The connection's own entry.
    pub(crate) fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The clock that deadlines are measured by.
    pub(crate) fn clock(&self) -> &Clock {
        &self.list.clock
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut slots = self.list.lock();
        slots.list[self.slot] = None;
        slots.free.push(self.slot);
        slots.live -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;

    use super::*;
    use crate::net::home::{Socket, move_to};

    #[test]
    fn who_registers_after_all_were_cut_is_cut_too() {
        let workers = home::start_for_tests();
        let list = WatchList::start(Arc::new(Clock::new())).unwrap();
        let (done, result) = mpsc::channel();
        home::spawn(0, "test", move || {
            let (stream, _other) = UnixStream::pair().unwrap();
            let socket = Socket::at_home(0, move_to(stream.into(), 0, workers).unwrap()).unwrap();
            let before = list.register(socket.waker());
            let first = before.watch().is_cut();
            list.cut_all();
            let after = list.register(socket.waker());
            list.stop();
            done.send([first, before.watch().is_cut(), after.watch().is_cut()])
                .unwrap();
        })
        .unwrap();
        let cut = result.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(cut, [false, true, true]);
    }
}
