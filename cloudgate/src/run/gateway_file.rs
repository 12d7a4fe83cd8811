//! How does the configuration file of the gateway come from the disk?

use std::env;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::config::file::{Flags, GatewayFile, Loaded, MOST_BYTES, Mistakes};
use crate::services::gateway::Gateway;

/// Why there is no configuration.
#[derive(Debug)]
pub(crate) enum FileError {
    /// The file cannot be read.
    Unreadable {
        /// Its path as it was given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What it says cannot be used.
    Mistakes(Mistakes),
}

impl FileError {
    /// What the program ends with: 2 where there is no such file, as for any wrong argument, 1 for what stands in it.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            FileError::Unreadable { .. } => 2,
            FileError::Mistakes(_) => 1,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Unreadable { path, source } => {
                write!(
                    f,
                    "cannot read the configuration {}: {source}",
                    path.display()
                )
            }
            FileError::Mistakes(mistakes) => mistakes.fmt(f),
        }
    }
}

impl std::error::Error for FileError {}

/// Reads a configuration file, with the environment and the command line over it. A missing file is an error and never
/// a gateway of defaults.
///
/// It waits for the disk: not for a worker.
///
/// # Errors
/// [`FileError`]
pub(crate) fn load(path: &Path, flags: &Flags) -> Result<Loaded, FileError> {
    let unreadable = |source| FileError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    File::open(path)
        // One byte more than may be, so that a file without an end is told from one that fits.
        .and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    let file = path.to_string_lossy();
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            return Err(FileError::Mistakes(Mistakes::encoding(&file, &error)));
        }
    };
    let env = |name: &str| env::var(name).ok();
    GatewayFile::read(&file, &text, &env, flags, &check_server).map_err(FileError::Mistakes)
}

/// What is wrong with a text that should name a server.
fn check_server(text: &str) -> Result<(), String> {
    let gateway = Gateway::to([text]);
    gateway.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_told_with_its_path_and_ends_with_2() {
        let error = load(Path::new("no/such.yml"), &Flags::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read the configuration no/such.yml: No such file or directory (os error 2)"
        );
        assert_eq!(error.exit_code(), 2);
        let error = load(Path::new("/"), &Flags::default()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn a_file_is_read_and_its_mistakes_end_with_1() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yml");
        let right = "services: [{path: /, servers: [\"localhost:1\"]}]";
        std::fs::write(&path, right).unwrap();
        let loaded = load(&path, &Flags::default()).unwrap();
        assert_eq!(loaded.config.services.len(), 1);
        std::fs::write(&path, "services: 1").unwrap();
        assert_eq!(load(&path, &Flags::default()).unwrap_err().exit_code(), 1);
        std::fs::write(&path, b"services: \xff").unwrap();
        let error = load(&path, &Flags::default()).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        let want = format!("{}:1:11: this is not UTF-8", path.display());
        assert_eq!(error.to_string(), want);
    }
}
