//! Which bytes are one whole version of a file, and not a bit of each of two?

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::message::FileVersion;

/// How old the last change of a file has to be before it is read. Linux notes the time of a change by a clock
/// that stands for up to 10 ms: while it does, two versions may look the same.
const SETTLED: Duration = Duration::from_millis(20);

/// How often reading begins again for a file that is being written.
const MOST_TRIES: usize = 5;

/// A file as it was at some moment.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) content: Content,
    pub(crate) version: FileVersion,
    pub(crate) modified: SystemTime,
    /// Whether the content is what the file holds as this version. Where it is not, the file was still being
    /// written, or the system does not know its length (as in /proc).
    pub(crate) settled: bool,
}

/// Where the bytes of a [`Snapshot`] are.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Memory(Bytes),
    Open(Arc<File>),
}

impl Snapshot {
    /// A copy whose bytes have a reference count of their own: what one worker does with it moves no cache
    /// line of the others.
    pub(crate) fn for_worker(&self) -> Snapshot {
        Snapshot {
            content: match &self.content {
                Content::Memory(bytes) => Content::Memory(Bytes::from_owner(bytes.clone())),
                Content::Open(file) => Content::Open(Arc::clone(file)),
            },
            ..*self
        }
    }
}

/// Reads a file of up to `largest` bytes whole, else keeps it open. Takes 20 ms where the file has just been
/// changed, and 100 ms where it is being changed all the time: then it is given as open and not settled.
///
/// A file whose length the system does not know, as those in /proc and /sys, is open and not settled as well:
/// nothing tells its versions apart, and `version` has a length that is not that of the content.
///
/// # Errors
/// What the system says; `InvalidInput` for what is no regular file.
pub(crate) fn read(mut file: File, largest: u64) -> io::Result<Snapshot> {
    let mut tries = 0;
    let (metadata, settled) = loop {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        tries += 1;
        if let Some(rest) = until_settled(&metadata, SystemTime::now()) {
            if tries > MOST_TRIES {
                break (metadata, false);
            }
            std::thread::sleep(rest);
            continue;
        }
        if metadata.len() > largest {
            break (metadata, true);
        }
        let bytes = read_whole(&mut file, metadata.len())?;
        let version = FileVersion::of(&metadata);
        let is_same = FileVersion::of(&file.metadata()?) == version;
        if is_same && bytes.len() as u64 == metadata.len() {
            return Ok(Snapshot {
                content: Content::Memory(bytes.into()),
                version,
                modified: metadata.modified()?,
                settled: true,
            });
        }
        if is_same || tries > MOST_TRIES {
            break (metadata, false);
        }
    };
    file.rewind()?;
    Ok(Snapshot {
        content: Content::Open(Arc::new(file)),
        version: FileVersion::of(&metadata),
        modified: metadata.modified()?,
        settled,
    })
}

/// All bytes of a file that should have `length`, or one more than that.
fn read_whole(file: &mut File, length: u64) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(length + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How long to wait until a change after this one would be seen by its time. A time that lies further in the
/// future comes from another clock, of a file server perhaps, and tells nothing.
fn until_settled(metadata: &Metadata, now: SystemTime) -> Option<Duration> {
    let seconds = u64::try_from(metadata.ctime()).ok()?;
    let rest = u32::try_from(metadata.ctime_nsec()).ok()?;
    let settled = UNIX_EPOCH.checked_add(Duration::new(seconds, rest))? + SETTLED;
    let rest = settled.duration_since(now).ok()?;
    (!rest.is_zero() && rest <= 2 * SETTLED).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::{SeekFrom, Write};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    fn read_path(path: &Path, largest: u64) -> io::Result<Snapshot> {
        read(File::open(path)?, largest)
    }

    #[test]
    fn a_file_is_kept_in_memory_up_to_the_limit_and_open_past_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for (length, is_open) in [(0, false), (1000, false), (1001, true)] {
            fs::write(&path, vec![b'x'; length]).unwrap();
            let snapshot = read_path(&path, 1000).unwrap();
            let metadata = fs::metadata(&path).unwrap();
            assert!(snapshot.settled);
            assert_eq!(snapshot.version, FileVersion::of(&metadata));
            assert_eq!(snapshot.modified, metadata.modified().unwrap());
            match snapshot.content {
                Content::Memory(bytes) => {
                    assert!(!is_open);
                    assert_eq!(bytes, vec![b'x'; length]);
                }
                Content::Open(file) => {
                    assert!(is_open);
                    assert_eq!(file.metadata().unwrap().len(), 1001);
                }
            }
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path(), Path::new("/dev/null")] {
            let error = read_path(path, 1000).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_whose_length_the_system_does_not_know_is_open_and_not_settled() {
        let snapshot = read_path(Path::new("/proc/self/stat"), 1 << 20).unwrap();
        assert!(!snapshot.settled);
        let Content::Open(file) = snapshot.content else {
            panic!("in memory");
        };
        assert!(!io::read_to_string(&*file).unwrap().is_empty());
    }

    #[test]
    fn a_file_is_read_once_a_change_after_the_last_one_would_show() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for length in [10, 2000] {
            fs::write(&path, vec![b'x'; length]).unwrap();
            read_path(&path, 1000).unwrap();
            let metadata = fs::metadata(&path).unwrap();
            assert_eq!(until_settled(&metadata, SystemTime::now()), None);
        }
        let metadata = fs::metadata(&path).unwrap();
        let changed =
            UNIX_EPOCH + Duration::new(metadata.ctime() as u64, metadata.ctime_nsec() as u32);
        let millis = Duration::from_millis;
        for (now, want) in [
            (changed, Some(millis(20))),
            (changed + millis(19), Some(millis(1))),
            (changed + millis(20), None),
            (changed + millis(2000), None),
            (changed - millis(20), Some(millis(40))),
            // The clock of a file server.
            (changed - millis(21), None),
        ] {
            assert_eq!(until_settled(&metadata, now), want);
        }
    }

    #[test]
    fn no_half_of_a_version_is_read_while_the_file_is_overwritten_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, vec![0; 64 << 10]).unwrap();
        let over = AtomicBool::new(false);
        let (mut whole, mut open, mut torn, mut settled) = (0, 0, 0, Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                let mut begun = Instant::now();
                for round in 0_u64.. {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    // Two halves, so that a reader can well come between.
                    let bytes = vec![round as u8; 32 << 10];
                    file.seek(SeekFrom::Start(0)).unwrap();
                    file.write_all(&bytes).unwrap();
                    file.write_all(&bytes).unwrap();
                    // Never at rest for longer than reading is tried, then at rest for long enough.
                    if begun.elapsed() > Duration::from_millis(300) {
                        std::thread::sleep(Duration::from_millis(60));
                        begun = Instant::now();
                    }
                }
            });
            let begin = Instant::now();
            while (whole < 5 || open < 1) && begin.elapsed() < Duration::from_secs(60) {
                let snapshot = read_path(&path, 1 << 20).unwrap();
                match snapshot.content {
                    Content::Memory(bytes) => {
                        settled.push(snapshot.settled);
                        // The writer may stand between its halves for as long as it likes, but each is whole.
                        for half in bytes.chunks(32 << 10) {
                            torn += usize::from(half.iter().any(|byte| *byte != half[0]));
                        }
                        whole += 1;
                    }
                    Content::Open(_) => {
                        settled.push(!snapshot.settled);
                        open += 1;
                    }
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        assert!(whole >= 5 && open >= 1, "{whole} {open}");
        assert_eq!(torn, 0);
        assert!(settled.iter().all(|as_it_should_be| *as_it_should_be));
    }
}
