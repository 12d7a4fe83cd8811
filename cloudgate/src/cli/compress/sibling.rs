//! How does a sibling come to be, all of it or not at all?

use std::ffi::OsString;
use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use super::encode::{self, Coding};

/// What the name of a file begins and ends with while it is written. The server hides what begins with a
/// dot, and the next run removes what a killed one has left.
const PREFIX: &str = ".cloudgate-";
const SUFFIX: &str = ".tmp";

/// How many files are begun until one is not taken away by other runs.
const TRIES: usize = 100;

/// What became of a sibling.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// It is there, with this many bytes in place of so many.
    Written { before: u64, after: u64 },
    /// It would hardly be smaller, so there is none.
    NotSmaller,
}

/// The name of a file's sibling: `app.js.br`.
pub(super) fn path(file: &Path, coding: Coding) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".");
    name.push(coding.ending());
    name.into()
}

/// Whether this is the name of a file that is being written.
pub(super) fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

pub(super) fn not_regular() -> io::Error {
    io::Error::new(
        ErrorKind::AlreadyExists,
        "is there already and is no regular file",
    )
}

/// Makes a file's sibling, or removes it where it would not be at least 2 % smaller. What reads the
/// file goes through `watch`.
///
/// It is written under another name in the same folder and then renamed, so it is never seen half. It has
/// the file's owner, where that can be given, its permissions, and its time of change: a later change to
/// the file makes it stale.
///
/// # Errors
/// Of reading and writing; the sibling is as it was then.
pub(super) fn make<R: Read>(
    file: &Path,
    coding: Coding,
    level: u32,
    watch: impl FnOnce(File) -> R,
) -> io::Result<Made> {
    let source = open(file)?;
    let before = source.metadata()?;
    let sibling = path(file, coding);
    let folder = file.parent().unwrap_or(Path::new("."));
    let temporary = temporary_in(folder)?;
    let target = temporary.as_file();
    let kept = source.try_clone()?;
    encode::encode(coding, level, &mut watch(source), before.len(), target)?;
    if has_changed(&before, &kept.metadata()?) {
        return Err(io::Error::other("has changed while it was compressed"));
    }
    let after = target.metadata()?.len();
    if after > before.len() - before.len().div_ceil(50) {
        remove(&sibling)?;
        return Ok(Made::NotSmaller);
    }
    // Only root can give away what it has; for others the file is theirs already.
    let _ = fchown(target, Some(before.uid()), Some(before.gid()));
    target.set_permissions(Permissions::from_mode(before.mode() & 0o777))?;
    target.set_modified(before.modified()?)?;
    // A machine that loses power may forget the bytes and know the name: empty, and up to date for good.
    target.sync_all()?;
    temporary.persist(&sibling).map_err(|error| error.error)?;
    Ok(Made::Written {
        before: before.len(),
        after,
    })
}

/// A new file in this folder, locked, which says to other runs that this one is at work.
fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    for _ in 0..TRIES {
        let temporary = tempfile::Builder::new()
            .prefix(PREFIX)
            .suffix(SUFFIX)
            .tempfile_in(folder)
            .map_err(without_path)?;
        let file = temporary.as_file();
        match file.try_lock() {
            // Before it was locked another run may have taken it for left behind, and away.
            Ok(()) if file.metadata()?.nlink() > 0 => return Ok(temporary),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // Where locks are not to be had others may take it away, and the rename fails.
            Err(TryLockError::Error(_)) => return Ok(temporary),
        }
    }
    Err(io::Error::other(
        "other runs take each file away that is begun",
    ))
}

/// Whether no run is at work on it.
pub(super) fn is_left_behind(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

/// Removes what a run has left behind that was killed. It is locked meanwhile, so no run begins to write it.
pub(super) fn remove_if_left_behind(path: &Path) {
    if let Ok(file) = File::open(path)
        && file.try_lock().is_ok()
    {
        // Another run may have been faster.
        let _ = fs::remove_file(path);
    }
}

/// Removes a sibling that is there.
pub(super) fn remove(sibling: &Path) -> io::Result<()> {
    match fs::symlink_metadata(sibling) {
        Ok(metadata) if metadata.is_file() => fs::remove_file(sibling),
        Ok(_) => Err(not_regular()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens what is a regular file, also where it was replaced by something else after it was found.
fn open(file: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let source = File::options()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(file)?;
    if !source.metadata()?.is_file() {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "is no regular file any more",
        ));
    }
    Ok(source)
}

fn has_changed(before: &Metadata, after: &Metadata) -> bool {
    let of = |of: &Metadata| {
        (
            of.len(),
            of.mtime(),
            of.mtime_nsec(),
            of.ctime(),
            of.ctime_nsec(),
        )
    };
    of(before) != of(after)
}

/// Without the name of the temporary file, which says nothing to anybody.
fn without_path(error: io::Error) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn who_cleans_up_takes_nothing_from_who_begins() {
        let folder = tempfile::tempdir().unwrap();
        let done = AtomicBool::new(false);
        let begin = || -> io::Result<()> {
            for _ in 0..500 {
                let temporary = temporary_in(folder.path())?;
                std::thread::yield_now();
                if temporary.as_file().metadata()?.nlink() != 1 {
                    return Err(io::Error::other("it was taken away"));
                }
            }
            Ok(())
        };
        let begun = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    for entry in fs::read_dir(folder.path()).unwrap().flatten() {
                        remove_if_left_behind(&entry.path());
                    }
                    std::thread::sleep(std::time::Duration::from_micros(20));
                }
            });
            let begun = begin();
            done.store(true, Ordering::SeqCst);
            begun
        });
        begun.unwrap();
    }
}
