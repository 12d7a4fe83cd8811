//! How are entries kept so that many threads can use them at once, and old ones go?
//!
//! The key decides the shard. Each shard has a lock of its own, which is held for one look-up and
//! one change; nothing of a user's runs under it. Entries with a time limit stand in an ordered set
//! as well, so those that are over are found without a search and without a thread.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::SharedError;
use super::budget::{Budget, Cost};

/// More than the threads of most machines, so that two seldom want the same one.
const SHARDS: usize = 64;

/// How many entries whose time is over a write drops besides its own work.
const STEP: usize = 4;

/// What an entry counts besides its key and value: places in tables, allocations.
pub(super) const ENTRY_BYTES: usize = 128;

/// What a string adds to an entry besides its length: it is in a place of its own.
pub(super) const TEXT_BYTES: usize = 32;

/// What a time limit adds to an entry.
pub(super) const TIMED_BYTES: usize = 64;

/// What a collection counts, besides its name, in each shard that holds entries of it.
pub(super) const COLLECTION_BYTES: usize = 384;

/// A value and the bytes that it has besides its place in the table.
pub(super) trait Value: Clone {
    fn bytes(&self) -> usize;
}

impl Value for i64 {
    fn bytes(&self) -> usize {
        0
    }
}

impl Value for Arc<str> {
    fn bytes(&self) -> usize {
        TEXT_BYTES + self.len()
    }
}

/// Where an entry is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) collection: &'a str,
    pub(super) key: &'a str,
}

/// When an entry that is written goes. Times are nanoseconds of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expiry {
    Never,
    At(u64),
    /// As it was; an entry that was not there goes at this moment, or never.
    KeptOr(Option<u64>),
}

/// What is to happen to an entry.
pub(super) enum Change<V> {
    Keep,
    Put(V, Expiry),
    Remove,
}

pub(super) struct Store<V> {
    shards: Box<[Mutex<Shard<V>>]>,
    hasher: RandomState,
}

struct Shard<V> {
    collections: HashMap<Arc<str>, HashMap<Arc<str>, Entry<V>>>,
    /// Expiry, collection and key of each entry that has a time limit.
    due: BTreeSet<(u64, Arc<str>, Arc<str>)>,
}

struct Entry<V> {
    value: V,
    expires: Option<u64>,
}

impl<V: Value> Store<V> {
    pub(super) fn new() -> Store<V> {
        let shard = || {
            Mutex::new(Shard {
                collections: HashMap::new(),
                due: BTreeSet::new(),
            })
        };
        Store {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            hasher: RandomState::new(),
        }
    }

    pub(super) fn get(&self, place: Place<'_>, now: u64, budget: &Budget) -> Option<V> {
        let mut shard = self.shard(place.key);
        let entry = shard.collections.get(place.collection)?.get(place.key)?;
        if entry.is_over(now) {
            let cost = shard.remove(place);
            budget.give_back(cost);
            return None;
        }
        Some(entry.value.clone())
    }

    /// Lets `decide` look at the value and say what becomes of it, as one step that no other thread
    /// comes between. `decide` is ours, short, and takes no lock.
    pub(super) fn change<R>(
        &self,
        place: Place<'_>,
        now: u64,
        budget: &Budget,
        decide: impl FnOnce(Option<&V>) -> Result<(Change<V>, R), SharedError>,
    ) -> Result<R, SharedError> {
        let mut shard = self.shard(place.key);
        let gone = shard.drop_over(now, STEP);
        budget.give_back(gone);
        let (change, result) = match shard.find_mut(place) {
            Some(entry) if !entry.is_over(now) => match decide(Some(&entry.value))? {
                // What most writes are needs no more than the one look-up.
                (Change::Put(value, expiry), result) if entry.fits(&value, expiry) => {
                    entry.value = value;
                    return Ok(result);
                }
                decided => decided,
            },
            Some(_) => {
                let cost = shard.remove(place);
                budget.give_back(cost);
                decide(None)?
            }
            None => decide(None)?,
        };
        match change {
            Change::Keep => {}
            Change::Put(value, expiry) => shard.put(place, value, expiry, budget)?,
            Change::Remove => {
                let cost = shard.remove(place);
                budget.give_back(cost);
            }
        }
        Ok(result)
    }

    /// The keys of a collection, in no order.
    pub(super) fn keys(&self, collection: &str, now: u64) -> Vec<Arc<str>> {
        let mut keys = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            if let Some(entries) = shard.collections.get(collection) {
                let live = entries.iter().filter(|(_, entry)| !entry.is_over(now));
                keys.extend(live.map(|(key, _)| Arc::clone(key)));
            }
        }
        keys
    }

    /// Removes a whole collection; says how many entries it had.
    pub(super) fn clear(&self, collection: &str, now: u64, budget: &Budget) -> usize {
        let mut live = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            let Some((name, entries)) = shard.collections.remove_entry(collection) else {
                continue;
            };
            let mut cost = collection_cost(&name);
            for (key, entry) in &entries {
                if let Some(expires) = entry.expires {
                    shard
                        .due
                        .remove(&(expires, Arc::clone(&name), Arc::clone(key)));
                }
                live += usize::from(!entry.is_over(now));
                cost += entry_cost(key, &entry.value, entry.expires);
            }
            budget.give_back(cost);
            // What may take long, giving the memory back, needs no lock.
            drop(shard);
        }
        live
    }

    /// Drops every entry whose time is over; says whether there was one.
    pub(super) fn drop_all_over(&self, now: u64, budget: &Budget) -> bool {
        let mut any = false;
        for shard in &self.shards {
            let cost = lock(shard).drop_over(now, usize::MAX);
            any |= cost.entries > 0;
            budget.give_back(cost);
        }
        any
    }

    /// The earliest moment at which an entry goes.
    pub(super) fn soonest(&self) -> Option<u64> {
        self.shards
            .iter()
            .filter_map(|shard| lock(shard).due.first().map(|(at, ..)| *at))
            .min()
    }

    fn shard(&self, key: &str) -> MutexGuard<'_, Shard<V>> {
        // Keyed, so nobody can choose keys that all go to one shard.
        lock(&self.shards[self.hasher.hash_one(key) as usize % SHARDS])
    }
}

fn lock<V>(shard: &Mutex<Shard<V>>) -> MutexGuard<'_, Shard<V>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn entry_cost(key: &str, value: &impl Value, expires: Option<u64>) -> Cost {
    let timed = if expires.is_some() { TIMED_BYTES } else { 0 };
    Cost {
        entries: 1,
        bytes: ENTRY_BYTES + timed + key.len() + value.bytes(),
    }
}

fn collection_cost(name: &str) -> Cost {
    Cost {
        entries: 0,
        bytes: COLLECTION_BYTES + name.len(),
    }
}

impl<V: Value> Entry<V> {
    fn is_over(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Whether the value can take the place of the one that is here without any other change.
    fn fits(&self, value: &V, expiry: Expiry) -> bool {
        let same_expiry = match expiry {
            Expiry::KeptOr(_) => true,
            Expiry::Never => self.expires.is_none(),
            Expiry::At(at) => self.expires == Some(at),
        };
        same_expiry && self.value.bytes() == value.bytes()
    }
}

impl<V: Value> Shard<V> {
    fn find(&self, place: Place<'_>) -> Option<&Entry<V>> {
        self.collections.get(place.collection)?.get(place.key)
    }

    fn find_mut(&mut self, place: Place<'_>) -> Option<&mut Entry<V>> {
        self.collections
            .get_mut(place.collection)?
            .get_mut(place.key)
    }

    fn put(
        &mut self,
        place: Place<'_>,
        value: V,
        expiry: Expiry,
        budget: &Budget,
    ) -> Result<(), SharedError> {
        let old = self.find(place);
        let expires = match expiry {
            Expiry::Never => None,
            Expiry::At(at) => Some(at),
            Expiry::KeptOr(new) => old.map_or(new, |entry| entry.expires),
        };
        let mut new_cost = entry_cost(place.key, &value, expires);
        let known = self.collections.contains_key(place.collection);
        if !known {
            new_cost += collection_cost(place.collection);
        }
        let old_expires = old.map(|entry| entry.expires);
        let old_cost = old.map(|entry| entry_cost(place.key, &entry.value, entry.expires));
        budget.exchange(old_cost.unwrap_or_default(), new_cost)?;

        // The ordered set shares the texts of the tables.
        let (collection, key) = self.texts(place).unwrap_or_else(|| {
            let known = self.collections.get_key_value(place.collection);
            let collection =
                known.map_or_else(|| place.collection.into(), |(name, _)| Arc::clone(name));
            (collection, place.key.into())
        });
        if let Some(Some(at)) = old_expires {
            self.due
                .remove(&(at, Arc::clone(&collection), Arc::clone(&key)));
        }
        if let Some(at) = expires {
            self.due
                .insert((at, Arc::clone(&collection), Arc::clone(&key)));
        }
        let entries = self.collections.entry(collection).or_default();
        entries.insert(key, Entry { value, expires });
        Ok(())
    }

    /// Removes the entry if it is there; gives what it cost.
    fn remove(&mut self, place: Place<'_>) -> Cost {
        let mut cost = Cost::default();
        let Some((collection, key)) = self.texts(place) else {
            return cost;
        };
        let Some(entries) = self.collections.get_mut(place.collection) else {
            return cost;
        };
        if let Some(entry) = entries.remove(place.key) {
            cost += entry_cost(&key, &entry.value, entry.expires);
            if let Some(at) = entry.expires {
                self.due.remove(&(at, Arc::clone(&collection), key));
            }
        }
        if entries.is_empty() {
            self.collections.remove(place.collection);
            cost += collection_cost(&collection);
        } else if entries.capacity() > 64 && entries.len() < entries.capacity() / 4 {
            // Tables do not shrink by themselves, and one that was large once would stay so.
            entries.shrink_to(entries.len() * 2);
        }
        cost
    }

    /// Drops up to `most` entries whose time is over.
    fn drop_over(&mut self, now: u64, most: usize) -> Cost {
        let mut cost = Cost::default();
        for _ in 0..most {
            if self.due.first().is_none_or(|(at, ..)| *at > now) {
                break;
            }
            let Some((_, collection, key)) = self.due.pop_first() else {
                break;
            };
            cost += self.remove(Place {
                collection: &collection,
                key: &key,
            });
        }
        cost
    }

    fn texts(&self, place: Place<'_>) -> Option<(Arc<str>, Arc<str>)> {
        let (name, entries) = self.collections.get_key_value(place.collection)?;
        let (key, _) = entries.get_key_value(place.key)?;
        Some((Arc::clone(name), Arc::clone(key)))
    }
}
