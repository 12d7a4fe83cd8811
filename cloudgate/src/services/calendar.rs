//! Which day and hour is it, in UTC?

use std::time::{SystemTime, UNIX_EPOCH};

/// A point in time by the calendar, in UTC.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) year: u64,
    pub(super) month: u64,
    pub(super) day: u64,
    pub(super) hour: u64,
    pub(super) minute: u64,
    pub(super) second: u64,
    pub(super) millisecond: u32,
}

impl Time {
    /// A time before 1970 is shown as the beginning of 1970.
    pub(super) fn of(time: SystemTime) -> Time {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        // Counted from the first of March of the year 0, so that the leap day is a year's last one:
        // 400 years have 146,097 days, and five months from March have 153.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 {
            from_march + 3
        } else {
            from_march - 9
        };
        Time {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month,
            day: of_year - (153 * from_march + 2) / 5 + 1,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            millisecond: since.subsec_millis(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, year, month, day) in [
            (0, 1970, 1, 1),
            (951_782_399, 2000, 2, 28),
            (951_782_400, 2000, 2, 29),
            (951_868_800, 2000, 3, 1),
            (1_709_164_800, 2024, 2, 29),
            (1_735_689_599, 2024, 12, 31),
            (4_107_542_399, 2100, 2, 28),
            (4_107_542_400, 2100, 3, 1),
        ] {
            let time = Time::of(UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!((time.year, time.month, time.day), (year, month, day));
        }
    }
}
