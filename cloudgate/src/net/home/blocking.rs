//! Where does work run that would hold a worker up?
//!
//! It goes to plain threads while the coroutine waits: disk and name look-ups to a pool of many, of
//! which most sleep; long computations to one of as many as there are cores, since more of them at
//! once would finish no sooner and hold more memory. Threads start as they are needed and end when
//! they had nothing to do for a while.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Parker, current};

/// The most threads for blocking work that run at once; more work waits in line.
const MOST_THREADS: usize = 64;

/// How long the line is before it counts as full.
const MOST_WAITING: usize = 1024;

/// How long a thread without work stays.
const KEEP: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// What became of a piece of work: its result, or the payload of its panic.
type Outcome<T> = Result<T, Box<dyn Any + Send>>;

struct Pool {
    /// What its threads do, for the log.
    purpose: &'static str,
    /// What its threads are called.
    thread_name: &'static str,
    /// The most threads that run at once.
    most_threads: usize,
    state: Mutex<State>,
    work: Condvar,
}

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

static BLOCKING: Pool = Pool::new("blocking work", "cloudgate-blocking", MOST_THREADS);

static COMPUTING: LazyLock<Pool> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Pool::new("work that computes", "cloudgate-computing", cores)
});

/// Where the caller and the thread meet.
struct Slot<T> {
    outcome: Mutex<Option<Outcome<T>>>,
    /// Whether the caller was unwound: then work that has not begun is not done.
    given_up: AtomicBool,
}

/// Gives the work up when the caller leaves.
struct Caller<'s>(&'s AtomicBool);

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What to do where the line is full.
#[derive(Clone, Copy)]
enum WhenFull {
    Wait,
    Refuse,
}

/// Why [`try_blocking`] did not run its work: all threads for blocking work are busy, and as many
/// pieces of work as may wait in line do. As a reply it is a 503 that asks to come back in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "all {MOST_THREADS} threads for blocking work are busy, and {MOST_WAITING} more pieces of it wait"
        )
    }
}

impl std::error::Error for Busy {}

/// Runs `work` on a thread that may block, while the calling coroutine waits and its worker serves
/// others. On a thread that is no worker it is simply called.
///
/// There are up to 64 such threads. While all of them are busy the work waits for its turn, however
/// many wait before it; [`try_blocking`] does not.
///
/// Under a [`TimeLimit`](crate::TimeLimit) that passes, the caller goes on without it: work that has
/// begun runs to its end and its result is dropped; work that has not begun is not done.
///
/// ```
/// let text = cloudgate::blocking(|| std::fs::read_to_string("Cargo.toml")).unwrap();
/// assert!(text.contains("[package]"));
/// ```
///
/// # Panics
/// When `work` panics: the panic goes on in the caller.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    BLOCKING
        .run(work, WhenFull::Wait)
        .expect("work is refused only where that was asked for")
}

/// As [`blocking`], but refuses the work at once while all threads are busy and 1024 other pieces of
/// work wait already: then it is better to turn a client away than to let it wait behind them all.
///
/// ```
/// use cloudgate::{Busy, Bytes, try_blocking};
///
/// fn thumbnail(picture: Bytes) -> Result<Vec<u8>, Busy> {
///     try_blocking(move || picture[..picture.len() / 2].to_vec())
/// }
/// assert_eq!(thumbnail(Bytes::from_static(b"picture!")), Ok(b"pict".to_vec()));
/// ```
///
/// # Errors
/// [`Busy`] when there is no room for it in the line; `work` is dropped and was not called.
///
/// # Panics
/// When `work` panics: the panic goes on in the caller.
pub fn try_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Busy> {
    BLOCKING.run(work, WhenFull::Refuse)
}

/// As [`blocking`], for work that keeps a core busy and waits for nothing. There are as many such
/// threads as cores, and they are others than those for blocking work: neither kind holds up the other.
///
/// # Panics
/// When `work` panics: the panic goes on in the caller.
pub(crate) fn computing<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    LazyLock::force(&COMPUTING)
        .run(work, WhenFull::Wait)
        .expect("work is refused only where that was asked for")
}

/// Drops `value` on a thread that may block, and does not wait for it: for use in a destructor, where a
/// coroutine must not wait. On a thread that is no worker it is simply dropped.
pub(crate) fn drop_elsewhere<T: Send + 'static>(value: T) {
    start(move || drop(value));
}

/// Starts `work` on a thread that may block, and does not wait for it; whoever called may leave, and it is
/// done all the same. On a thread that is no worker it is simply called.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) {
    if current().is_none() {
        return work();
    }
    BLOCKING
        .submit(Box::new(work), WhenFull::Wait)
        .expect("work is refused only where that was asked for");
}

/// Starts `work` on another thread, whatever the calling one is, and does not wait for it.
///
/// # Errors
/// [`Busy`] when there is no room for it in the line; `work` is dropped and was not called.
pub(crate) fn try_start(work: impl FnOnce() + Send + 'static) -> Result<(), Busy> {
    BLOCKING.submit(Box::new(work), WhenFull::Refuse)
}

impl<T> Slot<T> {
    fn outcome(&self) -> MutexGuard<'_, Option<Outcome<T>>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    const fn new(purpose: &'static str, thread_name: &'static str, most_threads: usize) -> Pool {
        Pool {
            purpose,
            thread_name,
            most_threads,
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                threads: 0,
                idle: 0,
            }),
            work: Condvar::new(),
        }
    }

    fn run<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> T + Send + 'static,
        when_full: WhenFull,
    ) -> Result<T, Busy> {
        if current().is_none() {
            return Ok(work());
        }
        let parker = Parker::new();
        let slot = Arc::new(Slot {
            outcome: Mutex::new(None),
            given_up: AtomicBool::new(false),
        });
        let (theirs, their_parker) = (Arc::clone(&slot), parker.clone());
        let job = Box::new(move || {
            if theirs.given_up.load(Ordering::Relaxed) {
                return;
            }
            let result = panic::catch_unwind(panic::AssertUnwindSafe(work));
            *theirs.outcome() = Some(result);
            their_parker.unpark();
        });
        self.submit(job, when_full)?;
        let _caller = Caller(&slot.given_up);
        loop {
            parker.park();
            let outcome = slot.outcome().take();
            if let Some(outcome) = outcome {
                return Ok(outcome.unwrap_or_else(|payload| panic::resume_unwind(payload)));
            }
        }
    }

    /// Puts the job at the end of the line.
    // Who submits waits for the result anyway. So one that is to wait for room does so in the line
    // itself, where nobody overtakes it, and the line is bounded by the number of coroutines.
    fn submit(&'static self, job: Job, when_full: WhenFull) -> Result<(), Busy> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(when_full, WhenFull::Refuse) && state.jobs.len() >= MOST_WAITING {
            return Err(Busy);
        }
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() || state.threads == self.most_threads {
            self.work.notify_one();
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        let thread = std::thread::Builder::new().name(self.thread_name.to_owned());
        if let Err(error) = thread.spawn(|| self.serve()) {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.threads -= 1;
            if state.threads == 0 {
                // Nobody would ever do it: a slow answer is better than none.
                log::error!(
                    "no thread for {} ({error}); it is done on a worker, which is slow",
                    self.purpose
                );
                while let Some(job) = state.jobs.pop_front() {
                    drop(state);
                    job();
                    state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
        Ok(())
    }

    /// The life of one thread.
    fn serve(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            while let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A panic of work that nobody waits for must not take the thread along: it would be
                // counted for ever.
                let _ = panic::catch_unwind(panic::AssertUnwindSafe(job));
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

    /// A pool of its own, for the other tests need theirs.
    fn pool_of(most_threads: usize) -> &'static Pool {
        Box::leak(Box::new(Pool::new("tests", "test-pool", most_threads)))
    }

    #[test]
    fn blocking_work_does_not_hold_the_worker() {
        home::start_for_tests();
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
    fn what_comes_past_a_full_line_is_refused_or_waits() {
        home::start_for_tests();
        let pool: &'static Pool = pool_of(MOST_THREADS);
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let (started, starts) = mpsc::channel();
        let (done, results) = mpsc::channel();
        let job = |when_full| {
            let (gate, started, done) = (Arc::clone(&gate), started.clone(), done.clone());
            let work = move || {
                let _ = started.send(());
                // Ends when the sender is gone.
                gate.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .recv()
                    .is_err()
            };
            home::spawn(0, "test", move || {
                done.send(pool.run(work, when_full)).unwrap();
            })
            .unwrap();
        };
        let waiting = || pool.state.lock().unwrap().jobs.len();
        for _ in 0..MOST_THREADS {
            job(WhenFull::Refuse);
        }
        for _ in 0..MOST_THREADS {
            starts.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        for _ in 0..MOST_WAITING {
            job(WhenFull::Refuse);
        }
        while waiting() < MOST_WAITING {
            std::thread::yield_now();
        }
        assert!(results.try_recv().is_err());
        job(WhenFull::Refuse);
        let refused = results.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(refused, Err(Busy));
        job(WhenFull::Wait);
        while waiting() <= MOST_WAITING {
            std::thread::yield_now();
        }
        assert_eq!(pool.state.lock().unwrap().threads, MOST_THREADS);
        drop(release);
        for _ in 0..MOST_THREADS + MOST_WAITING + 1 {
            let result = results.recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!(result, Ok(true));
        }
        job(WhenFull::Refuse);
        let result = results.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(result, Ok(true));
    }

    #[test]
    fn no_more_computes_at_once_than_there_are_threads_for() {
        home::start_for_tests();
        let pool = pool_of(2);
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let (started, starts) = mpsc::channel();
        let (done, results) = mpsc::channel();
        for number in 0..3 {
            let (gate, started, done) = (Arc::clone(&gate), started.clone(), done.clone());
            home::spawn(0, "test", move || {
                let work = move || {
                    started.send(number).unwrap();
                    gate.lock().unwrap().recv().is_err()
                };
                done.send(pool.run(work, WhenFull::Wait)).unwrap();
            })
            .unwrap();
        }
        for _ in 0..2 {
            starts.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        while pool.state.lock().unwrap().jobs.is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(pool.state.lock().unwrap().threads, 2);
        assert!(starts.try_recv().is_err(), "the third waits for its turn");
        drop(release);
        for _ in 0..3 {
            let result = results.recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!(result, Ok(true));
        }
        starts.recv_timeout(Duration::from_secs(60)).unwrap();
    }

    #[test]
    fn computing_work_has_threads_of_its_own_and_is_called_at_once_on_one_of_either_pool() {
        home::start_for_tests();
        let (done, results) = mpsc::channel();
        home::spawn(0, "test", move || {
            let here = || std::thread::current().name().map(str::to_owned);
            let seen = computing(move || (here(), computing(here), blocking(here)));
            done.send(seen).unwrap();
            let seen = blocking(move || (here(), computing(here), blocking(here)));
            done.send(seen).unwrap();
        })
        .unwrap();
        for name in ["cloudgate-computing", "cloudgate-blocking"] {
            let name = Some(name.to_owned());
            let seen = results.recv_timeout(Duration::from_secs(30)).unwrap();
            assert_eq!(seen, (name.clone(), name.clone(), name));
        }
    }

    #[test]
    fn a_value_is_dropped_elsewhere_and_not_waited_for() {
        struct Slow(mpsc::Receiver<()>, mpsc::Sender<Option<usize>>);
        impl Drop for Slow {
            fn drop(&mut self) {
                let _ = self.0.recv();
                let _ = self.1.send(home::current());
            }
        }
        home::start_for_tests();
        let (release, gate) = mpsc::channel();
        let (done, results) = mpsc::channel();
        home::spawn(0, "test", move || {
            drop_elsewhere(Slow(gate, done));
            // Only now can the drop end.
            release.send(()).unwrap();
        })
        .unwrap();
        assert_eq!(results.recv_timeout(Duration::from_secs(30)).unwrap(), None);
    }

    #[test]
    fn work_of_a_caller_that_is_late_ends_if_it_has_begun_and_is_not_begun_else() {
        home::start_for_tests();
        let pool: &'static Pool = pool_of(MOST_THREADS);
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let (ended, ends) = mpsc::channel();
        let (late, lates) = mpsc::channel();
        // One more than there are threads.
        for number in 0..=MOST_THREADS {
            let (gate, ended, late) = (Arc::clone(&gate), ended.clone(), late.clone());
            home::spawn(0, "test", move || {
                let outcome = home::within(Duration::from_millis(200), || {
                    pool.run(
                        move || {
                            let released = gate.lock().unwrap().recv().is_err();
                            ended.send((number, released)).unwrap();
                        },
                        WhenFull::Wait,
                    )
                });
                late.send(outcome).unwrap();
            })
            .unwrap();
        }
        for _ in 0..=MOST_THREADS {
            let outcome = lates.recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!(outcome, Err(home::Late));
        }
        drop((release, ended));
        let mut done: Vec<_> = ends.iter().collect();
        done.sort_unstable();
        let begun: Vec<_> = (0..MOST_THREADS).map(|number| (number, true)).collect();
        assert_eq!(done, begun);
    }

    #[test]
    fn work_that_nobody_waits_for_is_done_and_its_panic_costs_no_thread() {
        let pool: &'static Pool = pool_of(MOST_THREADS);
        let (done, results) = mpsc::channel();
        for number in 0..2 * MOST_THREADS {
            let done = done.clone();
            let job = move || {
                done.send(number).unwrap();
                panic::resume_unwind(Box::new("nobody sees it"));
            };
            pool.submit(Box::new(job), WhenFull::Refuse).unwrap();
        }
        let mut seen: Vec<_> = (0..2 * MOST_THREADS)
            .map(|_| results.recv_timeout(Duration::from_secs(60)).unwrap())
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..2 * MOST_THREADS).collect::<Vec<_>>());
        let begin = std::time::Instant::now();
        loop {
            let state = pool.state.lock().unwrap();
            if state.idle == state.threads && state.threads > 0 {
                break;
            }
            drop(state);
            assert!(begin.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        home::start_for_tests();
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
