//! Is a peer fast enough?

use super::settings::Rules;
use crate::message::Deadline;

/// The time that a transfer has earned: a grace at first, then what its bytes are worth at the
/// minimum rate, saved up to a limit so that a fast start does not pay for a long stall.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    due: u64,
    min_rate: u64,
    /// How far ahead of now the deadline may get, in milliseconds.
    most: u64,
}

impl Pace {
    /// A transfer that begins now and may not rest for longer than `stall` milliseconds.
    pub(crate) fn new(rules: &Rules, now: u64, stall: u64) -> Pace {
        // Either limit can be off: then the other counts alone, and with both off none.
        let off = |value: u64| if value == 0 { u64::MAX } else { value };
        let grace = if rules.min_rate == 0 {
            u64::MAX
        } else {
            off(rules.grace)
        };
        let most = if grace == u64::MAX {
            off(stall)
        } else {
            grace.max(stall)
        };
        Pace {
            due: now.saturating_add(grace.min(most)),
            min_rate: rules.min_rate,
            most,
        }
    }

    /// When the transfer must have gone on.
    pub(crate) fn deadline(&self) -> Deadline {
        Deadline::at(self.due)
    }

    /// Notes that `bytes` went over.
    pub(crate) fn moved(&mut self, bytes: usize, now: u64) {
        let earned = match self.min_rate {
            0 => u64::MAX,
            rate => (bytes as u64).saturating_mul(1000) / rate,
        };
        self.due = self
            .due
            .saturating_add(earned)
            .min(now.saturating_add(self.most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::settings::Settings;

    fn pace(change: impl FnOnce(&mut Rules)) -> Pace {
        let mut rules = Rules::new(&Settings::default());
        change(&mut rules);
        Pace::new(&rules, 0, rules.stall)
    }

    #[test]
    fn above_the_minimum_rate_a_transfer_never_ends_and_below_it_does() {
        for (bytes, alive) in [(241, true), (239, false)] {
            let mut pace = pace(|_| ());
            let ended = (1..100_000_u64).map(|second| second * 1000).find(|&now| {
                let late = pace.deadline().has_passed(now);
                pace.moved(bytes, now);
                late
            });
            assert_eq!(
                ended.is_none(),
                alive,
                "{bytes} bytes a second ended at {ended:?}"
            );
        }
    }

    #[test]
    fn bursts_at_the_average_rate_are_fine_and_a_fast_start_does_not_pay_for_a_stall() {
        let mut bursts = pace(|_| ());
        for now in (0..1_000_000).step_by(4000) {
            assert!(!bursts.deadline().has_passed(now), "at {now}");
            bursts.moved(1024, now);
        }
        let mut stalled = pace(|_| ());
        stalled.moved(100 << 20, 1000);
        assert_eq!(stalled.deadline(), Deadline::at(31_000));
    }

    #[test]
    fn zero_turns_each_limit_off() {
        assert_eq!(
            pace(|rules| rules.min_rate = 0).deadline(),
            Deadline::at(30_000)
        );
        let mut none = pace(|rules| (rules.min_rate, rules.stall) = (0, 0));
        assert_eq!(none.deadline(), Deadline::NEVER);
        none.moved(1, 1_000_000);
        assert_eq!(none.deadline(), Deadline::NEVER);
    }
}
