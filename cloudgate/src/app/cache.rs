//! How does a handler read a file that it needs for every request?

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use bytes::Bytes;

use crate::disk::{Cache, Content};

/// The most bytes of files that are kept on each worker.
const MOST_BYTES: u64 = 32 << 20;

static FILES: LazyLock<Cache<()>> = LazyLock::new(|| Cache::new(MOST_BYTES));

/// What the file holds: from memory, compared with the disk at most once a second. The worker
/// serves others while the disk is asked.
///
/// Files of up to 256 KiB are kept; a larger one is read each time.
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
    let open = || {
        let owned = path.to_owned();
        move || File::open(owned)
    };
    FILES
        .get(&path.to_string_lossy(), open, |_| ())
        .and_then(|(snapshot, _)| match &snapshot.content {
            Content::Memory(bytes) => Ok(bytes.clone()),
            Content::Open(_) => {
                let owned = path.to_owned();
                crate::net::home::blocking(move || std::fs::read(owned)).map(Bytes::from)
            }
        })
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
