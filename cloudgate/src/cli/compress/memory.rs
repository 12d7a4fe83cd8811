//! How much memory may be used at once?

use std::sync::{Condvar, Mutex, PoisonError};

use super::encode::Coding;

/// What all coders together may take, in bytes, unless one alone takes more.
const MOST: u64 = 1 << 30;

/// Memory that is shared out among the threads.
#[derive(Debug)]
pub(super) struct Memory {
    most: u64,
    used: Mutex<u64>,
    given_back: Condvar,
}

/// A part of the memory, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share<'m> {
    memory: &'m Memory,
    bytes: u64,
}

impl Memory {
    pub(super) fn new() -> Memory {
        Memory::of(MOST)
    }

    fn of(most: u64) -> Memory {
        Memory {
            most,
            used: Mutex::new(0),
            given_back: Condvar::new(),
        }
    }

    /// Waits until so much is free, or nothing is used.
    pub(super) fn take(&self, bytes: u64) -> Share<'_> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used = self
            .given_back
            .wait_while(used, |used| *used > 0 && *used + bytes > self.most)
            .unwrap_or_else(PoisonError::into_inner);
        *used += bytes;
        Share {
            memory: self,
            bytes,
        }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *self
            .memory
            .used
            .lock()
            .unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.memory.given_back.notify_all();
    }
}

/// What it takes to compress so many bytes at the best level, rounded up from what was measured with 26 MB:
/// 151 MiB (brotli), 93 MiB (zstd), 14 MiB (gzip, which is nearly all the program's own).
pub(super) fn needed(coding: Coding, length: u64) -> u64 {
    const MIB: u64 = 1 << 20;
    match coding {
        Coding::Brotli => 16 * MIB + 9 * length.min(16 * MIB),
        Coding::Zstd => 16 * MIB + 10 * length.min(8 * MIB),
        Coding::Gzip => MIB,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn no_more_is_used_than_there_is_unless_one_needs_it() {
        let memory = Memory::of(10);
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for wanted in [5, 6, 4, 5, 3, 7, 1, 2, 10, 4] {
                let (memory, now, most) = (&memory, &now, &most);
                scope.spawn(move || {
                    for _ in 0..100 {
                        let share = memory.take(wanted);
                        let used = now.fetch_add(wanted, Ordering::SeqCst) + wanted;
                        most.fetch_max(used, Ordering::SeqCst);
                        now.fetch_sub(wanted, Ordering::SeqCst);
                        drop(share);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 10);
        drop(memory.take(11));
        assert_eq!(*memory.used.lock().unwrap(), 0);
    }

    #[test]
    fn a_large_file_needs_no_more_than_the_window_makes_it() {
        let most = needed(Coding::Brotli, 1 << 24);
        assert_eq!(needed(Coding::Brotli, u64::MAX), most);
        assert_eq!(most, 160 << 20);
        assert_eq!(needed(Coding::Zstd, u64::MAX), 96 << 20);
    }
}
