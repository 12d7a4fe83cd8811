//! Can a piece of a file be sent without waiting for a disk?
//!
//! `sendfile` waits for pages that are not in memory, and with it the worker and all its connections. So
//! each window of a file is asked for first, without waiting; where something is missing, a thread that
//! may block reads it.
//!
//! ```text
//!  preadv2(RWF_NOWAIT)   there      ─▶ send
//!  of three bytes        missing    ─▶ another thread reads the window ─▶ send
//!                        no answer  ─▶ tmpfs: send; else another thread has the system read it ─▶ send
//! ```

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustix::fs::Advice;
#[cfg(target_os = "linux")]
use rustix::io::{Errno, ReadWriteFlags};

use super::home;

/// How much is made ready at once, in bytes: so much is read ahead of a slow client at most.
pub(crate) const WINDOW: u64 = 1 << 20;

/// How much is read at once into memory that is thrown away, and how far apart single bytes are read.
const STEP: u64 = 64 << 10;

/// The part of a file that is in memory, as far as that can be told.
pub(crate) struct Window {
    end: u64,
    answers: Answers,
}

/// What the file's system says to reads that must not wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    Whether,
    /// Nothing, but there is no disk behind it.
    InMemory,
    /// Nothing: overlayfs and some network file systems.
    Nothing,
}

impl Window {
    /// A window over nothing yet.
    pub(crate) fn new() -> Window {
        Window {
            end: 0,
            answers: Answers::Whether,
        }
    }

    /// How many bytes from `at` on, and in front of `end`, can be sent now; waits until there are some.
    pub(crate) fn ready(&mut self, file: &Arc<File>, at: u64, end: u64) -> u64 {
        if self.answers == Answers::InMemory {
            return end - at;
        }
        if at >= self.end {
            self.end = end.min(at.saturating_add(WINDOW));
            self.load(file, at);
        }
        self.end - at
    }

    /// Forgets what is in memory: after a wait for a slow client it may have been put out.
    pub(crate) fn forget(&mut self) {
        self.end = 0;
    }

    fn load(&mut self, file: &Arc<File>, at: u64) {
        if self.answers == Answers::Whether {
            match is_there(file, at, self.end) {
                Some(true) => return,
                Some(false) => {}
                None if has_no_disk(file) => {
                    self.answers = Answers::InMemory;
                    return;
                }
                None => self.answers = Answers::Nothing,
            }
        }
        let (file, end, answers) = (Arc::clone(file), self.end, self.answers);
        home::blocking(move || {
            // What fails here fails again where it is sent, and there somebody hears of it.
            let _ = if answers == Answers::Whether {
                read_through(&file, at, end)
            } else {
                touch(&file, at, end)
            };
        });
    }
}

/// Whether the first, the middle and the last byte are in memory; `None` if the file system cannot tell.
#[cfg(target_os = "linux")]
fn is_there(file: &File, start: u64, end: u64) -> Option<bool> {
    let mut byte = [0];
    // The last one first: the system asks the disk for what comes behind a missing byte.
    for at in [end.saturating_sub(1), start + (end - start) / 2, start] {
        let mut buffers = [io::IoSliceMut::new(&mut byte)];
        match rustix::io::preadv2(file, &mut buffers, at, ReadWriteFlags::NOWAIT) {
            // None is there where the file has become shorter: then there is nothing to wait for.
            Ok(_) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return None,
            Err(_) => return Some(false),
        }
    }
    Some(true)
}

#[cfg(not(target_os = "linux"))]
fn is_there(_: &File, _: u64, _: u64) -> Option<bool> {
    None
}

/// Whether the file lives in memory. Part of it may be swapped out: then the machine has other worries.
#[cfg(target_os = "linux")]
fn has_no_disk(file: &File) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    rustix::fs::fstatfs(file).is_ok_and(|system| [TMPFS, RAMFS].contains(&(system.f_type as u64)))
}

#[cfg(not(target_os = "linux"))]
fn has_no_disk(_: &File) -> bool {
    false
}

/// Reads everything from `at` to `end`, for nothing but that it is in memory then.
fn read_through(file: &File, mut at: u64, end: u64) -> io::Result<()> {
    let mut thrown_away = vec![0; (end - at).min(STEP) as usize];
    while at < end {
        let most = (end - at).min(STEP) as usize;
        match file.read_at(&mut thrown_away[..most], at)? {
            0 => break,
            count => at += count as u64,
        }
    }
    Ok(())
}

/// Has the system read everything from `at` to `end`, and waits for some of it. Where all of it is in
/// memory, which nobody could tell, that costs a tenth of reading it.
fn touch(file: &File, at: u64, end: u64) -> io::Result<()> {
    rustix::fs::fadvise(file, at, NonZeroU64::new(end - at), Advice::WillNeed)?;
    let mut byte = [0];
    for at in (at..end).step_by(STEP as usize).chain([end - 1]) {
        file.read_at(&mut byte, at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(length: u64) -> Arc<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'x'; length as usize]).unwrap();
        file.sync_all().unwrap();
        Arc::new(file)
    }

    /// Puts the file out of memory, where the system does as it is told.
    fn put_out(file: &File) {
        rustix::fs::fadvise(file, 0, None, Advice::DontNeed).unwrap();
    }

    #[test]
    fn no_more_than_a_window_is_read_ahead() {
        let file = file(3 * WINDOW + 5);
        let end = 3 * WINDOW + 3;
        for answers in [Answers::Whether, Answers::Nothing] {
            put_out(&file);
            let mut window = Window { end: 0, answers };
            assert_eq!(window.ready(&file, 7, end), WINDOW);
            if window.answers == Answers::InMemory {
                continue;
            }
            assert_eq!(window.ready(&file, 8, end), WINDOW - 1);
            assert_eq!(window.ready(&file, WINDOW + 6, end), 1);
            assert_eq!(window.ready(&file, WINDOW + 7, end), WINDOW);
            assert_eq!(window.ready(&file, 3 * WINDOW, end), 3);
            window.forget();
            assert_eq!(window.ready(&file, 9, end), WINDOW);
        }
    }

    #[test]
    fn what_was_put_out_of_memory_is_there_afterwards() {
        let file = file(2 * WINDOW);
        for answers in [Answers::Whether, Answers::Nothing] {
            put_out(&file);
            let mut window = Window { end: 0, answers };
            window.ready(&file, 0, 2 * WINDOW);
            assert_ne!(is_there(&file, 0, WINDOW), Some(false));
        }
    }

    #[test]
    fn a_file_that_became_shorter_does_not_hold_anybody_up() {
        let file = file(1000);
        for answers in [Answers::Whether, Answers::Nothing] {
            let mut window = Window { end: 0, answers };
            assert_eq!(window.ready(&file, 500, 5000), 4500);
        }
    }
}
