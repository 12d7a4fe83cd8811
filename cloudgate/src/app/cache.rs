//! How does a handler read a file that it needs for every request?

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use bytes::Bytes;

use crate::disk::{self, Cache, Content, Key, Load, Snapshot};
use crate::message::FileVersion;
use crate::net::home;

/// The most bytes of files that are kept, for all workers together.
const MOST_BYTES: u64 = 64 << 20;

/// The largest file that is kept, in bytes.
const LARGEST_KEPT: u64 = 256 << 10;

static FILES: LazyLock<Cache<Paths>> = LazyLock::new(|| Cache::new(Paths, MOST_BYTES));

/// Files by their path.
struct Paths;

/// What is known of a file.
enum Known {
    Content(Snapshot),
    /// It is large, and read each time.
    Large(FileVersion),
    /// It was being written: it is read whenever it is asked for.
    Unsettled,
}

impl Load for Paths {
    type Value = Known;

    fn load(&self, key: Key<'_>) -> io::Result<Known> {
        let snapshot = disk::read(File::open(key.name)?, LARGEST_KEPT)?;
        Ok(match snapshot.content {
            Content::Memory(_) => Known::Content(snapshot),
            Content::Open(_) if snapshot.settled => Known::Large(snapshot.version),
            Content::Open(_) => Known::Unsettled,
        })
    }

    fn is_current(&self, key: Key<'_>, known: &Known) -> bool {
        let version = match known {
            Known::Content(snapshot) => snapshot.version,
            Known::Large(version) => *version,
            Known::Unsettled => return false,
        };
        fs::metadata(key.name).is_ok_and(|metadata| FileVersion::of(&metadata) == version)
    }

    fn cost(&self, known: &Known) -> u64 {
        match known {
            Known::Content(snapshot) => snapshot.version.length(),
            Known::Large(_) => 0,
            Known::Unsettled => u64::MAX,
        }
    }

    fn for_worker(&self, known: &Known) -> Known {
        match known {
            Known::Content(snapshot) => Known::Content(snapshot.for_worker()),
            Known::Large(version) => Known::Large(*version),
            Known::Unsettled => Known::Unsettled,
        }
    }

    fn folders(&self, key: Key<'_>) -> Vec<PathBuf> {
        let path = std::path::absolute(key.name);
        path.ok()
            .and_then(|path| path.parent().map(Path::to_owned))
            .into_iter()
            .collect()
    }
}

/// What the file holds: from memory, compared with the disk at most once a second. The worker
/// serves others while the disk is asked.
///
/// Files of up to 256 KiB are kept; a larger one is read each time. On Linux a change is mostly seen at
/// once, and always within the second. A file that has just been changed is read 20 ms later, so that no
/// half of it is.
///
/// ```
/// let manifest = cloudgate::read_cached("Cargo.toml")?;
/// assert!(manifest.starts_with(b"[package]"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Whatever opening and reading the file gives, with the path in the text.
pub fn read_cached(path: impl AsRef<Path>) -> io::Result<Bytes> {
    let path = path.as_ref();
    let known = match path.to_str() {
        Some(name) => FILES.get(Key { name, form: 0 }).map(Some),
        // Two such names may look the same as text.
        None => Ok(None),
    };
    known
        .and_then(|known| match known.as_deref() {
            Some(Known::Content(Snapshot {
                content: Content::Memory(bytes),
                ..
            })) => Ok(bytes.clone()),
            _ => {
                let owned = path.to_owned();
                home::blocking(move || fs::read(owned)).map(Bytes::from)
            }
        })
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_kept_and_large_ones_and_those_of_the_system_are_read_each_time() {
        let folder = tempfile::tempdir().unwrap();
        for (length, is_kept) in [(LARGEST_KEPT, true), (LARGEST_KEPT + 1, false)] {
            let path = folder.path().join(length.to_string());
            fs::write(&path, vec![7; length as usize]).unwrap();
            let first = read_cached(&path).unwrap();
            assert_eq!(first, vec![7; length as usize]);
            let again = read_cached(&path).unwrap();
            assert_eq!(again, first);
            assert_eq!(again.as_ptr() == first.as_ptr(), is_kept, "{length}");
        }
        assert!(!read_cached("/proc/self/stat").unwrap().is_empty());
        let missing = folder.path().join("missing");
        let error = read_cached(&missing).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("missing"), "{error}");
        assert_eq!(
            read_cached(folder.path()).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
    }

    #[test]
    fn names_that_are_no_text_are_not_taken_for_each_other() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        for name in [b"a\xff", b"a\xfe"] {
            fs::write(folder.path().join(OsStr::from_bytes(name)), name).unwrap();
        }
        for name in [b"a\xff", b"a\xfe"] {
            let path = folder.path().join(OsStr::from_bytes(name));
            assert_eq!(read_cached(path).unwrap(), &name[..]);
        }
    }
}
