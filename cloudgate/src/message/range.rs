//! Which bytes of a representation does a client ask for?
//!
//! RFC 9110 sections 14.1.2 and 14.2. A field that is malformed, in another unit or out of proportion
//! counts as absent: the client gets the whole, which it has to be ready for.

use std::ops::Range;

use super::Headers;

/// The most ranges of a field that are answered; players and readers of documents ask for one or two.
pub(crate) const MOST_RANGES: usize = 64;

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Everything, as if no range was asked for.
    Whole,
    One(Range<u64>),
    /// At least two, none of which overlap or touch, in the order that was asked for. Those with a few bytes between
    /// them could be sent as one (RFC 9110 section 15.3.7.2), but there are clients that count the parts.
    Many(Vec<Range<u64>>),
    /// Not one of the ranges has a byte of it.
    Unsatisfiable,
}

/// What the Range field selects of a representation of `length` bytes.
pub(crate) fn select(headers: &Headers, length: u64) -> Selection {
    let mut fields = headers.get_all("range");
    match (fields.next(), fields.next()) {
        (Some(value), None) => select_in(value, length),
        // The field is no list: what two of them mean is anybody's guess.
        _ => Selection::Whole,
    }
}

fn select_in(value: &[u8], length: u64) -> Selection {
    // Nothing can be a range of nothing, and Content-Range could not name it: the field may be ignored
    // then (RFC 9110 section 14.2).
    match parse(value, length) {
        Some(ranges) if length > 0 => joined(ranges),
        _ => Selection::Whole,
    }
}

/// The ranges that have a byte, as they were asked for; `None` where the field is to be ignored.
fn parse(value: &[u8], length: u64) -> Option<Vec<Range<u64>>> {
    let (unit, set) = split_at_byte(value.trim_ascii(), b'=')?;
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return None;
    }
    let mut ranges = Vec::new();
    let mut count = 0;
    // A recipient takes empty members of a list (RFC 9110 section 5.6.1.2).
    let members = set.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    for member in members.filter(|member| !member.is_empty()) {
        count += 1;
        if count > MOST_RANGES {
            return None;
        }
        ranges.extend(satisfiable(member, length)?);
    }
    (count > 0).then_some(ranges)
}

/// The bytes that one member stands for: `Some(None)` if there are none, `None` if it is malformed.
#[allow(clippy::option_option, reason = "the two kinds of nothing differ")]
fn satisfiable(member: &[u8], length: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = split_at_byte(member, b'-')?;
    if first.is_empty() {
        let count = number(last)?.min(length);
        return Some((count > 0).then_some(length - count..length));
    }
    let start = number(first)?;
    let end = if last.is_empty() {
        length
    } else {
        let last_position = number(last)?;
        if is_less(last, first) {
            return None;
        }
        last_position.saturating_add(1).min(length)
    };
    Some((start < length).then_some(start..end))
}

fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|&found| found == byte)?;
    Some((&text[..at], &text[at + 1..]))
}

/// A number of any size; one that is larger than every file is the largest there is.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0_u64, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    }))
}

/// Compares two numbers of any size by their digits.
fn is_less(one: &[u8], other: &[u8]) -> bool {
    let key = |digits: &[u8]| {
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        digits.len() - zeros
    };
    let (one_size, other_size) = (key(one), key(other));
    (one_size, &one[one.len() - one_size..]) < (other_size, &other[other.len() - other_size..])
}

/// Joins ranges that overlap or touch; what is joined stands where its first part did.
fn joined(ranges: Vec<Range<u64>>) -> Selection {
    let mut ordered: Vec<(usize, Range<u64>)> = ranges.into_iter().enumerate().collect();
    ordered.sort_by_key(|(_, range)| range.start);
    let mut apart: Vec<(usize, Range<u64>)> = Vec::with_capacity(ordered.len());
    for (place, range) in ordered {
        match apart.last_mut() {
            Some((first, known)) if range.start <= known.end => {
                known.end = known.end.max(range.end);
                *first = place.min(*first);
            }
            _ => apart.push((place, range)),
        }
    }
    apart.sort_by_key(|(place, _)| *place);
    let mut ranges: Vec<Range<u64>> = apart.into_iter().map(|(_, range)| range).collect();
    match ranges.len() {
        0 => Selection::Unsatisfiable,
        1 => Selection::One(ranges.remove(0)),
        _ => Selection::Many(ranges),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Selection::*;

    #[track_caller]
    fn check(value: &str, length: u64, want: Selection) {
        assert_eq!(
            select_in(value.as_bytes(), length),
            want,
            "{value} of {length}"
        );
    }

    #[test]
    fn one_range() {
        // RFC 9110 section 14.1.2: the examples for 10000 bytes.
        check("bytes=0-499", 10_000, One(0..500));
        check("bytes=500-999", 10_000, One(500..1000));
        check("bytes=-500", 10_000, One(9500..10_000));
        check("bytes=9500-", 10_000, One(9500..10_000));
        check("bytes=0-0", 10_000, One(0..1));
        check("bytes=-1", 10_000, One(9999..10_000));
        // Clipped at the end, and longer than the whole.
        check("bytes=0-10000", 10_000, One(0..10_000));
        check("bytes=9999-10000", 10_000, One(9999..10_000));
        check("bytes=0-", 10_000, One(0..10_000));
        check("bytes=-10001", 10_000, One(0..10_000));
        check("bytes=-10000", 10_000, One(0..10_000));
        // Units are compared in any case (section 14.1), members of lists may be empty.
        check("BYTES=0-1", 10, One(0..2));
        check("bytes= 0-1 , ", 10, One(0..2));
        check("bytes=,,\t0-1,,", 10, One(0..2));
        check("bytes=007-0008", 10, One(7..9));
    }

    #[test]
    fn numbers_of_any_size() {
        let huge = "9".repeat(400);
        check("bytes=0-18446744073709551615", 10, One(0..10));
        check("bytes=0-18446744073709551616", 10, One(0..10));
        check(&format!("bytes=3-{huge}"), 10, One(3..10));
        check(&format!("bytes=-{huge}"), 10, One(0..10));
        check(&format!("bytes={huge}-"), 10, Unsatisfiable);
        check("bytes=18446744073709551615-", u64::MAX, Unsatisfiable);
        check(
            "bytes=18446744073709551614-18446744073709551615",
            u64::MAX,
            One(u64::MAX - 1..u64::MAX),
        );
        check(&format!("bytes={huge}-{huge}"), 10, Unsatisfiable);
        check(&format!("bytes={huge}9-{huge}"), 10, Whole);
        check(
            &format!("bytes={huge}-00000000000{huge}"),
            10,
            Unsatisfiable,
        );
    }

    #[test]
    fn what_has_no_byte() {
        for value in ["bytes=10-", "bytes=10-11", "bytes=-0", "bytes=10-,-0,11-12"] {
            check(value, 10, Unsatisfiable);
        }
        // One that has makes up for those that have not (section 14.1.2).
        check("bytes=10-,2-3,-0", 10, One(2..4));
        // The whole is nothing: section 14.2 lets the field be ignored.
        for value in ["bytes=0-", "bytes=0-0", "bytes=-1", "bytes=-0", "bytes=5-6"] {
            check(value, 0, Whole);
        }
    }

    #[test]
    fn what_is_malformed_counts_as_absent() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes=-",
            "bytes=x",
            "bytes=x-",
            "bytes=-x",
            "bytes=1-x",
            "bytes=0x1-2",
            "bytes=+1-2",
            "bytes=1",
            "bytes=3-2",
            "bytes=1-2-3",
            "bytes=--1",
            "bytes=1 - 2",
            "bytes=1- 2",
            "bytes =0-1",
            "byte=0-1",
            "items=0-1",
            "0-1",
            "=0-1",
            "bytes:0-1",
            "bytes=0-1;2-3",
            "bytes=0-1,x",
            "bytes=0-1,3-2",
            "bytes=\u{661}-2",
            "bytes=0-1\0",
        ] {
            check(value, 10, Whole);
        }
        let twice = Headers::new();
        assert_eq!(select(&twice, 10), Whole);
        let mut twice = Headers::new();
        twice.append("Range", "bytes=0-1").unwrap();
        assert_eq!(select(&twice, 10), One(0..2));
        twice.append("range", "bytes=0-1").unwrap();
        assert_eq!(select(&twice, 10), Whole);
    }

    #[test]
    fn ranges_that_overlap_or_touch_are_joined() {
        check("bytes=0-9,5-19", 1000, One(0..20));
        check("bytes=5-19,0-9", 1000, One(0..20));
        check("bytes=0-,0-,0-", 1000, One(0..1000));
        check("bytes=0-0,1-", 1000, One(0..1000));
        check("bytes=0-0,2-", 1000, Many(vec![0..1, 2..1000]));
        check("bytes=500-599,0-9", 1000, Many(vec![500..600, 0..10]));
        check(
            "bytes=500-599,0-9,-100,550-650",
            1000,
            Many(vec![500..651, 0..10, 900..1000]),
        );
        // A later range joins two that were apart.
        check("bytes=0-9,500-599,9-501", 1000, One(0..600));
        check("bytes=0-0,-1", 10_000, Many(vec![0..1, 9999..10_000]));
    }

    #[test]
    fn fields_of_the_tables_of_others() {
        // npm's range-parser (test/range-parser.js) and Go's net/http (fs_test.go, 11 bytes). They differ
        // where they may: both answer what is backwards by 416, which section 14.1.1 calls invalid and
        // section 14.2 has ignored.
        check("malformed", 200, Whole);
        check("bytes=500-20", 200, Whole);
        check("bytes=500-999", 200, Unsatisfiable);
        check("bytes=500-999,1000-1499", 200, Unsatisfiable);
        check("bytes=0-499", 200, One(0..200));
        check("bytes=40-80", 1000, One(40..81));
        check("bytes=-400", 1000, One(600..1000));
        check("bytes=400-", 1000, One(400..1000));
        check("bytes=40-80,-1", 1000, Many(vec![40..81, 999..1000]));
        check(
            "bytes=0-4,90-99,5-75,100-199,101-102",
            150,
            Many(vec![0..76, 90..150]),
        );
        check("bytes=0-499,1000-,500-999", 200, One(0..200));
        check("items=0-5", 1000, Whole);
        check("bytes=3-7", 11, One(3..8));
        check("bytes=20-", 11, Unsatisfiable);
        check("bytes=0-0,-2", 11, Many(vec![0..1, 9..11]));
        check("bytes=5-1000", 11, One(5..11));
        check("bytes=0-,1-,2-,3-,4-", 11, One(0..11));
        check("bytes=0-9", 11, One(0..10));
        check("bytes=0-10", 11, One(0..11));
        check("bytes=0-11", 11, One(0..11));
        check("bytes=10-11", 11, One(10..11));
        check("bytes=10-", 11, One(10..11));
        check("bytes=11-", 11, Unsatisfiable);
        check("bytes=11-12", 11, Unsatisfiable);
        check("bytes=12-12", 11, Unsatisfiable);
        check("bytes=11-100", 11, Unsatisfiable);
        check("bytes=100-", 11, Unsatisfiable);
    }

    #[test]
    fn as_many_ranges_as_are_allowed_and_one_more() {
        let field = |count: usize| {
            let ranges: Vec<String> = (0..count)
                .map(|at| format!("{}-{}", at * 100, at * 100))
                .collect();
            format!("bytes={}", ranges.join(","))
        };
        let all = (0..64).map(|at| at * 100..at * 100 + 1).collect();
        check(&field(64), 10_000, Many(all));
        check(&field(65), 10_000, Whole);
        // Those that have no byte count as well.
        check(&format!("{},-0", field(63)), 10_000, {
            Many((0..63).map(|at| at * 100..at * 100 + 1).collect())
        });
        check(&format!("{},-0", field(64)), 10_000, Whole);
    }

    /// What is asked for, byte by byte.
    fn marked(asked: &[Asked], length: u64) -> Vec<bool> {
        (0..length)
            .map(|at| {
                asked.iter().any(|asked| match *asked {
                    Asked::From(first) => at >= first,
                    Asked::Between(first, more) => (first..=first + more).contains(&at),
                    Asked::Last(count) => at + count >= length,
                })
            })
            .collect()
    }

    #[derive(Clone, Copy, Debug)]
    enum Asked {
        From(u64),
        Between(u64, u64),
        Last(u64),
    }

    fn asked() -> impl proptest::strategy::Strategy<Value = Asked> {
        use proptest::prelude::*;
        prop_oneof![
            (0..900_u64).prop_map(Asked::From),
            (0..900_u64, 0..60_u64).prop_map(|(first, more)| Asked::Between(first, more)),
            (0..60_u64).prop_map(Asked::Last),
        ]
    }

    proptest::proptest! {
        #[test]
        fn what_is_sent_is_what_was_asked_for(
            asked in proptest::collection::vec(asked(), 1..10),
            length in 1..700_u64,
        ) {
            let members: Vec<String> = asked.iter().map(|asked| match asked {
                Asked::From(first) => format!("{first}-"),
                Asked::Between(first, more) => format!("{first}-{}", first + more),
                Asked::Last(count) => format!("-{count}"),
            }).collect();
            let wanted = marked(&asked, length);
            let ranges = match select_in(format!("bytes={}", members.join(", ")).as_bytes(), length) {
                Whole => panic!("a valid field was ignored"),
                Unsatisfiable => Vec::new(),
                One(range) => vec![range],
                Many(ranges) => ranges,
            };
            proptest::prop_assert_eq!(ranges.is_empty(), !wanted.contains(&true));
            let mut sent = vec![false; length as usize];
            for range in &ranges {
                // No byte twice, none past the end, and each end is one that was asked for.
                for at in range.clone() {
                    proptest::prop_assert!(!std::mem::replace(&mut sent[at as usize], true));
                }
                proptest::prop_assert!(wanted[range.start as usize] && wanted[range.end as usize - 1]);
            }
            proptest::prop_assert_eq!(sent, wanted);
        }
    }
}
