//! Which route holds its worker up?
//!
//! A worker serves many connections, and a handler that computes, or waits in somebody else's call,
//! holds all of them up. So each worker has a [`Post`]: who runs, and a number that changes at every
//! turn. The thread that ticks for the deadlines looks at the posts too; one that shows the same turn
//! for too long is reported, once, while the handler is still at it. No clock is read for that on a
//! worker, and a request costs a few stores.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::limit::{Note, Place, Waited, Waiting};
use super::{RUNTIME, current};

/// How long a handler may hold its worker. With a look every 50 ms it is reported 100 to 150 ms after
/// its turn began, so a shorter one never is, and one of 150 ms always.
const MOST: Duration = Duration::from_millis(100);

/// A name that is shown when a worker is held up: small, to be noted with one store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Label(u32);

/// Nobody who could be named: no handler runs.
const NOBODY: Label = Label(0);

static LABELS: LazyLock<Mutex<HashMap<String, u32>>> = LazyLock::new(Mutex::default);

impl Label {
    /// The label for this name: the same one for the same name.
    pub(crate) fn new(name: String) -> Label {
        let mut labels = LABELS.lock().unwrap_or_else(PoisonError::into_inner);
        let next = u32::try_from(labels.len() + 1).unwrap_or(u32::MAX);
        Label(*labels.entry(name).or_insert(next))
    }

    fn name(self) -> String {
        let labels = LABELS.lock().unwrap_or_else(PoisonError::into_inner);
        labels
            .iter()
            .find(|(_, label)| **label == self.0)
            .map_or_else(|| "a handler".to_owned(), |(name, _)| name.clone())
    }
}

/// What a worker shows to the watchdog. Only the worker writes, so there is nothing to contend for.
// A cache line of its own for each worker, with the one that is fetched along.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Post {
    turn: AtomicU64,
    label: AtomicU32,
    /// Not the watchdog's: it goes the same way at the same time.
    limit: Note,
}

/// What a coroutine takes along into a wait.
pub(super) struct Paused {
    label: Label,
    limit: Waiting,
}

impl Post {
    fn begin(&self, label: Label) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn.wrapping_add(1), Ordering::Relaxed);
        // Who sees the label sees its turn, or a later one.
        self.label.store(label.0, Ordering::Release);
    }

    /// Notes that the running coroutine waits at a place, and gives what it needs for
    /// [`Post::resume`]; the second value says whether its limit leaves it the time to.
    pub(super) fn pause(&self, place: impl FnOnce() -> Place) -> (Paused, bool) {
        let label = Label(self.label.load(Ordering::Relaxed));
        self.label.store(NOBODY.0, Ordering::Relaxed);
        let (limit, may_wait) = Waiting::begin(&self.limit, place);
        (Paused { label, limit }, may_wait)
    }

    /// Notes that the coroutine that paused with this has a turn again.
    pub(super) fn resume(&self, paused: Paused) -> Waited {
        self.begin(paused.label);
        paused.limit.end(&self.limit)
    }

    /// The limit of the running coroutine.
    pub(super) fn limit(&self) -> &Note {
        &self.limit
    }
}

/// The post of this worker.
pub(super) fn post(worker: usize) -> &'static Post {
    &super::runtime().posts[worker]
}

/// As long as it lives, the calling coroutine goes by its label. It may wait meanwhile.
pub(crate) struct Watched(Option<(&'static Post, Label)>);

/// Watches the calling coroutine; a thread that is no worker may take as long as it likes.
pub(crate) fn watch(label: Label) -> Watched {
    Watched(current().map(|worker| {
        let post = post(worker);
        let before = Label(post.label.load(Ordering::Relaxed));
        post.begin(label);
        (post, before)
    }))
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some((post, before)) = self.0 {
            // Not another turn: what the outer one took so far counts on.
            post.label.store(before.0, Ordering::Relaxed);
        }
    }
}

/// What the last looks at one worker showed.
#[derive(Clone, Copy, Debug)]
struct Seen {
    turn: u64,
    since: Instant,
    told: bool,
}

impl Seen {
    /// Looks at the post; says once who holds it for too long, and for how long at least.
    fn look(&mut self, post: &Post, now: Instant) -> Option<(Label, Duration)> {
        let label = Label(post.label.load(Ordering::Acquire));
        let turn = post.turn.load(Ordering::Relaxed);
        if label == NOBODY || turn != self.turn {
            *self = Seen {
                turn,
                since: now,
                told: false,
            };
            return None;
        }
        let held = now.saturating_duration_since(self.since);
        if held < MOST || self.told {
            return None;
        }
        self.told = true;
        Some((label, held))
    }
}

/// Looks at all workers and warns of those that are held up. To be called every 50 ms or so.
pub(crate) fn sample() {
    static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());
    let Some(runtime) = RUNTIME.get() else { return };
    // With several servers in the process their sweepers take turns.
    let Ok(mut seen) = SEEN.try_lock() else {
        return;
    };
    let now = Instant::now();
    let fresh = Seen {
        turn: 0,
        since: now,
        told: false,
    };
    seen.resize(runtime.posts.len(), fresh);
    for (seen, post) in seen.iter_mut().zip(&runtime.posts) {
        if let Some((label, held)) = seen.look(post, now) {
            log::warn!(
                "{} has held its worker for {} ms without waiting, and so all connections of that worker: \
                 write #[route(..., blocking)], or put what takes long into cloudgate::blocking",
                label.name(),
                held.as_millis()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::home;
    use std::sync::mpsc;

    const TICK: Duration = Duration::from_millis(50);

    fn pause(post: &Post) -> Paused {
        post.pause(|| Place::Parked(home::Parker::new())).0
    }

    fn fresh(now: Instant) -> Seen {
        Seen {
            turn: 0,
            since: now,
            told: false,
        }
    }

    #[test]
    fn the_same_name_has_the_same_label() {
        let label = Label::new("GET /watchdog/name (a.rs:1)".to_owned());
        assert_eq!(label, Label::new("GET /watchdog/name (a.rs:1)".to_owned()));
        assert_ne!(label, Label::new("GET /watchdog/other (a.rs:2)".to_owned()));
        assert_ne!(label, NOBODY);
        assert_eq!(label.name(), "GET /watchdog/name (a.rs:1)");
    }

    #[test]
    fn a_turn_is_told_of_once_when_its_time_is_up() {
        let (post, begin) = (Post::default(), Instant::now());
        let mut seen = fresh(begin);
        post.begin(Label(7));
        assert_eq!(seen.look(&post, begin), None);
        assert_eq!(
            seen.look(&post, begin + MOST - Duration::from_nanos(1)),
            None
        );
        assert_eq!(seen.look(&post, begin + MOST), Some((Label(7), MOST)));
        assert_eq!(seen.look(&post, begin + MOST * 20), None);
        // It waited and then took its time again: that is another occurrence.
        let _ = post.resume(pause(&post));
        let again = begin + MOST * 21;
        assert_eq!(seen.look(&post, again), None);
        assert_eq!(seen.look(&post, again + MOST), Some((Label(7), MOST)));
    }

    #[test]
    fn nobody_is_told_of_who_waits_or_is_quick() {
        let (post, mut now) = (Post::default(), Instant::now());
        let mut seen = fresh(now);
        // A busy worker whose every look shows the same route, each time in another turn.
        for _ in 0..100 {
            post.begin(Label(7));
            assert_eq!(seen.look(&post, now), None);
            now += TICK;
        }
        let paused = pause(&post);
        for _ in 0..100 {
            assert_eq!(seen.look(&post, now), None);
            now += TICK;
        }
        assert_eq!(paused.label, Label(7));
    }

    #[test]
    fn a_coroutine_has_its_label_again_after_each_kind_of_wait() {
        home::start_for_tests();
        let (done, results) = mpsc::channel();
        for number in 0..8_usize {
            let done = done.clone();
            let home = number % 2;
            home::spawn(home, "test", move || {
                let label = Label::new(format!("coroutine {number}"));
                let shown = || Label(post(home).label.load(Ordering::Relaxed));
                let outer = watch(label);
                for round in 0..60 {
                    match round % 3 {
                        0 => home::sleep(Duration::from_micros(20)),
                        1 => home::yield_now(),
                        _ => home::blocking(|| ()),
                    }
                    assert_eq!(shown(), label);
                    let inner = Label::new("inner".to_owned());
                    let watched = watch(inner);
                    home::yield_now();
                    assert_eq!(shown(), inner);
                    drop(watched);
                    assert_eq!(shown(), label);
                }
                drop(outer);
                assert_eq!(shown(), NOBODY);
                done.send(()).unwrap();
            })
            .unwrap();
        }
        for _ in 0..8 {
            results.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    }
}
