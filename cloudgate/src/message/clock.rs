//! What time is it, for what expires?

use std::sync::LazyLock;
use std::time::{Duration, Instant};

#[cfg(test)]
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The moment that every clock of the process counts from.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A clock that only goes forward; a test has one that it moves itself.
#[derive(Clone, Debug, Default)]
pub(crate) enum Clock {
    /// The clock of the system.
    #[default]
    System,
    /// Nanoseconds as the test has set them.
    #[cfg(test)]
    Moved(Arc<AtomicU64>),
}

impl Clock {
    /// Nanoseconds since some moment in the past.
    pub(crate) fn now(&self) -> u64 {
        match self {
            Clock::System => nanoseconds(START.elapsed()),
            #[cfg(test)]
            Clock::Moved(now) => now.load(Ordering::SeqCst),
        }
    }

    /// The moment `span` from `now`; one that is past the end of all time is never reached.
    pub(crate) fn after(now: u64, span: Duration) -> u64 {
        now.saturating_add(nanoseconds(span))
    }
}

/// `span` in nanoseconds; 584 years at most.
pub(crate) fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
impl Clock {
    /// A clock that stands until [`Clock::advance`].
    pub(crate) fn standing() -> Clock {
        Clock::Moved(Arc::default())
    }

    /// Moves a clock of [`Clock::standing`], and all its clones.
    pub(crate) fn advance(&self, span: Duration) {
        if let Clock::Moved(now) = self {
            now.fetch_add(nanoseconds(span), Ordering::SeqCst);
        }
    }
}
