//! Which coding does a client want its answer in?

use super::Coding;
use crate::message::Headers;
use crate::message::negotiate::quality;

/// What `Accept-Encoding` comes to (RFC 9110 section 12.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::services) struct Wanted {
    /// The coding to use, of those that are offered; `None` for none.
    pub(in crate::services) coding: Option<Coding>,
    /// Whether the client does not want the answer as it is.
    pub(in crate::services) refuses_plain: bool,
}

/// Chooses of the offered codings, the best first, the one that the client wants most.
///
/// A client that does not say gets the answer as it is: it may be too simple to decode anything.
pub(in crate::services) fn choose(headers: &Headers, offered: &[Coding]) -> Wanted {
    let any = weight(headers, "*");
    let mut best = None;
    let mut most = 0;
    for &coding in offered {
        let own = coding.names().iter().find_map(|name| weight(headers, name));
        let weight = own.or(any).unwrap_or(0);
        if weight > most {
            (best, most) = (Some(coding), weight);
        }
    }
    let plain = weight(headers, "identity");
    Wanted {
        coding: best.filter(|_| plain.is_none_or(|plain| plain <= most)),
        refuses_plain: plain.or(any) == Some(0),
    }
}

/// The weight of a coding where it is named, in thousandths. One that cannot be read is 0: what the
/// client did not clearly ask for it does not get.
fn weight(headers: &Headers, coding: &str) -> Option<u16> {
    headers
        .get_all("accept-encoding")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .find_map(|member| {
            let (name, parameters) = match member.iter().position(|&byte| byte == b';') {
                Some(at) => (&member[..at], &member[at + 1..]),
                None => (member, &b"q=1"[..]),
            };
            name.trim_ascii()
                .eq_ignore_ascii_case(coding.as_bytes())
                .then(|| parse_weight(parameters.trim_ascii()).unwrap_or(0))
        })
}

/// A weight such as `q=0.5` (RFC 9110 section 12.4.2), in thousandths.
fn parse_weight(text: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', weight @ ..] = text else {
        return None;
    };
    quality(std::str::from_utf8(weight).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_as_the_rfc_spells_them() {
        for (text, want) in [
            ("q=1", Some(1000)),
            ("Q=1.000", Some(1000)),
            ("q=0", Some(0)),
            ("q=0.", Some(0)),
            ("q=0.5", Some(500)),
            ("q=0.05", Some(50)),
            ("q=0.001", Some(1)),
            ("q=0.0001", None),
            ("q=1.001", None),
            ("q=2", None),
            ("q=-1", None),
            ("q=.5", None),
            ("q=0,5", None),
            ("q=", None),
            ("", None),
            ("level=9", None),
        ] {
            assert_eq!(parse_weight(text.as_bytes()), want, "{text}");
        }
    }

    #[test]
    fn the_coding_with_the_most_weight_is_taken() {
        for (fields, coding, refuses_plain) in [
            (&[][..], None, false),
            (&[""], None, false),
            (&["gzip"], Some(Coding::Gzip), false),
            (&["GZIP;q=0.1"], Some(Coding::Gzip), false),
            (&["x-gzip"], Some(Coding::Gzip), false),
            (&["deflate, gzip , compress"], Some(Coding::Gzip), false),
            (&["deflate", "gzip"], Some(Coding::Gzip), false),
            (&["gzip;q=0"], None, false),
            (&["gzip; q=0.000"], None, false),
            (&["gzip;q=x"], None, false),
            (&["gzipped"], None, false),
            (&["deflate"], None, false),
            (&["identity"], None, false),
            (&["*"], Some(Coding::Gzip), false),
            (&["*;q=0"], None, true),
            (&["gzip;q=0, *"], None, false),
            (&["gzip, *;q=0"], Some(Coding::Gzip), true),
            (&["identity, *;q=0"], None, false),
            (&["identity;q=0"], None, true),
            (&["gzip, identity;q=0"], Some(Coding::Gzip), true),
            (&["gzip;q=0.5, identity;q=0.8"], None, false),
            (&["gzip;q=0.8, identity;q=0.5"], Some(Coding::Gzip), false),
            (&["gzip;q=0.5, identity;q=0.5"], Some(Coding::Gzip), false),
        ] {
            let mut headers = Headers::new();
            for value in fields {
                headers.append("Accept-Encoding", value).unwrap();
            }
            let want = Wanted {
                coding,
                refuses_plain,
            };
            assert_eq!(choose(&headers, &[Coding::Gzip]), want, "{fields:?}");
        }
    }

    #[cfg(all(feature = "brotli", feature = "zstd"))]
    #[test]
    fn among_equals_the_first_one_offered_is_taken() {
        let offered = Coding::ENCODABLE;
        for (field, want) in [
            ("gzip, deflate, br, zstd", Coding::Zstd),
            ("gzip, br", Coding::Brotli),
            ("br;q=0.5, gzip", Coding::Gzip),
            ("*", Coding::Zstd),
            ("zstd;q=0, *;q=0.1", Coding::Brotli),
        ] {
            let mut headers = Headers::new();
            headers.append("Accept-Encoding", field).unwrap();
            assert_eq!(choose(&headers, offered).coding, Some(want), "{field}");
        }
    }
}
