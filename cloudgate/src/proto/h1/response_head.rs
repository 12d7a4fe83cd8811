//! What does the head of a response say?

use std::mem::MaybeUninit;

use http::StatusCode;
use httparse::Status;

use crate::message::{Headers, Version};
use crate::proto::error::ParseError;
use crate::proto::limits::Limits;

/// How many fields are parsed with a table on the stack (1 KiB); a head with more uses the heap.
const FEW_FIELDS: usize = 32;

/// Everything in front of a response's body.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// The version of HTTP.
    pub version: Version,
    /// The header fields.
    pub headers: Headers,
}

/// Parses the head of a response at the start of `input`: its length in bytes, and what it says.
///
/// `Ok(None)` means that more bytes are needed.
///
/// # Errors
/// [`ParseError`] as soon as the bytes cannot become an acceptable head.
pub fn parse_response(
    input: &[u8],
    limits: &Limits,
) -> Result<Option<(usize, ResponseHead)>, ParseError> {
    let few = limits.fields.min(FEW_FIELDS);
    let mut table = [const { MaybeUninit::uninit() }; FEW_FIELDS];
    match parse_with(input, limits, &mut table[..few]) {
        Err(ParseError::TooManyFields) if few < limits.fields => {
            let mut table: Vec<MaybeUninit<httparse::Header<'_>>> = Vec::new();
            table.resize_with(limits.fields, MaybeUninit::uninit);
            parse_with(input, limits, &mut table)
        }
        other => other,
    }
}

fn parse_with<'b>(
    input: &'b [u8],
    limits: &Limits,
    table: &mut [MaybeUninit<httparse::Header<'b>>],
) -> Result<Option<(usize, ResponseHead)>, ParseError> {
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        input,
        table,
    );
    let length = match parsed {
        Ok(Status::Complete(length)) if length <= limits.head => length,
        Ok(Status::Partial) if input.len() < limits.head => return Ok(None),
        Ok(_) => return Err(ParseError::HeadTooLarge),
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
    let (Some(code), Some(minor)) = (response.code, response.version) else {
        return Err(ParseError::InvalidStatusLine);
    };
    let status = StatusCode::from_u16(code).map_err(|_| ParseError::InvalidStatusLine)?;
    let mut headers = Headers::new();
    let base = input.as_ptr() as usize;
    let place = |bytes: &[u8]| (bytes.as_ptr() as usize - base, bytes.len());
    headers.load(
        &lines[..length - 2],
        first_line,
        response
            .headers
            .iter()
            .map(|field| (place(field.name.as_bytes()), place(field.value))),
    );
    let version = if minor == 0 {
        Version::Http10
    } else {
        Version::Http11
    };
    Ok(Some((
        length,
        ResponseHead {
            status,
            version,
            headers,
        },
    )))
}

fn rule_of(error: httparse::Error) -> ParseError {
    match error {
        httparse::Error::HeaderName => ParseError::InvalidFieldName,
        httparse::Error::HeaderValue => ParseError::InvalidFieldValue,
        httparse::Error::NewLine => ParseError::InvalidLineEnd,
        httparse::Error::TooManyHeaders => ParseError::TooManyFields,
        httparse::Error::Version => ParseError::UnsupportedVersion,
        _ => ParseError::InvalidStatusLine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            head: 200,
            fields: 3,
            ..Limits::DEFAULT
        }
    }

    #[test]
    fn a_head_is_found_whole_or_byte_by_byte() {
        for (text, status, version, first) in [
            (
                "HTTP/1.1 200 OK\r\nA: b\r\nC:d \r\n\r\n",
                200,
                Version::Http11,
                Some("b"),
            ),
            ("HTTP/1.0 404 Not Found\r\n\r\n", 404, Version::Http10, None),
            // RFC 9112 section 4: the phrase may be missing, the space may not; many leave it out.
            (
                "HTTP/1.1 299 \r\nA:\r\n\r\n",
                299,
                Version::Http11,
                Some(""),
            ),
        ] {
            let input = format!("{text}body");
            let (length, head) = parse_response(input.as_bytes(), &limits())
                .unwrap()
                .unwrap();
            assert_eq!(length, text.len());
            assert_eq!((head.status.as_u16(), head.version), (status, version));
            assert_eq!(head.headers.get("a"), first);
            for end in 0..text.len() {
                let part = parse_response(&text.as_bytes()[..end], &limits());
                assert!(part.unwrap().is_none(), "{end} bytes of {text:?}");
            }
        }
    }

    #[test]
    fn what_is_no_head_names_its_rule() {
        let many = |count| format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
        let long =
            |length: usize| format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(length - 24));
        for (text, want) in [
            (
                "HTTP/1.1 200 OK\nA: b\r\n\r\n".to_owned(),
                Some(ParseError::InvalidLineEnd),
            ),
            (
                "HTTP/2.0 200 OK\r\n\r\n".to_owned(),
                Some(ParseError::UnsupportedVersion),
            ),
            (
                "HTTP/1.1 2x0 OK\r\n\r\n".to_owned(),
                Some(ParseError::InvalidStatusLine),
            ),
            (
                "HTTP/1.1 099 No\r\n\r\n".to_owned(),
                Some(ParseError::InvalidStatusLine),
            ),
            (
                "HTTP/1.1 200 OK\r\nA b\r\n\r\n".to_owned(),
                Some(ParseError::InvalidFieldName),
            ),
            (
                "HTTP/1.1 200 OK\r\nA: \0\r\n\r\n".to_owned(),
                Some(ParseError::InvalidFieldValue),
            ),
            (many(3), None),
            (many(4), Some(ParseError::TooManyFields)),
            (long(200), None),
            (long(201), Some(ParseError::HeadTooLarge)),
        ] {
            let parsed = parse_response(text.as_bytes(), &limits());
            assert_eq!(parsed.err(), want, "{text:?}");
        }
    }
}
