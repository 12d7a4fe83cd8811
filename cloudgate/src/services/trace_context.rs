//! To which trace does a request belong?
//!
//! W3C Trace Context: `traceparent` names the trace and who has called, `tracestate` holds what each of the programs on the way
//! wants to find again. A program that makes no span of its own leaves both as they came (its "Processing Model in Forwarding
//! Mode"): a new parent that nobody reports would tear the trace apart.

use std::fmt;

use crate::message::Headers;
use crate::services::request_id::random;

/// How many bytes a `traceparent` of version 00 has.
const LENGTH: usize = 55;

/// The flags that have a meaning: sampled, and the trace's id is random (section 3.2.2.5).
const FLAGS: u8 = 0b11;

const SAMPLED: u8 = 0b01;

/// The trace that a request belongs to, and its caller in it: the field `traceparent` of W3C Trace Context.
///
/// ```
/// use cloudgate::{Request, TraceParent, route};
///
/// #[route("/traced")]
/// fn traced(request: &mut Request<'_>) -> String {
///     match TraceParent::of(request.headers()) {
///         Some(caller) => format!("{} was called by {}", caller.trace_id(), caller.parent_id()),
///         None => "nobody asked for a trace".to_owned(),
///     }
/// }
///
/// let mut request = Request::get("/traced")
///     .with_header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
/// assert_eq!(traced(&mut request), "0af7651916cd43dd8448eb211c80319c was called by b7ad6b7169203331");
/// ```
///
/// An [`AccessLog`](crate::AccessLog) of JSON lines has the trace's id as `trace`. The field comes from the client, so it proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace: u128,
    parent: u64,
    flags: u8,
}

impl TraceParent {
    /// Reads a `traceparent`: version 00, or what a later version has in common with it. `None` where it is invalid
    /// (section 3.2.2): hexadecimal digits are lower case, no id is all zeros, and there is no version ff.
    ///
    /// ```
    /// use cloudgate::TraceParent;
    /// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    /// assert_eq!(TraceParent::parse(text).unwrap().to_string(), text);
    /// assert_eq!(TraceParent::parse("00-0-0-01"), None);
    /// ```
    pub fn parse(text: &str) -> Option<TraceParent> {
        let bytes = text.as_bytes();
        let (known, rest) = bytes.split_at_checked(LENGTH)?;
        let version = hex(&known[..2])?;
        // What follows is for later versions alone, and then behind a dash (section 3.2.4).
        let ends = rest.is_empty() || version > 0 && rest[0] == b'-';
        let dashes = known[2] == b'-' && known[35] == b'-' && known[52] == b'-';
        if version == 0xff || !ends || !dashes {
            return None;
        }
        let trace = hex(&known[3..35])?;
        let parent = hex(&known[36..52])?;
        let flags = hex(&known[53..])?;
        (trace != 0 && parent != 0).then_some(TraceParent {
            trace,
            // 16 digits and two of them.
            parent: parent as u64,
            flags: flags as u8 & FLAGS,
        })
    }

    /// The one of a request. `None` where there is none, more than one, or an invalid one.
    pub fn of(headers: &Headers) -> Option<TraceParent> {
        let mut values = headers.get_all("traceparent");
        let value = values.next()?;
        if values.next().is_some() {
            return None;
        }
        TraceParent::parse(std::str::from_utf8(value).ok()?)
    }

    /// The same trace, with a new id for a part of the work: what is sent to whoever is called from there.
    ///
    /// ```
    /// use cloudgate::TraceParent;
    /// let caller = TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
    /// let own = caller.new_child();
    /// assert_eq!(own.trace_id(), caller.trace_id());
    /// assert_ne!(own.parent_id(), caller.parent_id());
    /// assert!(own.is_sampled());
    /// ```
    #[must_use]
    pub fn new_child(&self) -> TraceParent {
        TraceParent {
            // Zero is no id.
            parent: random().max(1),
            ..*self
        }
    }

    /// The id of the trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The id of the caller, or of the own part of the work: 16 hexadecimal digits.
    pub fn parent_id(&self) -> String {
        format!("{:016x}", self.parent)
    }

    /// Whether the caller may have recorded the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

impl fmt::Display for TraceParent {
    /// The field's value, in version 00 and with those flags alone that have a meaning there.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceParent {
            trace,
            parent,
            flags,
        } = self;
        write!(f, "00-{trace:032x}-{parent:016x}-{flags:02x}")
    }
}

/// A number of hexadecimal digits in lower case, 32 of them at most.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

/// Whether `traceparent` and `tracestate` go on as they came, both of them, where no span is made; else neither does.
///
/// What a later version looks like is not ours to judge, and `tracestate` is looked at by those alone who change it.
pub(crate) fn forwardable(headers: &Headers) -> bool {
    let mut values = headers.get_all("traceparent");
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    let version = match value {
        [first, second, b'-', ..] => hex(&[*first, *second]),
        _ => None,
    };
    match version {
        None | Some(0xff) => false,
        Some(0) => std::str::from_utf8(value).is_ok_and(|text| TraceParent::parse(text).is_some()),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const TRACE: &str = "12345678901234567890123456789012";
    const VALID: &str = "00-12345678901234567890123456789012-1234567890123456-01";

    #[test]
    fn a_traceparent_is_valid_or_not() {
        // The cases of the W3C's test suite for `traceparent`, by version, ids and flags.
        let cases = vec![
            (VALID.to_owned(), true),
            (format!("00-{TRACE}-1234567890123456-00"), true),
            (format!("00-{TRACE}-1234567890123456-ff"), true),
            (format!("cc-{TRACE}-1234567890123456-01"), true),
            (format!("cc-{TRACE}-1234567890123456-01-"), true),
            (format!("cc-{TRACE}-1234567890123456-01-what-will-be"), true),
            (
                format!("cc-{TRACE}-1234567890123456-01.what-will-be"),
                false,
            ),
            (format!("00-{TRACE}-1234567890123456-01."), false),
            (
                format!("00-{TRACE}-1234567890123456-01-what-will-be"),
                false,
            ),
            (format!("00-{TRACE}-1234567890123456-01-"), false),
            (format!("ff-{TRACE}-1234567890123456-01"), false),
            (format!(".0-{TRACE}-1234567890123456-01"), false),
            (format!("0.-{TRACE}-1234567890123456-01"), false),
            (format!("0-{TRACE}-1234567890123456-01"), false),
            (format!("000-{TRACE}-1234567890123456-01"), false),
            (format!("00-{}-1234567890123456-01", "0".repeat(32)), false),
            (format!("00-.{}-1234567890123456-01", &TRACE[1..]), false),
            (format!("00-{}A-1234567890123456-01", &TRACE[1..]), false),
            (format!("00-{TRACE}3-1234567890123456-01"), false),
            (format!("00-{}-1234567890123456-01", &TRACE[1..]), false),
            (format!("00-{TRACE}-0000000000000000-01"), false),
            (format!("00-{TRACE}-.234567890123456-01"), false),
            (format!("00-{TRACE}-123456789012345F-01"), false),
            (format!("00-{TRACE}-12345678901234567-01"), false),
            (format!("00-{TRACE}-123456789012345-01"), false),
            (format!("00-{TRACE}-1234567890123456-.1"), false),
            (format!("00-{TRACE}-1234567890123456-0A"), false),
            (format!("00-{TRACE}-1234567890123456-1"), false),
            (format!("00-{TRACE}-1234567890123456-001"), false),
            (format!("00-{TRACE}-1234567890123456"), false),
            (format!("00_{TRACE}_1234567890123456_01"), false),
            (format!(" {VALID}"), false),
            (format!("00-{}é-1234567890123456-01", &TRACE[2..]), false),
            (String::new(), false),
        ];
        for (text, valid) in cases {
            assert_eq!(TraceParent::parse(&text).is_some(), valid, "{text}");
            for end in 0..LENGTH.min(text.len()) {
                let cut = text.get(..end).and_then(TraceParent::parse);
                assert_eq!(cut, None, "{text} up to {end}");
            }
        }
    }

    #[test]
    fn what_is_sent_is_of_our_version_with_flags_that_we_know() {
        for (text, want) in [
            (VALID.to_owned(), VALID.to_owned()),
            (
                format!("cc-{TRACE}-00000000000000af-ff-more"),
                format!("00-{TRACE}-00000000000000af-03"),
            ),
        ] {
            assert_eq!(TraceParent::parse(&text).unwrap().to_string(), want);
        }
        let unsampled = TraceParent::parse(&format!("00-{TRACE}-1234567890123456-02")).unwrap();
        assert!(!unsampled.is_sampled());
        assert!(TraceParent::parse(VALID).unwrap().is_sampled());
    }

    #[test]
    fn children_belong_to_the_trace_and_differ() {
        let caller = TraceParent::parse(VALID).unwrap();
        let children: HashSet<_> = (0..1000).map(|_| caller.new_child()).collect();
        assert_eq!(children.len(), 1000);
        for child in children {
            assert_eq!(child.trace_id(), TRACE);
            assert_eq!(TraceParent::parse(&child.to_string()), Some(child));
        }
    }

    #[track_caller]
    fn check(fields: &[(&str, &str)], want: bool) {
        let mut headers = Headers::new();
        for (name, value) in fields {
            headers.append(name, value).unwrap();
        }
        assert_eq!(forwardable(&headers), want, "{fields:?}");
    }

    #[test]
    fn what_is_valid_or_of_a_later_version_goes_on() {
        let one = ("TraceParent", VALID);
        check(&[one, ("a", "b")], true);
        check(&[("traceparent", &format!(" \t{VALID} "))], true);
        check(&[one, ("tracestate", "a=1"), ("tracestate", "b=2")], true);
        check(&[("traceparent", "cc-")], true);
        check(&[("traceparent", "fe-whatever it is")], true);
        check(&[("traceparent", "ff-whatever it is")], false);
        check(&[("traceparent", "00-")], false);
        check(&[("traceparent", &format!("{VALID}-more"))], false);
        for text in ["", "c", "cc", "cc.", "c.-", "CC-", "00\u{e9}-"] {
            check(&[("traceparent", text)], false);
        }
        check(&[], false);
        check(&[("tracestate", "a=1")], false);
        // More than one, also the same one.
        check(&[one, one], false);
        check(&[("traceparent", "cc-"), one], false);
    }

    #[test]
    fn a_request_has_one_or_none() {
        let mut headers = Headers::new();
        assert_eq!(TraceParent::of(&headers), None);
        headers.append("traceparent", VALID).unwrap();
        assert_eq!(TraceParent::of(&headers), TraceParent::parse(VALID));
        headers.append("traceparent", VALID).unwrap();
        assert_eq!(TraceParent::of(&headers), None);
    }
}
