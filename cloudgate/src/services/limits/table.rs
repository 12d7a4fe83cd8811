//! How are the buckets of very many clients kept in bounded memory?
//!
//! The hash of a client's key picks a small set and then stands for the key in it, so a key costs
//! the same however long it is. The hash is secret and made anew at each start: nobody can choose
//! keys that meet in one set. In a full set the bucket goes that is full soonest, or has been full
//! for longest, unless it is banned: one that is full is what a new one is, and nothing is lost.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};

/// How many buckets a set holds.
const WAYS: usize = 16;

/// What is known of one client. Times are nanoseconds of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    /// When it is full again. All of a token bucket is in this one number: what is missing is the
    /// time until then.
    pub(super) full_at: u64,
    /// Until when every request is refused.
    pub(super) banned_until: u64,
    /// When the first of `refusals` was.
    pub(super) refused_since: u64,
    /// Refusals since then.
    pub(super) refusals: u32,
}

impl Bucket {
    /// The bucket of a set that matters least is the one where this is smallest.
    fn matters_until(&self) -> u64 {
        self.full_at.max(self.banned_until)
    }
}

/// Hashes and buckets; it takes memory as clients come.
type Set = Mutex<Vec<(u64, Bucket)>>;

pub(super) struct Table {
    sets: Box<[Set]>,
    hasher: RandomState,
}

impl Table {
    /// Room for `keys` clients. There are twice as many places, so that a set is seldom full before
    /// the table is.
    pub(super) fn new(keys: usize) -> Table {
        let sets = keys.saturating_mul(2).div_ceil(WAYS).max(1);
        Table {
            sets: (0..sets).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }

    /// The hash that stands for a key from here on.
    pub(super) fn hash(&self, key: impl Hash) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Lets `change` look at the bucket of a key, made new if there is none, as one step that no
    /// other thread comes between.
    pub(super) fn change<R>(&self, hash: u64, change: impl FnOnce(&mut Bucket) -> R) -> R {
        let set = &self.sets[(hash % self.sets.len() as u64) as usize];
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bucket)) = set.iter_mut().find(|(other, _)| *other == hash) {
            return change(bucket);
        }
        let mut bucket = Bucket::default();
        let result = change(&mut bucket);
        if set.len() < WAYS {
            set.push((hash, bucket));
        } else if let Some(least) = set
            .iter_mut()
            .min_by_key(|(_, bucket)| bucket.matters_until())
        {
            *least = (hash, bucket);
        }
        result
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.sets.iter().map(|set| set.lock().unwrap().len()).sum()
    }

    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.sets.len() * WAYS
    }
}
