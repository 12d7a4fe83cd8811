//! What can be done with shared strings?

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::store::{Change, Expiry, Place};
use super::{Inner, SharedError};
use crate::message::clock::Clock;

/// The strings of one collection of a [`SharedMemory`](crate::SharedMemory).
///
/// A value is an `Arc<str>`, so reading one copies nothing.
///
/// ```
/// use cloudgate::SharedMemory;
/// use std::time::Duration;
///
/// let memory = SharedMemory::new();
/// let leases = memory.strings("leases");
/// // Whoever sets it first has the lease, for a minute at most:
/// let mine = leases.compare_and_set_for("report", None, "worker 1", Duration::from_secs(60))?;
/// assert!(mine);
/// assert!(!leases.compare_and_set("report", None, "worker 2")?);
/// // Given back only by the one that has it:
/// assert!(!leases.compare_and_delete("report", "worker 2"));
/// assert!(leases.compare_and_delete("report", "worker 1"));
/// assert_eq!(leases.get("report"), None);
/// # Ok::<(), cloudgate::SharedError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Strings<'a> {
    pub(super) inner: &'a Inner,
    pub(super) collection: &'a str,
}

impl Strings<'_> {
    /// The value, if there is one.
    pub fn get(&self, key: &str) -> Option<Arc<str>> {
        let inner = self.inner;
        let now = inner.clock.now();
        inner.strings.get(self.place(key), now, &inner.budget)
    }

    /// Sets the value, until it is deleted.
    ///
    /// # Errors
    /// [`SharedError`] when the memory is full, or the key or the value too long.
    pub fn set(&self, key: &str, value: &str) -> Result<(), SharedError> {
        self.put(key, value, |_| true, |_| Expiry::Never).map(drop)
    }

    /// Sets the value for this time.
    ///
    /// # Errors
    /// As [`Strings::set`].
    pub fn set_for(&self, key: &str, value: &str, time: Duration) -> Result<(), SharedError> {
        self.put(
            key,
            value,
            |_| true,
            |now| Expiry::At(Clock::after(now, time)),
        )
        .map(drop)
    }

    /// Sets the value if it is the expected one (`None`: not there); says whether it was. An entry
    /// that has a time limit keeps it.
    ///
    /// # Errors
    /// As [`Strings::set`].
    pub fn compare_and_set(
        &self,
        key: &str,
        expected: Option<&str>,
        value: &str,
    ) -> Result<bool, SharedError> {
        self.put(
            key,
            value,
            |found| found == expected,
            |_| Expiry::KeptOr(None),
        )
    }

    /// As [`Strings::compare_and_set`], and where it sets, it does so for this time.
    ///
    /// # Errors
    /// As [`Strings::set`].
    pub fn compare_and_set_for(
        &self,
        key: &str,
        expected: Option<&str>,
        value: &str,
        time: Duration,
    ) -> Result<bool, SharedError> {
        let expiry = |now| Expiry::At(Clock::after(now, time));
        self.put(key, value, |found| found == expected, expiry)
    }

    /// Removes the entry if its value is the expected one; says whether it was.
    pub fn compare_and_delete(&self, key: &str, expected: &str) -> bool {
        let deleted = self.write(key, |found, _| {
            let fits = found.is_some_and(|found| **found == *expected);
            let change = if fits { Change::Remove } else { Change::Keep };
            Ok((change, fits))
        });
        deleted.unwrap_or(false)
    }

    /// Removes the entry; gives the value that it had.
    pub fn delete(&self, key: &str) -> Option<Arc<str>> {
        let deleted = self.write(key, |value, _| Ok((Change::Remove, value.cloned())));
        deleted.unwrap_or(None)
    }

    /// The keys of the collection, in no order. It looks at every one of them: not for each request
    /// where there are many.
    pub fn keys(&self) -> Vec<Arc<str>> {
        let now = self.inner.clock.now();
        self.inner.strings.keys(self.collection, now)
    }

    /// Removes the whole collection; says how many entries it had. Entries that others write
    /// meanwhile may stay.
    pub fn clear(&self) -> usize {
        let inner = self.inner;
        let now = inner.clock.now();
        inner.strings.clear(self.collection, now, &inner.budget)
    }

    fn put(
        &self,
        key: &str,
        value: &str,
        wanted: impl Fn(Option<&str>) -> bool,
        expiry: impl Fn(u64) -> Expiry,
    ) -> Result<bool, SharedError> {
        // What could never fit must not drive others out first.
        let limits = &self.inner.budget.limits;
        let limit = limits.value_bytes.min(limits.bytes);
        let length = value.len();
        if length > limit {
            return Err(SharedError::ValueTooLong { length, limit });
        }
        // Copied here and not under the lock.
        let value: Arc<str> = value.into();
        self.write(key, |found, now| {
            if !wanted(found.map(|found| &**found)) {
                return Ok((Change::Keep, false));
            }
            Ok((Change::Put(Arc::clone(&value), expiry(now)), true))
        })
    }

    fn place<'k>(&'k self, key: &'k str) -> Place<'k> {
        Place {
            collection: self.collection,
            key,
        }
    }

    fn write<R>(
        &self,
        key: &str,
        decide: impl Fn(Option<&Arc<str>>, u64) -> Result<(Change<Arc<str>>, R), SharedError>,
    ) -> Result<R, SharedError> {
        let inner = self.inner;
        inner.write(&inner.strings, self.place(key), decide)
    }
}

impl fmt::Debug for Strings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Strings").field(&self.collection).finish()
    }
}
