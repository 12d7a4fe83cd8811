//! How large may a form be, and where do its large files wait?

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::parser::ParserLimits;
use crate::app::extract::FromRequest;
use crate::app::state::State;
use crate::message::Request;

/// Limits on `multipart/form-data` bodies, and where uploaded files wait until the handler has them.
///
/// Registered as a [`State`] they count for all routes of an application; [`MultipartReader::with_limits`]
/// takes them for one handler. The body as a whole keeps to the route's own limit, 2 MiB unless it
/// says otherwise.
///
/// [`MultipartReader::with_limits`]: crate::MultipartReader::with_limits
///
/// ```
/// use cloudgate::{App, MultipartLimits};
/// let app = App::gather().state(MultipartLimits::new().file_bytes(50 << 20).folder("/var/tmp"));
/// # drop(app);
/// ```
#[derive(Clone, Debug)]
pub struct MultipartLimits {
    pub(super) file_bytes: u64,
    pub(super) field_bytes: u64,
    pub(super) parts: usize,
    pub(super) part_head: usize,
    pub(super) memory_per_file: usize,
    pub(super) memory: usize,
    pub(super) folder: Option<PathBuf>,
}

impl MultipartLimits {
    /// The defaults, as each of the other functions states.
    pub fn new() -> MultipartLimits {
        MultipartLimits {
            file_bytes: u64::MAX,
            field_bytes: 1 << 20,
            parts: 1000,
            part_head: 8 << 10,
            memory_per_file: 64 << 10,
            memory: 1 << 20,
            folder: None,
        }
    }

    /// The most bytes of one file (by default as many as the body may have); past it 413.
    pub fn file_bytes(mut self, bytes: u64) -> MultipartLimits {
        self.file_bytes = bytes;
        self
    }

    /// The most bytes of all fields that are no files, together (default 1 MiB); past it 413.
    pub fn field_bytes(mut self, bytes: u64) -> MultipartLimits {
        self.field_bytes = bytes;
        self
    }

    /// The most parts, fields and files together (default 1000); past it 413.
    pub fn parts(mut self, count: usize) -> MultipartLimits {
        self.parts = count;
        self
    }

    /// The most bytes of one part's header fields (default 8 KiB); past it 413.
    pub fn part_head_bytes(mut self, bytes: usize) -> MultipartLimits {
        self.part_head = bytes;
        self
    }

    /// The largest file in bytes that stays in memory (default 64 KiB); a larger one goes to disk.
    pub fn memory_per_file(mut self, bytes: usize) -> MultipartLimits {
        self.memory_per_file = bytes;
        self
    }

    /// The most bytes of files that one form keeps in memory (default 1 MiB); those that come when it
    /// is used up go to disk however small they are.
    pub fn memory(mut self, bytes: usize) -> MultipartLimits {
        self.memory = bytes;
        self
    }

    /// Where large files wait until they are taken: an existing folder on a disk with room for them
    /// (by default [`std::env::temp_dir`], which is memory on some systems). They have no name there, so nothing is left however the
    /// program ends.
    pub fn folder(mut self, folder: impl AsRef<Path>) -> MultipartLimits {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    pub(super) fn parser(&self) -> ParserLimits {
        ParserLimits {
            parts: self.parts,
            part_head: self.part_head,
        }
    }

    /// What was registered with the application, or the defaults.
    pub(super) fn of(request: &mut Request<'_>) -> Arc<MultipartLimits> {
        State::<MultipartLimits>::from_request(request)
            .map_or_else(|_| Arc::default(), |State(limits)| limits)
    }
}

impl Default for MultipartLimits {
    fn default() -> MultipartLimits {
        MultipartLimits::new()
    }
}
