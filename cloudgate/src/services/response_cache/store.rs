//! How are answers kept in bounded memory, and found again?
//!
//! A keyed hash of host and target picks the shard and the place in it; host, target and the values
//! of the fields that the answer varies by are compared in full. Each shard is bounded, and the
//! answer goes that was least recently used.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::StatusCode;
use rustc_hash::FxBuildHasher;

use super::flight::Flight;
use crate::message::{Headers, RequestHead};

/// The most shards; fewer where a shard would hold fewer than four of the largest answers.
const MOST_SHARDS: u64 = 16;

/// The most answers of one host and target that differ by what they vary by.
const MOST_VARIANTS: usize = 16;

/// Into how many parts a shard's keys fall, so that forgetting one key seldom concerns another.
const GENERATIONS: usize = 64;

/// The most bytes of host, target and the values of the fields that an answer varies by.
pub(super) const MOST_KEY_BYTES: usize = 4 << 10;

/// What an answer counts besides its bytes: places in tables, allocations.
pub(super) const ENTRY_BYTES: u64 = 640;

/// What a field of an answer counts besides its bytes.
const FIELD_BYTES: u64 = 16;

/// An answer as it was made.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) status: StatusCode,
    pub(super) headers: Headers,
    pub(super) body: Bytes,
    /// When it was made, in nanoseconds of the clock.
    pub(super) made: u64,
    /// Its age then, in seconds.
    pub(super) age: u64,
    /// Until when it may be used.
    pub(super) until: u64,
}

/// Host and target of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    host: &'a str,
    target: &'a str,
    hash: u64,
}

/// What is known of a request's answer.
pub(super) enum Found {
    Answer(Arc<Stored>),
    /// The last answer could not be kept, and others waited in vain for it.
    NotKept,
    Nothing,
}

/// One answer of a host and target, or the note that there was none to keep.
struct Variant {
    host: Box<str>,
    target: Box<str>,
    /// Names of fields, and what they had in the request.
    selectors: Vec<(String, Option<Vec<u8>>)>,
    stored: Option<Arc<Stored>>,
    until: u64,
    /// When it was used, in the shard's count of uses.
    used: u64,
    cost: u64,
}

pub(super) struct Store {
    shards: Box<[Mutex<Shard>]>,
    most_bytes: u64,
    hasher: RandomState,
}

pub(super) struct Shard {
    variants: HashMap<u64, Vec<Variant>, FxBuildHasher>,
    /// Which hash each use belongs to, the oldest first.
    uses: BTreeMap<u64, u64>,
    count: u64,
    bytes: u64,
    /// How often something was forgotten on purpose, for each part of the keys: an answer that was
    /// begun before is not kept.
    generations: Vec<u64>,
    /// The answers that are being made now.
    pub(super) flights: HashMap<u64, Arc<Flight>, FxBuildHasher>,
}

impl Store {
    pub(super) fn new(most_bytes: u64, most_entry_bytes: u64) -> Store {
        let shards = (most_bytes / most_entry_bytes.saturating_mul(4).max(1)).clamp(1, MOST_SHARDS);
        Store {
            shards: (0..shards).map(|_| Mutex::new(Shard::new())).collect(),
            most_bytes: most_bytes / shards,
            hasher: RandomState::new(),
        }
    }

    /// The key of a request; `None` if it is too long to be kept.
    pub(super) fn key<'a>(&self, head: &'a RequestHead) -> Option<Key<'a>> {
        self.key_of(head.host().unwrap_or(""), head.target())
    }

    pub(super) fn key_of<'a>(&self, host: &'a str, target: &'a str) -> Option<Key<'a>> {
        if host.len() + target.len() > MOST_KEY_BYTES {
            return None;
        }
        // A host is the same in any case (RFC 9110 section 4.2.3).
        let lower = if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(host.to_ascii_lowercase())
        } else {
            Cow::Borrowed(host)
        };
        let hash = self.hasher.hash_one((lower, target));
        Some(Key { host, target, hash })
    }

    pub(super) fn find(&self, key: Key<'_>, head: &RequestHead, now: u64) -> (Found, u64) {
        let mut shard = self.shard(key.hash);
        (shard.find(key, head, now), *shard.generation(key.hash))
    }

    /// Keeps an answer that was begun in this generation, or notes that it cannot be kept.
    pub(super) fn keep(
        &self,
        key: Key<'_>,
        head: &RequestHead,
        names: Vec<String>,
        answer: Result<Stored, u64>,
        generation: u64,
    ) {
        let until = answer
            .as_ref()
            .map_or_else(|until| *until, |stored| stored.until);
        let selectors: Vec<_> = names
            .into_iter()
            .map(|name| {
                let value = joined(head, &name);
                (name, value)
            })
            .collect();
        let selector_bytes = |(name, value): &(String, Option<Vec<u8>>)| {
            name.len() + value.as_ref().map_or(0, Vec::len)
        };
        let key_bytes =
            key.host.len() + key.target.len() + selectors.iter().map(selector_bytes).sum::<usize>();
        if key_bytes > MOST_KEY_BYTES {
            return;
        }
        let content = answer.as_ref().map_or(0, |stored| {
            stored.body.len() as u64
                + stored.headers.wire().len() as u64
                + stored.headers.len() as u64 * FIELD_BYTES
        });
        let variant = Variant {
            host: key.host.into(),
            target: key.target.into(),
            selectors,
            stored: answer.ok().map(Arc::new),
            until,
            used: 0,
            cost: ENTRY_BYTES + key_bytes as u64 + content,
        };
        let mut shard = self.shard(key.hash);
        if *shard.generation(key.hash) == generation {
            shard.insert(key, head, variant, self.most_bytes);
        }
    }

    /// Forgets every answer of this host and target.
    pub(super) fn forget(&self, key: Key<'_>) {
        let mut shard = self.shard(key.hash);
        *shard.generation(key.hash) += 1;
        shard.remove_where(key.hash, |variant| variant.is_of(key));
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            let mut shard = lock(shard);
            let (variants, uses) = (
                std::mem::take(&mut shard.variants),
                std::mem::take(&mut shard.uses),
            );
            shard.bytes = 0;
            for generation in &mut shard.generations {
                *generation += 1;
            }
            drop(shard);
            // What may take long, giving the memory back, needs no lock.
            drop((variants, uses));
        }
    }

    pub(super) fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The upper bits: the table in the shard goes by the lower ones.
        lock(&self.shards[(hash >> 48) as usize % self.shards.len()])
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, u64) {
        let sizes = self.shards.iter().map(|shard| {
            let shard = lock(shard);
            assert_eq!(
                shard.uses.len(),
                shard.variants.values().map(Vec::len).sum::<usize>()
            );
            (shard.uses.len(), shard.bytes)
        });
        sizes.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }
}

impl Key<'_> {
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All lines of a field as one value; `None` without the field.
fn joined(head: &RequestHead, name: &str) -> Option<Vec<u8>> {
    let mut lines = head.headers().get_all(name);
    let mut value = lines.next()?.to_vec();
    for line in lines {
        // No value holds a line break, so two lines are never what one line is.
        value.push(b'\n');
        value.extend_from_slice(line);
    }
    Some(value)
}

impl Variant {
    fn is_of(&self, key: Key<'_>) -> bool {
        *self.target == *key.target && self.host.eq_ignore_ascii_case(key.host)
    }

    fn selects(&self, head: &RequestHead) -> bool {
        self.selectors.iter().all(|(name, value)| match value {
            None => !head.headers().contains(name),
            Some(value) => {
                let mut lines = head.headers().get_all(name);
                value
                    .split(|&byte| byte == b'\n')
                    .all(|line| lines.next() == Some(line))
                    && lines.next().is_none()
            }
        })
    }
}

impl Shard {
    fn new() -> Shard {
        Shard {
            variants: HashMap::default(),
            uses: BTreeMap::new(),
            count: 0,
            bytes: 0,
            generations: vec![0; GENERATIONS],
            flights: HashMap::default(),
        }
    }

    fn generation(&mut self, hash: u64) -> &mut u64 {
        &mut self.generations[(hash >> 32) as usize % GENERATIONS]
    }

    fn find(&mut self, key: Key<'_>, head: &RequestHead, now: u64) -> Found {
        let Some(variants) = self.variants.get_mut(&key.hash) else {
            return Found::Nothing;
        };
        if variants.iter().any(|variant| variant.until <= now) {
            self.remove_where(key.hash, |variant| variant.until <= now);
            return self.find(key, head, now);
        }
        let mut found = Found::Nothing;
        for variant in variants {
            if !variant.is_of(key) || !variant.selects(head) {
                continue;
            }
            self.uses.remove(&variant.used);
            self.count += 1;
            variant.used = self.count;
            self.uses.insert(self.count, key.hash);
            match &variant.stored {
                Some(stored) => return Found::Answer(Arc::clone(stored)),
                None => found = Found::NotKept,
            }
        }
        found
    }

    fn insert(&mut self, key: Key<'_>, head: &RequestHead, mut variant: Variant, most_bytes: u64) {
        if variant.cost > most_bytes {
            return;
        }
        // What this request would have got until now, and a note, are no longer true.
        self.remove_where(key.hash, |other| {
            other.is_of(key) && (other.stored.is_none() || other.selects(head))
        });
        let oldest = self.variants.get(&key.hash).and_then(|variants| {
            let full = variants.len() >= MOST_VARIANTS;
            variants
                .iter()
                .map(|other| other.used)
                .min()
                .filter(|_| full)
        });
        if let Some(oldest) = oldest {
            self.remove_where(key.hash, |other| other.used == oldest);
        }
        self.count += 1;
        variant.used = self.count;
        self.bytes += variant.cost;
        self.uses.insert(self.count, key.hash);
        self.variants.entry(key.hash).or_default().push(variant);
        while self.bytes > most_bytes {
            let Some((used, hash)) = self.uses.first_key_value() else {
                break;
            };
            let (used, hash) = (*used, *hash);
            self.remove_where(hash, |other| other.used == used);
        }
    }

    fn remove_where(&mut self, hash: u64, gone: impl Fn(&Variant) -> bool) {
        let Some(variants) = self.variants.get_mut(&hash) else {
            return;
        };
        variants.retain(|variant| {
            let gone = gone(variant);
            if gone {
                self.uses.remove(&variant.used);
                self.bytes -= variant.cost;
            }
            !gone
        });
        if variants.is_empty() {
            self.variants.remove(&hash);
        }
    }
}
