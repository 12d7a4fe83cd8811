//! Where do the files of a site come from?

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::SystemTime;

use super::contents;
use super::listing::Items;
use super::resolve::DotNames;
use super::root::Root;
use crate::disk::{self, Content};
use crate::message::FileVersion;

/// A place that files are taken from.
#[derive(Debug)]
pub(super) enum Source {
    /// A folder of the disk.
    Folder(Root),
    /// A folder that is part of the program.
    #[cfg(feature = "embed")]
    Embedded(super::embedded::Embedded),
}

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File(Stamp),
    Folder,
}

/// What tells whether a file still is what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// `None` for what cannot change.
    pub(super) version: Option<FileVersion>,
    pub(super) length: u64,
    pub(super) modified: Option<SystemTime>,
}

/// A file that was read, or opened to be read.
pub(super) struct Read {
    pub(super) content: Content,
    pub(super) stamp: Stamp,
    /// Whether the content is what the file holds as this version, and not on its way to the next.
    pub(super) settled: bool,
}

impl Source {
    /// What lies at this path. May block.
    ///
    /// # Errors
    /// What the system says; [`is_missing`] tells what a client hears as 404.
    pub(super) fn kind(&self, path: &str) -> io::Result<Kind> {
        match self {
            Source::Folder(root) => kind_of(root.look_beneath(path)?),
            #[cfg(feature = "embed")]
            Source::Embedded(folder) => folder.kind(path),
        }
    }

    /// As [`Source::kind`], for a worker: `WouldBlock` where the answer would have to be waited for.
    pub(super) fn kind_at_once(&self, path: &str) -> io::Result<Kind> {
        match self {
            Source::Folder(root) => kind_of(root.look_at_once(path)?),
            #[cfg(feature = "embed")]
            Source::Embedded(folder) => folder.kind(path),
        }
    }

    /// Reads a file of up to `largest` bytes, and opens a larger one. May block.
    ///
    /// # Errors
    /// As [`Source::kind`].
    pub(super) fn read(&self, path: &str, largest: u64) -> io::Result<Read> {
        match self {
            Source::Folder(root) => {
                let snapshot = disk::read(root.open_beneath(path)?, largest)?;
                Ok(Read {
                    content: snapshot.content,
                    stamp: Stamp {
                        version: Some(snapshot.version),
                        length: snapshot.version.length(),
                        modified: Some(snapshot.modified),
                    },
                    settled: snapshot.settled,
                })
            }
            #[cfg(feature = "embed")]
            Source::Embedded(folder) => folder.read(path),
        }
    }

    /// What is to be seen in the folder at this path. May block.
    ///
    /// # Errors
    /// As [`Source::kind`].
    pub(super) fn list(&self, path: &str, dot_names: DotNames) -> io::Result<Items> {
        match self {
            Source::Folder(root) => contents::list(root, path, dot_names),
            #[cfg(feature = "embed")]
            Source::Embedded(folder) => folder.list(path, dot_names),
        }
    }

    /// The absolute folder in which what lies at this path is found, if it is one of the disk.
    pub(super) fn folder_of(&self, path: &str) -> Option<PathBuf> {
        match self {
            Source::Folder(root) => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                Some(root.path().join(folder))
            }
            #[cfg(feature = "embed")]
            Source::Embedded(_) => None,
        }
    }
}

fn kind_of(looked: OwnedFd) -> io::Result<Kind> {
    let metadata = File::from(looked).metadata()?;
    if metadata.is_dir() {
        Ok(Kind::Folder)
    } else if metadata.is_file() {
        Ok(Kind::File(Stamp {
            version: Some(FileVersion::of(&metadata)),
            length: metadata.len(),
            modified: metadata.modified().ok(),
        }))
    } else {
        Err(ErrorKind::InvalidInput.into())
    }
}

/// Whether this error of the system means that there is nothing to be shown at a path.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename
            | ErrorKind::PermissionDenied
            | ErrorKind::CrossesDevices
    )
}
