//! Is a text a value for `Cache-Control` that caches will understand?
//!
//! They leave out what they do not know (RFC 9111 section 5.2.3), so a slip of the pen would go unnoticed.

use crate::message::headers::{is_field_value, is_token};
use crate::message::negotiate::split_outside_quotes;

/// What may stand behind the name of a directive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Argument {
    Nothing,
    Seconds,
    /// None, or names of fields in quotes.
    Fields,
}

/// The directives of answers: RFC 9111 section 5.2.2, RFC 5861, RFC 8246.
const DIRECTIVES: [(&str, Argument); 13] = [
    ("max-age", Argument::Seconds),
    ("s-maxage", Argument::Seconds),
    ("public", Argument::Nothing),
    ("private", Argument::Fields),
    ("no-cache", Argument::Fields),
    ("no-store", Argument::Nothing),
    ("no-transform", Argument::Nothing),
    ("must-revalidate", Argument::Nothing),
    ("proxy-revalidate", Argument::Nothing),
    ("must-understand", Argument::Nothing),
    ("immutable", Argument::Nothing),
    ("stale-while-revalidate", Argument::Seconds),
    ("stale-if-error", Argument::Seconds),
];

/// The largest number of seconds that a cache has to take (RFC 9111 section 1.2.2).
const MOST_SECONDS: u64 = 1 << 31;

/// Says what is wrong with the value, and what to write.
pub(super) fn check(value: &str) -> Result<(), String> {
    if !is_field_value(value.as_bytes()) || !value.is_ascii() {
        return Err(format!(
            "{value:?} is no value for a header field - write plain letters, digits and signs on one line"
        ));
    }
    let mut seen: Vec<&str> = Vec::new();
    for member in split_outside_quotes(value, b',').map(str::trim_ascii) {
        let name = directive(member)?;
        if seen.contains(&name) {
            return Err(format!("{name} stands there twice - leave one of them"));
        }
        seen.push(name);
    }
    for (one, other) in [
        ("public", "private"),
        ("public", "no-store"),
        ("max-age", "no-store"),
    ] {
        if seen.contains(&one) && seen.contains(&other) {
            return Err(format!(
                "{one} and {other} contradict each other - leave one of them"
            ));
        }
    }
    Ok(())
}

/// The name of a directive that is as it should be.
fn directive(member: &str) -> Result<&'static str, String> {
    if member.is_empty() {
        return Err(
            "there is a place with no directive in it - write for example \"public, max-age=600\""
                .to_owned(),
        );
    }
    let (name, argument) = match member.split_once('=') {
        Some((name, argument)) => (name, Some(argument)),
        None => (member, None),
    };
    let known = DIRECTIVES
        .iter()
        .find(|(known, _)| is_token(name.as_bytes()) && known.eq_ignore_ascii_case(name));
    let Some((known, wanted)) = known else {
        return Err(unknown(member));
    };
    let fits = match (wanted, argument) {
        (Argument::Nothing | Argument::Fields, None) => true,
        (Argument::Seconds, Some(text)) => {
            text.bytes().all(|byte| byte.is_ascii_digit())
                && text
                    .parse()
                    .is_ok_and(|seconds: u64| seconds <= MOST_SECONDS)
        }
        (Argument::Fields, Some(text)) => are_fields(text),
        (Argument::Nothing, Some(_)) | (Argument::Seconds, None) => false,
    };
    if fits {
        return Ok(known);
    }
    Err(match wanted {
        Argument::Nothing => {
            format!("{member:?} has a value, and {known} takes none - write \"{known}\"")
        }
        Argument::Seconds => format!(
            "{member:?} does not say how long - write \"{known}=600\" with the seconds as a plain number up to {MOST_SECONDS}"
        ),
        Argument::Fields => format!(
            "{member:?} does not name fields - write \"{known}\", or {known}=\"set-cookie\" with quotes"
        ),
    })
}

/// Whether it is a list of field names in quotes.
fn are_fields(text: &str) -> bool {
    text.strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .is_some_and(|names| {
            names
                .split(',')
                .all(|name| is_token(name.trim_ascii().as_bytes()))
        })
}

fn unknown(member: &str) -> String {
    let letters = |text: &str| -> String {
        text.chars()
            .filter(char::is_ascii_alphabetic)
            .map(|letter| letter.to_ascii_lowercase())
            .collect()
    };
    let written = letters(member);
    let nearest = DIRECTIVES
        .iter()
        .map(|(known, wanted)| (distance(&written, &letters(known)), known, wanted))
        .min_by_key(|(distance, ..)| *distance)
        .filter(|(distance, known, _)| *distance <= 2.min(known.len() / 3));
    let Some((_, known, wanted)) = nearest else {
        let all: Vec<&str> = DIRECTIVES.iter().map(|(known, _)| *known).collect();
        return format!(
            "{member:?} is no directive that caches know - take of {}",
            all.join(", ")
        );
    };
    let digits: String = member.chars().filter(char::is_ascii_digit).collect();
    let digits = if digits.is_empty() { "600" } else { &digits };
    match wanted {
        Argument::Seconds => format!("{member:?} is no directive - write \"{known}={digits}\""),
        Argument::Nothing | Argument::Fields => {
            format!("{member:?} is no directive - write \"{known}\"")
        }
    }
}

/// How many letters have to be added, left out or changed to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.bytes().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, wanted) in other.bytes().enumerate() {
            let changed = corner + usize::from(letter != wanted);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_caches_understand() {
        for value in [
            "no-cache",
            "no-store",
            "public, max-age=31536000, immutable",
            "Public,Max-Age=0",
            "private, max-age=60, must-revalidate",
            "public, max-age=60, s-maxage=600, stale-while-revalidate=30, stale-if-error=86400",
            "no-cache=\"set-cookie, x-one\", max-age=5",
            "private=\"x\"",
            "no-transform, proxy-revalidate, must-understand",
            "max-age=2147483648",
        ] {
            assert_eq!(check(value), Ok(()), "{value}");
        }
    }

    #[test]
    fn what_they_do_not_is_named_with_what_to_write() {
        for (value, want) in [
            ("max-age:600", "\"max-age=600\""),
            ("public, max-age 600", "\"max-age=600\""),
            ("max-age = 600", "\"max-age=600\""),
            ("maxage=600", "\"max-age=600\""),
            ("max_age=600", "\"max-age=600\""),
            ("s-max-age=600", "\"s-maxage=600\""),
            ("nocache", "\"no-cache\""),
            ("no-chache", "\"no-cache\""),
            ("public, imutable", "\"immutable\""),
            ("must revalidate", "\"must-revalidate\""),
            ("stale-while-revalidating=5", "take of max-age"),
            ("forever", "take of max-age"),
            ("max-age", "\"max-age=600\""),
            ("max-age=", "\"max-age=600\""),
            ("max-age=1h", "\"max-age=600\""),
            ("max-age=-1", "\"max-age=600\""),
            ("max-age=+1", "\"max-age=600\""),
            ("max-age=\"600\"", "\"max-age=600\""),
            ("max-age=2147483649", "up to 2147483648"),
            ("max-age=99999999999999999999999", "up to 2147483648"),
            ("public=yes", "write \"public\""),
            ("no-cache=set-cookie", "with quotes"),
            ("no-cache=\"\"", "with quotes"),
            ("max-age=1, max-age=2", "twice"),
            ("public, private", "contradict"),
            ("no-store, max-age=5", "contradict"),
            ("", "\"public, max-age=600\""),
            ("public,", "\"public, max-age=600\""),
            ("public;max-age=600", "no directive"),
            ("public\r\nX: y", "on one line"),
            ("publi\u{e9}", "on one line"),
        ] {
            let error = check(value).unwrap_err();
            assert!(error.contains(want), "{value:?}: {error}");
        }
    }
}
