//! Which topics are there?

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::limits::HubError;
use super::lock;
use super::topic::Topic;

/// In how many parts the topics lie, so that few wait for the same lock.
const SHARDS: usize = 16;

#[derive(Default)]
pub(super) struct Map {
    shards: [Mutex<HashMap<String, Arc<Topic>>>; SHARDS],
    /// Whoever publishes holds one of these while somebody is subscribed by a pattern.
    orders: [Mutex<()>; SHARDS],
    count: AtomicUsize,
}

/// A number for a name: not 0, which is a socket's own.
pub(super) fn key(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish() | 1
}

fn shard(name: &str) -> usize {
    (key(name) >> 32) as usize % SHARDS
}

impl Map {
    pub(super) fn get(&self, name: &str) -> Option<Arc<Topic>> {
        lock(&self.shards[shard(name)]).get(name).cloned()
    }

    /// The topic of this name, made if there is room for it among `most`.
    pub(super) fn get_or_make(&self, name: &str, most: usize) -> Result<Arc<Topic>, HubError> {
        let mut topics = lock(&self.shards[shard(name)]);
        if let Some(topic) = topics.get(name) {
            return Ok(Arc::clone(topic));
        }
        if self.count.fetch_add(1, Ordering::SeqCst) >= most {
            self.count.fetch_sub(1, Ordering::SeqCst);
            return Err(HubError::TooManyTopics { most });
        }
        let topic = Arc::new(Topic::new(name));
        topics.insert(name.to_owned(), Arc::clone(&topic));
        Ok(topic)
    }

    /// Gives a topic up that has no sockets and keeps nothing.
    pub(super) fn remove_if_unused(&self, topic: &Arc<Topic>) {
        let mut topics = lock(&self.shards[shard(topic.name())]);
        if topic.give_up_if_unused() {
            topics.remove(topic.name());
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Holds others up that publish to this topic, and to some that have nothing to do with it.
    pub(super) fn order(&self, name: &str) -> MutexGuard<'_, ()> {
        lock(&self.orders[shard(name)])
    }

    pub(super) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for topics in &self.shards {
            names.extend(lock(topics).keys().cloned());
        }
        names
    }
}
