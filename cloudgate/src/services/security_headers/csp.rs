//! Where may a page load its parts from?

/// A Content-Security-Policy (<https://www.w3.org/TR/CSP3/>): for each kind of thing, from where a page
/// may load it.
///
/// ```
/// use cloudgate::{ContentSecurityPolicy, SecurityHeaders};
/// let policy = ContentSecurityPolicy::new()
///     .directive("script-src", ["'self'", "https://cdn.example.com"])
///     .directive("upgrade-insecure-requests", []);
/// let headers = SecurityHeaders::new().csp(policy);
/// ```
///
/// It begins with `default-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'self';
/// object-src 'none'`: everything comes from this origin, without scripts and styles that stand in the
/// page itself. Where that is too narrow for what is there, look first what would break, with
/// [`ContentSecurityPolicy::report_only`].
#[derive(Clone, Debug)]
pub struct ContentSecurityPolicy {
    directives: Vec<(String, String)>,
    report_only: bool,
    mistake: Option<String>,
}

impl Default for ContentSecurityPolicy {
    fn default() -> ContentSecurityPolicy {
        ContentSecurityPolicy::new()
    }
}

impl ContentSecurityPolicy {
    /// The policy that is shown above.
    pub fn new() -> ContentSecurityPolicy {
        let directives = [
            ("default-src", "'self'"),
            ("base-uri", "'self'"),
            ("form-action", "'self'"),
            ("frame-ancestors", "'self'"),
            ("object-src", "'none'"),
        ];
        ContentSecurityPolicy {
            directives: directives
                .map(|(name, sources)| (name.to_owned(), sources.to_owned()))
                .into(),
            ..ContentSecurityPolicy::empty()
        }
    }

    /// A policy that says nothing yet.
    pub fn empty() -> ContentSecurityPolicy {
        ContentSecurityPolicy {
            directives: Vec::new(),
            report_only: false,
            mistake: None,
        }
    }

    /// Sets a directive, such as `img-src`, and its sources, in place of what the policy said of it.
    ///
    /// A name that is none, and a source with a space, `;` or `,` in it, are errors at start.
    #[must_use]
    pub fn directive<'s>(
        mut self,
        name: &str,
        sources: impl IntoIterator<Item = &'s str>,
    ) -> ContentSecurityPolicy {
        let sources: Vec<&str> = sources.into_iter().collect();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_source = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b';' | b',');
        let wrong = std::iter::once((name, name.bytes().all(is_name)))
            .chain(
                sources
                    .iter()
                    .map(|part| (*part, part.bytes().all(is_source))),
            )
            .find(|(part, fits)| part.is_empty() || !fits);
        if let Some((part, _)) = wrong {
            self.mistake.get_or_insert(format!(
                "the directive {name:?} of a ContentSecurityPolicy holds {part:?} - name each source by itself, as in [\"'self'\", \"https://cdn.example.com\"]"
            ));
        }
        self.directives
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.directives.push((name.to_owned(), sources.join(" ")));
        self
    }

    /// Leaves a directive out.
    #[must_use]
    pub fn without(mut self, name: &str) -> ContentSecurityPolicy {
        self.directives
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    /// Lets browsers report what breaks the policy, where a `report-to` or `report-uri` says to whom,
    /// and show it in their console, without keeping to it.
    #[must_use]
    pub fn report_only(mut self) -> ContentSecurityPolicy {
        self.report_only = true;
        self
    }

    /// The field that says it.
    pub(super) fn field(&self) -> (&'static str, String) {
        let name = if self.report_only {
            "Content-Security-Policy-Report-Only"
        } else {
            "Content-Security-Policy"
        };
        let parts: Vec<String> = self
            .directives
            .iter()
            .map(|(name, sources)| format!("{name} {sources}").trim_end().to_owned())
            .collect();
        (name, parts.join("; "))
    }

    pub(super) fn mistake(&self) -> Option<&str> {
        self.mistake.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_are_set_replaced_and_left_out() {
        let policy = ContentSecurityPolicy::new()
            .directive("default-src", ["'none'"])
            .directive("upgrade-insecure-requests", [])
            .without("Form-Action")
            .without("frame-ancestors");
        assert_eq!(
            policy.field(),
            (
                "Content-Security-Policy",
                "base-uri 'self'; object-src 'none'; default-src 'none'; upgrade-insecure-requests"
                    .to_owned()
            )
        );
        let policy = ContentSecurityPolicy::empty()
            .directive("img-src", ["*"])
            .report_only();
        assert_eq!(
            policy.field(),
            (
                "Content-Security-Policy-Report-Only",
                "img-src *".to_owned()
            )
        );
    }

    #[test]
    fn a_source_cannot_begin_another_directive() {
        for (name, source, fits) in [
            ("img-src", "'self'", true),
            ("img-src", "'nonce-r4nd0m=='", true),
            ("img-src", "a;b", false),
            ("img-src", "a,b", false),
            ("img-src", "a b", false),
            ("img-src", "", false),
            ("img-src", "caf\u{e9}", false),
            ("img src", "a", false),
            ("", "a", false),
        ] {
            let policy = ContentSecurityPolicy::empty().directive(name, [source]);
            assert_eq!(policy.mistake().is_none(), fits, "{name} {source}");
        }
    }
}
