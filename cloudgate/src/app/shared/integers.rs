//! What can be done with shared integers?

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::store::{Change, Expiry, Place};
use super::{Inner, SharedError};
use crate::message::clock::Clock;

/// The integers of one collection of a [`SharedMemory`](crate::SharedMemory).
///
/// ```
/// use cloudgate::SharedMemory;
/// use std::time::Duration;
///
/// let memory = SharedMemory::new();
/// let stock = memory.integers("stock");
/// stock.set("apples", 3)?;
/// assert_eq!(stock.increment("apples", -1)?, 2);
/// // Only if it is still 2:
/// assert!(stock.compare_and_set("apples", Some(2), 10)?);
/// assert_eq!(stock.delete("apples"), Some(10));
/// // How often within the hour that the first one begins:
/// let tries = memory.integers("tries");
/// assert_eq!(tries.increment_for("Ada", 1, Duration::from_secs(3600))?, 1);
/// # Ok::<(), cloudgate::SharedError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Integers<'a> {
    pub(super) inner: &'a Inner,
    pub(super) collection: &'a str,
}

impl Integers<'_> {
    /// The value, if there is one.
    pub fn get(&self, key: &str) -> Option<i64> {
        let inner = self.inner;
        let now = inner.clock.now();
        inner.integers.get(self.place(key), now, &inner.budget)
    }

    /// Sets the value, until it is deleted.
    ///
    /// # Errors
    /// [`SharedError`] when the memory is full or the key too long.
    pub fn set(&self, key: &str, value: i64) -> Result<(), SharedError> {
        self.write(key, |_, _| Ok((Change::Put(value, Expiry::Never), ())))
    }

    /// Sets the value for this time.
    ///
    /// # Errors
    /// As [`Integers::set`].
    pub fn set_for(&self, key: &str, value: i64, time: Duration) -> Result<(), SharedError> {
        self.write(key, |_, now| {
            let expiry = Expiry::At(Clock::after(now, time));
            Ok((Change::Put(value, expiry), ()))
        })
    }

    /// Adds `by`, which may be negative, and gives the new value. An integer that is not there counts
    /// as 0; one that has a time limit keeps it.
    ///
    /// # Errors
    /// As [`Integers::set`], and [`SharedError::Overflow`].
    pub fn increment(&self, key: &str, by: i64) -> Result<i64, SharedError> {
        self.add(key, by, None)
    }

    /// As [`Integers::increment`]; an integer that was not there is there for this time, so it counts
    /// from its first increment on and then begins anew.
    ///
    /// # Errors
    /// As [`Integers::increment`].
    pub fn increment_for(&self, key: &str, by: i64, time: Duration) -> Result<i64, SharedError> {
        self.add(key, by, Some(time))
    }

    fn add(&self, key: &str, by: i64, time: Option<Duration>) -> Result<i64, SharedError> {
        self.write(key, |value, now| {
            let value = value.copied().unwrap_or(0);
            let sum = value
                .checked_add(by)
                .ok_or(SharedError::Overflow { value, by })?;
            let expiry = Expiry::KeptOr(time.map(|time| Clock::after(now, time)));
            Ok((Change::Put(sum, expiry), sum))
        })
    }

    /// Sets the value if it is the expected one (`None`: not there); says whether it was. An entry
    /// that has a time limit keeps it.
    ///
    /// # Errors
    /// As [`Integers::set`].
    pub fn compare_and_set(
        &self,
        key: &str,
        expected: Option<i64>,
        value: i64,
    ) -> Result<bool, SharedError> {
        self.write(key, |found, _| {
            if found.copied() != expected {
                return Ok((Change::Keep, false));
            }
            Ok((Change::Put(value, Expiry::KeptOr(None)), true))
        })
    }

    /// Removes the entry; gives the value that it had.
    pub fn delete(&self, key: &str) -> Option<i64> {
        let deleted = self.write(key, |value, _| Ok((Change::Remove, value.copied())));
        deleted.unwrap_or(None)
    }

    /// The keys of the collection, in no order. It looks at every one of them: not for each request
    /// where there are many.
    pub fn keys(&self) -> Vec<Arc<str>> {
        let now = self.inner.clock.now();
        self.inner.integers.keys(self.collection, now)
    }

    /// Removes the whole collection; says how many entries it had. Entries that others write
    /// meanwhile may stay.
    pub fn clear(&self) -> usize {
        let inner = self.inner;
        let now = inner.clock.now();
        inner.integers.clear(self.collection, now, &inner.budget)
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
        decide: impl Fn(Option<&i64>, u64) -> Result<(Change<i64>, R), SharedError>,
    ) -> Result<R, SharedError> {
        let inner = self.inner;
        inner.write(&inner.integers, self.place(key), decide)
    }
}

impl fmt::Debug for Integers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Integers").field(&self.collection).finish()
    }
}
