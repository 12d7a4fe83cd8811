//! Where do the bytes of a form's files go while they arrive?
//!
//! Into memory while they are few; past the limits into one unnamed file a form, so a form takes one
//! descriptor however many files it brings. The worker never writes: a full piece goes to a thread that
//! may block, and the upload waits for it, which is what slows a client down that is faster than the disk.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;

use super::error::MultipartError;
use super::file::{Content, Unnamed};
use super::limits::MultipartLimits;
use crate::net::home;

/// How much is written at once, in bytes.
const PIECE: usize = 256 << 10;

/// Takes the files of one form, one after the other.
pub(super) struct Spool {
    limits: Arc<MultipartLimits>,
    /// Made when the first file does not stay in memory.
    disk: Option<Arc<Unnamed>>,
    /// Where the next byte goes on disk.
    end: u64,
    memory_left: usize,
    buffer: Vec<u8>,
    /// Where on disk the file that arrives begins; `None` while it is in memory.
    start: Option<u64>,
}

impl Spool {
    pub(super) fn new(limits: Arc<MultipartLimits>) -> Spool {
        Spool {
            memory_left: limits.memory,
            limits,
            disk: None,
            end: 0,
            buffer: Vec::new(),
            start: None,
        }
    }

    /// More of the file that arrives.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<(), MultipartError> {
        let most = self.limits.memory_per_file.min(self.memory_left);
        if self.start.is_none() && bytes.len() > most.saturating_sub(self.buffer.len()) {
            self.start = Some(self.end);
        }
        if self.start.is_none() {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        while !bytes.is_empty() {
            // Reserved at once: growing by doubling would copy each piece some times.
            self.buffer
                .reserve_exact(PIECE.saturating_sub(self.buffer.len()));
            let room = PIECE.saturating_sub(self.buffer.len());
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() >= PIECE {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// The file that arrived is complete.
    pub(super) fn finish(&mut self) -> Result<Content, MultipartError> {
        let Some(start) = self.start else {
            let mut bytes = std::mem::take(&mut self.buffer);
            bytes.shrink_to_fit();
            self.memory_left -= bytes.len().min(self.memory_left);
            return Ok(Content::Memory(Bytes::from(bytes)));
        };
        let disk = self.flush()?;
        self.start = None;
        Ok(Content::Disk {
            file: disk,
            offset: start,
            length: self.end - start,
        })
    }

    /// Writes what is kept, on a thread that may block.
    fn flush(&mut self) -> Result<Arc<Unnamed>, MultipartError> {
        if let (true, Some(disk)) = (self.buffer.is_empty(), &self.disk) {
            return Ok(Arc::clone(disk));
        }
        let limits = Arc::clone(&self.limits);
        let known = self.disk.clone();
        let mut buffer = std::mem::take(&mut self.buffer);
        let end = self.end;
        let count = buffer.len();
        let written = home::blocking(move || -> io::Result<(Arc<Unnamed>, Vec<u8>)> {
            let disk = match known {
                Some(disk) => disk,
                None => Arc::new(Unnamed::new(match &limits.folder {
                    Some(folder) => tempfile::tempfile_in(folder)?,
                    None => tempfile::tempfile()?,
                })),
            };
            disk.file()?.write_all_at(&buffer, end)?;
            buffer.clear();
            Ok((disk, buffer))
        });
        let (disk, buffer) = written.map_err(|source| MultipartError::Storage {
            folder: self
                .limits
                .folder
                .clone()
                .unwrap_or_else(std::env::temp_dir),
            source,
        })?;
        self.buffer = buffer;
        self.end += count as u64;
        self.disk = Some(Arc::clone(&disk));
        Ok(disk)
    }

    /// How much memory the buffer has.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.buffer.capacity()
    }
}
