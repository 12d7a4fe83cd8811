//! How does a client that comes in plain text get to TLS, and stay there?

use std::time::Duration;

use http::StatusCode;

use crate::message::{Middleware, Next, Request, Response, StartError};

/// The port of HTTPS (RFC 9110 section 4.2.2), which an address does not name.
const HTTPS: u16 = 443;

/// Where a certificate authority looks for the proof that a host is ours, which it does in plain text (RFC 8555
/// section 8.3).
const ACME: &str = "/.well-known/acme-challenge/";

/// Sends clients that come in plain text to the same place by TLS, with a 308, and answers those alone that speak it.
///
/// ```
/// use cloudgate::{App, HttpsOnly, Request, TlsSession};
///
/// let app = App::new().get("/", || "hello").wrap(HttpsOnly::new());
/// let mut request = Request::get("/?a=b").with_header("Host", "example.com:80");
/// let response = app.call(&mut request);
/// assert_eq!(response.status(), 308);
/// assert_eq!(response.headers().get("location"), Some("https://example.com/?a=b"));
///
/// let mut request = Request::get("/").with_tls(TlsSession::for_test());
/// assert_eq!(app.call(&mut request).text(), "hello");
/// ```
///
/// Whether a client speaks TLS is [`Request::is_secure`]: where a proxy in front ends it, let the application trust that
/// one, or each client is sent to where it came from. Paths below `/.well-known/acme-challenge/` are answered either way.
#[derive(Clone, Debug)]
pub struct HttpsOnly {
    port: u16,
    host: Option<String>,
    except: Vec<String>,
    hsts: Option<String>,
}

impl Default for HttpsOnly {
    fn default() -> HttpsOnly {
        HttpsOnly::new()
    }
}

impl HttpsOnly {
    /// Sends clients to port 443 of the host that they asked for.
    pub fn new() -> HttpsOnly {
        HttpsOnly {
            port: HTTPS,
            host: None,
            except: vec![ACME.to_owned()],
            hsts: None,
        }
    }

    /// Sends them to this port, as clients reach it.
    #[must_use]
    pub fn port(mut self, port: u16) -> HttpsOnly {
        self.port = port;
        self
    }

    /// Sends them to this host, whichever they asked for.
    #[must_use]
    pub fn host(mut self, host: &str) -> HttpsOnly {
        self.host = Some(host.to_owned());
        self
    }

    /// Answers paths that begin with this in plain text as well, such as `/health`.
    #[must_use]
    pub fn except(mut self, prefix: &str) -> HttpsOnly {
        self.except.push(prefix.to_owned());
        self
    }

    /// Tells browsers that come by TLS to do so for this long whatever they are told (HSTS, RFC 6797), in whole seconds.
    ///
    /// Begin with minutes: a browser that has seen it reaches the host in no other way until the time is over. With a
    /// time of zero a browser forgets it.
    #[must_use]
    pub fn hsts(mut self, max_age: Duration) -> HttpsOnly {
        self.hsts = Some(format!("max-age={}", max_age.as_secs()));
        self
    }

    fn redirect(&self, request: &Request<'_>) -> Response {
        let name = match &self.host {
            Some(host) => Some(host.clone()),
            None => request.host_name(),
        };
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Response::error_because(
                StatusCode::BAD_REQUEST,
                "this host is reached by https: alone, and the request does not name it",
            );
        };
        let port = match self.port {
            HTTPS => String::new(),
            port => format!(":{port}"),
        };
        // `OPTIONS *` has no address that a client could go to.
        let target = request.original_head().target();
        let target = if target.starts_with('/') { target } else { "/" };
        Response::new(StatusCode::PERMANENT_REDIRECT)
            .header("Location", &format!("https://{name}{port}{target}"))
    }
}

impl Middleware for HttpsOnly {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        if !request.is_secure() {
            let path = request.path();
            if self.except.iter().any(|prefix| path.starts_with(prefix)) {
                return next.run(request);
            }
            return self.redirect(request);
        }
        let mut response = next.run(request);
        if let Some(hsts) = &self.hsts {
            let headers = response.headers_mut();
            if !headers.contains("strict-transport-security") {
                // Digits can be sent.
                let _ = headers.append("Strict-Transport-Security", hsts.as_bytes());
            }
        }
        response
    }

    fn start(&self) -> Result<(), StartError> {
        let Some(host) = &self.host else {
            return Ok(());
        };
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
        if host.is_empty() || !host.bytes().all(fits) {
            return Err(format!(
                "HttpsOnly cannot send clients to the host {host:?} - give a name such as example.com, in ASCII (xn--...)"
            )
            .into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::message::TlsSession;

    fn answer(service: &HttpsOnly, request: Request<'static>) -> Response {
        let end = |_: &mut Request<'_>| Response::html("inside");
        let mut request = request;
        service.handle(&mut request, Next::new(&[], &end))
    }

    fn location(service: &HttpsOnly, target: &str, host: &str) -> Option<String> {
        let request = Request::new(Method::POST, target).with_header("Host", host);
        let response = answer(service, request);
        assert_eq!(response.status(), 308);
        response.headers().get("location").map(str::to_owned)
    }

    #[test]
    fn clients_are_sent_to_the_same_place() {
        let usual = HttpsOnly::new();
        let other = HttpsOnly::new().port(8443);
        let fixed = HttpsOnly::new().host("www.example.com");
        for (service, target, host, want) in [
            (&usual, "/", "a.example", "https://a.example/"),
            (
                &usual,
                "/a/b?c=/d",
                "A.example.:80",
                "https://a.example/a/b?c=/d",
            ),
            (&usual, "/%0D%0A", "a.example", "https://a.example/%0D%0A"),
            (&usual, "/", "[::1]:3000", "https://[::1]/"),
            (
                &usual,
                "//evil.example",
                "a.example",
                "https://a.example//evil.example",
            ),
            (&other, "/a", "127.0.0.1:3000", "https://127.0.0.1:8443/a"),
            (&other, "/a", "[::1]", "https://[::1]:8443/a"),
            (&fixed, "/a", "a.example", "https://www.example.com/a"),
            (&usual, "*", "a.example", "https://a.example/"),
        ] {
            assert_eq!(location(service, target, host).as_deref(), Some(want));
        }
        // HTTP/1.0 may leave the host out.
        let response = answer(&usual, Request::get("/"));
        assert_eq!(response.status(), 400);
    }

    #[test]
    fn who_speaks_tls_is_answered_and_told_to_stay() {
        let service = HttpsOnly::new().hsts(Duration::from_millis(60_500));
        let secure = || Request::get("/").with_tls(TlsSession::for_test());
        let response = answer(&service, secure());
        assert_eq!(response.status(), 200);
        assert_eq!(
            response.headers().get("strict-transport-security"),
            Some("max-age=60")
        );
        // Not to who has come in plain text (RFC 6797 section 7.2).
        let plain = answer(&service, Request::get("/").with_header("Host", "a"));
        assert!(!plain.headers().contains("strict-transport-security"));
        let without = answer(&HttpsOnly::new(), secure());
        assert!(!without.headers().contains("strict-transport-security"));
    }

    #[test]
    fn some_paths_are_answered_in_plain_text() {
        let service = HttpsOnly::new().except("/health");
        for (path, status) in [
            ("/.well-known/acme-challenge/token", 200),
            ("/health", 200),
            ("/health/db", 200),
            ("/", 308),
            ("/.well-known/", 308),
        ] {
            let request = Request::get(path).with_header("Host", "a");
            assert_eq!(answer(&service, request).status(), status, "{path}");
        }
    }

    #[test]
    fn a_host_that_is_none_is_an_error_at_start() {
        assert!(HttpsOnly::new().host("example.com").start().is_ok());
        for host in ["", "a b", "https://a", "a/b", "b\u{fc}cher.example"] {
            let error = HttpsOnly::new().host(host).start().unwrap_err().to_string();
            assert!(error.contains("HttpsOnly cannot send"), "{host}: {error}");
        }
    }
}
