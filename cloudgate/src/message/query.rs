//! What do the percent-encoded parts of a request target mean?
//!
//! RFC 3986: a target is split first and decoded after, so `%2F` in a segment is a character of
//! it and never a separator.

use std::borrow::Cow;

/// Why a target was refused: it holds a byte that no target may hold, or a `%` without two hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidTarget;

const FORBIDDEN: u8 = 1;
const QUESTION: u8 = 2;
const PERCENT: u8 = 4;

/// What each byte means in a target: one load a byte, and no branch.
static KINDS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'#' | ..=0x20 | 0x7f.. => FORBIDDEN,
            b'?' => QUESTION,
            b'%' => PERCENT,
            _ => 0,
        };
        byte += 1;
    }
    table
};

/// Checks an origin-form target or `*` and puts it into `into`, with unreserved characters of its
/// path decoded (RFC 3986 section 6.2.2.2), so that `/%61` and `/a` are one path for every layer.
/// Gives the position of the `?` in `into`, if there is one.
///
/// The query is left as it is: forms in the wild hold a bare `%` there.
pub(crate) fn normalise_target(
    target: &str,
    into: &mut String,
) -> Result<Option<usize>, InvalidTarget> {
    into.clear();
    if !target.starts_with('/') && target != "*" {
        return Err(InvalidTarget);
    }
    let bytes = target.as_bytes();
    let mut seen = 0;
    for &byte in bytes {
        seen |= KINDS[byte as usize];
    }
    if seen & FORBIDDEN != 0 {
        return Err(InvalidTarget);
    }
    let question = if seen & QUESTION == 0 {
        None
    } else {
        memchr::memchr(b'?', bytes)
    };
    let path_end = question.unwrap_or(bytes.len());
    let encoded = seen & PERCENT != 0 && memchr::memchr(b'%', &bytes[..path_end]).is_some();
    if !encoded {
        into.push_str(target);
        return Ok(question);
    }
    let (path, query) = target.split_at(question.unwrap_or(target.len()));
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        into.push_str(&rest[..at]);
        let byte = decode_byte(&rest.as_bytes()[at..]).ok_or(InvalidTarget)?;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(byte as char);
        } else {
            into.push_str(&rest[at..at + 3].to_ascii_uppercase());
        }
        rest = &rest[at + 3..];
    }
    into.push_str(rest);
    let question = question.map(|_| into.len());
    into.push_str(query);
    Ok(question)
}

/// The byte that a `%XX` at the start of `text` stands for.
fn decode_byte(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    let (high, low) = (digit(*text.get(1)?)?, digit(*text.get(2)?)?);
    Some((high * 16 + low) as u8)
}

/// One segment of a path, decoded; `None` if it is no UTF-8 or holds a NUL.
pub(crate) fn decode_segment(segment: &str) -> Option<Cow<'_, str>> {
    let text = percent_encoding::percent_decode_str(segment)
        .decode_utf8()
        .ok()?;
    (!text.contains('\0')).then_some(text)
}

/// The `name=value` pairs of a query or an urlencoded form, `+` and `%XX` decoded, in order.
pub(crate) fn pairs(text: &[u8]) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &str, want: Option<&str>) {
        let mut into = String::new();
        let question = normalise_target(target, &mut into);
        assert_eq!(question.ok().map(|_| into.as_str()), want, "{target:?}");
        assert!(
            question.is_err() || question == Ok(into.find('?')),
            "{target:?}"
        );
    }

    #[test]
    fn targets_are_checked_and_unreserved_characters_decoded() {
        for (target, want) in [
            ("/", Some("/")),
            ("*", Some("*")),
            ("/a/b?c=d", Some("/a/b?c=d")),
            ("/%61%2e%2E%7e%2D%5f", Some("/a..~-_")),
            ("/a%2fb%20c", Some("/a%2Fb%20c")),
            ("/a?b=%zz%", Some("/a?b=%zz%")),
            ("/%00", Some("/%00")),
            ("/%zz", None),
            ("/%4", None),
            ("/%", None),
            ("/%+1", None),
            ("/a b", None),
            ("/a#b", None),
            ("/\u{e9}", None),
            ("/\u{7f}", None),
            ("a", None),
            ("", None),
        ] {
            check(target, want);
        }
    }

    #[test]
    fn segments_decode_to_text_without_nul() {
        assert_eq!(decode_segment("a%2Fb%20c").as_deref(), Some("a/b c"));
        assert_eq!(decode_segment("caf%C3%A9").as_deref(), Some("caf\u{e9}"));
        assert_eq!(decode_segment("%ff"), None);
        assert_eq!(decode_segment("a%00"), None);
    }
}
