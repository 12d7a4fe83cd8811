//! How does a coroutine stay on the thread where it began?
//!
//! `may` moves coroutines between threads whenever something other than their own descriptor
//! wakes them, and the compiler may keep the address of a thread-local across the move. So here:
//!
//! - each coroutine has a *home worker*; it waits only on descriptors whose number is congruent to
//!   that worker, since `may` polls descriptor `n` on worker `n % workers` ([`Socket`]);
//! - a wake-up from anywhere else goes through the home worker's inbox, and that worker's *agent*
//!   coroutine makes it there ([`Waker`]).
//!
//! This module and its parts are the only code that names `may`. Each resume compares the
//! worker with the home: should another crate have switched `may`'s `work_steal` feature on, the
//! first stolen coroutine ends the process with one clear line.

mod agent;
mod blocking;
mod channel;
mod limit;
mod notify;
mod socket;
mod timer;
pub(crate) mod watchdog;

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use agent::{Parker, Waker};
pub use blocking::{Busy, blocking, try_blocking};
pub(crate) use blocking::{
    computing, drop_elsewhere, start as start_work, try_start as try_start_work,
};
pub use channel::{Receiver, RecvError, SendError, Sender, channel};
pub(crate) use limit::{Late, unlimited, unwind_if_late, within};
pub use notify::Notify;
pub(crate) use socket::{Socket, move_to, try_move_to};
pub use timer::{sleep, yield_now};

/// How the process runs its workers. The first server of a process decides, for all.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Number of worker threads.
    pub workers: usize,
    /// Address space of one coroutine's stack in bytes; only what is touched becomes resident.
    pub stack_bytes: usize,
    /// Whether each worker stays on one core: 6 to 17 % more requests on a quiet machine, harmful
    /// on a shared one.
    pub pin_workers: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            // JSON of the deepest nesting that serde_json reads takes 247 KiB in a debug build.
            stack_bytes: if cfg!(debug_assertions) {
                1 << 20
            } else {
                512 << 10
            },
            pin_workers: false,
        }
    }
}

/// How many stacks are kept for the next coroutines. One costs about 10 KiB of resident memory while
/// it is kept, and 17 µs to map again when it is not.
const POOLED_STACKS: usize = 256;

struct Runtime {
    settings: Settings,
    agents: Vec<agent::Agent>,
    posts: Vec<watchdog::Post>,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();
static STARTING: std::sync::Mutex<()> = std::sync::Mutex::new(());
static THREAD_CHANGES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The worker that this thread is; set once by the worker's agent and never changed.
    static WORKER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Starts the workers unless they run already; says which settings are in force.
///
/// # Errors
/// When the system gives no event descriptors, threads or stacks.
pub fn start(settings: Settings) -> io::Result<Settings> {
    let _starting = STARTING
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime.settings);
    }
    let settings = Settings {
        workers: settings.workers.max(1),
        ..settings
    };
    may::config()
        .set_workers(settings.workers)
        .set_stack_size(settings.stack_bytes / size_of::<usize>())
        .set_pool_capacity(POOLED_STACKS)
        .set_worker_pin(settings.pin_workers);
    let agents = (0..settings.workers)
        .map(|worker| agent::Agent::new(worker, settings.workers))
        .collect::<io::Result<Vec<_>>>()?;
    let posts = (0..settings.workers).map(|_| watchdog::Post::default());
    let runtime = RUNTIME.get_or_init(|| Runtime {
        settings,
        agents,
        posts: posts.collect(),
    });
    for (worker, agent) in runtime.agents.iter().enumerate() {
        spawn(worker, "agent", move || agent.run(worker))?;
    }
    Ok(settings)
}

/// How many workers run; 1 before [`start`].
pub fn workers() -> usize {
    RUNTIME.get().map_or(1, |runtime| runtime.settings.workers)
}

/// Whether workers run.
pub(crate) fn is_running() -> bool {
    RUNTIME.get().is_some()
}

/// How often a coroutine was found away from its home worker. Anything but 0 is a broken build.
pub fn thread_changes() -> u64 {
    THREAD_CHANGES.load(Ordering::Relaxed)
}

/// The worker of the calling coroutine; `None` on a thread that is no worker.
// Never inlined: the address of the thread-local must not be kept across a wait of the caller.
#[inline(never)]
pub(crate) fn current() -> Option<usize> {
    WORKER.get()
}

#[inline(never)]
fn become_worker(worker: usize) {
    WORKER.set(Some(worker));
}

/// Checks after a wait that the coroutine is where it belongs.
fn check_home(home: usize) {
    if current() != Some(home) {
        stolen(home);
    }
}

#[cold]
#[allow(
    clippy::print_stderr,
    reason = "the process ends; a log that waits for a thread would be lost"
)]
fn stolen(home: usize) {
    THREAD_CHANGES.fetch_add(1, Ordering::Relaxed);
    eprintln!(
        "cloudgate: a coroutine of worker {home} woke on another thread, which is undefined behaviour. \
         Some crate of this build switched on the feature \"work_steal\" of the crate may: \
         find it with `cargo tree -e features -i may` and take it with default-features = false."
    );
    std::process::exit(1);
}

/// Starts a coroutine on its home worker.
///
/// # Errors
/// When there is no memory or no memory mapping left for its stack.
pub(crate) fn spawn(
    worker: usize,
    name: &'static str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    // may panics where a stack cannot be mapped, which must not end the caller.
    let spawned = panic::catch_unwind(AssertUnwindSafe(|| {
        let builder = may::coroutine::Builder::new()
            .name(name.to_owned())
            .id(worker);
        may::go!(builder, body)
    }));
    match spawned {
        Ok(result) => result.map(drop),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            "no stack for another coroutine",
        )),
    }
}

/// Calls `body` and gives the payload of a panic in it, but lets a coroutine go on unwinding that is
/// being cancelled, or whose time is up.
pub(crate) fn catch_panic<T>(body: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    panic::catch_unwind(AssertUnwindSafe(body)).map_err(|payload| {
        let cancelled = matches!(payload.downcast_ref(), Some(generator::Error::Cancel));
        if cancelled || limit::is_passing(&*payload) {
            panic::resume_unwind(payload)
        }
        payload
    })
}

fn runtime() -> &'static Runtime {
    RUNTIME
        .get()
        .expect("wake-ups and sockets exist only after home::start")
}

/// Starts the workers of a test binary; says how many there are.
#[cfg(test)]
pub(crate) fn start_for_tests() -> usize {
    start(Settings {
        workers: 2,
        ..Settings::default()
    })
    .expect("two workers")
    .workers
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    #[test]
    fn coroutines_stay_home_through_sleeps_wakes_and_blocking_work() {
        let workers = start_for_tests();
        let (done, results) = mpsc::channel();
        for coroutine in 0..16 {
            let done = done.clone();
            let home = coroutine % workers;
            spawn(home, "test", move || {
                for round in 0..200 {
                    match round % 3 {
                        0 => sleep(Duration::from_micros(50)),
                        1 => yield_now(),
                        _ => assert_eq!(blocking(move || round + 1), round + 1),
                    }
                    assert_eq!(current(), Some(home));
                }
                done.send(()).unwrap();
            })
            .unwrap();
        }
        for _ in 0..16 {
            results.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        assert_eq!(thread_changes(), 0);
    }

    #[test]
    fn sleeping_takes_its_time_and_holds_nobody_up() {
        start_for_tests();
        let (done, results) = mpsc::channel();
        let begin = Instant::now();
        for _ in 0..50 {
            let done = done.clone();
            spawn(0, "test", move || {
                sleep(Duration::from_millis(60));
                done.send(begin.elapsed()).unwrap();
            })
            .unwrap();
        }
        for _ in 0..50 {
            let elapsed = results.recv_timeout(Duration::from_secs(60)).unwrap();
            assert!(elapsed >= Duration::from_millis(60), "{elapsed:?}");
        }
        // 50 of them one after the other would take three seconds.
        assert!(begin.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn a_panic_is_caught_with_its_payload() {
        start_for_tests();
        let payload = catch_panic(|| panic::resume_unwind(Box::new("boom"))).unwrap_err();
        assert_eq!(payload.downcast_ref(), Some(&"boom"));
        assert_eq!(catch_panic(|| 7).unwrap(), 7);
    }
}
