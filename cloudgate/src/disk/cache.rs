//! How does a worker get what is kept without waiting for the other workers?

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::flight::{Flight, Flights};
use super::store::{Entry, Left, Store};
#[cfg(target_os = "linux")]
use super::watch;
use super::{ByForm, Key};
#[cfg(test)]
use crate::message::clock::Clock;
use crate::message::clock::nanoseconds;
use crate::net::home;

/// How long after a comparison with the disk an entry may be given out, in nanoseconds.
const FRESH: u64 = 1_000_000_000;

/// How long after a comparison the next request starts another one, without waiting for it.
const COMPARE_AFTER: u64 = FRESH / 2;

/// A value that takes more than one part in so many of the room is not kept.
const LARGEST_PART: u64 = 4;

/// How many shares there are: more than most machines have workers, and no more than the holders' bits.
/// The worker count may be settled later. The last one is for threads that are no worker.
const SHARES: usize = 64;

/// Makes values of what is on the disk. `load`, `is_current` and `folders` run where blocking is allowed.
pub(crate) trait Load: Send + Sync + 'static {
    /// What is kept for a key. That there is no such file may be a value as well.
    type Value: Send + Sync + 'static;

    /// Reads it.
    ///
    /// # Errors
    /// What is not kept: the next request loads again.
    fn load(&self, key: Key<'_>) -> io::Result<Self::Value>;

    /// Whether the value is what `load` would give now.
    fn is_current(&self, key: Key<'_>, value: &Self::Value) -> bool;

    /// As [`Load::is_current`], for a worker: `None` where the answer would have to be waited for.
    fn is_current_at_once(&self, _key: Key<'_>, _value: &Self::Value) -> Option<bool> {
        None
    }

    /// The bytes that it holds; `u64::MAX` for what is not to be kept.
    fn cost(&self, value: &Self::Value) -> u64;

    /// A copy that shares no reference count with the copies of other workers. It is made on the worker, so
    /// it has to be quick.
    fn for_worker(&self, value: &Self::Value) -> Self::Value;

    /// The absolute folders in which a change concerns this key.
    fn folders(&self, _key: Key<'_>) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Values by key, bounded by bytes, and right to the second; see the picture of this module.
pub(crate) struct Cache<L: Load>(Arc<Inner<L>>);

/// What the work on other threads needs of the cache.
pub(super) struct Inner<L: Load> {
    loader: L,
    shares: Vec<Share<L::Value>>,
    store: Mutex<Store<L::Value>>,
    flights: Flights<Landing<L::Value>>,
    most_bytes: u64,
    /// Whether it has asked for folders to be watched.
    watches: AtomicBool,
    #[cfg(test)]
    clock: Option<Clock>,
}

/// What one worker has of the store. Its lock is taken by others only to remove something, and two never
/// lie on one cache line.
#[repr(align(128))]
struct Share<V>(Mutex<ByForm<Held<V>>>);

struct Held<V> {
    value: Arc<V>,
    entry: Arc<Entry<V>>,
}

/// What came of a flight.
enum Landing<V> {
    Kept(Arc<Entry<V>>),
    /// Too large to be kept.
    Given(Arc<V>),
    Failed(Arc<io::Error>),
    /// It never began: look again.
    Again,
}

impl<V> Clone for Landing<V> {
    fn clone(&self) -> Landing<V> {
        match self {
            Landing::Kept(entry) => Landing::Kept(Arc::clone(entry)),
            Landing::Given(value) => Landing::Given(Arc::clone(value)),
            Landing::Failed(error) => Landing::Failed(Arc::clone(error)),
            Landing::Again => Landing::Again,
        }
    }
}

impl<L: Load> Cache<L> {
    /// An empty cache that holds up to `most_bytes`, all workers together.
    pub(crate) fn new(loader: L, most_bytes: u64) -> Cache<L> {
        let share = || Share(Mutex::default());
        Cache(Arc::new(Inner {
            loader,
            shares: (0..SHARES).map(|_| share()).collect(),
            store: Mutex::new(Store::new(most_bytes)),
            flights: Flights::new(),
            most_bytes,
            watches: AtomicBool::new(false),
            #[cfg(test)]
            clock: None,
        }))
    }

    /// What makes the values.
    pub(crate) fn loader(&self) -> &L {
        &self.0.loader
    }

    /// The value for this key, as the disk was at most a second ago. While it is not there, the calling
    /// coroutine waits and its worker serves others.
    ///
    /// # Errors
    /// What [`Load::load`] gives; everyone who waited for the same load gets the same error.
    pub(crate) fn get(&self, key: Key<'_>) -> io::Result<Arc<L::Value>> {
        let inner = &self.0;
        loop {
            let share = home::current().map_or(SHARES - 1, |worker| worker % (SHARES - 1));
            let now = inner.now();
            if let Some(value) = inner.shares[share].find(key, now) {
                return Ok(value);
            }
            let stored = inner.store().look(key).cloned();
            if let Some(entry) = stored
                && inner.is_right(key, &entry, now)
            {
                entry.note_use();
                return Ok(inner.hold(share, &entry));
            }
            match inner.bring(key) {
                Landing::Kept(entry) => return Ok(inner.hold(share, &entry)),
                Landing::Given(value) => return Ok(Arc::new(inner.loader.for_worker(&value))),
                Landing::Failed(error) => return Err(copy(&error)),
                Landing::Again => {}
            }
        }
    }

    /// Forgets a name in all its forms, for all workers.
    #[allow(dead_code, reason = "for users that change files themselves")]
    pub(crate) fn forget(&self, name: &str) {
        let left = self.0.store().forget(name);
        self.0.take_from_shares(&left);
    }
}

impl<L: Load> Inner<L> {
    fn now(&self) -> u64 {
        #[cfg(test)]
        if let Some(clock) = &self.clock {
            return clock.now();
        }
        now()
    }

    fn store(&self) -> MutexGuard<'_, Store<L::Value>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The share's own copy of the entry's value; kept in the share as long as the store has the entry.
    fn hold(&self, share: usize, entry: &Arc<Entry<L::Value>>) -> Arc<L::Value> {
        if let Some(value) = self.shares[share].copy_of(entry) {
            return value;
        }
        let value = Arc::new(self.loader.for_worker(&entry.value));
        // Whoever removes the entry marks it as gone, then takes it out of all shares that are noted as
        // its holders: so it is noted first, and put in only while it is not marked.
        let held = self.store().hold(entry, share);
        if let Some(left) = held {
            self.shares[share].put(entry, &value);
            self.take_from_shares(&left);
        }
        value
    }

    fn take_from_shares(&self, left: &Left<L::Value>) {
        for entry in left {
            for share in entry.holders() {
                self.shares[share].remove(entry);
            }
        }
    }

    /// Whether the entry can be given out. One that ages is compared with the disk: here, if that takes no
    /// waiting, and else meanwhile by somebody who may wait.
    fn is_right(self: &Arc<Self>, key: Key<'_>, entry: &Arc<Entry<L::Value>>, now: u64) -> bool {
        let age = entry.age(now);
        if age < COMPARE_AFTER {
            return true;
        }
        match self.loader.is_current_at_once(key, &entry.value) {
            Some(true) => {
                entry.checked.store(now, Ordering::SeqCst);
                true
            }
            Some(false) => {
                if self.store().remove(entry) {
                    self.take_from_shares(&vec![Arc::clone(entry)]);
                }
                false
            }
            None if age < FRESH => {
                self.compare_meanwhile(key);
                true
            }
            None => false,
        }
    }

    /// Compares or loads on a thread that may block, and waits for it.
    fn bring(self: &Arc<Self>, key: Key<'_>) -> Landing<L::Value> {
        let (flight, is_new) = self.flights.join(key);
        if home::current().is_none() {
            // This thread may block, and be one of those that the work would wait for: a flight that has
            // not begun is done here.
            self.fly(key, &flight);
        } else if is_new {
            home::start_work(self.work(key, &flight));
        }
        flight.wait()
    }

    /// Has the entry compared, or loaded if it is wrong, and waits for nothing.
    fn compare_meanwhile(self: &Arc<Self>, key: Key<'_>) {
        let (flight, is_new) = self.flights.join(key);
        if is_new
            && home::try_start_work(self.work(key, &flight)).is_err()
            // Else somebody has taken it over meanwhile.
            && flight.begin()
        {
            self.flights.land(key, &flight, Landing::Again);
        }
    }

    fn work(
        self: &Arc<Self>,
        key: Key<'_>,
        flight: &Arc<Flight<Landing<L::Value>>>,
    ) -> impl FnOnce() + Send + 'static {
        let (inner, flight) = (Arc::clone(self), Arc::clone(flight));
        let (name, form) = (key.name.to_owned(), key.form);
        move || inner.fly(Key { name: &name, form }, &flight)
    }

    /// Does the work of a flight that nobody has begun.
    fn fly(self: &Arc<Self>, key: Key<'_>, flight: &Flight<Landing<L::Value>>) {
        if !flight.begin() {
            return;
        }
        let landing = catch_unwind(AssertUnwindSafe(|| self.compare_or_load(key)));
        let landing = landing.unwrap_or_else(|_| {
            let error = io::Error::other(format!("reading {:?} panicked", key.name));
            Landing::Failed(Arc::new(error))
        });
        self.flights.land(key, flight, landing);
    }

    fn compare_or_load(self: &Arc<Self>, key: Key<'_>) -> Landing<L::Value> {
        let begun = self.now();
        let stored = self.store().look(key).cloned();
        if let Some(entry) = stored {
            // Another flight may have landed since this one was wanted.
            if entry.age(begun) < COMPARE_AFTER {
                return Landing::Kept(entry);
            }
            if self.loader.is_current(key, &entry.value) {
                entry.checked.store(begun, Ordering::SeqCst);
                return Landing::Kept(entry);
            }
            if self.store().remove(&entry) {
                self.take_from_shares(&vec![entry]);
            }
        }
        let folders: Vec<Arc<Path>> = self
            .loader
            .folders(key)
            .into_iter()
            .map(Arc::from)
            .collect();
        // Before it is read, so that no change goes unseen for longer than the reading takes.
        self.watch(&folders);
        match self.loader.load(key) {
            Err(error) => Landing::Failed(Arc::new(error)),
            Ok(value) => {
                let bytes = self.loader.cost(&value);
                if bytes > self.most_bytes / LARGEST_PART {
                    return Landing::Given(Arc::new(value));
                }
                let entry = Arc::new(Entry::new(key, value, bytes, folders, begun));
                let left = self.store().insert(&entry);
                self.take_from_shares(&left);
                Landing::Kept(entry)
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn watch(self: &Arc<Self>, folders: &[Arc<Path>]) {
        if !folders.is_empty() {
            self.watches.store(true, Ordering::Relaxed);
        }
        for folder in folders {
            let listener: Arc<dyn watch::Listener> = Arc::clone(self) as _;
            watch::add(folder, &Arc::downgrade(&listener));
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn watch(self: &Arc<Self>, _folders: &[Arc<Path>]) {}
}

#[cfg(target_os = "linux")]
impl<L: Load> watch::Listener for Inner<L> {
    fn changed(&self, folder: &Path, file: Option<&str>) {
        let left = self.store().changed(folder, file);
        self.take_from_shares(&left);
    }

    fn all_changed(&self) {
        let before = self.store().take();
        for entry in before.all() {
            entry.gone.store(true, Ordering::SeqCst);
        }
        for share in &self.shares {
            // What came in since then goes too, and is taken from the store again.
            let taken = std::mem::take(&mut *share.lock());
            drop(taken);
        }
    }
}

impl<L: Load> Drop for Inner<L> {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        if *self.watches.get_mut() {
            home::start_work(watch::remove_dropped);
        }
    }
}

impl<V> Share<V> {
    fn lock(&self) -> MutexGuard<'_, ByForm<Held<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: Key<'_>, now: u64) -> Option<Arc<V>> {
        let held = self.lock();
        let held = held[key.place()].get(key.name)?;
        if held.entry.age(now) >= COMPARE_AFTER || held.entry.gone.load(Ordering::Acquire) {
            return None;
        }
        held.entry.note_use();
        Some(Arc::clone(&held.value))
    }

    fn copy_of(&self, entry: &Arc<Entry<V>>) -> Option<Arc<V>> {
        let all = self.lock();
        let held = all[entry.key().place()].get(&entry.name)?;
        Arc::ptr_eq(&held.entry, entry).then(|| Arc::clone(&held.value))
    }

    fn put(&self, entry: &Arc<Entry<V>>, value: &Arc<V>) {
        let held = Held {
            value: Arc::clone(value),
            entry: Arc::clone(entry),
        };
        let mut all = self.lock();
        let before = if entry.gone.load(Ordering::SeqCst) {
            Some(held)
        } else {
            all[entry.key().place()].insert(Arc::clone(&entry.name), held)
        };
        drop(all);
        drop(before);
    }

    fn remove(&self, entry: &Arc<Entry<V>>) {
        let mut all = self.lock();
        let held = &mut all[entry.key().place()];
        let is_here = held
            .get(&entry.name)
            .is_some_and(|held| Arc::ptr_eq(&held.entry, entry));
        let taken = if is_here {
            held.remove(&entry.name)
        } else {
            None
        };
        drop(all);
        drop(taken);
    }
}

impl<V> Entry<V> {
    /// Nanoseconds since it was compared with the disk.
    fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.checked.load(Ordering::Acquire))
    }

    fn note_use(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }
}

/// The same error for one more of those who waited.
fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None if error.get_ref().is_some() => io::Error::new(error.kind(), error.to_string()),
        None => error.kind().into(),
    }
}

/// Nanoseconds of a clock that only goes forward, to some milliseconds: reading it takes a quarter of what
/// the exact one takes, and that is a good part of a hit.
fn now() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
        let span = Duration::new(
            u64::try_from(time.tv_sec).unwrap_or_default(),
            u32::try_from(time.tv_nsec).unwrap_or_default(),
        );
        nanoseconds(span)
    }
    #[cfg(not(target_os = "linux"))]
    {
        static START: std::sync::LazyLock<std::time::Instant> =
            std::sync::LazyLock::new(std::time::Instant::now);
        nanoseconds(START.elapsed())
    }
}

#[cfg(test)]
impl<L: Load> Cache<L> {
    /// A cache whose entries grow older only as the test moves the clock.
    pub(crate) fn with_clock(loader: L, most_bytes: u64, clock: Clock) -> Cache<L> {
        let Cache(mut inner) = Cache::new(loader, most_bytes);
        Arc::get_mut(&mut inner).expect("it is new").clock = Some(clock);
        Cache(inner)
    }

    /// Lets all entries be older by `span`.
    pub(crate) fn age(&self, span: Duration) {
        for entry in self.0.store().all() {
            let checked = entry.checked.load(Ordering::SeqCst);
            entry
                .checked
                .store(checked.saturating_sub(nanoseconds(span)), Ordering::SeqCst);
        }
    }

    /// Whether the entry was compared less than half a second ago.
    pub(crate) fn is_fresh(&self, key: Key<'_>) -> bool {
        let store = self.0.store();
        store
            .look(key)
            .is_some_and(|entry| entry.age(self.0.now()) < COMPARE_AFTER)
    }

    /// Entries, bytes and places in the lines.
    pub(crate) fn size(&self) -> (usize, u64, usize) {
        let store = self.0.store();
        let (bytes, places) = store.size();
        (store.len(), bytes, places)
    }

    /// How many values the shares hold.
    pub(crate) fn held(&self) -> usize {
        let shares = self.0.shares.iter();
        shares
            .flat_map(|share| share.lock().each_ref().map(|held| held.len()))
            .sum()
    }
}
