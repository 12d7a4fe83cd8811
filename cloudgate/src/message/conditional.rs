//! Does the client have the file already, or the version it thinks it has?
//!
//! RFC 9110 section 13.2.2, in its order: If-Match or If-Unmodified-Since, then If-None-Match or
//! If-Modified-Since.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Method;

use super::{Headers, Request};

/// What tells one version of a file from another.
#[derive(Clone, Debug)]
pub(crate) struct Validators {
    /// The quoted, strong entity-tag.
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
    /// A version with this entity-tag, in its quotes, that was last changed at this time.
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

/// Evaluates the conditions of a GET or HEAD request.
pub(crate) fn evaluate(request: &Request<'_>, validators: &Validators) -> Outcome {
    let headers = request.headers();
    let since = |name| {
        headers
            .get(name)
            .and_then(|text| httpdate::parse_http_date(text).ok())
    };
    if headers.contains("if-match") {
        if !matches(headers, "if-match", |tag| tag == validators.tag) {
            return Outcome::PreconditionFailed;
        }
    } else if since("if-unmodified-since")
        .zip(validators.modified())
        .is_some_and(|(date, modified)| modified > date)
    {
        return Outcome::PreconditionFailed;
    }
    let unchanged = if headers.contains("if-none-match") {
        names(headers, &validators.tag)
    } else {
        matches!(*request.method(), Method::GET | Method::HEAD)
            && since("if-modified-since")
                .zip(validators.modified())
                .is_some_and(|(date, modified)| modified <= date)
    };
    if unchanged {
        Outcome::NotModified
    } else {
        Outcome::Send
    }
}

/// Whether If-None-Match is `*` or names this entity-tag. The comparison is weak: a tag that a proxy has
/// weakened still names this version.
pub(crate) fn names(headers: &Headers, tag: &str) -> bool {
    let wanted = opaque(tag);
    matches(headers, "if-none-match", |tag| opaque(tag) == wanted)
}

fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// Whether a list of entity-tags is `*` or has one that `fits`.
fn matches(headers: &Headers, name: &str, fits: impl Fn(&str) -> bool) -> bool {
    headers.get_all(name).any(|line| {
        let Ok(line) = std::str::from_utf8(line) else {
            return false;
        };
        line.trim() == "*" || tags(line).any(&fits)
    })
}

/// The entity-tags of a list. A tag may hold a comma, so the quotes say where it ends.
fn tags(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let open = rest
            .find('"')
            .filter(|open| matches!(&rest[..*open], "" | "W/"))?;
        let close = open + 1 + rest[open + 1..].find('"')?;
        let tag = &rest[..=close];
        rest = &rest[close + 1..];
        Some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::*;

    fn outcome(fields: &[(&str, &str)]) -> Outcome {
        let modified = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let validators = Validators::new("\"a,b\"".to_owned(), Some(modified));
        assert_eq!(validators.date(), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        let request = fields
            .iter()
            .fold(Request::get("/"), |request, (name, value)| {
                request.with_header(name, value)
            });
        evaluate(&request, &validators)
    }

    #[test]
    fn conditions_in_their_order() {
        const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
        const OLDER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
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
            (&[("If-Unmodified-Since", OLDER)], PreconditionFailed),
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
}
