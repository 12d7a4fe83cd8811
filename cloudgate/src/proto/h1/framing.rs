//! Where does a request's body end, and does the connection live on?
//!
//! One pass over the fields. Whatever two implementations could read in two ways is refused
//! (RFC 9112 sections 3.2, 6 and 9): that is what request smuggling is made of.

use std::net::Ipv6Addr;

use http::Method;

use crate::message::{RequestHead, Version};
use crate::proto::error::ParseError;

/// How the length of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// No body.
    None,
    /// This many bytes, never zero.
    Sized(u64),
    /// Chunks up to the last one.
    Chunked,
}

/// What the fields of a request say about its message and connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// The request's body.
    pub body: BodyLength,
    /// Whether the client allows further requests on the connection (RFC 9112 section 9.3).
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
}

impl Framing {
    /// Reads the framing from a parsed head.
    ///
    /// # Errors
    /// [`ParseError`] naming the rule when the framing is invalid or ambiguous; the connection
    /// cannot be used any further then.
    pub fn of(head: &RequestHead) -> Result<Framing, ParseError> {
        let mut host = None;
        let mut length = None;
        let mut coding = None;
        let (mut expects_continue, mut known_expectation) = (false, true);
        let (mut close, mut keep_alive) = (false, false);
        for (name, value) in head.headers.fields() {
            // The names' lengths differ, so one comparison a field is enough.
            match name.len() {
                4 if name.eq_ignore_ascii_case(b"host") => {
                    once(&mut host, value, ParseError::RepeatedHost)?;
                }
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    once(
                        &mut length,
                        parse_length(value)?,
                        ParseError::RepeatedContentLength,
                    )?;
                }
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    once(&mut coding, value, ParseError::UnsupportedTransferCoding)?;
                }
                10 if name.eq_ignore_ascii_case(b"connection") => {
                    for member in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                        close |= member.eq_ignore_ascii_case(b"close");
                        keep_alive |= member.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                6 if name.eq_ignore_ascii_case(b"expect") => {
                    expects_continue = true;
                    known_expectation &= value.eq_ignore_ascii_case(b"100-continue");
                }
                _ => {}
            }
        }
        if coding.is_some_and(|value| !value.eq_ignore_ascii_case(b"chunked")) {
            return Err(ParseError::UnsupportedTransferCoding);
        }
        if !known_expectation {
            return Err(ParseError::UnknownExpectation);
        }
        match host {
            None if head.version == Version::Http11 => return Err(ParseError::MissingHost),
            Some(value) if !value.is_empty() && !is_host(value) => {
                return Err(ParseError::InvalidHost);
            }
            _ => {}
        }
        if head.method == Method::CONNECT {
            return Err(ParseError::Connect);
        }
        let body = match (length, coding) {
            (Some(_), Some(_)) => return Err(ParseError::AmbiguousFraming),
            (None, Some(_)) if head.version == Version::Http10 => {
                return Err(ParseError::TransferCodingInHttp10);
            }
            (None, Some(_)) => BodyLength::Chunked,
            (None | Some(0), None) => BodyLength::None,
            (Some(length), None) => BodyLength::Sized(length),
        };
        Ok(Framing {
            body,
            keep_alive: !close && (head.version == Version::Http11 || keep_alive),
            // HTTP/1.0 clients cannot mean it (RFC 9110 section 10.1.1).
            expects_continue: expects_continue && head.version == Version::Http11,
        })
    }
}

/// Notes the value of a field that may come only once.
pub(super) fn once<T>(
    slot: &mut Option<T>,
    value: T,
    repeated: ParseError,
) -> Result<(), ParseError> {
    if slot.replace(value).is_some() {
        Err(repeated)
    } else {
        Ok(())
    }
}

/// Digits only, fitting in 64 bits: `+1`, `1,1`, `0x1` and the empty value are refused.
pub(super) fn parse_length(value: &[u8]) -> Result<u64, ParseError> {
    let length = value.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit()
            .then(|| sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')))?
    });
    length
        .filter(|_| !value.is_empty())
        .ok_or(ParseError::InvalidContentLength)
}

/// Whether `value` is a host with an optional port, as Host and authority-form targets have it.
///
/// A comma is valid in RFC 3986's reg-name and refused here: it is how two Host fields look once
/// somebody has joined them.
pub(crate) fn is_host(value: &[u8]) -> bool {
    let (host, port) = if let Some(rest) = value.strip_prefix(b"[") {
        let Some(end) = memchr::memchr(b']', rest) else {
            return false;
        };
        let literal = std::str::from_utf8(&rest[..end]).ok();
        if literal.is_none_or(|text| text.parse::<Ipv6Addr>().is_err()) {
            return false;
        }
        (&b"v6"[..], &rest[end + 1..])
    } else {
        let end = memchr::memchr(b':', value).unwrap_or(value.len());
        value.split_at(end)
    };
    let host_fits =
        !host.is_empty() && (host.iter().all(|&byte| is_host_byte(byte)) || is_encoded_host(host));
    let port_fits = match port {
        [] => true,
        [b':', digits @ ..] => {
            digits.len() <= 5
                && digits.iter().all(u8::is_ascii_digit)
                && digits
                    .iter()
                    .fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0'))
                    <= 65_535
        }
        _ => false,
    };
    host_fits && port_fits
}

/// Whether these are bytes of a host and percent signs with two hex digits behind each.
#[cold]
fn is_encoded_host(host: &[u8]) -> bool {
    let mut parts = host.split(|&byte| byte == b'%');
    let plain = |part: &[u8]| part.iter().all(|&byte| is_host_byte(byte));
    parts.next().is_some_and(plain)
        && parts.all(|part| {
            part.len() >= 2 && part[..2].iter().all(u8::is_ascii_hexdigit) && plain(part)
        })
}

/// The bytes of RFC 3986's reg-name, but for the comma and what is percent-encoded.
fn is_host_byte(byte: u8) -> bool {
    HOST_BYTES[byte as usize]
}

/// Every request's Host is looked at byte by byte, so each costs one load.
static HOST_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let allowed = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+;=";
    let mut at = 0;
    while at < allowed.len() {
        table[allowed[at] as usize] = true;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::h1::parse_request;
    use crate::proto::limits::Limits;
    use ParseError::*;

    fn framing(version: &str, fields: &str) -> Result<Framing, ParseError> {
        let mut head = RequestHead::default();
        let text = format!("POST / {version}\r\n{fields}\r\n");
        parse_request(text.as_bytes(), &Limits::DEFAULT, &mut head)
            .unwrap()
            .expect("a complete head");
        Framing::of(&head)
    }

    #[track_caller]
    fn check(fields: &str, want: Result<BodyLength, ParseError>) {
        let got = framing("HTTP/1.1", &format!("Host: h\r\n{fields}")).map(|framing| framing.body);
        assert_eq!(got, want, "{fields:?}");
    }

    #[test]
    fn body_lengths() {
        check("", Ok(BodyLength::None));
        check("Content-Length: 0\r\n", Ok(BodyLength::None));
        check("Content-Length: 10\r\n", Ok(BodyLength::Sized(10)));
        check("content-LENGTH:\t 00010 \r\n", Ok(BodyLength::Sized(10)));
        check(
            "Content-Length: 18446744073709551615\r\n",
            Ok(BodyLength::Sized(u64::MAX)),
        );
        check("Transfer-Encoding: ChunKed\r\n", Ok(BodyLength::Chunked));
        for value in [
            "",
            "+1",
            "-1",
            "0x1",
            "1 1",
            "1a",
            "1e1",
            "1.0",
            "1,",
            "1, 1",
            "1_0",
            "18446744073709551616",
        ] {
            check(
                &format!("Content-Length: {value}\r\n"),
                Err(InvalidContentLength),
            );
        }
        for value in [
            "",
            "gzip",
            "chunked, gzip",
            "gzip, chunked",
            "chunked, chunked",
            "\"chunked\"",
            "chunked;q=1",
            "x chunked",
            "identity",
        ] {
            check(
                &format!("Transfer-Encoding: {value}\r\n"),
                Err(UnsupportedTransferCoding),
            );
        }
        check(
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            Err(UnsupportedTransferCoding),
        );
        check(
            "Content-Length: 1\r\nContent-Length: 1\r\n",
            Err(RepeatedContentLength),
        );
        check(
            "Content-Length: 1\r\nContent-Length: 2\r\n",
            Err(RepeatedContentLength),
        );
        check(
            "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
            Err(AmbiguousFraming),
        );
        check(
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            Err(AmbiguousFraming),
        );
        assert_eq!(
            framing("HTTP/1.0", "Transfer-Encoding: chunked\r\n"),
            Err(TransferCodingInHttp10)
        );
    }

    #[test]
    fn hosts() {
        for good in [
            "h",
            "h:80",
            "h:",
            "1.2.3.4:5",
            "[::1]",
            "[::1]:80",
            "a-b_c.d~e",
            "0.0.0.0=5000",
            "%41",
            "a%C3%a9b:80",
        ] {
            assert!(
                framing("HTTP/1.1", &format!("Host: {good}\r\n")).is_ok(),
                "{good}"
            );
        }
        for bad in [
            "a b", "a/b", "u@h", "h:x", "h:99999", "h:123456", "[::1", "[x]", "[::1]x", "a<b>",
            "a,b", ":80", "%", "a%4", "%zz", "a%4:80", "%%41", "%41%", "%41/",
        ] {
            assert_eq!(
                framing("HTTP/1.1", &format!("Host: {bad}\r\n")),
                Err(InvalidHost),
                "{bad}"
            );
        }
        assert!(framing("HTTP/1.1", "Host:\r\n").is_ok());
        assert_eq!(framing("HTTP/1.1", ""), Err(MissingHost));
        assert_eq!(
            framing("HTTP/1.1", "Host: a\r\nHost: a\r\n"),
            Err(RepeatedHost)
        );
        assert!(framing("HTTP/1.0", "").is_ok());
        assert_eq!(
            framing("HTTP/1.0", "Host: a\r\nhost: b\r\n"),
            Err(RepeatedHost)
        );
    }

    #[test]
    fn connection_and_expectation() {
        for (version, fields, keep_alive) in [
            ("HTTP/1.1", "", true),
            ("HTTP/1.1", "Connection: foo, ClOsE\r\n", false),
            ("HTTP/1.1", "Connection:\r\nConnection: close\r\n", false),
            ("HTTP/1.1", "Connection: keep-alive, close\r\n", false),
            ("HTTP/1.1", "Connection: closed\r\n", true),
            ("HTTP/1.0", "", false),
            ("HTTP/1.0", "Connection: Keep-Alive\r\n", true),
        ] {
            let framing = framing(version, &format!("Host: h\r\n{fields}")).unwrap();
            assert_eq!(framing.keep_alive, keep_alive, "{version} {fields:?}");
        }
        let expect = |version, value| {
            framing(version, &format!("Host: h\r\nExpect: {value}\r\n")).map(|f| f.expects_continue)
        };
        assert_eq!(expect("HTTP/1.1", "100-Continue"), Ok(true));
        assert_eq!(expect("HTTP/1.0", "100-continue"), Ok(false));
        assert_eq!(expect("HTTP/1.1", "200-ok"), Err(UnknownExpectation));
    }
}
