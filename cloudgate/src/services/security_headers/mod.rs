//! What may a browser do with what this application answers?

mod csp;

use std::borrow::Cow;
use std::time::Duration;

use crate::message::{Headers, Middleware, Next, Request, Response, StartError};

pub use csp::ContentSecurityPolicy;

/// What is sent unless told otherwise.
const DEFAULTS: [(&str, &str); 3] = [
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "SAMEORIGIN"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
];

/// What only those are told who speak TLS.
const HSTS: &str = "Strict-Transport-Security";

/// Puts fields on every response that tell browsers to be careful with it.
///
/// ```
/// use cloudgate::{App, ContentSecurityPolicy, Request, SecurityHeaders, TlsSession};
/// use std::time::Duration;
///
/// let app = App::new().get("/", || "hello").wrap(
///     SecurityHeaders::new()
///         .hsts(Duration::from_secs(365 * 24 * 3600))
///         .csp(ContentSecurityPolicy::new().directive("img-src", ["'self'", "data:"])),
/// );
/// let response = app.call(&mut Request::get("/").with_tls(TlsSession::for_test()));
/// assert_eq!(response.headers().get("x-content-type-options"), Some("nosniff"));
/// assert_eq!(response.headers().get("strict-transport-security"), Some("max-age=31536000"));
/// ```
///
/// By default these:
///
/// | field | value | why |
/// |---|---|---|
/// | `X-Content-Type-Options` | `nosniff` | the Content-Type counts, not a guess |
/// | `X-Frame-Options` | `SAMEORIGIN` | no page of others shows this one in a frame and collects clicks |
/// | `Referrer-Policy` | `strict-origin-when-cross-origin` | other sites learn no paths and no queries |
///
/// A field that a handler has set stays as it is.
#[derive(Clone, Debug)]
pub struct SecurityHeaders {
    fields: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    /// How many bytes they take on the wire.
    bytes: usize,
    mistake: Option<String>,
}

impl Default for SecurityHeaders {
    fn default() -> SecurityHeaders {
        SecurityHeaders::new()
    }
}

impl SecurityHeaders {
    /// The fields of the table above.
    pub fn new() -> SecurityHeaders {
        let fields = DEFAULTS.map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value)));
        let mut headers = SecurityHeaders {
            fields: fields.into(),
            bytes: 0,
            mistake: None,
        };
        headers.measure();
        headers
    }

    fn measure(&mut self) {
        let fields = self.fields.iter();
        self.bytes = fields
            .map(|(name, value)| name.len() + value.len() + 4)
            .sum();
    }

    /// Sends this field too, or another value for it: `Permissions-Policy`,
    /// `Cross-Origin-Opener-Policy`, `Cross-Origin-Embedder-Policy`, `Cross-Origin-Resource-Policy`.
    ///
    /// A name or value that cannot be sent is an error at start.
    ///
    /// ```
    /// use cloudgate::SecurityHeaders;
    /// let headers = SecurityHeaders::new()
    ///     .set("X-Frame-Options", "DENY")
    ///     .set("Permissions-Policy", "camera=(), geolocation=()")
    ///     .set("Cross-Origin-Opener-Policy", "same-origin");
    /// ```
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> SecurityHeaders {
        if let Err(error) = Headers::new().append(name, value) {
            self.note(format!(
                "SecurityHeaders cannot send {name:?} with the value {value:?}: {error}"
            ));
        }
        self = self.without(name);
        self.fields
            .push((name.to_owned().into(), value.trim().to_owned().into()));
        self.measure();
        self
    }

    /// Does not send this field.
    #[must_use]
    pub fn without(mut self, name: &str) -> SecurityHeaders {
        self.fields
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.measure();
        self
    }

    /// Tells browsers to come by TLS alone for this long, in whole seconds (HSTS, RFC 6797). It is sent to who speaks
    /// TLS ([`Request::is_secure`]), for others must not be told (section 7.2): where a proxy in front ends it, let the
    /// application trust that one ([`App::trust_proxies`](crate::App::trust_proxies)).
    ///
    /// Begin with minutes: a browser that has seen it reaches the host in no other way until the time
    /// is over. With a time of zero a browser forgets it.
    #[must_use]
    pub fn hsts(self, max_age: Duration) -> SecurityHeaders {
        let value = format!("max-age={}", max_age.as_secs());
        self.set(HSTS, &value)
    }

    /// As [`SecurityHeaders::hsts`], for all hosts below this one too. Each of them must be there by
    /// TLS, those of other programs too.
    #[must_use]
    pub fn hsts_with_subdomains(self, max_age: Duration) -> SecurityHeaders {
        let value = format!("max-age={}; includeSubDomains", max_age.as_secs());
        self.set(HSTS, &value)
    }

    /// Says where a page may load scripts, pictures and the rest from.
    #[must_use]
    pub fn csp(mut self, policy: ContentSecurityPolicy) -> SecurityHeaders {
        let (name, value) = policy.field();
        if let Some(mistake) = policy.mistake() {
            self.note(mistake.to_owned());
        }
        self.set(name, &value)
    }

    fn note(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }
}

impl Middleware for SecurityHeaders {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        let secure = request.is_secure();
        let mut response = next.run(request);
        let headers = response.headers_mut();
        headers.reserve(self.fields.len(), self.bytes);
        for (name, value) in &self.fields {
            if !headers.contains(name) && (secure || !name.eq_ignore_ascii_case(HSTS)) {
                // Checked when it was configured.
                let _ = headers.append(name, value.as_bytes());
            }
        }
        response
    }

    fn start(&self) -> Result<(), StartError> {
        match &self.mistake {
            Some(mistake) => Err(mistake.clone().into()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::TlsSession;

    fn answer(headers: &SecurityHeaders, response: fn() -> Response) -> Response {
        let end = move |_: &mut Request<'_>| response();
        let mut request = Request::get("/").with_tls(TlsSession::for_test());
        headers.handle(&mut request, Next::new(&[], &end))
    }

    #[test]
    fn defaults_are_sent_with_errors_too() {
        let response = answer(&SecurityHeaders::new(), || {
            Response::error(http::StatusCode::NOT_FOUND)
        });
        for (name, value) in DEFAULTS {
            assert_eq!(response.headers().get(name), Some(value));
        }
        assert!(!response.headers().contains("strict-transport-security"));
    }

    #[test]
    fn what_the_handler_set_stays() {
        let headers = SecurityHeaders::new().csp(ContentSecurityPolicy::new());
        let response = answer(&headers, || {
            Response::html("")
                .header("x-frame-options", "DENY")
                .header("content-security-policy", "sandbox")
        });
        let all = response.headers();
        assert_eq!(all.get("x-frame-options"), Some("DENY"));
        assert_eq!(all.get("content-security-policy"), Some("sandbox"));
        assert_eq!(all.get_all("x-frame-options").count(), 1);
        assert_eq!(all.get_all("content-security-policy").count(), 1);
    }

    #[test]
    fn fields_are_replaced_and_left_out() {
        let headers = SecurityHeaders::new()
            .set("x-frame-options", "DENY")
            .without("REFERRER-POLICY")
            .hsts_with_subdomains(Duration::from_millis(60_999));
        assert!(headers.start().is_ok());
        let response = answer(&headers, || Response::html(""));
        let all = response.headers();
        assert_eq!(all.get("x-frame-options"), Some("DENY"));
        assert_eq!(all.get("referrer-policy"), None);
        assert_eq!(
            all.get("strict-transport-security"),
            Some("max-age=60; includeSubDomains")
        );
        let end = |_: &mut Request<'_>| Response::html("");
        let plain = headers.handle(&mut Request::get("/"), Next::new(&[], &end));
        assert!(!plain.headers().contains("strict-transport-security"));
        assert!(plain.headers().contains("x-frame-options"));
    }

    #[test]
    fn what_cannot_be_sent_is_an_error_at_start() {
        for (headers, want) in [
            (SecurityHeaders::new().set("X Y", "a"), "\"X Y\""),
            (SecurityHeaders::new().set("X-Y", "a\r\nb"), "line break"),
            (
                SecurityHeaders::new()
                    .csp(ContentSecurityPolicy::new().directive("img-src", ["a; script-src *"])),
                "script-src",
            ),
        ] {
            let error = headers.start().unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
            // What cannot be sent is not sent, also where nobody asked at start.
            assert!(
                !answer(&headers, || Response::html(""))
                    .headers()
                    .contains("X-Y")
            );
        }
    }
}
