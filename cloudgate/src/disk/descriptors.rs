//! How many descriptors may files keep that are not being sent?
//!
//! Connections need theirs, and the server leaves no more than one in 32 of all for the rest of the program.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};

/// The most that files of the process keep, however many there are.
const MOST: usize = 1024;

/// One in so many of all descriptors.
const SHARE: u64 = 64;

static COUNT: AtomicUsize = AtomicUsize::new(0);

static LIMIT: LazyLock<usize> = LazyLock::new(|| {
    let all = getrlimit(Resource::Nofile).current;
    all.map_or(MOST, limit)
});

fn limit(all: u64) -> usize {
    usize::try_from(all / SHARE).unwrap_or(MOST).min(MOST)
}

/// The right to keep one, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(&'static AtomicUsize);

impl Place {
    /// A place; `None` where there are as many as there may be.
    pub(crate) fn take() -> Option<Place> {
        Place::take_of(&COUNT, *LIMIT)
    }

    fn take_of(counter: &'static AtomicUsize, most: usize) -> Option<Place> {
        let taken = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < most).then_some(count + 1)
        });
        taken.is_ok().then(|| Place(counter))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_at_once_and_no_more() {
        static OWN: AtomicUsize = AtomicUsize::new(0);
        let take = || Place::take_of(&OWN, 2);
        let (first, second) = (take().unwrap(), take().unwrap());
        assert!(take().is_none());
        drop(first);
        let third = take().unwrap();
        assert!(take().is_none());
        drop((second, third));
        assert_eq!(OWN.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn connections_keep_by_far_the_most() {
        for (all, want) in [
            (63, 0),
            (256, 4),
            (1024, 16),
            (65_535, 1023),
            (65_536, MOST),
            (u64::MAX, MOST),
        ] {
            assert_eq!(limit(all), want, "{all}");
        }
    }
}
