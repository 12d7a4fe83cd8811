//! Is a peer fast enough, and does it leave turns to others when it is very fast?

use std::io;

use super::deadline::Deadline;
use super::upgrade::Duplex;

/// The time that a transfer may still spend waiting for its peer: a grace at first, then what its
/// bytes are worth at the minimum rate, saved up to a limit so that a fast start does not pay for a
/// long stall. Time in which nobody waits for the peer costs nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Milliseconds left; `u64::MAX` for no limit.
    credit: u64,
    min_rate: u64,
    /// The most that can be saved up, in milliseconds.
    most: u64,
    /// Bytes since the peer was last waited for.
    unrested: usize,
}

impl Pace {
    /// A transfer that begins now: `grace` and `stall` in milliseconds, `min_rate` in bytes a second; zero turns
    /// a limit off.
    pub(crate) fn new(grace: u64, stall: u64, min_rate: u64) -> Pace {
        // Either limit can be off: then the other counts alone, and with both off none.
        let off = |value: u64| if value == 0 { u64::MAX } else { value };
        let grace = if min_rate == 0 { u64::MAX } else { off(grace) };
        let stall = off(stall);
        let most = if grace == u64::MAX {
            stall
        } else {
            grace.max(stall)
        };
        Pace {
            credit: grace.min(most),
            min_rate,
            most,
            unrested: 0,
        }
    }

    /// Waits for the peer, no longer than it may still take; `now` says where the clock stands.
    ///
    /// # Errors
    /// As [`Duplex::wait`].
    pub(crate) fn wait<D: Duplex + ?Sized>(
        &mut self,
        io: &mut D,
        now: impl Fn() -> u64,
    ) -> io::Result<()> {
        let began = now();
        let outcome = io.wait(self.deadline(began));
        self.waited(now() - began);
        outcome
    }

    /// When a wait that begins now must have ended.
    pub(crate) fn deadline(&self, now: u64) -> Deadline {
        Deadline::at(now.saturating_add(self.credit))
    }

    /// Notes that the peer was waited for.
    pub(crate) fn waited(&mut self, milliseconds: u64) {
        self.unrested = 0;
        if self.credit != u64::MAX {
            self.credit = self.credit.saturating_sub(milliseconds);
        }
    }

    /// Notes that `bytes` went over; says whether it is time to let others have a turn, which it is
    /// after `turn` bytes without a wait.
    #[must_use]
    pub(crate) fn moved(&mut self, bytes: usize, turn: usize) -> bool {
        let earned = match self.min_rate {
            0 => u64::MAX,
            rate => (bytes as u64).saturating_mul(1000) / rate,
        };
        self.credit = self.credit.saturating_add(earned).min(self.most);
        self.unrested += bytes;
        let over = self.unrested >= turn;
        if over {
            self.unrested = 0;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the server's default limits.
    fn pace() -> Pace {
        Pace::new(10_000, 30_000, 240)
    }

    /// Whether a transfer survives that brings `bytes` after each wait of `wait` milliseconds.
    fn survives(mut pace: Pace, bytes: usize, wait: u64) -> bool {
        (0..100_000).all(|_| {
            let late = pace.deadline(0).has_passed(wait);
            pace.waited(wait);
            let _ = pace.moved(bytes, 1 << 20);
            !late
        })
    }

    #[test]
    fn above_the_minimum_rate_a_transfer_never_ends_and_below_it_does() {
        assert!(survives(pace(), 241, 1_000));
        assert!(!survives(pace(), 239, 1_000));
        assert!(
            survives(pace(), 1024, 4_000),
            "bursts at the average rate are fine"
        );
    }

    #[test]
    fn a_fast_start_does_not_pay_for_a_stall() {
        let mut pace = pace();
        pace.waited(1_000);
        assert!(pace.moved(100 << 20, 1 << 20));
        assert_eq!(pace.deadline(5_000), Deadline::at(35_000));
    }

    #[test]
    fn zero_turns_each_limit_off() {
        assert_eq!(
            Pace::new(10_000, 30_000, 0).deadline(0),
            Deadline::at(30_000)
        );
        assert_eq!(Pace::new(0, 30_000, 240).deadline(0), Deadline::at(30_000));
        let mut none = Pace::new(10_000, 0, 0);
        assert_eq!(none.deadline(7), Deadline::NEVER);
        none.waited(1_000_000);
        assert!(!none.moved(1, 2));
        assert_eq!(none.deadline(7), Deadline::NEVER);
    }
}
