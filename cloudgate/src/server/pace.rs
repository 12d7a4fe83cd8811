//! Is a peer fast enough, and does it leave turns to others when it is very fast?

use std::io;

use super::settings::Rules;
use crate::message::{Deadline, Duplex};
use crate::net::deadline::Clock;

/// The time that a transfer may still spend waiting for its peer: a grace at first, then what its
/// bytes are worth at the minimum rate, saved up to a limit so that a fast start does not pay for a
/// long stall. Time in which nobody waits for the peer costs nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Milliseconds left; `u64::MAX` for no limit.
    credit: u64,
    min_rate: u64,
    /// The most that can be saved up, in milliseconds.
    most: u64,
    /// Bytes since the peer was last waited for.
    unrested: usize,
}

impl Pace {
    /// A transfer that begins now.
    pub(super) fn new(rules: &Rules) -> Pace {
        // Either limit can be off: then the other counts alone, and with both off none.
        let off = |value: u64| if value == 0 { u64::MAX } else { value };
        let grace = if rules.min_rate == 0 {
            u64::MAX
        } else {
            off(rules.grace)
        };
        let stall = off(rules.stall);
        let most = if grace == u64::MAX {
            stall
        } else {
            grace.max(stall)
        };
        Pace {
            credit: grace.min(most),
            min_rate: rules.min_rate,
            most,
            unrested: 0,
        }
    }

    /// Waits for the peer, no longer than it may still take.
    ///
    /// # Errors
    /// As [`Duplex::wait`].
    pub(super) fn wait<D: Duplex>(&mut self, io: &mut D, clock: &Clock) -> io::Result<()> {
        let began = clock.now();
        let outcome = io.wait(self.deadline(began));
        self.waited(clock.now() - began);
        outcome
    }

    /// When a wait that begins now must have ended.
    fn deadline(&self, now: u64) -> Deadline {
        Deadline::at(now.saturating_add(self.credit))
    }

    /// Notes that the peer was waited for.
    fn waited(&mut self, milliseconds: u64) {
        self.unrested = 0;
        if self.credit != u64::MAX {
            self.credit = self.credit.saturating_sub(milliseconds);
        }
    }

    /// Notes that `bytes` went over; says whether it is time to let others have a turn, which it is
    /// after `turn` bytes without a wait.
    #[must_use]
    pub(super) fn moved(&mut self, bytes: usize, turn: usize) -> bool {
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
    use crate::server::settings::Settings;

    fn pace(change: impl FnOnce(&mut Rules)) -> Pace {
        let mut rules = Rules::new(&Settings::default());
        change(&mut rules);
        Pace::new(&rules)
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
        assert!(survives(pace(|_| ()), 241, 1_000));
        assert!(!survives(pace(|_| ()), 239, 1_000));
        assert!(
            survives(pace(|_| ()), 1024, 4_000),
            "bursts at the average rate are fine"
        );
    }

    #[test]
    fn a_fast_start_does_not_pay_for_a_stall() {
        let mut pace = pace(|_| ());
        pace.waited(1_000);
        assert!(pace.moved(100 << 20, 1 << 20));
        assert_eq!(pace.deadline(5_000), Deadline::at(35_000));
    }

    #[test]
    fn zero_turns_each_limit_off() {
        assert_eq!(
            pace(|rules| rules.min_rate = 0).deadline(0),
            Deadline::at(30_000)
        );
        assert_eq!(
            pace(|rules| rules.grace = 0).deadline(0),
            Deadline::at(30_000)
        );
        let mut none = pace(|rules| (rules.min_rate, rules.stall) = (0, 0));
        assert_eq!(none.deadline(7), Deadline::NEVER);
        none.waited(1_000_000);
        assert!(!none.moved(1, 2));
        assert_eq!(none.deadline(7), Deadline::NEVER);
    }
}
