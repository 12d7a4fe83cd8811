//! How do handlers on all workers count together, and keep small things for each other?
//!
//! ```text
//!  Integers, Strings (views of a collection) ─▶ Inner::write ─▶ store (64 shards, a lock each)
//!                                                  │ full           └─▶ budget (entries, bytes)
//!                                                  └─▶ what is over goes, then once more
//! ```

mod budget;
mod integers;
mod store;
mod strings;

use std::fmt;
use std::sync::Arc;

use crate::message::clock::Clock;
use budget::Budget;
pub use integers::Integers;
use store::{Change, Place, Store, Value};
pub use strings::Strings;

/// Integers and strings that all requests share, whatever worker or thread they run on.
///
/// Entries live in named collections, and integers and strings in different ones. Every call is one
/// step that no other thread comes between, so nothing is counted twice or lost. A clone is the same
/// memory. It is a value like any other: register it as a [`State`](crate::State) and handlers have
/// it, keep a clone and other threads have it too.
///
/// ```
/// use cloudgate::{App, HttpError, SharedMemory, State};
///
/// #[cloudgate::route("/visits/{page}")]
/// fn visits(
///     State(memory): State<SharedMemory>,
///     cloudgate::Path(page): cloudgate::Path<String>,
/// ) -> Result<String, HttpError> {
///     let visits = memory.integers("visits").increment(&page, 1)?;
///     Ok(format!("{visits} visits"))
/// }
///
/// let memory = SharedMemory::new();
/// let app = App::gather().state(memory.clone());
/// # use cloudgate::Request;
/// assert_eq!(app.call(&mut Request::get("/visits/home")).text(), "1 visits");
/// assert_eq!(app.call(&mut Request::get("/visits/home")).text(), "2 visits");
/// assert_eq!(memory.integers("visits").get("home"), Some(2));
/// ```
///
/// **Limits.** There are never more entries or bytes than [`SharedLimits`] says. A full memory refuses
/// a new entry with an error that says so, unless [`WhenFull::DropSoonest`] was chosen; changing an
/// entry that is there goes on. Keys may come from clients: how long they may be is limited, and
/// nobody can choose them so that look-ups get slow.
///
/// **Time.** An entry that was set for a time is gone when that is over: at once for whoever asks for
/// it, and out of memory in small steps as other entries are written. There is no thread for it.
///
/// **What it is not.** It lives as long as the process, on this machine only.
#[derive(Clone)]
pub struct SharedMemory(Arc<Inner>);

struct Inner {
    integers: Store<i64>,
    strings: Store<Arc<str>>,
    budget: Budget,
    clock: Clock,
}

/// How much a [`SharedMemory`] holds.
///
/// ```
/// use cloudgate::{SharedLimits, SharedMemory};
/// let memory = SharedMemory::with_limits(SharedLimits { entries: 1, ..SharedLimits::default() });
/// let names = memory.strings("names");
/// names.set("first", "Ada")?;
/// let refused = names.set("second", "Grace").unwrap_err();
/// assert!(refused.to_string().contains("full: it holds 1 entries"));
/// # Ok::<(), cloudgate::SharedError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SharedLimits {
    /// Integers and strings together (default 1,000,000).
    pub entries: usize,
    /// Bytes of keys and values, with what each entry takes in the tables (default 64 MiB): 128 more,
    /// 32 more for a string, 64 more for a time limit; and 384 and its name for a collection, in each
    /// of the 64 parts that hold something of it. What is allocated in fact is 60 to 90 % of that.
    pub bytes: usize,
    /// Bytes of one key, and of the name of a collection (default 1 KiB).
    pub key_bytes: usize,
    /// Bytes of one string (default 1 MiB); never more than `bytes`.
    pub value_bytes: usize,
    /// What a full memory does (default [`WhenFull::Refuse`]).
    pub when_full: WhenFull,
}

impl Default for SharedLimits {
    fn default() -> SharedLimits {
        SharedLimits {
            entries: 1_000_000,
            bytes: 64 << 20,
            key_bytes: 1 << 10,
            value_bytes: 1 << 20,
            when_full: WhenFull::Refuse,
        }
    }
}

/// What a full [`SharedMemory`] does with one more entry, after those whose time is over have gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// It refuses the entry with an error.
    Refuse,
    /// It drops entries that have a time limit, those first whose time is over soonest. What was set
    /// without a limit stays; where that fills the memory the entry is refused.
    DropSoonest,
}

/// Why a [`SharedMemory`] did not do what it was asked. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedError {
    /// It holds as many entries as it may.
    TooManyEntries {
        /// [`SharedLimits::entries`].
        limit: usize,
    },
    /// It holds as many bytes as it may.
    TooManyBytes {
        /// [`SharedLimits::bytes`].
        limit: usize,
    },
    /// The key, or the name of the collection, is too long.
    KeyTooLong {
        /// Its length in bytes.
        length: usize,
        /// [`SharedLimits::key_bytes`].
        limit: usize,
    },
    /// The string is too long.
    ValueTooLong {
        /// Its length in bytes.
        length: usize,
        /// [`SharedLimits::value_bytes`].
        limit: usize,
    },
    /// The sum is no 64-bit integer.
    Overflow {
        /// The value that is there.
        value: i64,
        /// What was to be added.
        by: i64,
    },
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharedError::TooManyEntries { limit } => write!(
                f,
                "the shared memory is full: it holds {limit} entries; delete some, set them for a time, or raise SharedLimits::entries"
            ),
            SharedError::TooManyBytes { limit } => write!(
                f,
                "the shared memory is full: there is no room within its {limit} bytes; delete entries, set them for a time, or raise SharedLimits::bytes"
            ),
            SharedError::KeyTooLong { length, limit } => write!(
                f,
                "a key or collection name of {length} bytes is longer than the {limit} bytes allowed in shared memory"
            ),
            SharedError::ValueTooLong { length, limit } => write!(
                f,
                "a string of {length} bytes is longer than the {limit} bytes allowed in shared memory"
            ),
            SharedError::Overflow { value, by } => {
                write!(f, "{value} and {by} together are no 64-bit integer")
            }
        }
    }
}

impl std::error::Error for SharedError {}

impl SharedError {
    fn is_full(&self) -> bool {
        matches!(
            self,
            SharedError::TooManyEntries { .. } | SharedError::TooManyBytes { .. }
        )
    }
}

impl SharedMemory {
    /// An empty memory with the default limits.
    pub fn new() -> SharedMemory {
        SharedMemory::with_limits(SharedLimits::default())
    }

    /// An empty memory with these limits.
    pub fn with_limits(limits: SharedLimits) -> SharedMemory {
        SharedMemory::at(limits, Clock::default())
    }

    fn at(limits: SharedLimits, clock: Clock) -> SharedMemory {
        SharedMemory(Arc::new(Inner {
            integers: Store::new(),
            strings: Store::new(),
            budget: Budget::new(limits),
            clock,
        }))
    }

    /// The integers of a collection. It need not be made, and is gone when its last entry is.
    pub fn integers<'a>(&'a self, collection: &'a str) -> Integers<'a> {
        Integers {
            inner: &self.0,
            collection,
        }
    }

    /// The strings of a collection. It need not be made, and is gone when its last entry is.
    pub fn strings<'a>(&'a self, collection: &'a str) -> Strings<'a> {
        Strings {
            inner: &self.0,
            collection,
        }
    }

    /// How many entries there are, with those whose time is over but that are still in memory.
    pub fn entries(&self) -> usize {
        self.0.budget.used().entries
    }

    /// How many bytes they take, as [`SharedLimits::bytes`] counts.
    pub fn bytes(&self) -> usize {
        self.0.budget.used().bytes
    }
}

impl Default for SharedMemory {
    fn default() -> SharedMemory {
        SharedMemory::new()
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMemory")
            .field("entries", &self.entries())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn write<V: Value, R>(
        &self,
        store: &Store<V>,
        place: Place<'_>,
        decide: impl Fn(Option<&V>, u64) -> Result<(Change<V>, R), SharedError>,
    ) -> Result<R, SharedError> {
        let limit = self.budget.limits.key_bytes;
        let length = place.key.len().max(place.collection.len());
        if length > limit {
            return Err(SharedError::KeyTooLong { length, limit });
        }
        let now = self.clock.now();
        loop {
            let result = store.change(place, now, &self.budget, |value| decide(value, now));
            match result {
                Err(error) if error.is_full() && self.make_room(now) => {}
                result => return result,
            }
        }
    }

    /// Drops what may go from a full memory; says whether anything went. No shard is locked here.
    fn make_room(&self, now: u64) -> bool {
        let until = |at| {
            let integers = self.integers.drop_all_over(at, &self.budget);
            self.strings.drop_all_over(at, &self.budget) || integers
        };
        if until(now) {
            return true;
        }
        match self.budget.limits.when_full {
            WhenFull::Refuse => false,
            WhenFull::DropSoonest => {
                let soonest = [self.integers.soonest(), self.strings.soonest()];
                soonest.into_iter().flatten().min().is_some_and(until)
            }
        }
    }
}

#[cfg(test)]
mod tests;
