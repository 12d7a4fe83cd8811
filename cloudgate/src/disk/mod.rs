//! How are files read without holding a worker up?
//!
//! Opening and reading happen on the blocking pool. What is read often stays in memory and is
//! compared with the disk at most once a second.

pub(crate) mod reader;

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;

use crate::net::home;

/// How long an entry is served before it is compared with the disk again.
const FRESH: Duration = Duration::from_secs(1);

/// The largest file that is kept in memory, in bytes; larger ones are opened each time.
const LARGEST_KEPT: u64 = 256 << 10;

/// A file as it was when it was last compared with the disk.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) content: Content,
    /// Length in bytes.
    pub(crate) length: u64,
    pub(crate) modified: SystemTime,
    identity: Identity,
}

/// Where the bytes of a [`Snapshot`] are.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Memory(Bytes),
    Open(Arc<File>),
}

/// What tells that a file is the same file with the same content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    fn of(metadata: &Metadata) -> Identity {
        Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Snapshot {
    /// A text that differs whenever the content may: for a strong entity-tag (RFC 9110 section 8.8.3).
    pub(crate) fn tag(&self) -> String {
        let Identity {
            length,
            modified,
            inode,
            ..
        } = self.identity;
        format!("{:x}.{:x}-{length:x}-{inode:x}", modified.0, modified.1)
    }

    fn read(mut file: File, metadata: &Metadata) -> io::Result<Snapshot> {
        let identity = Identity::of(metadata);
        let content = if identity.length > LARGEST_KEPT {
            Content::Open(Arc::new(file))
        } else {
            let mut bytes = Vec::with_capacity(identity.length as usize);
            (&mut file).take(LARGEST_KEPT + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 != identity.length {
                return Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    "the file changed while it was read",
                ));
            }
            Content::Memory(bytes.into())
        };
        let modified = metadata.modified()?;
        Ok(Snapshot {
            content,
            length: identity.length,
            modified,
            identity,
        })
    }
}

/// Files by name, with something that was made from each; bounded by bytes.
///
/// Each worker has a share of its own, so its lock is never waited for.
pub(crate) struct Cache<T> {
    shares: Vec<Mutex<Share<T>>>,
    most_bytes: u64,
}

struct Share<T> {
    entries: HashMap<String, Entry<T>>,
    bytes: u64,
}

struct Entry<T> {
    snapshot: Arc<Snapshot>,
    made: Arc<T>,
    checked: Instant,
}

/// The bytes that an entry counts besides its content, for a small file is not free either.
const ENTRY_BYTES: u64 = 1024;

impl<T> Cache<T> {
    /// An empty cache of up to `most_bytes` on each worker.
    pub(crate) fn new(most_bytes: u64) -> Cache<T> {
        // More than the workers that any machine has: the worker count may be settled later.
        let share = || {
            Mutex::new(Share {
                entries: HashMap::new(),
                bytes: 0,
            })
        };
        Cache {
            shares: (0..64).map(|_| share()).collect(),
            most_bytes,
        }
    }

    /// The file of this name: from memory if it was compared with the disk in the last second, else
    /// opened on a thread that may block, and compared or read again. `opener` is asked for what
    /// opens it only then, and `make` is called when the content is new.
    ///
    /// # Errors
    /// Whatever opening and reading give; `InvalidInput` for what is no regular file.
    pub(crate) fn get<O>(
        &self,
        name: &str,
        opener: impl Fn() -> O,
        make: impl Fn(&Snapshot) -> T,
    ) -> io::Result<(Arc<Snapshot>, Arc<T>)>
    where
        O: FnOnce() -> io::Result<File> + Send + 'static,
    {
        let look = || self.look(name, &opener, &make);
        look().or_else(|error| match error.kind() {
            // Pushed out of memory, or changed, at the very moment.
            io::ErrorKind::Interrupted | io::ErrorKind::ResourceBusy => look(),
            _ => Err(error),
        })
    }

    fn look<O>(
        &self,
        name: &str,
        opener: &impl Fn() -> O,
        make: &impl Fn(&Snapshot) -> T,
    ) -> io::Result<(Arc<Snapshot>, Arc<T>)>
    where
        O: FnOnce() -> io::Result<File> + Send + 'static,
    {
        let known = {
            let share = self.share().lock().unwrap_or_else(PoisonError::into_inner);
            match share.entries.get(name) {
                Some(entry) if entry.checked.elapsed() < FRESH => {
                    return Ok((Arc::clone(&entry.snapshot), Arc::clone(&entry.made)));
                }
                entry => entry.map(|entry| entry.snapshot.identity),
            }
        };
        let open = opener();
        let checked = Instant::now();
        let read = home::blocking(move || {
            let file = open()?;
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "not a regular file",
                ));
            }
            if known == Some(Identity::of(&metadata)) {
                Ok(None)
            } else {
                Snapshot::read(file, &metadata).map(Some)
            }
        });
        let mut share = self.share().lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Err(error) => {
                share.remove(name);
                Err(error)
            }
            Ok(Some(snapshot)) => {
                let made = Arc::new(make(&snapshot));
                let snapshot = Arc::new(snapshot);
                share.remove(name);
                // Large files are opened each time: thousands of them would use the descriptors up.
                if let Content::Memory(_) = snapshot.content {
                    let entry = Entry {
                        snapshot: Arc::clone(&snapshot),
                        made: Arc::clone(&made),
                        checked,
                    };
                    share.insert(name, entry, self.most_bytes);
                }
                Ok((snapshot, made))
            }
            Ok(None) => match share.entries.get_mut(name) {
                Some(entry) => {
                    entry.checked = entry.checked.max(checked);
                    Ok((Arc::clone(&entry.snapshot), Arc::clone(&entry.made)))
                }
                // Pushed out meanwhile: it is looked for once more, and read.
                None => Err(io::ErrorKind::Interrupted.into()),
            },
        }
    }

    fn share(&self) -> &Mutex<Share<T>> {
        // The last one is for threads that are no worker.
        let last = self.shares.len() - 1;
        &self.shares[home::current().map_or(last, |worker| worker % last)]
    }
}

impl<T> Share<T> {
    fn remove(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            self.bytes -= entry.cost();
        }
    }

    fn insert(&mut self, name: &str, entry: Entry<T>, most_bytes: u64) {
        self.bytes += entry.cost();
        self.entries.insert(name.to_owned(), entry);
        while self.bytes > most_bytes {
            let oldest = self
                .entries
                .iter()
                .min_by_key(|(_, entry)| entry.checked)
                .map(|(name, _)| name.clone());
            match oldest {
                Some(oldest) => self.remove(&oldest),
                None => break,
            }
        }
    }
}

impl<T> Entry<T> {
    fn cost(&self) -> u64 {
        match &self.snapshot.content {
            Content::Memory(bytes) => ENTRY_BYTES + bytes.len() as u64,
            Content::Open(_) => ENTRY_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn get(cache: &Cache<usize>, path: &std::path::Path) -> io::Result<Bytes> {
        let owned = path.to_owned();
        let name = path.display().to_string();
        let (snapshot, made) = cache.get(
            &name,
            || {
                let owned = owned.clone();
                move || File::open(owned)
            },
            |snapshot| snapshot.length as usize,
        )?;
        assert_eq!(*made as u64, snapshot.length);
        match &snapshot.content {
            Content::Memory(bytes) => Ok(bytes.clone()),
            Content::Open(_) => Ok(Bytes::from_static(b"open")),
        }
    }

    fn age(cache: &Cache<usize>) {
        for share in &cache.shares {
            for entry in share.lock().unwrap().entries.values_mut() {
                entry.checked -= FRESH;
            }
        }
    }

    #[test]
    fn a_changed_replaced_or_deleted_file_is_noticed_once_its_second_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let cache = Cache::new(1 << 20);
        fs::write(&path, "one").unwrap();
        assert_eq!(get(&cache, &path).unwrap(), "one");
        fs::write(&path, "three").unwrap();
        assert_eq!(get(&cache, &path).unwrap(), "one");
        age(&cache);
        assert_eq!(get(&cache, &path).unwrap(), "three");
        age(&cache);
        assert_eq!(get(&cache, &path).unwrap(), "three");
        fs::remove_file(&path).unwrap();
        age(&cache);
        assert_eq!(
            get(&cache, &path).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        fs::write(&path, "again").unwrap();
        assert_eq!(get(&cache, &path).unwrap(), "again");
    }

    #[test]
    fn large_files_stay_on_disk_and_the_memory_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(3 * (ENTRY_BYTES + 1000));
        for name in ["a", "b", "c", "d", "e"] {
            let path = folder.path().join(name);
            fs::write(&path, vec![b'x'; 1000]).unwrap();
            get(&cache, &path).unwrap();
        }
        let share = cache.share().lock().unwrap();
        assert_eq!(
            (share.entries.len(), share.bytes),
            (3, 3 * (ENTRY_BYTES + 1000))
        );
        drop(share);
        for (length, want_open) in [(LARGEST_KEPT, false), (LARGEST_KEPT + 1, true)] {
            let path = folder.path().join("large");
            fs::write(&path, vec![b'x'; length as usize]).unwrap();
            age(&cache);
            assert_eq!(get(&cache, &path).unwrap() == "open", want_open);
        }
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(1 << 20);
        assert_eq!(
            get(&cache, folder.path()).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }
}
