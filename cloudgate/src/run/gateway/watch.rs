//! Has a file changed?

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What is known of a file without reading it. Links are followed: what containers mount is links of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

/// A file that may change.
pub(super) struct Watch {
    path: PathBuf,
    /// As it was when it was last told to have changed.
    known: Option<Stamp>,
    /// As it was when it was last looked at: one that is being written changes again.
    seen: Option<Stamp>,
}

impl Watch {
    pub(super) fn new(path: &Path) -> Watch {
        let stamp = stamp(path);
        Watch {
            path: path.to_owned(),
            known: stamp,
            seen: stamp,
        }
    }

    /// Whether it has changed, and rests since the last look.
    pub(super) fn has_changed(&mut self) -> bool {
        let stamp = stamp(&self.path);
        let rests = stamp == self.seen;
        self.seen = stamp;
        // One that is gone may be on its way back.
        let changed = rests && stamp.is_some() && stamp != self.known;
        if changed {
            self.known = stamp;
        }
        changed
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let said = fs::metadata(path).ok()?;
    Some(Stamp {
        device: said.dev(),
        inode: said.ino(),
        length: said.len(),
        changed: (said.ctime(), said.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_and_when_it_rests() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yml");
        fs::write(&path, "a").unwrap();
        let mut watch = Watch::new(&path);
        assert!(!watch.has_changed());
        fs::write(&path, "ab").unwrap();
        assert!(!watch.has_changed());
        assert!(watch.has_changed());
        assert!(!watch.has_changed());
        fs::remove_file(&path).unwrap();
        assert!(!watch.has_changed());
        assert!(!watch.has_changed());
        fs::write(&path, "abc").unwrap();
        assert!(!watch.has_changed());
        assert!(watch.has_changed());
    }
}
