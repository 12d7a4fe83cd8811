//! Which host and path does a test ask for?

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) secure: bool,
    /// Host, and port if there is one, in lower case.
    pub(super) authority: String,
    /// Path and query.
    pub(super) path_and_query: String,
}

impl Target {
    /// Understands `/path?query`, `http://host/path` and what a Location field may hold, seen from
    /// `self` (RFC 3986 section 5.2); `None` for other schemes.
    pub(super) fn resolve(&self, reference: &str) -> Option<Target> {
        let reference = reference.split('#').next().unwrap_or_default();
        let lower = reference.to_ascii_lowercase();
        for (scheme, secure) in [("http://", false), ("https://", true)] {
            if lower.starts_with(scheme) {
                return Some(Target::of_authority(secure, &reference[scheme.len()..]));
            }
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return Some(Target::of_authority(self.secure, rest));
        }
        let before_path = reference.split(['/', '?']).next().unwrap_or_default();
        if before_path.contains(':') {
            return None;
        }
        let path_and_query = match reference.as_bytes().first() {
            None => self.path_and_query.clone(),
            Some(b'/') => without_dots(reference),
            Some(b'?') => format!("{}{reference}", self.path()),
            Some(_) => {
                let path = self.path();
                let folder = &path[..path.rfind('/').map_or(0, |at| at + 1)];
                without_dots(&format!("{folder}{reference}"))
            }
        };
        Some(Target {
            path_and_query,
            ..self.clone()
        })
    }

    fn of_authority(secure: bool, rest: &str) -> Target {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let path = match &rest[end..] {
            path if path.starts_with('/') => without_dots(path),
            query => format!("/{query}"),
        };
        Target {
            secure,
            authority: rest[..end].to_ascii_lowercase(),
            path_and_query: path,
        }
    }

    /// The host without port.
    pub(super) fn host(&self) -> &str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.authority,
        }
    }

    pub(super) fn path(&self) -> &str {
        let end = self.path_and_query.find('?');
        &self.path_and_query[..end.unwrap_or(self.path_and_query.len())]
    }

    /// Adds pairs to the query, encoded as a form is.
    pub(super) fn add_query(&mut self, pairs: &[(&str, &str)]) {
        for (name, value) in pairs {
            let joint = if self.path_and_query.contains('?') {
                '&'
            } else {
                '?'
            };
            let pair = form_urlencoded::Serializer::new(String::new())
                .append_pair(name, value)
                .finish();
            self.path_and_query.push(joint);
            self.path_and_query.push_str(&pair);
        }
    }
}

/// Takes `.` and `..` out of the path (RFC 3986 section 5.2.4).
fn without_dots(path_and_query: &str) -> String {
    let (path, query) = match path_and_query.find('?') {
        Some(at) => path_and_query.split_at(at),
        None => (path_and_query, ""),
    };
    let mut segments: Vec<&str> = Vec::new();
    let mut rest = path.split('/').skip(1).peekable();
    while let Some(segment) = rest.next() {
        let last = rest.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    segments.pop();
                }
                if last {
                    segments.push("");
                }
            }
            segment => segments.push(segment),
        }
    }
    format!("/{}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Target {
        Target {
            secure: false,
            authority: "localhost:80".to_owned(),
            path_and_query: "/a/b?c=d".to_owned(),
        }
    }

    #[test]
    fn references_are_resolved_as_a_browser_does() {
        for (reference, secure, authority, path) in [
            ("/x", false, "localhost:80", "/x"),
            ("/x?y=/../z#frag", false, "localhost:80", "/x?y=/../z"),
            ("x", false, "localhost:80", "/a/x"),
            ("./x/", false, "localhost:80", "/a/x/"),
            ("../x", false, "localhost:80", "/x"),
            ("../../../x", false, "localhost:80", "/x"),
            ("..", false, "localhost:80", "/"),
            ("?e", false, "localhost:80", "/a/b?e"),
            ("", false, "localhost:80", "/a/b?c=d"),
            ("#frag", false, "localhost:80", "/a/b?c=d"),
            ("//Example.com/x", false, "example.com", "/x"),
            ("HTTPS://Example.com:8443", true, "example.com:8443", "/"),
            ("http://example.com?q", false, "example.com", "/?q"),
            ("x:y", false, "", ""),
            ("x?a:b", false, "localhost:80", "/a/x?a:b"),
        ] {
            let want = (!authority.is_empty()).then(|| Target {
                secure,
                authority: authority.to_owned(),
                path_and_query: path.to_owned(),
            });
            assert_eq!(base().resolve(reference), want, "{reference}");
        }
    }

    #[test]
    fn pairs_are_encoded_and_added() {
        let mut target = base();
        target.add_query(&[("ä b", "1&2"), ("c", "")]);
        assert_eq!(target.path_and_query, "/a/b?c=d&%C3%A4+b=1%262&c=");
        target.path_and_query = "/".to_owned();
        target.add_query(&[("a", "b")]);
        assert_eq!(target.path_and_query, "/?a=b");
        assert_eq!(target.host(), "localhost");
    }
}
