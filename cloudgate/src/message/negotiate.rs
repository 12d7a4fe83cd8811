//! Which of several forms of an answer does a client want?
//!
//! RFC 9110 section 12.5: lists such as `text/html, application/json;q=0.8`, each member with a
//! weight from 0 (never) to 1.

use super::headers::Headers;

/// The most members of all lists of one name that are looked at; browsers send fewer than ten.
const MOST_MEMBERS: usize = 64;

/// Thousandths: a weight has at most three digits behind the point (RFC 9110 section 12.4.2).
const FULL: u16 = 1000;

/// The media type among `offers` that the client's Accept likes best (RFC 9110 section 12.5.1);
/// the first one if it has no Accept, `None` if it wants none of them.
///
/// Of two with the same weight the one counts that was named more exactly, then the one that the
/// client named first, then the one that is offered first.
///
/// ```
/// use cloudgate::{Request, negotiate};
/// let offers = ["text/plain", "text/html", "application/json"];
/// let request = Request::get("/").with_header("Accept", "application/json;q=0.5, text/*");
/// assert_eq!(negotiate::media_type(request.headers(), &offers), Some("text/plain"));
/// let request = Request::get("/").with_header("Accept", "application/json, */*;q=0.1");
/// assert_eq!(negotiate::media_type(request.headers(), &offers), Some("application/json"));
/// ```
///
/// A malformed member of the list counts as absent, and so does every one behind the 64th.
/// Parameters of a range, such as a charset, are not compared.
pub fn media_type<'o>(headers: &Headers, offers: &[&'o str]) -> Option<&'o str> {
    let members: Vec<Member<'_>> = members(headers, "accept").collect();
    if members.is_empty() {
        return offers.first().copied();
    }
    best(offers, |offer| {
        let (at, exactness, member) = members
            .iter()
            .enumerate()
            .filter_map(|(at, member)| Some((at, member.fits_type(offer)?, member)))
            // The most exact range decides, not the one that weighs most; of equal ones the first.
            .max_by_key(|(at, exactness, _)| (*exactness, std::cmp::Reverse(*at)))?;
        Some((member.quality, exactness.min(2), std::cmp::Reverse(at)))
    })
}

/// The content coding among `offers`, such as `gzip`, that the client's Accept-Encoding likes best
/// (RFC 9110 section 12.5.3); of several with the same weight the one that is offered first.
///
/// `None` is to send the answer as it is: the client has no Accept-Encoding, wants none of the
/// codings, or likes `identity` better.
///
/// ```
/// use cloudgate::{Request, negotiate};
/// let request = Request::get("/").with_header("Accept-Encoding", "gzip, br;q=0.5");
/// assert_eq!(negotiate::encoding(request.headers(), &["br", "gzip"]), Some("gzip"));
/// assert_eq!(negotiate::encoding(Request::get("/").headers(), &["br", "gzip"]), None);
/// ```
pub fn encoding<'o>(headers: &Headers, offers: &[&'o str]) -> Option<&'o str> {
    let members: Vec<Member<'_>> = members(headers, "accept-encoding").collect();
    let quality = |coding: &str| {
        let named = |name: &str| members.iter().find(|member| member.is_coding(name));
        named(coding)
            .or_else(|| named("*"))
            .map(|member| member.quality)
    };
    // Identity is acceptable where the list does not name it, but nobody asked for it.
    let identity = members
        .iter()
        .find(|member| member.is_coding("identity"))
        .map_or(0, |member| member.quality);
    best(offers, |offer| {
        quality(offer).filter(|quality| *quality >= identity)
    })
}

/// The first of the offers with the highest rank; those without one, or with weight 0, are out.
fn best<'o, R: Ord + Weighed>(
    offers: &[&'o str],
    rank: impl Fn(&str) -> Option<R>,
) -> Option<&'o str> {
    let mut best: Option<(R, &'o str)> = None;
    for offer in offers {
        if let Some(rank) = rank(offer)
            && rank.weight() > 0
            && best.as_ref().is_none_or(|(known, _)| rank > *known)
        {
            best = Some((rank, offer));
        }
    }
    best.map(|(_, offer)| offer)
}

trait Weighed {
    fn weight(&self) -> u16;
}

impl Weighed for u16 {
    fn weight(&self) -> u16 {
        *self
    }
}

impl<A, B> Weighed for (u16, A, B) {
    fn weight(&self) -> u16 {
        self.0
    }
}

/// A member of a list: `text/html;level=1;q=0.5`.
struct Member<'a> {
    name: &'a str,
    /// Whether it has parameters besides its weight.
    narrowed: bool,
    /// In thousandths.
    quality: u16,
}

impl<'a> Member<'a> {
    fn parse(text: &'a str) -> Option<Member<'a>> {
        let mut parts = split_outside_quotes(text, b';');
        let name = parts.next()?.trim_ascii();
        let mut member = Member {
            name,
            narrowed: false,
            quality: FULL,
        };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if key.trim_ascii().eq_ignore_ascii_case("q") {
                member.quality = quality(value.trim_ascii())?;
                // What follows the weight extends the list's grammar and not the range.
                break;
            }
            member.narrowed = true;
        }
        (!name.is_empty()).then_some(member)
    }

    /// How exactly this range names the media type; `None` if it does not.
    fn fits_type(&self, offer: &str) -> Option<u8> {
        let (kind, subtype) = self.name.split_once('/')?;
        let (offered_kind, offered_subtype) = offer.split_once('/')?;
        match (kind, subtype) {
            ("*", "*") => Some(0),
            ("*", _) => None,
            _ if !kind.eq_ignore_ascii_case(offered_kind) => None,
            (_, "*") => Some(1),
            _ if !subtype.eq_ignore_ascii_case(offered_subtype) => None,
            // Both name it in full; of the same type the plain range decides.
            _ => Some(if self.narrowed { 2 } else { 3 }),
        }
    }

    /// Whether it is this coding; `x-gzip` and `x-compress` are old names (RFC 9110 section 8.4.1).
    fn is_coding(&self, coding: &str) -> bool {
        let old = |old: &str, name: &str| {
            self.name.eq_ignore_ascii_case(old) && coding.eq_ignore_ascii_case(name)
        };
        self.name.eq_ignore_ascii_case(coding)
            || old("x-gzip", "gzip")
            || old("x-compress", "compress")
    }
}

/// A weight in thousandths: `0`, `1`, and up to three digits behind the point.
pub(crate) fn quality(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths = fraction
        .bytes()
        .zip([100, 10, 1])
        .map(|(digit, worth)| u16::from(digit - b'0') * worth)
        .sum::<u16>();
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(FULL),
        _ => None,
    }
}

/// The members of all fields of this name.
fn members<'h>(headers: &'h Headers, name: &'h str) -> impl Iterator<Item = Member<'h>> {
    headers
        .get_all(name)
        .filter_map(|value| std::str::from_utf8(value).ok())
        .flat_map(|value| split_outside_quotes(value, b','))
        .take(MOST_MEMBERS)
        .filter_map(Member::parse)
}

/// The parts between separators that stand in no quoted string (RFC 9110 section 5.6.4).
pub(crate) fn split_outside_quotes(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let end = text.bytes().position(|byte| {
            if escaped {
                escaped = false;
            } else {
                match byte {
                    b'\\' => escaped = quoted,
                    b'"' => quoted = !quoted,
                    _ => return byte == separator && !quoted,
                }
            }
            false
        });
        let (part, behind) = match end {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        rest = behind;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &str, values: &[&str]) -> Headers {
        let mut headers = Headers::new();
        for value in values {
            headers.append(name, value).unwrap();
        }
        headers
    }

    #[track_caller]
    fn check_type(accept: &str, want: Option<&str>) {
        let offers = ["text/plain", "text/html", "application/json", "image/png"];
        let headers = headers("Accept", &[accept]);
        assert_eq!(media_type(&headers, &offers), want, "{accept:?}");
    }

    #[test]
    fn media_types_are_chosen_by_weight_then_exactness_then_order() {
        for (accept, want) in [
            // RFC 9110 section 12.5.1: the most specific range that fits decides.
            ("text/*;q=0.3, text/html;q=0.7", Some("text/html")),
            (
                "text/*, text/plain;q=0.2, text/html;q=0.1",
                Some("text/plain"),
            ),
            (
                "text/*, text/plain;q=0, text/html;q=0, */*;q=0.1",
                Some("application/json"),
            ),
            ("*/*", Some("text/plain")),
            ("", Some("text/plain")),
            ("text/html", Some("text/html")),
            ("TEXT/HTML;Q=0.1", Some("text/html")),
            (
                "text/html ; q=0.1 , application/json ; q=0.2",
                Some("application/json"),
            ),
            (
                "application/json, text/plain, */*",
                Some("application/json"),
            ),
            ("text/plain, application/json", Some("text/plain")),
            ("*/*, image/*", Some("image/png")),
            // What browsers send.
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
                Some("text/html"),
            ),
            // Parameters of a range are not compared, but a range without any counts more.
            ("application/json; charset=utf-8", Some("application/json")),
            ("text/html;level=1;q=0, text/html;q=0.5", Some("text/html")),
            (
                "text/html;level=\"a,b;q=0\";q=0.5, image/png;q=0.4",
                Some("text/html"),
            ),
            ("text/html;a=\"\\\",\", image/png", Some("text/html")),
            ("text/html;q=0.5;q=0", Some("text/html")),
            // Nothing of what is offered.
            ("audio/*", None),
            ("*/*;q=0", None),
            ("text/html;q=0.000", None),
            // Malformed members are as if they were absent.
            ("text/html;q=2, image/png;q=0.1", Some("image/png")),
            ("text/html;q=.5, image/png;q=0.1", Some("image/png")),
            ("text/html;q=0.1234, image/png;q=0.1", Some("image/png")),
            ("text/html;q=-1, image/png;q=0.1", Some("image/png")),
            ("text/html;q=1.001, image/png;q=0.1", Some("image/png")),
            ("text/html;q, image/png;q=0.1", Some("image/png")),
            ("*/html, image/png;q=0.1", Some("image/png")),
            ("html, image/png;q=0.1", Some("image/png")),
            (",,;q=1, ,image/png", Some("image/png")),
            ("text/html;a=\"b, image/png", Some("text/html")),
            ("text/html;q=1.000", Some("text/html")),
        ] {
            check_type(accept, want);
        }
    }

    #[test]
    fn without_an_accept_the_first_offer_is_good_and_several_fields_are_one_list() {
        let offers = ["a/b", "c/d"];
        assert_eq!(media_type(&Headers::new(), &offers), Some("a/b"));
        let both = headers("Accept", &["a/b;q=0.5", "c/d"]);
        assert_eq!(media_type(&both, &offers), Some("c/d"));
        assert_eq!(media_type(&both, &[]), None);
    }

    #[test]
    fn the_64th_member_counts_and_the_next_one_does_not() {
        for (others, want) in [(63, Some("text/html")), (64, None)] {
            check_type(&("audio/x,".repeat(others) + "text/html"), want);
        }
    }

    #[test]
    fn codings_are_chosen_by_weight_then_by_the_order_of_the_offers() {
        for (accept, want) in [
            ("gzip", Some("gzip")),
            ("gzip, br", Some("br")),
            ("gzip;q=1.0, br;q=0.5", Some("gzip")),
            ("*", Some("br")),
            ("*;q=0.1, br;q=0", Some("gzip")),
            ("x-gzip", Some("gzip")),
            ("X-GZIP;q=0.3", Some("gzip")),
            ("x-br", None),
            ("gzip;q=0", None),
            ("identity", None),
            ("identity;q=0.5, gzip;q=0.4", None),
            ("identity;q=0.5, gzip;q=0.5", Some("gzip")),
            ("identity;q=0", None),
            ("deflate", None),
            ("*;q=0", None),
            ("", None),
            ("\u{e9}, gzip", Some("gzip")),
        ] {
            let headers = headers("Accept-Encoding", &[accept]);
            assert_eq!(encoding(&headers, &["br", "gzip"]), want, "{accept:?}");
        }
        assert_eq!(encoding(&Headers::new(), &["br", "gzip"]), None);
    }
    proptest::proptest! {
        #[test]
        fn any_list_gives_an_offer_or_none(list in "[a-z*/;=q0-9.,\"\\\\ \u{e9}-]{0,200}") {
            let headers = headers("Accept", &[&list]);
            let offers = ["text/html", "a/b"];
            let chosen = media_type(&headers, &offers);
            proptest::prop_assert!(chosen.is_none_or(|offer| offers.contains(&offer)));
        }
    }
}
