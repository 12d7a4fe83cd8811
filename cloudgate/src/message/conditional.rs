//! Does the client have this version already, or the version it thinks it has?
//!
//! RFC 9110 section 13.2.2, in its order: If-Match or If-Unmodified-Since, then If-None-Match or
//! If-Modified-Since; [`range_holds`] is its last step, If-Range.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Method;

use super::{Headers, Request};

/// The most entity-tags of a list that are compared; those behind count as absent, which costs the client
/// a body or a retry and nothing else. Browsers send one.
const MOST_TAGS: usize = 64;

/// What tells one version of a representation from another.
#[derive(Clone, Debug)]
pub(crate) struct Validators {
    /// The entity-tag in its quotes, with `W/` in front if it is weak.
    tag: String,
    /// The value of Last-Modified and its time, in whole seconds.
    modified: Option<(String, SystemTime)>,
}

/// What the conditions of a request come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Send,
    NotModified,
    PreconditionFailed,
}

impl Validators {
    /// A version with this entity-tag - `"abc"`, or `W/"abc"` if it is weak - that was last changed at
    /// this time, if that is known.
    pub(crate) fn new(tag: String, modified: Option<SystemTime>) -> Validators {
        // A date in the future would make caches doubt everything (RFC 9110 section 8.8.2.1), and
        // one before 1970 cannot be written.
        let latest = SystemTime::now().max(UNIX_EPOCH);
        let modified = modified.map(|time| whole_seconds(time.clamp(UNIX_EPOCH, latest)));
        Validators {
            tag,
            modified: modified.map(|time| (httpdate::fmt_http_date(time), time)),
        }
    }

    /// The value of ETag.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// The value of Last-Modified.
    pub(crate) fn date(&self) -> Option<&str> {
        self.modified.as_ref().map(|(text, _)| text.as_str())
    }

    fn modified(&self) -> Option<SystemTime> {
        self.modified.as_ref().map(|(_, time)| *time)
    }
}

fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// Evaluates the conditions of a request for something that is there.
pub(crate) fn evaluate(request: &Request<'_>, validators: &Validators) -> Outcome {
    let headers = request.headers();
    let date_of_change = |name| date(headers, name).zip(validators.modified());
    if headers.contains("if-match") {
        let tag = validators.tag.as_bytes();
        if !lists(headers, "if-match", |member| is_same(member, tag)) {
            return Outcome::PreconditionFailed;
        }
    } else if date_of_change("if-unmodified-since").is_some_and(|(date, modified)| modified > date)
    {
        return Outcome::PreconditionFailed;
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let unchanged = if headers.contains("if-none-match") {
        names(headers, &validators.tag)
    } else {
        reads
            && date_of_change("if-modified-since").is_some_and(|(date, modified)| modified <= date)
    };
    match (unchanged, reads) {
        (false, _) => Outcome::Send,
        (true, true) => Outcome::NotModified,
        // There is nothing to be spared: what was to be done must not be done.
        (true, false) => Outcome::PreconditionFailed,
    }
}

/// Whether If-None-Match is `*` or names this entity-tag. The comparison is weak: a tag that a proxy has
/// weakened still names this version (RFC 9110 section 13.1.2).
pub(crate) fn names(headers: &Headers, tag: &str) -> bool {
    let wanted = opaque(tag.as_bytes());
    lists(headers, "if-none-match", |member| opaque(member) == wanted)
}

/// Whether a part of this version fits the parts that the client has (RFC 9110 section 13.1.5): it does
/// where no If-Range asks for it.
pub(crate) fn range_holds(headers: &Headers, validators: &Validators) -> bool {
    range_holds_at(headers, validators, SystemTime::now())
}

fn range_holds_at(headers: &Headers, validators: &Validators, now: SystemTime) -> bool {
    if !headers.contains("if-range") {
        return true;
    }
    let Some(value) = single(headers, "if-range") else {
        return false;
    };
    if value.ends_with(b"\"") {
        return is_same(value, validators.tag.as_bytes());
    }
    let asked = std::str::from_utf8(value)
        .ok()
        .and_then(|text| httpdate::parse_http_date(text).ok());
    // Within the second that the date names there may have been two versions (section 8.8.2.2).
    asked
        .zip(validators.modified())
        .is_some_and(|(date, modified)| {
            date == modified
                && now
                    .duration_since(modified)
                    .is_ok_and(|age| age >= Duration::from_secs(1))
        })
}

/// The date in a field; none if it is invalid or if the field is there twice, for it is no list then either
/// (RFC 9110 sections 13.1.3 and 13.1.4).
fn date(headers: &Headers, name: &str) -> Option<SystemTime> {
    let text = std::str::from_utf8(single(headers, name)?).ok()?;
    httpdate::parse_http_date(text).ok()
}

/// The value of a field that is there once.
fn single<'h>(headers: &'h Headers, name: &str) -> Option<&'h [u8]> {
    let mut values = headers.get_all(name);
    values.next().filter(|_| values.next().is_none())
}

/// The strong comparison of RFC 9110 section 8.8.3.2: a weak tag is the same as none.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one == other && !one.starts_with(b"W/")
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Whether a list of entity-tags is `*` or has one that `fits`.
fn lists(headers: &Headers, name: &str, fits: impl Fn(&[u8]) -> bool) -> bool {
    let mut looked_at = 0;
    headers.get_all(name).any(|line| {
        let fitting = tags(line).take(MOST_TAGS - looked_at).any(|tag| {
            looked_at += 1;
            fits(tag)
        });
        fitting || line.trim_ascii() == b"*"
    })
}

/// The entity-tags of a list. A tag may hold a comma, so the quotes say where it ends; behind something
/// else nothing is one.
fn tags(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let separators = rest
            .iter()
            .take_while(|&byte| b", \t".contains(byte))
            .count();
        rest = &rest[separators..];
        let quoted = rest
            .strip_prefix(b"W/")
            .unwrap_or(rest)
            .strip_prefix(b"\"")?;
        let inside = quoted.iter().position(|&byte| byte == b'"')?;
        let tag = rest.len() - quoted.len() + inside + 1;
        let (tag, behind) = rest.split_at(tag);
        rest = behind;
        Some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::*;

    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const OLDER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn changed() -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(784_111_777_300)
    }

    fn version(tag: &str) -> Validators {
        let validators = Validators::new(tag.to_owned(), Some(changed()));
        assert_eq!(validators.date(), Some(SAME));
        validators
    }

    fn request(method: Method, fields: &[(&str, &str)]) -> Request<'static> {
        fields
            .iter()
            .fold(Request::new(method, "/"), |request, (name, value)| {
                request.with_header(name, value)
            })
    }

    fn outcome(fields: &[(&str, &str)]) -> Outcome {
        let outcome = evaluate(&request(Method::GET, fields), &version("\"a,b\""));
        assert_eq!(
            evaluate(&request(Method::HEAD, fields), &version("\"a,b\"")),
            outcome
        );
        outcome
    }

    #[test]
    fn conditions_in_their_order() {
        for (fields, want) in [
            (&[][..], Send),
            (&[("If-None-Match", "\"a,b\"")], NotModified),
            (&[("If-None-Match", "W/\"a,b\"")], NotModified),
            (&[("If-None-Match", "\"x\" , W/\"y\",\"a,b\"")], NotModified),
            (
                &[("If-None-Match", "\"x\""), ("If-None-Match", "\"a,b\"")],
                NotModified,
            ),
            (&[("If-None-Match", "*")], NotModified),
            (&[("If-None-Match", "\"a\"")], Send),
            (&[("If-None-Match", "a,b")], Send),
            (&[("If-None-Match", "\"a,b")], Send),
            (&[("If-Modified-Since", SAME)], NotModified),
            (
                &[("If-Modified-Since", "Sunday, 06-Nov-94 08:49:37 GMT")],
                NotModified,
            ),
            (
                &[("If-Modified-Since", "Sun Nov  6 08:49:37 1994")],
                NotModified,
            ),
            (&[("If-Modified-Since", OLDER)], Send),
            (&[("If-Modified-Since", LATER)], NotModified),
            (
                &[("If-Modified-Since", SAME), ("If-Modified-Since", SAME)],
                Send,
            ),
            (&[("If-Modified-Since", "yesterday")], Send),
            (
                &[("If-None-Match", "\"x\""), ("If-Modified-Since", SAME)],
                Send,
            ),
            (&[("If-Match", "\"a,b\"")], Send),
            (&[("If-Match", "*")], Send),
            (&[("If-Match", "\"x\"")], PreconditionFailed),
            (&[("If-Match", "W/\"a,b\"")], PreconditionFailed),
            (&[("If-Unmodified-Since", SAME)], Send),
            (&[("If-Unmodified-Since", LATER)], Send),
            (&[("If-Unmodified-Since", OLDER)], PreconditionFailed),
            (&[("If-Unmodified-Since", "yesterday")], Send),
            (
                &[
                    ("If-Unmodified-Since", OLDER),
                    ("If-Unmodified-Since", OLDER),
                ],
                Send,
            ),
            (
                &[("If-Match", "\"x\""), ("If-None-Match", "\"a,b\"")],
                PreconditionFailed,
            ),
            (
                &[("If-Unmodified-Since", SAME), ("If-Modified-Since", SAME)],
                NotModified,
            ),
            (
                &[("If-Match", "\"a,b\""), ("If-Unmodified-Since", OLDER)],
                Send,
            ),
            (
                &[("If-Match", "\"a,b\""), ("If-None-Match", "\"a,b\"")],
                NotModified,
            ),
        ] {
            assert_eq!(outcome(fields), want, "{fields:?}");
        }
    }

    #[test]
    fn a_weak_tag_is_good_for_caches_alone() {
        let weak =
            |name, value| evaluate(&request(Method::GET, &[(name, value)]), &version("W/\"a\""));
        assert_eq!(weak("If-None-Match", "\"a\""), NotModified);
        assert_eq!(weak("If-None-Match", "W/\"a\""), NotModified);
        assert_eq!(weak("If-Match", "W/\"a\""), PreconditionFailed);
        assert_eq!(weak("If-Match", "\"a\""), PreconditionFailed);
        assert_eq!(weak("If-Match", "*"), Send);
    }

    #[test]
    fn who_does_not_read_is_refused_where_nothing_changed() {
        for (method, fields, want) in [
            (Method::PUT, ("If-None-Match", "\"a\""), PreconditionFailed),
            (Method::PUT, ("If-None-Match", "*"), PreconditionFailed),
            (Method::DELETE, ("If-None-Match", "\"x\""), Send),
            (Method::PUT, ("If-Modified-Since", SAME), Send),
            (
                Method::PUT,
                ("If-Unmodified-Since", OLDER),
                PreconditionFailed,
            ),
        ] {
            let request = request(method, &[fields]);
            assert_eq!(evaluate(&request, &version("\"a\"")), want, "{fields:?}");
        }
    }

    #[test]
    fn without_a_date_conditions_by_date_say_nothing() {
        let validators = Validators::new("\"a\"".to_owned(), None);
        assert_eq!(validators.date(), None);
        for name in ["If-Modified-Since", "If-Unmodified-Since"] {
            for date in [OLDER, LATER] {
                assert_eq!(
                    evaluate(&request(Method::GET, &[(name, date)]), &validators),
                    Send
                );
            }
        }
        let asked = request(Method::GET, &[("If-Range", SAME)]);
        assert!(!range_holds(asked.headers(), &validators));
    }

    #[test]
    fn a_date_that_cannot_be_is_moved_to_one_that_can() {
        let now = SystemTime::now();
        let date = |time| {
            Validators::new(String::new(), Some(time))
                .modified()
                .unwrap()
        };
        assert!(date(now + Duration::from_secs(1 << 30)) <= SystemTime::now());
        assert_eq!(date(UNIX_EPOCH - Duration::from_secs(1)), UNIX_EPOCH);
    }

    #[test]
    fn as_many_tags_as_are_looked_at_and_one_more() {
        for (before, want) in [(63, NotModified), (64, Send)] {
            let list = "\"x\", ".repeat(before) + "\"a,b\"";
            assert_eq!(outcome(&[("If-None-Match", &list)]), want, "{before}");
            let many = "\"x\",".repeat(before - 1);
            let lines = [
                ("If-None-Match", &*many),
                ("If-None-Match", "W/\"y\",\"a,b\""),
            ];
            assert_eq!(outcome(&lines), want, "{before} in two lines");
        }
    }

    #[test]
    fn other_tags_of_a_list_may_hold_any_byte() {
        let mut headers = Headers::new();
        headers
            .append("If-None-Match", b"\"\xe9\xff\", \"a\"")
            .unwrap();
        assert!(names(&headers, "\"a\""));
    }

    #[test]
    fn a_range_holds_for_the_version_that_it_is_of() {
        let second = Duration::from_secs(1);
        let whole = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let late = whole + 10 * second;
        for (tag, value, now, want) in [
            ("\"a\"", "\"a\"", late, true),
            ("\"a\"", "\"b\"", late, false),
            ("\"a\"", "W/\"a\"", late, false),
            ("W/\"a\"", "W/\"a\"", late, false),
            ("W/\"a\"", "\"a\"", late, false),
            ("\"a\"", "*", late, false),
            ("\"a\"", "a", late, false),
            ("\"a\"", "", late, false),
            ("\"a\"", "\"a\", \"b\"", late, false),
            ("\"a\"", SAME, late, true),
            ("W/\"a\"", SAME, late, true),
            ("\"a\"", "Sunday, 06-Nov-94 08:49:37 GMT", late, true),
            ("\"a\"", OLDER, late, false),
            ("\"a\"", LATER, late, false),
            ("\"a\"", SAME, whole + second, true),
            (
                "\"a\"",
                SAME,
                whole + second - Duration::from_nanos(1),
                false,
            ),
            ("\"a\"", SAME, whole - second, false),
        ] {
            let asked = request(Method::GET, &[("If-Range", value)]);
            let holds = range_holds_at(asked.headers(), &version(tag), now);
            assert_eq!(holds, want, "{value} for {tag}");
        }
        let version = version("\"a\"");
        assert!(range_holds(request(Method::GET, &[]).headers(), &version));
        let twice = request(Method::GET, &[("If-Range", "\"a\""), ("If-Range", "\"a\"")]);
        assert!(!range_holds(twice.headers(), &version));
    }
}
