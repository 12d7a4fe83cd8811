//! Which siblings does a folder lack?

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::encode::Coding;
use super::sibling;
use crate::message::mime;
use crate::services::coding::compressible::is_compressible;

/// What is looked for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) codings: Vec<Coding>,
    /// Smaller files are left alone.
    pub(super) min_size: u64,
    /// Siblings that are up to date are made again.
    pub(super) force: bool,
}

/// A sibling to be made.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) path: PathBuf,
    pub(super) coding: Coding,
    /// Bytes of the file, to be done with the largest first and to show how far that is.
    pub(super) length: u64,
}

/// A sibling that is up to date.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) coding: Coding,
    pub(super) before: u64,
    pub(super) after: u64,
}

/// What stands in a folder and the folders in it.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Files that can have siblings, and their bytes.
    pub(super) files: usize,
    pub(super) bytes: u64,
    /// Files that could have siblings, but are too small.
    pub(super) too_small: usize,
    pub(super) jobs: Vec<Job>,
    pub(super) present: Vec<Present>,
    /// Old siblings of files that have become too small.
    pub(super) stale: Vec<PathBuf>,
    /// What a killed run has left behind.
    pub(super) remains: Vec<PathBuf>,
    /// What could not be read, and why.
    pub(super) failures: Vec<(PathBuf, io::Error)>,
}

/// Looks at a folder and the folders in it; links are not followed, and what is hidden from the
/// server's clients is left alone.
///
/// # Errors
/// When the folder itself cannot be read.
pub(super) fn find(folder: &Path, wanted: &Wanted) -> io::Result<Found> {
    let mut found = Found::default();
    let mut entries = fs::read_dir(folder)?;
    let mut folders = Vec::new();
    let mut here = folder.to_owned();
    loop {
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                Ok((path, kind)) if kind.is_dir() => {
                    if !is_hidden(&path) {
                        folders.push(path);
                    }
                }
                Ok((path, kind)) if kind.is_file() => found.look_at(path, wanted),
                Ok(_) => {}
                Err(error) => found.failures.push((here.clone(), error)),
            }
        }
        entries = loop {
            let Some(next) = folders.pop() else {
                // The largest first: at the end no thread is left alone with one of them.
                found.jobs.sort_by_key(|job| std::cmp::Reverse(job.length));
                return Ok(found);
            };
            here = next;
            match fs::read_dir(&here) {
                Ok(entries) => break entries,
                Err(error) => found.failures.push((here.clone(), error)),
            }
        };
    }
}

impl Found {
    fn look_at(&mut self, path: PathBuf, wanted: &Wanted) {
        if sibling::is_temporary(&path) {
            if sibling::is_left_behind(&path) {
                self.remains.push(path);
            }
            return;
        }
        if is_hidden(&path) || !has_siblings(&path) {
            return;
        }
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) => {
                self.failures.push((path, error));
                return;
            }
        };
        let length = metadata.len();
        let too_small = length < wanted.min_size;
        if too_small {
            self.too_small += 1;
        } else {
            self.files += 1;
            self.bytes += length;
        }
        for coding in wanted.codings.iter().copied() {
            let name = sibling::path(&path, coding);
            match state(&name, &metadata) {
                Ok(State::UpToDate(after)) if !wanted.force => {
                    if !too_small {
                        self.present.push(Present {
                            coding,
                            before: length,
                            after,
                        });
                    }
                }
                Ok(State::Stale | State::UpToDate(_)) if too_small => self.stale.push(name),
                Ok(_) if too_small => {}
                Ok(_) => self.jobs.push(Job {
                    path: path.clone(),
                    coding,
                    length,
                }),
                Err(error) => self.failures.push((name, error)),
            }
        }
    }
}

enum State {
    Missing,
    Stale,
    /// With its length.
    UpToDate(u64),
}

/// Compares a sibling with its file, as the server does.
fn state(sibling: &Path, file: &Metadata) -> io::Result<State> {
    let metadata = match fs::symlink_metadata(sibling) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(State::Missing),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Err(sibling::not_regular());
    }
    if metadata.modified()? < file.modified()? {
        return Ok(State::Stale);
    }
    Ok(State::UpToDate(metadata.len()))
}

/// Names that the server does not give out either.
fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".") && name != ".well-known"
}

fn has_siblings(path: &Path) -> bool {
    let is_sibling = Coding::ALL
        .iter()
        .any(|coding| path.extension() == Some(OsStr::new(coding.ending())));
    let media_type = mime::content_type(path);
    !is_sibling && is_compressible(media_type.split(';').next().unwrap_or_default())
}
