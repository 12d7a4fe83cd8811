//! What is kept, and what goes when there is no room for all of it?
//!
//! Two lines, as in S3-FIFO: what is new waits in the young one, which has a tenth of the room. What was
//! asked for again by the time it is first in line moves to the old one, and the rest goes. The old line is a
//! clock with a second chance. So a stream of names that are asked for once runs through a tenth of the
//! room and pushes out nothing that is in use. All steps are O(1), taken over many.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::{ByForm, Key};

/// The bytes that an entry counts besides its value and its name.
pub(super) const ENTRY_BYTES: u64 = 256;

/// The bytes that each worker's share in an entry counts.
pub(super) const SHARE_BYTES: u64 = 128;

/// The part of the room that new entries have: one in so many.
const YOUNG_PART: u64 = 10;

/// A value with what all workers know of it.
pub(super) struct Entry<V> {
    pub(super) name: Arc<str>,
    pub(super) form: u8,
    pub(super) value: V,
    cost: u64,
    /// The folders in which a change concerns it.
    folders: Vec<Arc<Path>>,
    /// When the last comparison with the disk began.
    pub(super) checked: AtomicU64,
    /// Whether it was asked for since the hand of the clock passed. Written only where it is not set, so
    /// that the workers which read it do not take the cache line from each other.
    pub(super) used: AtomicBool,
    /// Whether it has left the store: it is not to be given out any more.
    pub(super) gone: AtomicBool,
    /// Which shares have it, a bit each. Written under the store's lock.
    holders: AtomicU64,
    /// Whether it stands in the old line. Written under the store's lock.
    old: AtomicBool,
}

impl<V> Entry<V> {
    pub(super) fn new(
        key: Key<'_>,
        value: V,
        bytes: u64,
        folders: Vec<Arc<Path>>,
        checked: u64,
    ) -> Entry<V> {
        let of_folders: usize = folders
            .iter()
            .map(|folder| 64 + folder.as_os_str().len())
            .sum();
        Entry {
            name: key.name.into(),
            form: key.form,
            value,
            cost: bytes
                .saturating_add(ENTRY_BYTES)
                .saturating_add((key.name.len() + of_folders) as u64),
            folders,
            checked: AtomicU64::new(checked),
            used: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            holders: AtomicU64::new(0),
            old: AtomicBool::new(false),
        }
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key {
            name: &self.name,
            form: self.form,
        }
    }

    /// The shares that have it, lowest first.
    pub(super) fn holders(&self) -> impl Iterator<Item = usize> {
        let holders = self.holders.load(Ordering::SeqCst);
        (0..u64::BITS as usize).filter(move |share| holders >> share & 1 == 1)
    }

    fn bytes(&self) -> u64 {
        let shares = u64::from(self.holders.load(Ordering::SeqCst).count_ones());
        self.cost + SHARE_BYTES * shares
    }

    fn is_old(&self) -> bool {
        self.old.load(Ordering::Relaxed)
    }
}

/// For each folder, which entries stand for a file of which name in it.
type Folders<V> = HashMap<Arc<Path>, HashMap<Box<str>, Vec<Arc<Entry<V>>>>>;

/// All entries. To be locked for moments; values are dropped by the caller, after the lock.
pub(super) struct Store<V> {
    entries: ByForm<Arc<Entry<V>>>,
    young: VecDeque<Weak<Entry<V>>>,
    old: VecDeque<Weak<Entry<V>>>,
    folders: Folders<V>,
    bytes: u64,
    young_bytes: u64,
    most_bytes: u64,
}

/// What has left the store, and is to be taken from the shares.
pub(super) type Left<V> = Vec<Arc<Entry<V>>>;

impl<V> Store<V> {
    pub(super) fn new(most_bytes: u64) -> Store<V> {
        Store {
            entries: ByForm::default(),
            young: VecDeque::new(),
            old: VecDeque::new(),
            folders: HashMap::new(),
            bytes: 0,
            young_bytes: 0,
            most_bytes,
        }
    }

    pub(super) fn look(&self, key: Key<'_>) -> Option<&Arc<Entry<V>>> {
        self.entries[key.place()].get(key.name)
    }

    /// Takes it in, in the place of another of the same key.
    pub(super) fn insert(&mut self, entry: &Arc<Entry<V>>) -> Left<V> {
        let mut left: Left<V> = self.look(entry.key()).cloned().into_iter().collect();
        for before in &left {
            self.remove(before);
        }
        let place = entry.key().place();
        self.entries[place].insert(Arc::clone(&entry.name), Arc::clone(entry));
        for folder in &entry.folders {
            self.folders
                .entry(Arc::clone(folder))
                .or_default()
                .entry(last_segment(&entry.name).into())
                .or_default()
                .push(Arc::clone(entry));
        }
        self.bytes = self.bytes.saturating_add(entry.bytes());
        self.young_bytes = self.young_bytes.saturating_add(entry.bytes());
        self.young.push_back(Arc::downgrade(entry));
        self.sweep();
        left.append(&mut self.shrink());
        left
    }

    /// Notes that a share takes the entry; `None` if it is not in the store any more.
    pub(super) fn hold(&mut self, entry: &Arc<Entry<V>>, share: usize) -> Option<Left<V>> {
        if !self.has(entry) {
            return None;
        }
        let bit = 1 << share;
        if entry.holders.fetch_or(bit, Ordering::SeqCst) & bit != 0 {
            return Some(Vec::new());
        }
        self.bytes += SHARE_BYTES;
        if !entry.is_old() {
            self.young_bytes += SHARE_BYTES;
        }
        Some(self.shrink())
    }

    /// Whether it was there; now it is not.
    pub(super) fn remove(&mut self, entry: &Arc<Entry<V>>) -> bool {
        if !self.has(entry) {
            return false;
        }
        entry.gone.store(true, Ordering::SeqCst);
        self.entries[entry.key().place()].remove(&entry.name);
        self.bytes -= entry.bytes();
        if !entry.is_old() {
            self.young_bytes -= entry.bytes();
        }
        let segment = last_segment(&entry.name);
        for folder in &entry.folders {
            let Some(names) = self.folders.get_mut(folder) else {
                continue;
            };
            if let Some(entries) = names.get_mut(segment) {
                entries.retain(|other| !Arc::ptr_eq(other, entry));
                if entries.is_empty() {
                    names.remove(segment);
                }
            }
            if names.is_empty() {
                self.folders.remove(folder);
            }
        }
        true
    }

    /// Removes a name in all its forms.
    pub(super) fn forget(&mut self, name: &str) -> Left<V> {
        let found: Left<V> = self
            .entries
            .iter()
            .filter_map(|entries| entries.get(name).cloned())
            .collect();
        self.remove_all(found)
    }

    /// Removes what a change of this file of the folder concerns, or of the folder itself: entries for
    /// this name, and for the name without its last ending, for it may be another form of that.
    pub(super) fn changed(&mut self, folder: &Path, file: Option<&str>) -> Left<V> {
        let Some(names) = self.folders.get(folder) else {
            return Vec::new();
        };
        let found: Left<V> = match file {
            None => names.values().flatten().cloned().collect(),
            Some(file) => [Some(file), file.rsplit_once('.').map(|(stem, _)| stem)]
                .into_iter()
                .flatten()
                .filter_map(|name| names.get(name))
                .flatten()
                .cloned()
                .collect(),
        };
        self.remove_all(found)
    }

    /// Takes everything out, at once: whoever calls it has to mark the entries as gone.
    pub(super) fn take(&mut self) -> Store<V> {
        std::mem::replace(self, Store::new(self.most_bytes))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Entry<V>>> {
        self.entries.iter().flat_map(HashMap::values)
    }

    fn remove_all(&mut self, mut found: Left<V>) -> Left<V> {
        found.retain(|entry| self.remove(entry));
        found
    }

    fn has(&self, entry: &Arc<Entry<V>>) -> bool {
        self.look(entry.key())
            .is_some_and(|here| Arc::ptr_eq(here, entry))
    }

    /// Makes the bytes fit again.
    fn shrink(&mut self) -> Left<V> {
        let mut left = Vec::new();
        // The workers go on setting `used`: nobody is spared twice.
        let mut chances = self.young.len() + self.old.len();
        while self.bytes > self.most_bytes {
            // The newest may stay until the next comes, or what is large would never get in.
            let from_young =
                self.young.len() > 1 && self.young_bytes > self.most_bytes / YOUNG_PART;
            let (first, second) = if from_young {
                (&mut self.young, &mut self.old)
            } else {
                (&mut self.old, &mut self.young)
            };
            let Some(next) = first.pop_front().or_else(|| second.pop_front()) else {
                break;
            };
            let Some(entry) = next.upgrade().filter(|entry| self.has(entry)) else {
                continue;
            };
            if chances > 0 && entry.used.swap(false, Ordering::Relaxed) {
                chances -= 1;
                if !entry.old.swap(true, Ordering::Relaxed) {
                    self.young_bytes -= entry.bytes();
                }
                self.old.push_back(next);
            } else {
                self.remove(&entry);
                left.push(entry);
            }
        }
        left
    }

    /// Takes places out of the lines that belong to nobody any more, once they are the greater part.
    fn sweep(&mut self) {
        let entries = self.len();
        if self.young.len() + self.old.len() > 2 * entries + 64 {
            for line in [&mut self.young, &mut self.old] {
                line.retain(|place| {
                    place
                        .upgrade()
                        .is_some_and(|entry| !entry.gone.load(Ordering::SeqCst))
                });
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.iter().map(HashMap::len).sum()
    }
}

/// What stands after the last slash; of a folder's name its own, without the slash.
fn last_segment(name: &str) -> &str {
    let name = name.trim_end_matches('/');
    name.rsplit_once('/').map_or(name, |(_, segment)| segment)
}

#[cfg(test)]
impl<V> Store<V> {
    /// Bytes, and the places in both lines.
    pub(super) fn size(&self) -> (u64, usize) {
        (self.bytes, self.young.len() + self.old.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(store: &Store<u32>) {
        let (mut bytes, mut young) = (0, 0);
        for entry in store.all() {
            assert!(!entry.gone.load(Ordering::SeqCst));
            bytes += entry.bytes();
            if !entry.is_old() {
                young += entry.bytes();
            }
        }
        assert_eq!((store.bytes, store.young_bytes), (bytes, young));
        assert!(store.bytes <= store.most_bytes);
        let indexed: Vec<_> = store
            .folders
            .values()
            .flat_map(HashMap::values)
            .flatten()
            .collect();
        assert!(indexed.iter().all(|entry| store.has(entry)));
        let wanted: usize = store.all().map(|entry| entry.folders.len()).sum();
        assert_eq!(indexed.len(), wanted);
        let places = store.young.len() + store.old.len();
        assert!(places <= 2 * store.len() + 64 + 1, "{places}");
    }

    #[test]
    fn the_books_are_right_whatever_is_done() {
        let mut store: Store<u32> = Store::new(20_000);
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        let folders: Vec<Arc<Path>> = ["/a", "/b", "/c"].map(|path| Path::new(path).into()).into();
        for step in 0..20_000 {
            let name = format!("x/{}", random(60));
            let key = Key {
                name: &name,
                form: random(8) as u8,
            };
            let left = match random(10) {
                0..4 => {
                    let folders = folders[..random(4) as usize].to_vec();
                    let entry = Arc::new(Entry::new(key, step, random(3000), folders, 0));
                    store.insert(&entry)
                }
                4..7 => {
                    let found = store.look(key).cloned();
                    found.map_or(Vec::new(), |entry| {
                        entry.used.store(true, Ordering::Relaxed);
                        store.hold(&entry, random(3) as usize).unwrap()
                    })
                }
                7 => store.forget(&name),
                8 => {
                    let file = format!("{}.gz", random(60));
                    store.changed(&folders[random(3) as usize], Some(&file))
                }
                _ if random(50) == 0 => {
                    let before = store.take();
                    check(&before);
                    assert_eq!(store.len(), 0);
                    Vec::new()
                }
                _ => Vec::new(),
            };
            for entry in &left {
                assert!(entry.gone.load(Ordering::SeqCst));
                assert!(!store.has(entry));
                assert!(store.hold(entry, 1).is_none());
            }
            check(&store);
        }
    }

    #[test]
    fn a_change_concerns_the_file_of_that_folder_and_its_other_forms() {
        let mut store: Store<u32> = Store::new(1 << 20);
        let folder: Arc<Path> = Path::new("/site/sub").into();
        for name in [
            "sub/app.js",
            "sub/app.js.gz",
            "sub/app",
            "sub/dir/",
            "other/app.js",
        ] {
            let folders = if name.starts_with("sub") {
                vec![Arc::clone(&folder)]
            } else {
                vec![Path::new("/site/other").into()]
            };
            store.insert(&Arc::new(Entry::new(
                Key { name, form: 0 },
                0,
                0,
                folders,
                0,
            )));
        }
        let mut left = |file: Option<&str>| {
            let left = store.changed(&folder, file);
            let mut names: Vec<_> = left.iter().map(|entry| entry.name.to_string()).collect();
            names.sort();
            names
        };
        assert_eq!(left(Some("nothing.js")), [""; 0]);
        assert_eq!(left(Some("app.js.br")), ["sub/app.js"]);
        assert_eq!(left(Some("app.js.gz")), ["sub/app.js.gz"]);
        assert_eq!(left(Some("dir")), ["sub/dir/"]);
        assert_eq!(left(None), ["sub/app"]);
        assert_eq!(store.len(), 1);
    }
}
