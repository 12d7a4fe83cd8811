//! How does a wait end whose caller has no time left?
//!
//! A coroutine cannot be stopped from outside, but each of its waits can end. So [`within`] notes a
//! limit for the calling coroutine. The note stands on the worker's post while the coroutine has a
//! turn, and goes with it into a wait and back, as its label does. A wait under a limit leaves word
//! where it can be woken, and the timer wakes it when the time is up. A wait that finds itself late
//! unwinds the stack to [`within`], without the panic hook and with all destructors; waits in
//! destructors that run meanwhile are not cut.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::agent::{Parker, Waker};
use super::timer::{self, Alarm};
use super::{current, watchdog};

/// How soon a late wait is looked at again that could not be cut.
const AGAIN: Duration = Duration::from_millis(20);

/// The work did not end within its limit, and was unwound in one of its waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late;

/// Calls `work`, whose waits end when it has taken longer than `limit`; then its stack is unwound.
///
/// Work that ends late without a wait on the way is given back all the same. Inside another limit the
/// earlier one counts. On a thread that is no worker the work runs to its end.
///
/// # Errors
/// [`Late`] when the work was unwound.
pub(crate) fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> Result<T, Late> {
    let (Some(worker), Some(due)) = (current(), Instant::now().checked_add(limit)) else {
        return Ok(work());
    };
    let note = watchdog::post(worker).limit();
    let outer = note.take();
    if outer.as_ref().is_some_and(|outer| outer.due <= due) {
        note.put(outer);
        return Ok(work());
    }
    let limit = Arc::new(Limit {
        due,
        state: Mutex::default(),
    });
    note.put(Some(Arc::clone(&limit)));
    let replaced = Replaced { note, outer };
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    drop(replaced);
    // The timer must not keep what nobody waits for.
    let alarm = limit.lock().alarm.take();
    drop(alarm);
    outcome.map_err(|payload| match payload.downcast_ref::<Unwound>() {
        Some(Unwound(whose)) if Arc::ptr_eq(whose, &limit) => Late,
        _ => panic::resume_unwind(payload),
    })
}

/// Calls `work`, whose waits no limit of the caller ends: for what must not stop in the middle.
pub(crate) fn unlimited<T>(work: impl FnOnce() -> T) -> T {
    let Some(worker) = current() else {
        return work();
    };
    let note = watchdog::post(worker).limit();
    let outer = note.take();
    let _replaced = Replaced { note, outer };
    work()
}

/// Unwinds the calling coroutine to its limit if that has passed.
pub(crate) fn unwind_if_late() {
    let Some(worker) = current() else { return };
    if let Some(limit) = watchdog::post(worker).limit().get()
        && limit.must_end()
    {
        unwind(limit);
    }
}

/// Whether a payload unwinds the caller to a limit that it runs under.
pub(super) fn is_passing(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Unwound>()
        && current().is_some_and(|worker| watchdog::post(worker).limit().get().is_some())
}

/// What a stack is unwound with: the limit that it is unwound to.
struct Unwound(Arc<Limit>);

#[cold]
fn unwind(limit: Arc<Limit>) -> ! {
    panic::resume_unwind(Box::new(Unwound(limit)))
}

/// Puts the limit of before in its place again, also when the stack is unwound.
struct Replaced {
    note: &'static Note,
    outer: Option<Arc<Limit>>,
}

impl Drop for Replaced {
    fn drop(&mut self) {
        self.note.take();
        self.note.put(self.outer.take());
    }
}

/// The limit of the coroutine that has a turn. Only its worker looks here.
#[derive(Default)]
pub(super) struct Note {
    /// Whether there is one: what those without a limit ask costs them no lock.
    any: AtomicBool,
    limit: Mutex<Option<Arc<Limit>>>,
}

impl Note {
    fn take(&self) -> Option<Arc<Limit>> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        self.any.store(false, Ordering::Relaxed);
        self.lock().take()
    }

    fn put(&self, limit: Option<Arc<Limit>>) {
        if limit.is_some() {
            *self.lock() = limit;
            self.any.store(true, Ordering::Relaxed);
        }
    }

    fn get(&self) -> Option<Arc<Limit>> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Limit>>> {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a coroutine waits.
pub(super) enum Place {
    Parked(Parker),
    AtSocket(Waker),
}

/// The limit of a coroutine in a wait, taken along from its worker's post.
pub(super) struct Waiting(Option<Arc<Limit>>);

impl Waiting {
    /// Takes the limit along from the post; says whether there is time left to wait at `place`.
    pub(super) fn begin(note: &Note, place: impl FnOnce() -> Place) -> (Waiting, bool) {
        let limit = note.take();
        let may_wait = limit.as_ref().is_none_or(|limit| limit.wait_at(place));
        (Waiting(limit), may_wait)
    }

    /// Puts the limit back on the post, for the wait is over.
    pub(super) fn end(self, note: &Note) -> Waited {
        let Some(limit) = self.0 else {
            return Waited(None);
        };
        limit.lock().place = None;
        let late = limit.must_end().then(|| Arc::clone(&limit));
        note.put(Some(limit));
        Waited(late)
    }
}

/// What a wait under a limit has come to.
#[must_use]
pub(super) struct Waited(Option<Arc<Limit>>);

impl Waited {
    /// Unwinds the caller if it is late.
    pub(super) fn unwind_if_late(self) {
        if let Some(limit) = self.0 {
            unwind(limit);
        }
    }
}

/// A point in time past which the waits of a coroutine end.
pub(super) struct Limit {
    due: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    place: Option<Place>,
    /// Set with the first wait, so that work without one never troubles the timer.
    alarm: Option<Alarm>,
}

impl Limit {
    /// Wakes the coroutine where it waits, for its time is up.
    pub(super) fn ring(&self) {
        let mut state = self.lock();
        let (alarm, place) = (state.alarm.take(), state.place.take());
        match place {
            Some(Place::Parked(parker)) => parker.unpark(),
            Some(Place::AtSocket(waker)) => waker.wake(),
            None => {}
        }
        drop(state);
        drop(alarm);
    }

    /// Notes where the coroutine is to be woken, unless its time is up already.
    fn wait_at(self: &Arc<Self>, place: impl FnOnce() -> Place) -> bool {
        let now = Instant::now();
        if now >= self.due && self.must_end() {
            return false;
        }
        let mut state = self.lock();
        state.place = Some(place());
        if state.alarm.is_none() {
            let due = if now < self.due {
                self.due
            } else {
                now + AGAIN
            };
            state.alarm = Some(timer::ring_at(due, Arc::clone(self)));
        }
        true
    }

    /// Whether the time is up and the stack can be unwound.
    fn must_end(&self) -> bool {
        // A destructor that waits while the stack is unwound must be left alone: unwinding out of it
        // ends the process. Where it is another coroutine of this thread that unwinds, the wait is
        // looked at again a moment later.
        Instant::now() >= self.due && !thread::panicking()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
