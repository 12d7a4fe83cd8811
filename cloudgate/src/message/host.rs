//! Which hosts does a pattern such as `*.example.com` stand for?

use std::fmt;

/// Hosts by name: one, all below a domain, or any. The more exact pattern comes first in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HostPattern {
    /// This name.
    Exact(String),
    /// Every name that ends with this, which begins with a dot. The longest comes first.
    Below(std::cmp::Reverse<usize>, String),
    /// Any name, or none.
    Any,
}

/// What is wrong with a text that was to be a host pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidHost;

impl InvalidHost {
    /// The text of the error, for `const` code, where `Display` cannot be used.
    const MESSAGE: &str = "a host is a name without port such as example.com, *.example.com for all names below it, or * for any";
}

impl fmt::Display for InvalidHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::MESSAGE)
    }
}

/// Checks a text against the grammar of host patterns, at compile time for `#[route]`.
const fn check(text: &str) -> Result<(), InvalidHost> {
    let text = text.as_bytes();
    if matches!(text, [b'*']) {
        return Ok(());
    }
    let (name, below) = match text {
        [b'*', b'.', name @ ..] => (name, true),
        name => (name, false),
    };
    if name.len() > 253 || matches!(name, [] | [b'.', ..] | [.., b'.']) {
        return Err(InvalidHost);
    }
    let ipv6 = matches!(name, [b'[', .., b']']) && !below;
    let mut at = 0;
    while at < name.len() {
        let fits = match name[at] {
            b'-' | b'.' | b'_' => true,
            b'[' | b']' | b':' => ipv6,
            byte => byte.is_ascii_alphanumeric(),
        };
        if !fits {
            return Err(InvalidHost);
        }
        at += 1;
    }
    Ok(())
}

/// Panics if the text is no host pattern. `#[route]` calls it in a `const`, where a panic is a compile error.
///
/// # Panics
///
/// If the text is no host pattern.
#[track_caller]
#[expect(
    clippy::panic,
    reason = "in a const this is how a compile error is written"
)]
pub const fn assert_valid(host: &str) {
    if check(host).is_err() {
        panic!("{}", InvalidHost::MESSAGE);
    }
}

impl HostPattern {
    pub(crate) fn parse(text: &str) -> Result<HostPattern, InvalidHost> {
        check(text)?;
        let text = text.to_ascii_lowercase();
        Ok(match text.strip_prefix('*') {
            None => HostPattern::Exact(text),
            Some("") => HostPattern::Any,
            Some(suffix) => HostPattern::Below(std::cmp::Reverse(suffix.len()), suffix.to_owned()),
        })
    }

    /// Whether it stands for this host, which is in lower case and without port.
    pub(crate) fn fits(&self, host: &str) -> bool {
        match self {
            HostPattern::Exact(name) => name == host,
            HostPattern::Below(_, suffix) => host.len() > suffix.len() && host.ends_with(suffix),
            HostPattern::Any => true,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Exact(name) => f.write_str(name),
            HostPattern::Below(_, suffix) => write!(f, "*{suffix}"),
            HostPattern::Any => f.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_their_hosts_and_no_others() {
        for (pattern, fits, others) in [
            (
                "a.example",
                &["a.example"][..],
                &["b.a.example", "example", ""][..],
            ),
            ("A.Example", &["a.example"], &[]),
            (
                "*.example",
                &["a.example", "b.a.example"],
                &["example", ".example", "aexample"],
            ),
            ("*", &["anything", ""], &[]),
            ("[::1]", &["[::1]"], &["::1"]),
            ("127.0.0.1", &["127.0.0.1"], &["127.0.0.2"]),
        ] {
            let pattern = HostPattern::parse(pattern).unwrap();
            assert_eq!(
                HostPattern::parse(&pattern.to_string()),
                Ok(pattern.clone())
            );
            for host in fits {
                assert!(pattern.fits(host), "{pattern} {host}");
            }
            for host in others {
                assert!(!pattern.fits(host), "{pattern} {host}");
            }
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            ".",
            "a.",
            ".a",
            "*.",
            "*a",
            "a.*",
            "a:80",
            "http://a",
            "a/b",
            "a b",
            "*.[::1]",
            &"a".repeat(254),
        ] {
            assert_eq!(HostPattern::parse(text), Err(InvalidHost), "{text}");
        }
    }

    #[test]
    fn the_more_exact_pattern_comes_first() {
        let mut patterns: Vec<_> = ["*", "*.b", "*.a.b", "z", "a"]
            .into_iter()
            .map(|text| HostPattern::parse(text).unwrap())
            .collect();
        patterns.sort();
        let names: Vec<_> = patterns.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["a", "z", "*.a.b", "*.b", "*"]);
    }
}
