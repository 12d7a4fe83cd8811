//! When must a wait have ended?

/// A point on the server's own clock, in milliseconds since it started; past it a wait fails.
///
/// A value that is passed down, not a timeout: a peer that sends a byte now and then cannot move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// Never: for waits whose limit was turned off.
    pub const NEVER: Deadline = Deadline(u64::MAX);

    /// The point `milliseconds` after the clock's start.
    pub const fn at(milliseconds: u64) -> Deadline {
        Deadline(milliseconds)
    }

    /// The point `milliseconds` after `now`; a length of zero means "no limit".
    pub const fn after(now: u64, milliseconds: u64) -> Deadline {
        if milliseconds == 0 {
            Deadline::NEVER
        } else {
            Deadline(now.saturating_add(milliseconds))
        }
    }

    /// This point in milliseconds since the clock's start.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whether the clock, standing at `now`, has reached it.
    pub const fn has_passed(self, now: u64) -> bool {
        self.0 <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_at_its_own_millisecond_and_zero_turns_it_off() {
        let deadline = Deadline::after(1_000, 10);
        assert!(!deadline.has_passed(1_009));
        assert!(deadline.has_passed(1_010));
        assert!(!Deadline::after(1_000, 0).has_passed(u64::MAX - 1));
        assert!(!Deadline::after(u64::MAX - 1, 10).has_passed(u64::MAX - 1));
    }
}
