//! How are files read without holding a worker up, and kept without ever being served when they are old?
//!
//! ```text
//!  get ─▶ the worker's share ─ fresh ─▶ answer: no shared lock, no allocation
//!            │ not there                500 ms old: the same, and a comparison starts in the background
//!            ▼
//!         store (one for all workers, bounded by bytes) ─ fresh ─▶ a copy for the worker
//!            │ not there, or over a second old
//!            ▼
//!         flight (one a key, on a thread that may block) ─▶ Load::is_current, else Load::load
//!
//!  watch (a thread with inotify) ─▶ what changed is forgotten at once, by the store and all shares
//! ```
//!
//! What is kept was compared with the disk in the last second: that holds on every file system. Watching
//! only makes it sooner.

mod cache;
mod content;
mod descriptors;
mod flight;
pub(crate) mod reader;
mod sealed;
mod store;
#[cfg(target_os = "linux")]
mod watch;

use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use cache::{Cache, Load};
pub(crate) use content::{Content, Snapshot, read};
pub(crate) use descriptors::Place;
pub(crate) use sealed::Sealed;

/// What is looked for: a name, and which form of it.
///
/// Where the file that a name stands for has the same last segment, perhaps with an ending more, a change
/// that the system tells of is seen at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key<'a> {
    pub(crate) name: &'a str,
    /// 0 to 7; the users say what a form is: as it is, compressed, …
    pub(crate) form: u8,
}

/// How many forms a name can have.
const FORMS: usize = 8;

/// Things by name, a table for each form: so they are found by a name that is only borrowed.
type ByForm<T> = [HashMap<Arc<str>, T>; FORMS];

impl Key<'_> {
    /// Where the form stands in a table of [`FORMS`].
    fn place(&self) -> usize {
        debug_assert!(usize::from(self.form) < FORMS, "form {}", self.form);
        usize::from(self.form) % FORMS
    }
}

#[cfg(test)]
mod tests;
