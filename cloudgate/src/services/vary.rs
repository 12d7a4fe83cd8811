//! How does a response say which request fields it depends on?

use crate::message::Headers;

/// Adds the name of a request field to `Vary`, unless it stands there already (RFC 9110 section 12.5.5).
///
/// What was there stays in front, in one line: some caches look at the first one alone.
pub(super) fn add(headers: &mut Headers, field: &'static str) {
    if !headers.contains("vary") {
        // A field name is a valid value.
        let _ = headers.append("Vary", field);
        return;
    }
    if headers.has_token("vary", "*") || headers.has_token("vary", field) {
        return;
    }
    let mut all = Vec::new();
    for value in headers
        .get_all("vary")
        .filter(|value| !value.trim_ascii().is_empty())
    {
        all.extend_from_slice(value);
        all.extend_from_slice(b", ");
    }
    all.extend_from_slice(field.as_bytes());
    // Its parts were valid values before.
    let _ = headers.set("Vary", all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_added_once_behind_what_is_there() {
        for (before, want) in [
            (&[][..], "Origin"),
            (&["Accept"], "Accept, Origin"),
            (&["Accept", "Cookie"], "Accept, Cookie, Origin"),
            (&["accept, ORIGIN"], "accept, ORIGIN"),
            (&["*"], "*"),
            (&[""], "Origin"),
        ] {
            let mut headers = Headers::new();
            for value in before {
                headers.append("Vary", value).unwrap();
            }
            add(&mut headers, "Origin");
            assert_eq!(headers.get("vary"), Some(want), "{before:?}");
            assert_eq!(headers.get_all("vary").count(), 1, "{before:?}");
        }
    }
}
