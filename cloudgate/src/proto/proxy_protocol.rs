//! Whom does a proxy speak for that puts a PROXY protocol header in front of a connection?
//!
//! Versions 1 (a line of text) and 2 (binary) of HAProxy's `proxy-protocol.txt`. Only the source
//! address is used; the destination, the checksum and all other TLVs are skipped. Whoever may
//! send such a header may claim any address, so it is parsed only where the peer is trusted.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// What the header says of the connection's other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nothing: the proxy speaks for itself (LOCAL, a health check), or does not know (UNKNOWN).
    Proxy,
    /// The client has this address.
    Address(SocketAddr),
    /// The client came to the proxy by a Unix socket.
    Unix,
}

/// The rule that a header broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyError {
    /// The connection begins with something else.
    NoHeader,
    /// The header is longer than its version, or this server, allows.
    TooLong,
    /// A line of version 1 is not `PROXY TCP4|TCP6 source destination port port` or `PROXY UNKNOWN …`.
    InvalidLine,
    /// An address or port of version 1 is malformed, or of the other family.
    InvalidAddress,
    /// The binary signature is followed by a version other than 2.
    UnsupportedVersion,
    /// The command is neither LOCAL nor PROXY.
    UnknownCommand,
    /// The address family and transport are no pair that version 2 knows.
    UnknownFamily,
    /// The length of version 2 has no room for the addresses of its family.
    TooShort,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProxyError::NoHeader => "there is no PROXY protocol header",
            ProxyError::TooLong => "the PROXY protocol header is too long",
            ProxyError::InvalidLine => "the line of the PROXY protocol is malformed",
            ProxyError::InvalidAddress => {
                "an address in the line of the PROXY protocol is malformed"
            }
            ProxyError::UnsupportedVersion => {
                "the version of the PROXY protocol is neither 1 nor 2"
            }
            ProxyError::UnknownCommand => "the command of the PROXY protocol header is unknown",
            ProxyError::UnknownFamily => {
                "the address family of the PROXY protocol header is unknown"
            }
            ProxyError::TooShort => "the PROXY protocol header has no room for its addresses",
        })
    }
}

impl std::error::Error for ProxyError {}

/// The longest header that is accepted, in bytes. Addresses take up to 232; the rest is room for
/// TLVs, of which a client certificate's names are the longest in use.
pub const LONGEST: usize = 4096;

/// The longest line of version 1 with its line end.
const LONGEST_LINE: usize = 107;

const LINE_START: &[u8] = b"PROXY ";

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, length.
const FIXED: usize = 16;

/// Parses the header at the begin of `input`: its length and whom it names; `None` where more bytes
/// are needed.
///
/// # Errors
/// As soon as no further byte can make it a header that is accepted.
pub fn parse(input: &[u8]) -> Result<Option<(usize, Source)>, ProxyError> {
    let begins = |start: &[u8]| {
        let count = start.len().min(input.len());
        input[..count] == start[..count]
    };
    if begins(SIGNATURE) {
        binary(input)
    } else if begins(LINE_START) {
        line(input)
    } else {
        Err(ProxyError::NoHeader)
    }
}

/// Version 1.
fn line(input: &[u8]) -> Result<Option<(usize, Source)>, ProxyError> {
    let Some(end) = memchr::memchr(b'\n', &input[..input.len().min(LONGEST_LINE)]) else {
        return if input.len() < LONGEST_LINE {
            Ok(None)
        } else {
            Err(ProxyError::TooLong)
        };
    };
    let text = input[..end]
        .strip_suffix(b"\r")
        .and_then(|line| line.strip_prefix(LINE_START))
        .filter(|text| !text.contains(&b'\r'))
        .ok_or(ProxyError::InvalidLine)?;
    let length = end + 1;
    if text == b"UNKNOWN" || text.starts_with(b"UNKNOWN ") {
        // Whatever follows must be ignored, by the specification.
        return Ok(Some((length, Source::Proxy)));
    }
    let text = std::str::from_utf8(text).map_err(|_| ProxyError::InvalidLine)?;
    let words: Vec<&str> = text.split(' ').collect();
    let [family, source, destination, source_port, destination_port] = words[..] else {
        return Err(ProxyError::InvalidLine);
    };
    let (source, _) = match family {
        "TCP4" => both(source, destination, |text| {
            Ipv4Addr::from_str(text).map(IpAddr::V4)
        }),
        "TCP6" => both(source, destination, |text| {
            Ipv6Addr::from_str(text).map(IpAddr::V6)
        }),
        _ => return Err(ProxyError::InvalidLine),
    }?;
    let port = port(source_port)?;
    self::port(destination_port)?;
    Ok(Some((length, address(source, port))))
}

fn both<E>(
    source: &str,
    destination: &str,
    parse: impl Fn(&str) -> Result<IpAddr, E>,
) -> Result<(IpAddr, IpAddr), ProxyError> {
    match (parse(source), parse(destination)) {
        (Ok(source), Ok(destination)) => Ok((source, destination)),
        _ => Err(ProxyError::InvalidAddress),
    }
}

/// A port as the specification has it: digits without a leading zero.
fn port(text: &str) -> Result<u16, ProxyError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if !digits || leading_zero {
        return Err(ProxyError::InvalidAddress);
    }
    text.parse().map_err(|_| ProxyError::InvalidAddress)
}

/// Version 2.
fn binary(input: &[u8]) -> Result<Option<(usize, Source)>, ProxyError> {
    // Each byte is judged as soon as it is there: who sends rubbish is not waited for.
    let Some(&version_and_command) = input.get(12) else {
        return Ok(None);
    };
    if version_and_command >> 4 != 2 {
        return Err(ProxyError::UnsupportedVersion);
    }
    let local = match version_and_command & 0x0f {
        0 => true,
        1 => false,
        _ => return Err(ProxyError::UnknownCommand),
    };
    let Some(&family) = input.get(13) else {
        return Ok(None);
    };
    // The family of a LOCAL header counts for nothing.
    let needed = match family {
        _ if local => 0,
        0x00 => 0,
        0x11 | 0x12 => 12,
        0x21 | 0x22 => 36,
        0x31 | 0x32 => 216,
        _ => return Err(ProxyError::UnknownFamily),
    };
    let Some(&[high, low]) = input.get(14..FIXED) else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length < needed {
        return Err(ProxyError::TooShort);
    }
    let end = FIXED + length;
    if end > LONGEST {
        return Err(ProxyError::TooLong);
    }
    let Some(addresses) = input.get(FIXED..end) else {
        return Ok(None);
    };
    let source = match (family, addresses) {
        _ if local => Source::Proxy,
        (0x11 | 0x12, &[a, b, c, d, _, _, _, _, high, low, ..]) => address(
            Ipv4Addr::new(a, b, c, d).into(),
            u16::from_be_bytes([high, low]),
        ),
        (0x21 | 0x22, addresses) => match (addresses.first_chunk::<16>(), addresses.get(32..34)) {
            (Some(source), Some(&[high, low])) => address(
                Ipv6Addr::from(*source).into(),
                u16::from_be_bytes([high, low]),
            ),
            _ => return Err(ProxyError::TooShort),
        },
        (0x31 | 0x32, _) => Source::Unix,
        _ => Source::Proxy,
    };
    Ok(Some((end, source)))
}

/// An IPv4 address is one, also where an IPv6 address carries it.
fn address(source: IpAddr, port: u16) -> Source {
    Source::Address(SocketAddr::new(source.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Parsed = Result<Option<(usize, Source)>, ProxyError>;

    /// Parses the input whole, at every length, and with other bytes behind it.
    #[track_caller]
    fn check(input: &[u8], want: Parsed) {
        assert_eq!(parse(input), want, "whole");
        let first = (0..=input.len())
            .map(|length| (length, parse(&input[..length])))
            .find(|(_, parsed)| *parsed != Ok(None));
        // A shorter piece says nothing, or what the whole says.
        match (want, first) {
            (Ok(Some((length, _))), first) => assert_eq!(first, Some((length, want))),
            (Ok(None), first) => assert_eq!(first, None),
            (Err(_), first) => assert_eq!(first.map(|(_, parsed)| parsed), Some(want)),
        }
        for behind in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"\0",
            b"\n",
            &vec![0xff; 5000],
        ] {
            if !matches!(want, Ok(None)) {
                assert_eq!(parse(&[input, behind].concat()), want, "with bytes behind");
            }
        }
    }

    fn from(address: &str) -> Source {
        Source::Address(address.parse().unwrap())
    }

    #[track_caller]
    fn accepted(line: &str, source: Source) {
        check(line.as_bytes(), Ok(Some((line.len(), source))));
    }

    #[track_caller]
    fn refused(input: impl AsRef<[u8]>, error: ProxyError) {
        check(input.as_ref(), Err(error));
    }

    /// A header of version 2.
    fn v2(version_and_command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [SIGNATURE, &[version_and_command, family], &length, rest].concat()
    }

    fn inet() -> Vec<u8> {
        vec![192, 0, 2, 1, 198, 51, 100, 2, 0xdc, 0x04, 0x01, 0xbb]
    }

    fn inet6(source: &str) -> Vec<u8> {
        let source = source.parse::<Ipv6Addr>().unwrap().octets();
        [&source[..], &[0xfd; 16], &[0x1f, 0x90, 0x00, 0x50]].concat()
    }

    #[test]
    fn version_1() {
        accepted(
            "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n",
            from("192.0.2.1:56324"),
        );
        accepted(
            "PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n",
            from("0.0.0.0:0"),
        );
        accepted(
            "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
            from("255.255.255.255:65535"),
        );
        accepted(
            "PROXY TCP6 2001:db8::1 ::1 1 2\r\n",
            from("[2001:db8::1]:1"),
        );
        accepted(
            "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
             ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
            from("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535"),
        );
        accepted(
            "PROXY TCP6 ::ffff:192.0.2.1 ::1 1 2\r\n",
            from("192.0.2.1:1"),
        );
        accepted("PROXY UNKNOWN\r\n", Source::Proxy);
        accepted("PROXY UNKNOWN \r\n", Source::Proxy);
        accepted("PROXY UNKNOWN whatever: 1 2 \t 3\r\n", Source::Proxy);
        // The longest line there is, 107 bytes.
        accepted(
            "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff \
             ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
            Source::Proxy,
        );
    }

    #[test]
    fn hostile_lines_of_version_1() {
        for line in [
            "PROXY \r\n",
            "PROXY TCP4\r\n",
            "PROXY TCP\r\n",
            "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY tcp4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY UNKNOWNS\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 \r\n",
            "PROXY  TCP4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
            "PROXY UNKNOWN\n",
            "PROXY UNKNOWN \r \r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\r\n",
            "PROXY\tTCP4",
        ] {
            let error = if line.starts_with("PROXY ") {
                ProxyError::InvalidLine
            } else {
                ProxyError::NoHeader
            };
            refused(line, error);
        }
        for line in [
            "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.256 1.2.3.4 1 2\r\n",
            "PROXY TCP4 01.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP6 ::1 [::1] 1 2\r\n",
            "PROXY TCP6 ::1%1 ::1 1 2\r\n",
            "PROXY TCP4 1.2.3.4 x 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4  2\r\n",
        ] {
            refused(line, ProxyError::InvalidAddress);
        }
        refused(b"PROXY TCP4 \xff 1.2.3.4 1 2\r\n", ProxyError::InvalidLine);
        // One byte more than the longest line, with and without an end.
        refused(
            format!("PROXY UNKNOWN {}\r\n", "x".repeat(92)),
            ProxyError::TooLong,
        );
        refused(format!("PROXY {}", "x".repeat(101)), ProxyError::TooLong);
        check(format!("PROXY {}", "x".repeat(100)).as_bytes(), Ok(None));
        accepted(
            &format!("PROXY UNKNOWN {}\r\n", "x".repeat(91)),
            Source::Proxy,
        );
    }

    #[test]
    fn something_else_is_known_by_its_first_byte_that_differs() {
        for other in [
            "GET / HTTP/1.1\r\n",
            "PRI * HTTP/2.0\r\n",
            "PROXX",
            "proxy ",
            "\0",
            "\r\n\r\nGET",
            "\r\n\r\n\0\r\nQUIT\r",
            "\x16\x03\x01\x02\x00",
        ] {
            refused(other, ProxyError::NoHeader);
        }
        check(b"", Ok(None));
        check(b"PROXY", Ok(None));
        check(&SIGNATURE[..11], Ok(None));
    }

    #[test]
    fn version_2() {
        let check_v2 = |header: Vec<u8>, source| {
            check(&header, Ok(Some((header.len(), source))));
        };
        for transport in [1, 2] {
            check_v2(v2(0x21, 0x10 | transport, &inet()), from("192.0.2.1:56324"));
            check_v2(
                v2(0x21, 0x20 | transport, &inet6("2001:db8::7")),
                from("[2001:db8::7]:8080"),
            );
            check_v2(v2(0x21, 0x30 | transport, &[b'/'; 216]), Source::Unix);
        }
        check_v2(
            v2(0x21, 0x21, &inet6("::ffff:192.0.2.1")),
            from("192.0.2.1:8080"),
        );
        check_v2(v2(0x21, 0x00, b""), Source::Proxy);
        check_v2(v2(0x21, 0x00, b"anything"), Source::Proxy);
        // A LOCAL header may hold any family and any bytes.
        check_v2(v2(0x20, 0x00, b""), Source::Proxy);
        check_v2(v2(0x20, 0x11, &inet()), Source::Proxy);
        check_v2(v2(0x20, 0x11, b"x"), Source::Proxy);
        check_v2(v2(0x20, 0xff, b"x"), Source::Proxy);
    }

    #[test]
    fn tlvs_of_version_2_are_skipped_up_to_the_limit() {
        // A CRC32c that does not fit, an ALPN, padding.
        let tlvs = b"\x03\0\x04\xde\xad\xbe\xef\x01\0\x02h2\x04\0\x03\0\0\0";
        let with_tlvs = v2(0x21, 0x11, &[&inet()[..], tlvs].concat());
        check(
            &with_tlvs,
            Ok(Some((with_tlvs.len(), from("192.0.2.1:56324")))),
        );
        // TLVs are not looked at, so malformed ones are no error.
        let odd = v2(0x21, 0x11, &[&inet()[..], b"\x03\xff\xff"].concat());
        check(&odd, Ok(Some((odd.len(), from("192.0.2.1:56324")))));
        let padded = |length: usize| {
            let mut rest = inet();
            rest.resize(length - FIXED, 0);
            v2(0x21, 0x11, &rest)
        };
        check(
            &padded(LONGEST),
            Ok(Some((LONGEST, from("192.0.2.1:56324")))),
        );
        refused(padded(LONGEST + 1), ProxyError::TooLong);
        refused(v2(0x20, 0, &vec![0; 65535]), ProxyError::TooLong);
    }

    #[test]
    fn hostile_headers_of_version_2() {
        refused(v2(0x11, 0x11, &inet()), ProxyError::UnsupportedVersion);
        refused(v2(0x31, 0x11, &inet()), ProxyError::UnsupportedVersion);
        refused(v2(0x00, 0x00, b""), ProxyError::UnsupportedVersion);
        refused(v2(0x22, 0x11, &inet()), ProxyError::UnknownCommand);
        refused(v2(0x2f, 0x11, &inet()), ProxyError::UnknownCommand);
        for family in [0x01, 0x02, 0x10, 0x13, 0x20, 0x30, 0x33, 0x41, 0xff] {
            refused(v2(0x21, family, &[0; 300]), ProxyError::UnknownFamily);
        }
        for (family, needed) in [(0x11, 12), (0x12, 12), (0x21, 36), (0x31, 216)] {
            refused(v2(0x21, family, &vec![0; needed - 1]), ProxyError::TooShort);
            refused(v2(0x21, family, b""), ProxyError::TooShort);
        }
        let mut cut = v2(0x21, 0x11, &inet());
        cut.pop();
        check(&cut, Ok(None));
    }

    /// Bytes that are, or nearly are, a header, with others behind them.
    fn nearly_headers() -> impl Strategy<Value = Vec<u8>> {
        let start = prop::sample::select(vec![
            b"PROXY ".to_vec(),
            b"PROXY TCP4 1.2.3.4 ".to_vec(),
            b"PROXY TCP6 ::1 ::2 1 ".to_vec(),
            b"PROXY UNKNOWN".to_vec(),
            SIGNATURE.to_vec(),
            v2(0x21, 0x11, &inet()),
            v2(0x20, 0x11, b""),
            v2(0x21, 0x21, &inet6("::1")),
            [SIGNATURE, b"\x21\x11\0"].concat(),
        ]);
        let one = prop_oneof![
            any::<u8>(),
            prop::sample::select(b"\r\n .:0123456789abcdefTCPUNKOW".to_vec()),
        ];
        let rest = prop::collection::vec(one, 0..160);
        let change = prop::option::of((any::<prop::sample::Index>(), any::<u8>()));
        (start, rest, change).prop_map(|(start, rest, change)| {
            let mut bytes = [start, rest].concat();
            if let Some((at, byte)) = change {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        })
    }

    proptest! {
        #[test]
        fn more_bytes_never_change_what_was_said(bytes in nearly_headers()) {
            let whole = parse(&bytes);
            for length in 0..bytes.len() {
                let piece = parse(&bytes[..length]);
                prop_assert!(piece == Ok(None) || piece == whole, "{length}: {piece:?} {whole:?}");
            }
            if let Ok(Some((length, _))) = whole {
                prop_assert!(length <= bytes.len() && length <= LONGEST);
                prop_assert_eq!(parse(&bytes[..length]), whole);
            }
        }
    }
}
