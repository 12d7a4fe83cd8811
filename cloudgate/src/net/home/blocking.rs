//! Where does work run that would hold a worker up?
//!
//! Disk, name look-ups and long computations go to a pool of plain threads while the coroutine
//! waits. Threads start as they are needed and end when they had nothing to do for a while.

use std::any::Any;
use std::collections::VecDeque;
use std::panic;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Parker, current};

/// The most threads that run at once; more work waits in line.
const MOST_THREADS: usize = 64;

/// How long a thread without work stays.
const KEEP: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// What became of a piece of work: its result, or the payload of its panic.
type Outcome<T> = Result<T, Box<dyn Any + Send>>;

struct Pool {
    state: Mutex<State>,
    work: Condvar,
}

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

static POOL: Pool = Pool {
    state: Mutex::new(State {
        jobs: VecDeque::new(),
        threads: 0,
        idle: 0,
    }),
    work: Condvar::new(),
};

/// Runs `work` on a thread that may block, while the calling coroutine waits and its worker serves
/// others. On a thread that is no worker it is simply called.
///
/// ```
/// let text = cloudgate::blocking(|| std::fs::read_to_string("Cargo.toml")).unwrap();
/// assert!(text.contains("[package]"));
/// ```
///
/// # Panics
/// When `work` panics: the panic goes on in the caller.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    if current().is_none() {
        return work();
    }
    let parker = Parker::new();
    let slot: Arc<Mutex<Option<Outcome<T>>>> = Arc::default();
    let (their_slot, their_parker) = (Arc::clone(&slot), parker.clone());
    POOL.submit(Box::new(move || {
        let result = panic::catch_unwind(panic::AssertUnwindSafe(work));
        *their_slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        their_parker.unpark();
    }));
    loop {
        parker.park();
        if let Some(result) = slot.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return result.unwrap_or_else(|payload| panic::resume_unwind(payload));
        }
    }
}

impl Pool {
    fn submit(&'static self, job: Job) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.threads == MOST_THREADS {
            self.work.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let thread = std::thread::Builder::new().name("cloudgate-blocking".to_owned());
        if let Err(error) = thread.spawn(|| self.run()) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.threads -= 1;
            if state.threads == 0 {
                // Nobody would ever do it: a slow answer is better than none.
                log::error!(
                    "no thread for blocking work ({error}); it is done on a worker, which is slow"
                );
                while let Some(job) = state.jobs.pop_front() {
                    drop(state);
                    job();
                    state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn run(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            while let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            }
            state.idle += 1;
            let (guard, timeout) = self
                .work
                .wait_timeout(state, KEEP)
                .unwrap_or_else(PoisonError::into_inner);
            state = guard;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::home;
    use std::sync::mpsc;

    #[test]
    fn blocking_work_does_not_hold_the_worker() {
        home::start(home::Settings {
            workers: 2,
            ..home::Settings::default()
        })
        .unwrap();
        let (done, results) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let first = done.clone();
        home::spawn(0, "test", move || {
            first
                .send(blocking(move || gate.recv().map(|()| "late").unwrap()))
                .unwrap();
        })
        .unwrap();
        home::spawn(0, "test", move || done.send(blocking(|| "early")).unwrap()).unwrap();
        assert_eq!(
            results.recv_timeout(Duration::from_secs(30)).unwrap(),
            "early"
        );
        release.send(()).unwrap();
        assert_eq!(
            results.recv_timeout(Duration::from_secs(30)).unwrap(),
            "late"
        );
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        home::start(home::Settings {
            workers: 2,
            ..home::Settings::default()
        })
        .unwrap();
        let (done, results) = mpsc::channel();
        home::spawn(1, "test", move || {
            let payload = home::catch_panic(|| blocking(|| -> () { panic!("boom") })).unwrap_err();
            done.send(
                payload
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned()),
            )
            .unwrap();
        })
        .unwrap();
        assert_eq!(
            results
                .recv_timeout(Duration::from_secs(30))
                .unwrap()
                .as_deref(),
            Some("boom")
        );
    }
}
