//! Which piece of which version of a file is to be sent?

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A piece of an open file, sent without passing through the program's memory where the system can.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileRange {
    /// The open file.
    pub file: Arc<File>,
    /// Where the piece begins, in bytes.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// On the heap, for most answers are no files and should not be larger for it.
    version: Option<Box<FileVersion>>,
}

impl FileRange {
    /// A piece of whatever the file is while it is sent.
    ///
    /// ```no_run
    /// use cloudgate::{FileRange, FileVersion, Response};
    ///
    /// let file = std::fs::File::open("film.mp4")?;
    /// let version = FileVersion::of(&file.metadata()?);
    /// let range = FileRange::new(file, 0, version.length());
    /// let response = Response::file(range.of_version(version));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(file: impl Into<Arc<File>>, offset: u64, length: u64) -> FileRange {
        FileRange {
            file: file.into(),
            offset,
            length,
            version: None,
        }
    }

    /// The same piece, of this version of the file. Where the file has become another one by the time its
    /// last bytes are sent, the connection is ended in front of them, so that the client can tell.
    #[must_use]
    pub fn of_version(mut self, version: FileVersion) -> FileRange {
        self.version = Some(Box::new(version));
        self
    }

    /// Whether it names a version that is younger than `span`: another may follow soon.
    pub(crate) fn is_restless(&self, span: Duration, now: SystemTime) -> bool {
        let version = self.version.as_deref();
        version.is_some_and(|version| version.is_younger_than(span, now))
    }

    /// Whether a version is named.
    pub(crate) fn has_version(&self) -> bool {
        self.version.is_some()
    }

    /// Whether the file still is the version that the piece is of; always, where none is named.
    ///
    /// # Errors
    /// What the system says where it cannot tell.
    pub(crate) fn is_current(&self) -> io::Result<bool> {
        match &self.version {
            Some(version) => {
                let metadata = self.file.metadata()?;
                let now = FileVersion::of(&metadata);
                // That its last name is taken from a file is a change by its time, but none of its content: who puts
                // a new file in the place of the old one does not end the downloads of that.
                let unnamed = FileVersion {
                    changed: version.changed,
                    ..now
                };
                Ok(now == **version || metadata.nlink() == 0 && unnamed == **version)
            }
            None => Ok(true),
        }
    }
}

/// What tells one version of a file from another: file, length and times of change.
///
/// Two versions are told apart where the system's clock for files has moved between them, which may
/// take some milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileVersion {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileVersion {
    /// The version that has this metadata.
    pub fn of(metadata: &Metadata) -> FileVersion {
        FileVersion {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Its entity-tag (RFC 9110 section 8.8.3), in quotes; `seen` is when its metadata was read.
    ///
    /// It is weak while the file may change again without another time of change.
    pub(crate) fn entity_tag(&self, seen: SystemTime) -> String {
        let weak = if self.is_settled(seen) { "" } else { "W/" };
        format!("{weak}\"{}\"", self.opaque_tag())
    }

    /// What an entity-tag has between its quotes. Of the two times it has the one that nobody can set: many
    /// ways to bring files up to date give all of them the same time of modification.
    pub(crate) fn opaque_tag(&self) -> String {
        let (changed, nanoseconds) = self.changed;
        let (length, inode) = (self.length, self.inode);
        format!("{changed:x}.{nanoseconds:x}-{length:x}-{inode:x}")
    }

    /// Whether its last change is no longer ago than `span`, or in the future.
    fn is_younger_than(&self, span: Duration, now: SystemTime) -> bool {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed = Duration::from_secs(u64::try_from(self.changed.0).unwrap_or_default());
        now < changed.saturating_add(span)
    }

    /// Whether a change behind `seen` would have another time than the last one.
    fn is_settled(&self, seen: SystemTime) -> bool {
        // Some file systems count in whole seconds, and FAT in two of them.
        let latest = self.modified.0.max(self.changed.0);
        let seen = seen.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(seen.as_secs()).is_ok_and(|seen| seen > latest.saturating_add(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_strong_once_a_change_would_be_seen() {
        let seconds = |count| UNIX_EPOCH + Duration::from_secs(count);
        let version = |modified, changed| FileVersion {
            device: 1,
            inode: 16,
            length: 255,
            modified: (modified, 0),
            changed: (changed, 17),
        };
        assert_eq!(version(16, 16).entity_tag(seconds(19)), "\"10.11-ff-10\"");
        assert_eq!(version(16, 16).entity_tag(seconds(18)), "W/\"10.11-ff-10\"");
        // An old date may have been set just now.
        assert_eq!(version(16, 30).entity_tag(seconds(32)), "W/\"1e.11-ff-10\"");
        assert_eq!(version(30, 16).entity_tag(seconds(20)), "W/\"10.11-ff-10\"");
        assert_eq!(version(30, 16).entity_tag(UNIX_EPOCH), "W/\"10.11-ff-10\"");
    }

    #[test]
    fn a_version_is_restless_for_its_time() {
        let span = Duration::from_secs(10);
        let file = tempfile::tempfile().unwrap();
        let version = FileVersion::of(&file.metadata().unwrap());
        let changed = UNIX_EPOCH + Duration::from_secs(version.changed.0 as u64);
        let range = FileRange::new(file, 0, 0);
        assert!(!range.is_restless(span, changed));
        let range = range.of_version(version);
        for (seconds, want) in [(0, true), (9, true), (10, false), (99, false)] {
            assert_eq!(
                range.is_restless(span, changed + Duration::from_secs(seconds)),
                want
            );
        }
        assert!(range.is_restless(span, changed - Duration::from_secs(99)));
    }

    #[test]
    fn a_file_that_loses_its_name_is_the_same_as_long_as_nobody_writes_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let file = Arc::new(File::options().write(true).open(&path).unwrap());
        let version = FileVersion::of(&file.metadata().unwrap());
        let range = FileRange::new(Arc::clone(&file), 0, 3).of_version(version);
        // Until the clock for files has moved.
        let settle = || std::thread::sleep(std::time::Duration::from_millis(25));
        settle();
        std::fs::write(folder.path().join("b"), "two").unwrap();
        std::fs::rename(folder.path().join("b"), &path).unwrap();
        assert_ne!(FileVersion::of(&file.metadata().unwrap()), version);
        assert!(range.is_current().unwrap());
        settle();
        std::io::Write::write_all(&mut &*file, b"One").unwrap();
        assert!(!range.is_current().unwrap());
    }

    #[test]
    fn another_length_or_another_file_is_another_version() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        let version = FileVersion::of(&file.metadata().unwrap());
        assert_eq!(version.length(), 3);
        let range = FileRange::new(Arc::clone(&file), 0, 3).of_version(version);
        assert!(range.is_current().unwrap());
        std::fs::write(&path, "three").unwrap();
        assert!(!range.is_current().unwrap());
        assert!(FileRange::new(file, 0, 3).is_current().unwrap());
        let other = folder.path().join("b");
        std::fs::write(&other, "one").unwrap();
        assert_ne!(
            FileVersion::of(&std::fs::metadata(&other).unwrap()),
            version
        );
    }
}
