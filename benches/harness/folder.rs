//! Where do the files lie that the servers of one run need?

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::child::Sweeper;

/// A temporary folder that is removed when this process ends, however it ends.
pub(crate) struct Folder {
    dir: PathBuf,
    _sweeper: Sweeper,
}

impl Folder {
    pub(crate) fn fresh() -> Result<Self, String> {
        let moment = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |age| age.as_nanos());
        let dir = std::env::temp_dir().join(format!(
            "{}{}-{moment}",
            Sweeper::PREFIX,
            std::process::id()
        ));
        fs::create_dir(&dir).map_err(|error| {
            format!(
                "cannot make {}: {error}; set TMPDIR to a folder that can be written",
                dir.display()
            )
        })?;
        let sweeper = Sweeper::watch(&dir)?;
        Ok(Self {
            dir,
            _sweeper: sweeper,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Writes a file; its name may have folders in front.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let path = self.dir.join(name);
        path.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }
}
