//! Which size or time does a text mean?

use std::time::Duration;

/// The units of sizes, and their bytes.
const SIZES: [(&str, u64); 11] = [
    ("B", 1),
    ("KB", 1000),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("", 1),
];

/// The units of times, and their milliseconds.
const TIMES: [(&str, u64); 6] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("", 1000),
];

/// The longest time, in milliseconds: ten years, far from where clocks end.
const LONGEST: u64 = 10 * 365 * 86_400_000;

/// A number of bytes: `512`, `10MB`, `10 MiB`.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    measure(
        text,
        &SIZES,
        "is no size: write a whole number with a unit, such as 512, 64KiB, 10MB or 1GiB",
    )
}

/// A time: `500ms`, `5s`, `2m`, `1h`, `7d`, or a number of seconds.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let malformed = "is no time: write a whole number with a unit, such as 500ms, 5s, 1m or 2h; a bare number is seconds";
    let millis = measure(text, &TIMES, malformed)?;
    if millis > LONGEST {
        return Err(format!("`{text}` is longer than ten years"));
    }
    Ok(Duration::from_millis(millis))
}

fn measure(text: &str, units: &[(&str, u64)], malformed: &str) -> Result<u64, String> {
    let text = text.trim();
    let shown = super::node::shorten(text);
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    if number.is_empty() {
        return Err(format!("`{shown}` {malformed}"));
    }
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let meant = units
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit));
        return Err(match meant {
            Some((name, _)) => {
                format!("`{shown}` has no known unit: did you mean `{number}{name}`?")
            }
            None => format!("`{shown}` {malformed}"),
        });
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("`{shown}` is too large"))?;
    number
        .checked_mul(*factor)
        .ok_or_else(|| format!("`{shown}` is too large"))
}

/// A size as one would write it.
pub(crate) fn show_size(bytes: u64) -> String {
    for (unit, factor) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes > 0 && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes}B")
}

/// A time as one would write it.
pub(crate) fn show_time(time: Duration) -> String {
    let millis = time.as_millis();
    for (unit, factor) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000)] {
        // Up to a minute and a half people say seconds.
        if millis > 90_000 && millis.is_multiple_of(factor) {
            return format!("{}{unit}", millis / factor);
        }
    }
    if millis.is_multiple_of(1000) {
        return format!("{}s", millis / 1000);
    }
    format!("{millis}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, want) in [
            ("0", Ok(0)),
            ("512", Ok(512)),
            ("512B", Ok(512)),
            ("1kB", Ok(1000)),
            ("10 MiB", Ok(10 << 20)),
            ("10MB", Ok(10_000_000)),
            ("1GiB", Ok(1 << 30)),
            ("18446744073709551615", Ok(u64::MAX)),
            (
                "18446744073709551616",
                Err("`18446744073709551616` is too large"),
            ),
            ("17179869183GiB", Ok(17_179_869_183 << 30)),
            ("17179869184GiB", Err("`17179869184GiB` is too large")),
            (
                "10mib",
                Err("`10mib` has no known unit: did you mean `10MiB`?"),
            ),
            (
                "ten",
                Err(
                    "`ten` is no size: write a whole number with a unit, such as 512, 64KiB, 10MB or 1GiB",
                ),
            ),
            (
                "-1",
                Err(
                    "`-1` is no size: write a whole number with a unit, such as 512, 64KiB, 10MB or 1GiB",
                ),
            ),
            (
                "1.5MB",
                Err(
                    "`1.5MB` is no size: write a whole number with a unit, such as 512, 64KiB, 10MB or 1GiB",
                ),
            ),
        ] {
            assert_eq!(
                size(text).as_ref().map_err(|error| &**error),
                want.as_ref().map_err(|error| *error),
                "{text}"
            );
        }
    }

    #[test]
    fn times_have_units() {
        let malformed = "is no time: write a whole number with a unit, such as 500ms, 5s, 1m or 2h; a bare number is seconds";
        for (text, want) in [
            ("0", Ok(0)),
            ("60", Ok(60_000)),
            ("500ms", Ok(500)),
            ("5s", Ok(5000)),
            ("1m", Ok(60_000)),
            ("2 h", Ok(7_200_000)),
            ("3650d", Ok(LONGEST)),
            ("3651d", Err("`3651d` is longer than ten years".to_owned())),
            (
                "5S",
                Err("`5S` has no known unit: did you mean `5s`?".to_owned()),
            ),
            ("5 years", Err(format!("`5 years` {malformed}"))),
            ("", Err(format!("`` {malformed}"))),
        ] {
            assert_eq!(time(text), want.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_read_as_the_same() {
        for bytes in [0, 1, 1000, 1024, 4 << 20, 3 << 30, 10_000_000] {
            assert_eq!(size(&show_size(bytes)), Ok(bytes));
        }
        for millis in [
            0, 1, 500, 1000, 60_000, 90_000, 600_000, 7_200_000, 86_400_000,
        ] {
            let time_ = Duration::from_millis(millis);
            assert_eq!(time(&show_time(time_)), Ok(time_));
        }
    }
}
