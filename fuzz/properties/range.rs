//! Does a Range field, whatever it says, select bytes that are there, each once, and all that it asks for?

use std::ops::Range;

use cloudgate::__fuzz;

/// The two first bytes of `input` are the length of what is asked for a part, the rest is the field.
pub fn range(input: &[u8]) {
    let Some((&[high, low], field)) = input.split_first_chunk() else {
        return;
    };
    let length = u64::from(u16::from_be_bytes([high, low]));
    let selected = __fuzz::range(field, length);
    let huge = __fuzz::range(field, u64::MAX);
    assert_eq!(
        selected.is_none(),
        huge.is_none() || length == 0,
        "whether a field is malformed does not depend on the length"
    );
    for (ranges, length) in [(&selected, length), (&huge, u64::MAX)] {
        fits(ranges.as_deref().unwrap_or_default(), length);
    }
    if let Some(ranges) = selected {
        holds_all(field, length, &ranges);
    }
}

/// No range is empty, reaches past the end, or touches another.
fn fits(ranges: &[Range<u64>], length: u64) {
    let mut ordered = ranges.to_vec();
    ordered.sort_by_key(|range| range.start);
    assert!(
        ordered
            .iter()
            .all(|range| range.start < range.end && range.end <= length)
    );
    assert!(ordered.windows(2).all(|pair| pair[0].end < pair[1].start));
}

/// What each member asks for, read another way, is selected; and nothing where none asks for something.
fn holds_all(field: &[u8], length: u64, ranges: &[Range<u64>]) {
    let text = std::str::from_utf8(field)
        .expect("a valid field is ASCII")
        .trim();
    let (_, members) = text.split_once('=').expect("a valid field has a unit");
    let mut asked = false;
    for member in members.split(',').map(|member| member.trim()) {
        let Some((first, last)) = member.split_once('-') else {
            continue;
        };
        // Numbers that have no room here are larger than every length.
        let number = |text: &str| text.parse().unwrap_or(u128::MAX);
        let length = u128::from(length);
        let (start, end) = match (first, last) {
            ("", count) => (length - number(count).min(length), length),
            (first, "") => (number(first), length),
            (first, last) => (number(first), number(last).saturating_add(1).min(length)),
        };
        if start < end {
            asked = true;
            let inside = |range: &Range<u64>| {
                u128::from(range.start) <= start && end <= u128::from(range.end)
            };
            assert!(ranges.iter().any(inside), "{member} is not selected");
        }
    }
    assert_eq!(asked, !ranges.is_empty());
}
