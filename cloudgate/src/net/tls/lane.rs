//! How long do handshakes compute before others on their worker have a turn?

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::net::home::Notify;

/// How many compute between two looks at what else there is to do: with an RSA key of 2048 bits that is a millisecond and a
/// half.
const AT_ONCE: usize = 4;

/// The handshakes of one worker.
pub(crate) struct Lane {
    free: AtomicUsize,
    line: Notify,
}

/// The right to compute, until it is dropped.
pub(crate) struct Slot<'l>(&'l Lane);

impl Lane {
    pub(crate) fn new() -> Lane {
        Lane {
            free: AtomicUsize::new(AT_ONCE),
            line: Notify::new(),
        }
    }

    /// Waits for its turn. Who has it lets others have a turn before giving it up, or nothing is won.
    pub(crate) fn enter(&self) -> Slot<'_> {
        let take = |free: usize| free.checked_sub(1);
        while let Err(_none) = self
            .free
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
        {
            self.line.wait();
        }
        if self.free.load(Ordering::Acquire) > 0 {
            // One word is kept however many were said.
            self.line.notify_one();
        }
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.free.fetch_add(1, Ordering::AcqRel);
        self.0.line.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_more_than_a_few_are_in_it_and_all_get_through() {
        let lane = Arc::new(Lane::new());
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let (lane, inside, most) =
                    (Arc::clone(&lane), Arc::clone(&inside), Arc::clone(&most));
                thread::spawn(move || {
                    for _ in 0..200 {
                        let _slot = lane.enter();
                        let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::sleep(Duration::from_micros(10));
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!((1..=AT_ONCE).contains(&most.load(Ordering::SeqCst)));
        assert_eq!(lane.free.load(Ordering::SeqCst), AT_ONCE);
    }
}
