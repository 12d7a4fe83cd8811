//! Is there room for one more entry?

use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{SharedError, SharedLimits};

/// What something takes of the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    pub(super) entries: usize,
    pub(super) bytes: usize,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.entries += other.entries;
        self.bytes += other.bytes;
    }
}

/// What is used of the limits, exactly: one lock, taken when an entry comes, goes or changes size.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) limits: SharedLimits,
    used: Mutex<Cost>,
}

impl Budget {
    pub(super) fn new(limits: SharedLimits) -> Budget {
        Budget {
            limits,
            used: Mutex::default(),
        }
    }

    pub(super) fn used(&self) -> Cost {
        *self.lock()
    }

    pub(super) fn give_back(&self, cost: Cost) {
        if cost == Cost::default() {
            return;
        }
        let mut used = self.lock();
        used.entries -= cost.entries;
        used.bytes -= cost.bytes;
    }

    /// Gives `old` back and takes `new`, both or neither. What does not grow is never refused.
    pub(super) fn exchange(&self, old: Cost, new: Cost) -> Result<(), SharedError> {
        if old == new {
            return Ok(());
        }
        let mut used = self.lock();
        let after = Cost {
            entries: used.entries - old.entries + new.entries,
            bytes: used.bytes - old.bytes + new.bytes,
        };
        if after.entries > self.limits.entries && new.entries > old.entries {
            return Err(SharedError::TooManyEntries {
                limit: self.limits.entries,
            });
        }
        if after.bytes > self.limits.bytes && new.bytes > old.bytes {
            return Err(SharedError::TooManyBytes {
                limit: self.limits.bytes,
            });
        }
        *used = after;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Cost> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
