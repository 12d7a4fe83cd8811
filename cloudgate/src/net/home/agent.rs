//! Who wakes a coroutine when the wake-up comes from another thread?

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use may::io::WaitIoWaker;
use may::sync::Blocker;
use rustix::event::{EventfdFlags, eventfd};

use super::limit::Place;
use super::socket::{Socket, move_to};
use super::{become_worker, check_home, current, runtime, watchdog};

/// The inbox of one worker, and the event descriptor that tells its agent coroutine to look.
pub(super) struct Agent {
    inbox: Mutex<Vec<Wake>>,
    /// Whether the event descriptor was written since the agent last looked.
    signalled: AtomicBool,
    event: Arc<OwnedFd>,
}

enum Wake {
    Waiting(Arc<WaitIoWaker>),
    Parked(Arc<Blocker>),
}

impl Agent {
    pub(super) fn new(worker: usize, workers: usize) -> io::Result<Agent> {
        let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let event = Arc::new(move_to(event, worker, workers)?);
        Ok(Agent {
            inbox: Mutex::new(Vec::new()),
            signalled: AtomicBool::new(false),
            event,
        })
    }

    /// The life of the agent coroutine; it ends with the process.
    pub(super) fn run(&self, worker: usize) {
        become_worker(worker);
        let socket = match Socket::at_home(worker, SharedFd(Arc::clone(&self.event))) {
            Ok(socket) => socket,
            Err(error) => {
                log::error!("worker {worker} cannot be woken by other threads: {error}");
                return;
            }
        };
        loop {
            // Reading resets the counter, so that the next write is a new edge. Whoever pushes
            // after `signalled` is cleared writes again; whoever pushed before is seen below.
            let _ = rustix::io::read(&*self.event, &mut [0; 8]);
            self.signalled.store(false, Ordering::SeqCst);
            let wakes =
                std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
            for wake in wakes {
                match wake {
                    Wake::Waiting(waker) => waker.wakeup(),
                    Wake::Parked(blocker) => blocker.unpark(),
                }
            }
            socket.wait();
        }
    }

    fn push(&self, wake: Wake) {
        self.inbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(wake);
        if !self.signalled.swap(true, Ordering::SeqCst) {
            // Can only fail with a full counter, and then the agent is woken anyway.
            let _ = rustix::io::write(&*self.event, &1_u64.to_ne_bytes());
        }
    }
}

/// Wakes a coroutine that waits on a [`Socket`], from any thread. A wake-up before the wait makes
/// the wait return at once: none is lost.
#[derive(Clone)]
pub(crate) struct Waker {
    worker: usize,
    waker: Arc<WaitIoWaker>,
}

impl Waker {
    pub(super) fn new(worker: usize, waker: WaitIoWaker) -> Waker {
        Waker {
            worker,
            waker: Arc::new(waker),
        }
    }

    /// Wakes the coroutine.
    pub(crate) fn wake(&self) {
        runtime().agents[self.worker].push(Wake::Waiting(Arc::clone(&self.waker)));
    }
}

/// Puts the calling coroutine, or thread, aside until [`Parker::unpark`] is called once.
#[derive(Clone)]
pub(crate) struct Parker {
    /// `None` when a plain thread parks.
    worker: Option<usize>,
    blocker: Arc<Blocker>,
}

impl Parker {
    /// A parker for the calling coroutine or thread.
    pub(crate) fn new() -> Parker {
        Parker {
            worker: current(),
            blocker: Arc::new(Blocker::new(true)),
        }
    }

    /// Waits until it is unparked; returns at once if it was already. It may come back early: look
    /// again for what was waited for. Unwinds where the caller's limit has passed.
    pub(crate) fn park(&self) {
        let Some(worker) = self.worker else {
            // Without a time limit there is no error but cancellation, which is ignored.
            let _ = self.blocker.park(None);
            return;
        };
        let post = watchdog::post(worker);
        let (paused, may_wait) = post.pause(|| Place::Parked(self.clone()));
        if may_wait {
            let _ = self.blocker.park(None);
            check_home(worker);
        }
        post.resume(paused).unwind_if_late();
    }

    /// Lets [`Parker::park`] return; from any thread.
    pub(crate) fn unpark(&self) {
        match self.worker {
            Some(worker) => runtime().agents[worker].push(Wake::Parked(Arc::clone(&self.blocker))),
            None => self.blocker.unpark(),
        }
    }
}

struct SharedFd(Arc<OwnedFd>);

impl AsRawFd for SharedFd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
