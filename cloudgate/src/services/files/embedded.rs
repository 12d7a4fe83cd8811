//! How are files served that are part of the program?

use std::io::{self, ErrorKind};
use std::time::SystemTime;

use bytes::Bytes;
use include_dir::{Dir, DirEntry};

use super::listing::{Item, Items, MOST_ITEMS};
use super::resolve::{DotNames, is_shown};
use super::source::{Kind, Read, Stamp};
use crate::disk::Content;

/// A folder that was put into the program when it was built, by [`include_files!`](crate::include_files).
#[derive(Clone, Debug)]
pub struct Embedded(&'static Dir<'static>);

impl Embedded {
    /// What [`include_files!`](crate::include_files) has put into the program.
    #[doc(hidden)]
    pub const fn new(folder: &'static Dir<'static>) -> Embedded {
        Embedded(folder)
    }

    fn entry(&self, path: &str) -> io::Result<Option<&'static DirEntry<'static>>> {
        if path.is_empty() {
            return Ok(None);
        }
        let entry = self.0.get_entry(path);
        entry.map(Some).ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub(super) fn kind(&self, path: &str) -> io::Result<Kind> {
        Ok(match self.entry(path)? {
            Some(DirEntry::File(file)) => Kind::File(stamp(file)),
            Some(DirEntry::Dir(_)) | None => Kind::Folder,
        })
    }

    pub(super) fn read(&self, path: &str) -> io::Result<Read> {
        match self.entry(path)? {
            Some(DirEntry::File(file)) => Ok(Read {
                content: Content::Memory(Bytes::from_static(file.contents())),
                stamp: stamp(file),
                settled: true,
            }),
            Some(DirEntry::Dir(_)) | None => Err(ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn list(&self, path: &str, dot_names: DotNames) -> io::Result<Items> {
        let folder = match self.entry(path)? {
            None => self.0,
            Some(DirEntry::Dir(folder)) => folder,
            Some(DirEntry::File(_)) => return Err(ErrorKind::NotADirectory.into()),
        };
        let shown = folder.entries().iter().filter_map(|entry| {
            let name = entry.path().file_name()?.to_str()?;
            is_shown(name, dot_names).then(|| Item {
                name: name.to_owned(),
                is_folder: entry.as_dir().is_some(),
                length: entry
                    .as_file()
                    .map_or(0, |file| file.contents().len() as u64),
                modified: entry.as_file().and_then(modified),
            })
        });
        let mut items = Items {
            shown: shown.take(MOST_ITEMS + 1).collect(),
            has_more: false,
        };
        items.has_more = items.shown.len() > MOST_ITEMS;
        items.shown.truncate(MOST_ITEMS);
        Ok(items)
    }
}

fn stamp(file: &include_dir::File<'_>) -> Stamp {
    Stamp {
        version: None,
        length: file.contents().len() as u64,
        modified: modified(file),
    }
}

fn modified(file: &include_dir::File<'_>) -> Option<SystemTime> {
    file.metadata().map(include_dir::Metadata::modified)
}
