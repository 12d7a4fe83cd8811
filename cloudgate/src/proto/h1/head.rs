//! What does a request head say, and is it one?
//!
//! `httparse` finds the pieces; what it tolerates and a server must not (bare LF line ends,
//! an absolute target's authority, non-ASCII targets) is checked here.

use std::mem::MaybeUninit;

use http::Method;
use httparse::Status;

use crate::message::headers::is_tchar;
use crate::message::query::normalise_target;
use crate::message::{RequestHead, Version};
use crate::proto::error::ParseError;
use crate::proto::h1::framing::is_host;
use crate::proto::limits::Limits;

/// How many fields are parsed with a table on the stack (1 KiB); a head with more uses the heap.
const FEW_FIELDS: usize = 32;

/// How many empty lines in front of a request line are skipped (RFC 9112 section 2.2 asks for one).
const EMPTY_LINES: usize = 4;

/// Parses a request head at the start of `input` into `head`, whose buffers are used again.
///
/// `Ok(None)` means that more bytes are needed and nothing was consumed; `Ok(Some(n))` that the
/// head, empty lines in front of it included, took `n` bytes.
///
/// # Errors
/// [`ParseError`] as soon as the bytes cannot become an acceptable head, complete or not.
pub fn parse_request(
    input: &[u8],
    limits: &Limits,
    head: &mut RequestHead,
) -> Result<Option<usize>, ParseError> {
    let skipped = skip_empty_lines(input)?;
    let input = &input[skipped..];
    match input.first() {
        None | Some(b'\r') => return Ok(None),
        Some(&first) if !is_tchar(first) => return Err(ParseError::InvalidRequestLine),
        Some(_) => {}
    }
    if input.len() > limits.target {
        check_first_line(&input[..input.len().min(limits.head + 1)], limits)?;
    }
    let complete = if limits.fields <= FEW_FIELDS {
        let mut table = [const { MaybeUninit::uninit() }; FEW_FIELDS];
        parse_with(input, limits, head, &mut table[..limits.fields])?
    } else {
        let mut table = [const { MaybeUninit::uninit() }; FEW_FIELDS];
        match parse_with(input, limits, head, &mut table) {
            Err(ParseError::TooManyFields) => {
                let mut table: Vec<MaybeUninit<httparse::Header<'_>>> = Vec::new();
                table.resize_with(limits.fields, MaybeUninit::uninit);
                parse_with(input, limits, head, &mut table)?
            }
            other => other?,
        }
    };
    match complete {
        Some(length) if length <= limits.head => Ok(Some(skipped + length)),
        None if input.len() < limits.head => Ok(None),
        _ => Err(ParseError::HeadTooLarge),
    }
}

fn skip_empty_lines(input: &[u8]) -> Result<usize, ParseError> {
    let mut skipped = 0;
    while input[skipped..].starts_with(b"\r\n") {
        skipped += 2;
        if skipped > 2 * EMPTY_LINES {
            return Err(ParseError::InvalidRequestLine);
        }
    }
    match &input[skipped..] {
        [b'\n', ..] | [b'\r', _, ..] => Err(ParseError::InvalidLineEnd),
        _ => Ok(skipped),
    }
}

/// Refuses a first line whose target is over its limit before the line is complete. A method has the
/// same limit, or a line without a space would be one thing in one piece and another in two.
fn check_first_line(input: &[u8], limits: &Limits) -> Result<(), ParseError> {
    let line = &input[..memchr::memchr(b'\n', input).unwrap_or(input.len())];
    let method = memchr::memchr(b' ', line).unwrap_or(line.len());
    if method > limits.target {
        return Err(ParseError::InvalidRequestLine);
    }
    let target = line.get(method + 1..).unwrap_or_default();
    let length = memchr::memchr(b' ', target).unwrap_or(target.len());
    if length <= limits.target {
        return Ok(());
    }
    // A byte that no target holds is refused as such if it came before the limit: what the peer is
    // told must not depend on how much has arrived at once.
    let fits = &input[..method + 1 + limits.target];
    match httparse::Request::new(&mut []).parse(fits) {
        Err(error) => Err(rule_of(error)),
        Ok(_) => Err(ParseError::TargetTooLong),
    }
}

fn parse_with<'b>(
    input: &'b [u8],
    limits: &Limits,
    head: &mut RequestHead,
    table: &mut [MaybeUninit<httparse::Header<'b>>],
) -> Result<Option<usize>, ParseError> {
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(input, table) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::Version) => return parse_later_minor_version(input, limits, head),
        Err(error) => return Err(rule_of(error)),
    };
    let lines = &input[..length];
    let mut first_line = 0;
    for at in memchr::memchr_iter(b'\n', lines) {
        if at == 0 || lines[at - 1] != b'\r' {
            return Err(ParseError::InvalidLineEnd);
        }
        if first_line == 0 {
            first_line = at + 1;
        }
    }
    let (Some(method), Some(target), Some(minor)) = (request.method, request.path, request.version)
    else {
        return Err(ParseError::InvalidRequestLine);
    };
    if target.len() > limits.target {
        return Err(ParseError::TargetTooLong);
    }
    head.clear();
    head.version = if minor == 0 {
        Version::Http10
    } else {
        Version::Http11
    };
    head.method =
        Method::from_bytes(method.as_bytes()).map_err(|_| ParseError::InvalidRequestLine)?;
    set_target(head, target)?;
    let base = input.as_ptr() as usize;
    let place = |bytes: &[u8]| (bytes.as_ptr() as usize - base, bytes.len());
    head.headers.load(
        &lines[..length - 2],
        first_line,
        request
            .headers
            .iter()
            .map(|field| (place(field.name.as_bytes()), place(field.value))),
    );
    Ok(Some(length))
}

/// A minor version above 1 is treated as 1 (RFC 9110 section 2.5); another major one is refused.
#[cold]
fn parse_later_minor_version(
    input: &[u8],
    limits: &Limits,
    head: &mut RequestHead,
) -> Result<Option<usize>, ParseError> {
    let Some(end) = memchr::memchr(b'\n', input) else {
        return Ok(None);
    };
    let line = input[..end]
        .strip_suffix(b"\r")
        .ok_or(ParseError::InvalidLineEnd)?;
    // The third part and not the last: `GET /a b HTTP/1.1` has a version, in the wrong place.
    let version = line.splitn(3, |&byte| byte == b' ').nth(2);
    let version = version.unwrap_or_default();
    match version {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => {
            let mut patched = input.to_vec();
            patched[line.len() - 1] = b'1';
            parse_request(&patched, limits, head)
        }
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            Err(ParseError::UnsupportedVersion)
        }
        _ => Err(ParseError::InvalidRequestLine),
    }
}

fn rule_of(error: httparse::Error) -> ParseError {
    match error {
        httparse::Error::HeaderName => ParseError::InvalidFieldName,
        httparse::Error::HeaderValue => ParseError::InvalidFieldValue,
        httparse::Error::NewLine => ParseError::InvalidLineEnd,
        httparse::Error::TooManyHeaders => ParseError::TooManyFields,
        _ => ParseError::InvalidRequestLine,
    }
}

/// Sorts out the four forms of a target (RFC 9112 section 3.2).
fn set_target(head: &mut RequestHead, target: &str) -> Result<(), ParseError> {
    let origin = if head.method == Method::CONNECT {
        // Authority form. Nothing here opens tunnels, so the target is only checked.
        if !is_host(target.as_bytes()) {
            return Err(ParseError::InvalidTarget);
        }
        head.authority = Some(target.to_owned());
        "/"
    } else if target == "*" {
        if head.method != Method::OPTIONS {
            return Err(ParseError::InvalidTarget);
        }
        target
    } else if target.starts_with('/') {
        target
    } else {
        let rest = strip_scheme(target).ok_or(ParseError::InvalidTarget)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.is_empty() || !is_host(authority.as_bytes()) {
            return Err(ParseError::InvalidTarget);
        }
        head.authority = Some(authority.to_owned());
        if !path.starts_with('/') {
            // `http://host?query` has the path "/" (RFC 9110 section 4.2.3).
            return finish_target(head, &format!("/{path}"));
        }
        path
    };
    finish_target(head, origin)
}

fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")).then_some(rest)
}

fn finish_target(head: &mut RequestHead, origin: &str) -> Result<(), ParseError> {
    head.question =
        normalise_target(origin, &mut head.target).map_err(|_| ParseError::InvalidTarget)?;
    head.sent = (head.target != origin).then(|| origin.to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ParseError::*;

    fn parse(input: &[u8]) -> Result<Option<(usize, RequestHead)>, ParseError> {
        let mut head = RequestHead::default();
        Ok(parse_request(input, &Limits::DEFAULT, &mut head)?.map(|length| (length, head)))
    }

    /// Parses `input` whole, and byte by byte: the answer must be the same, and no proper prefix complete.
    #[track_caller]
    fn check(input: &[u8], want: Result<(&str, &str), ParseError>) {
        let got = parse(input).map(|found| {
            let (length, head) = found.expect("a complete head");
            assert_eq!(length, input.len());
            (head.method.to_string(), head.target)
        });
        let want_owned = want.map(|(method, target)| (method.to_owned(), target.to_owned()));
        assert_eq!(got, want_owned, "{}", input.escape_ascii());
        for end in 0..input.len() {
            match parse(&input[..end]) {
                Ok(None) => {}
                Ok(Some(_)) => panic!("complete after {end} bytes of {}", input.escape_ascii()),
                Err(error) => {
                    assert_eq!(
                        Err(error),
                        want,
                        "after {end} bytes of {}",
                        input.escape_ascii()
                    );
                    break;
                }
            }
        }
    }

    #[test]
    fn request_lines() {
        #[allow(clippy::large_stack_arrays, reason = "a table of a test")]
        for (line, want) in [
            (&b"GET / HTTP/1.1"[..], Ok(("GET", "/"))),
            (b"GET /a%62?c=%zz HTTP/1.1", Ok(("GET", "/ab?c=%zz"))),
            (b"PROPFIND /x HTTP/1.0", Ok(("PROPFIND", "/x"))),
            (b"GET / HTTP/1.2", Ok(("GET", "/"))),
            (b"GET / HTTP/1.9", Ok(("GET", "/"))),
            (b"OPTIONS * HTTP/1.1", Ok(("OPTIONS", "*"))),
            (b"GET http://h:80/p?q HTTP/1.1", Ok(("GET", "/p?q"))),
            (b"GET HTTP://h HTTP/1.1", Ok(("GET", "/"))),
            (b"GET http://h?q HTTP/1.1", Ok(("GET", "/?q"))),
            (b"CONNECT h:443 HTTP/1.1", Ok(("CONNECT", "/"))),
            (b"GET http:///p HTTP/1.1", Err(InvalidTarget)),
            (b"GET http://u@h/ HTTP/1.1", Err(InvalidTarget)),
            (b"GET ftp://h/ HTTP/1.1", Err(InvalidTarget)),
            (b"GET h:80 HTTP/1.1", Err(InvalidTarget)),
            (b"GET * HTTP/1.1", Err(InvalidTarget)),
            (b"CONNECT /p HTTP/1.1", Err(InvalidTarget)),
            (b"GET a?x HTTP/1.1", Err(InvalidTarget)),
            (b"GET /#f HTTP/1.1", Err(InvalidTarget)),
            (b"GET /%zz HTTP/1.1", Err(InvalidTarget)),
            (b"GET / HTTP/2.0", Err(UnsupportedVersion)),
            (b"GET / HTTP/0.9", Err(UnsupportedVersion)),
            (b"GET / HTTP/1.10", Err(InvalidLineEnd)),
            (b"GET / http/1.1", Err(InvalidRequestLine)),
            (b"GET / HTTP/1.1x", Err(InvalidLineEnd)),
            (b"GET /", Err(InvalidRequestLine)),
            (b"GET  / HTTP/1.1", Err(InvalidRequestLine)),
            (b"GET /  HTTP/1.1", Err(InvalidRequestLine)),
            (b"GET /a b HTTP/1.1", Err(InvalidRequestLine)),
            (b"GET / HTTP/1.2 HTTP/1.1", Err(InvalidRequestLine)),
            (b" GET / HTTP/1.1", Err(InvalidRequestLine)),
            (b"G@T / HTTP/1.1", Err(InvalidRequestLine)),
            (b"\x16\x03\x01", Err(InvalidRequestLine)),
        ] {
            let got = parse(&[line, b"\r\nHost: h\r\n\r\n"].concat())
                .map(|found| found.expect("complete").1)
                .map(|head| (head.method.to_string(), head.target));
            assert_eq!(
                got,
                want.map(|(method, target)| (method.to_owned(), target.to_owned())),
                "{}",
                line.escape_ascii()
            );
        }
    }

    #[test]
    fn heads_byte_by_byte() {
        check(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", Ok(("GET", "/")));
        check(b"\r\n\r\nGET / HTTP/1.1\r\nA:b\r\n\r\n", Ok(("GET", "/")));
        check(
            b"GET / HTTP/1.1\r\nA: caf\xe9\r\nB:\r\n\r\n",
            Ok(("GET", "/")),
        );
        check(b"GET / HTTP/1.2\r\nHost: h\r\n\r\n", Ok(("GET", "/")));
    }

    #[test]
    fn malformed_fields_name_the_rule() {
        for (fields, want) in [
            (&b"A : b\r\n"[..], InvalidFieldName),
            (b"A\t: b\r\n", InvalidFieldName),
            (b"A b\r\n", InvalidFieldName),
            (b": b\r\n", InvalidFieldName),
            (b" A: b\r\n", InvalidFieldName),
            (b"A: b\r\n c\r\n", InvalidFieldName),
            (b"A\0: b\r\n", InvalidFieldName),
            (b"A(: b\r\n", InvalidFieldName),
            (b"A: b\0\r\n", InvalidFieldValue),
            (b"A: b\x01\r\n", InvalidFieldValue),
            (b"A: b\x7f\r\n", InvalidFieldValue),
            (b"A: b\rc\r\n", InvalidFieldValue),
            (b"A: b\r\r\n", InvalidFieldValue),
            (b"A: b\nC: d\r\n", InvalidLineEnd),
        ] {
            let input = [b"GET / HTTP/1.1\r\n", fields, b"\r\n"].concat();
            let got = parse(&input).map(|_| ());
            assert!(
                got == Err(want) || (got == Err(InvalidLineEnd) && want == InvalidFieldValue),
                "{got:?} for {}",
                fields.escape_ascii()
            );
        }
        assert_eq!(
            parse(b"GET / HTTP/1.1\nHost: h\n\n").unwrap_err(),
            InvalidLineEnd
        );
        assert_eq!(
            parse(b"\nGET / HTTP/1.1\r\n\r\n").unwrap_err(),
            InvalidLineEnd
        );
    }

    #[test]
    fn limits_hold_at_the_limit_and_one_past_it() {
        let with_target =
            |length: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(length - 1));
        assert!(parse(with_target(8 << 10).as_bytes()).unwrap().is_some());
        assert_eq!(
            parse(with_target((8 << 10) + 1).as_bytes()).unwrap_err(),
            TargetTooLong
        );
        let unfinished = format!("GET /{}", "a".repeat(8 << 10));
        assert_eq!(parse(unfinished.as_bytes()).unwrap_err(), TargetTooLong);
        // The first rule that is broken counts, in one piece and in many.
        for (start, want) in [
            ("G@T /", InvalidRequestLine),
            ("GET /\x01", InvalidRequestLine),
            ("GET /#", TargetTooLong),
        ] {
            let line = format!("{start}{} HTTP/1.1\r\n\r\n", "a".repeat(8 << 10));
            assert_eq!(parse(line.as_bytes()).unwrap_err(), want, "{start}");
        }

        let with_method = |length: usize| format!("{} / HTTP/1.1\r\n\r\n", "A".repeat(length));
        assert!(parse(with_method(8 << 10).as_bytes()).unwrap().is_some());
        let too_long = with_method((8 << 10) + 1);
        for end in [(8 << 10) + 1, too_long.len()] {
            let got = parse(&too_long.as_bytes()[..end]);
            assert_eq!(got.unwrap_err(), InvalidRequestLine);
        }

        let with_fields =
            |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert!(parse(with_fields(32).as_bytes()).unwrap().is_some());
        assert_eq!(
            parse(with_fields(33).as_bytes())
                .unwrap()
                .unwrap()
                .1
                .headers
                .len(),
            33
        );
        assert_eq!(
            parse(with_fields(100).as_bytes())
                .unwrap()
                .unwrap()
                .1
                .headers
                .len(),
            100
        );
        assert_eq!(
            parse(with_fields(101).as_bytes()).unwrap_err(),
            TooManyFields
        );

        let with_head =
            |length: usize| format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(length - 23));
        assert!(parse(with_head(64 << 10).as_bytes()).unwrap().is_some());
        assert_eq!(
            parse(with_head((64 << 10) + 1).as_bytes()).unwrap_err(),
            HeadTooLarge
        );
        let unfinished = &with_head(70 << 10)[..64 << 10];
        assert_eq!(parse(unfinished.as_bytes()).unwrap_err(), HeadTooLarge);

        assert!(
            parse(b"\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n")
                .unwrap()
                .is_some()
        );
        assert_eq!(
            parse(b"\r\n\r\n\r\n\r\n\r\nGET").unwrap_err(),
            InvalidRequestLine
        );
    }

    #[test]
    fn fields_and_authority_are_kept() {
        let (_, head) = parse(b"GET http://h/ HTTP/1.1\r\nHost:\tother \r\nX: \r\n\r\n")
            .unwrap()
            .unwrap();
        assert_eq!(head.host(), Some("h"));
        assert_eq!(head.headers.get("host"), Some("other"));
        assert_eq!(head.headers.get("x"), Some(""));
        assert_eq!(head.headers.wire(), b"Host:\tother \r\nX: \r\n");
    }
}
