//! Which pages of other origins may read what this application answers?

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};

use super::vary;
use crate::message::headers::is_token;
use crate::message::upgrade::OriginAllowed;
use crate::message::{Headers, Middleware, Next, Request, Response, StartError};

/// The longest list of field names that a preflight may ask for, in bytes.
const LONGEST_LIST: usize = 4096;

/// Lets pages of other origins use this application (CORS, <https://fetch.spec.whatwg.org/#http-cors-protocol>).
///
/// ```
/// use cloudgate::{App, Cors, Method, Request};
///
/// let app = App::new()
///     .get("/items", || "[]")
///     .wrap(Cors::new().origin("https://app.example.com").credentials());
/// let mut request = Request::get("/items").with_header("Origin", "https://app.example.com");
/// let response = app.call(&mut request);
/// assert_eq!(
///     response.headers().get("access-control-allow-origin"),
///     Some("https://app.example.com")
/// );
/// ```
///
/// Put it in front of what asks who the client is: a browser sends its preflight, which is answered
/// here, without credentials. The fields are on every answer that passes here, so a page can read
/// why it was refused. The 500 after a panic does not pass here.
///
/// Unless told otherwise no origin is allowed; an allowed one may use GET, HEAD, POST, PUT, PATCH and
/// DELETE, and send whatever fields it asks for.
///
/// CORS keeps pages from *reading* answers. It keeps nobody from sending requests: a form on any
/// page can, so what changes something needs a token or a `SameSite` cookie all the same.
#[derive(Clone)]
pub struct Cors {
    origins: Vec<String>,
    allows: Option<Allows>,
    any: bool,
    methods: String,
    /// `None`: what the preflight asks for.
    headers: Option<String>,
    exposed: String,
    credentials: bool,
    max_age: Option<String>,
    private_network: bool,
    mistake: Option<String>,
}

type Allows = Arc<dyn Fn(&str) -> bool + Send + Sync>;

impl Default for Cors {
    fn default() -> Cors {
        Cors::new()
    }
}

impl Cors {
    /// No origin is allowed.
    pub fn new() -> Cors {
        Cors {
            origins: Vec::new(),
            allows: None,
            any: false,
            methods: "GET, HEAD, POST, PUT, PATCH, DELETE".to_owned(),
            headers: None,
            exposed: String::new(),
            credentials: false,
            max_age: None,
            private_network: false,
            mistake: None,
        }
    }

    /// Allows one origin, as a browser spells it: `https://app.example.com`, with a port only if it is
    /// not the usual one. `null`, which stands for sandboxed pages and local files of anybody, counts
    /// only if it is named here. `*` is [`Cors::any_origin`].
    ///
    /// What is no origin, such as one with a path, is an error at start.
    #[must_use]
    pub fn origin(mut self, origin: &str) -> Cors {
        if origin == "*" {
            return self.any_origin();
        }
        match check_origin(origin) {
            Ok(()) => self.origins.push(origin.to_ascii_lowercase()),
            Err(reason) => self.note(format!("Cors::origin got {origin:?}: {reason}")),
        }
        self
    }

    /// Allows several origins; see [`Cors::origin`].
    #[must_use]
    pub fn origins<'o>(self, origins: impl IntoIterator<Item = &'o str>) -> Cors {
        origins.into_iter().fold(self, Cors::origin)
    }

    /// Allows the origins for which `allows` holds. It is not asked about `null`.
    ///
    /// Compare whole names: `ends_with("example.com")` fits `https://evil-example.com` too.
    ///
    /// ```
    /// use cloudgate::Cors;
    /// let cors = Cors::new().origins_where(|origin| {
    ///     origin.starts_with("https://") && origin.ends_with(".example.com")
    /// });
    /// ```
    #[must_use]
    pub fn origins_where(mut self, allows: impl Fn(&str) -> bool + Send + Sync + 'static) -> Cors {
        self.allows = Some(Arc::new(allows));
        self
    }

    /// Allows every origin: for what is public anyway. Together with [`Cors::credentials`] it would let
    /// every page read what the user's cookies open, so that is an error at start.
    #[must_use]
    pub fn any_origin(mut self) -> Cors {
        self.any = true;
        self
    }

    /// Sets the methods that pages may use.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Cors {
        let methods: Vec<Method> = methods.into_iter().collect();
        let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
        self.methods = names.join(", ");
        self
    }

    /// Sets the request fields that pages may send, besides those that any form could
    /// (`Accept`, `Content-Language` and the like). Without this: whatever a preflight asks for.
    ///
    /// What is no field name is an error at start.
    #[must_use]
    pub fn headers<'h>(mut self, names: impl IntoIterator<Item = &'h str>) -> Cors {
        self.headers = Some(self.list("headers", names));
        self
    }

    /// Allows whatever fields a preflight asks for, as is the case without [`Cors::headers`].
    #[must_use]
    pub fn mirror_headers(mut self) -> Cors {
        self.headers = None;
        self
    }

    /// Sets the response fields that pages may read, besides the few that they always may.
    ///
    /// What is no field name is an error at start.
    #[must_use]
    pub fn expose<'h>(mut self, names: impl IntoIterator<Item = &'h str>) -> Cors {
        self.exposed = self.list("expose", names);
        self
    }

    /// Lets pages send the user's cookies along, and read the answers.
    #[must_use]
    pub fn credentials(mut self) -> Cors {
        self.credentials = true;
        self
    }

    /// How long a browser may remember the answer to a preflight, in whole seconds. Without this it
    /// is five seconds in most of them.
    #[must_use]
    pub fn max_age(mut self, age: Duration) -> Cors {
        self.max_age = Some(age.as_secs().to_string());
        self
    }

    /// Lets pages from the internet in, where this application is on a private network and the
    /// browser asks for that (`Access-Control-Request-Private-Network`).
    #[must_use]
    pub fn private_network(mut self) -> Cors {
        self.private_network = true;
        self
    }

    fn list<'h>(&mut self, what: &str, names: impl IntoIterator<Item = &'h str>) -> String {
        let mut list: Vec<&str> = Vec::new();
        for name in names {
            if is_token(name.as_bytes()) {
                list.push(name);
            } else {
                self.note(format!("Cors::{what} got {name:?}, which is no name of a header field - name each field by itself, as in [\"X-Total\", \"X-Page\"]"));
            }
        }
        list.join(", ")
    }

    /// Keeps the first mistake for the start, which fails with it.
    fn note(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    /// What `Access-Control-Allow-Origin` says to this origin, if it is allowed.
    fn allowed<'o>(&self, origin: &'o str) -> Option<&'o str> {
        let listed = self
            .origins
            .iter()
            .any(|known| known.eq_ignore_ascii_case(origin));
        let fits = || origin != "null" && self.allows.as_ref().is_some_and(|allows| allows(origin));
        if self.any {
            return self.star();
        }
        (listed || fits()).then_some(origin)
    }

    /// What is said to a request that names no origin: `*` goes to everybody, so that a cache may
    /// give it to everybody.
    fn star(&self) -> Option<&'static str> {
        // Where the start was not asked, an error there must not become a hole here.
        (self.any && !self.credentials).then_some("*")
    }

    /// Puts the fields that preflights and other answers have in common on the response.
    fn allow(&self, headers: &mut Headers, origin: Option<&str>) {
        if !self.any {
            vary::add(headers, "Origin");
        }
        match origin {
            Some(origin) => {
                put(headers, "Access-Control-Allow-Origin", origin);
                if self.credentials {
                    put(headers, "Access-Control-Allow-Credentials", "true");
                }
            }
            // What an inner service allows by itself would open what is closed here.
            None => {
                headers.remove("Access-Control-Allow-Origin");
                headers.remove("Access-Control-Allow-Credentials");
            }
        }
    }

    fn answer_preflight(&self, request: &Request<'_>, origin: Option<&str>) -> Response {
        let mut response = if origin.is_some() {
            Response::new(StatusCode::NO_CONTENT)
        } else {
            Response::error_because(
                StatusCode::FORBIDDEN,
                "pages of this origin may not use this",
            )
        };
        let headers = response.headers_mut();
        self.allow(headers, origin);
        for field in [
            "Access-Control-Request-Method",
            "Access-Control-Request-Headers",
        ] {
            vary::add(headers, field);
        }
        if self.private_network {
            vary::add(headers, "Access-Control-Request-Private-Network");
        }
        if origin.is_none() {
            return response;
        }
        put(headers, "Access-Control-Allow-Methods", &self.methods);
        let asked = request.header("access-control-request-headers");
        let names = self.headers.as_deref().or(asked.filter(|list| {
            let names = list.split(',').map(str::trim);
            list.len() <= LONGEST_LIST && { names }.all(|name| is_token(name.as_bytes()))
        }));
        if let Some(names) = names.filter(|names| !names.is_empty()) {
            put(headers, "Access-Control-Allow-Headers", names);
        }
        if let Some(age) = &self.max_age {
            put(headers, "Access-Control-Max-Age", age);
        }
        if self.private_network
            && request.header("access-control-request-private-network") == Some("true")
        {
            put(headers, "Access-Control-Allow-Private-Network", "true");
        }
        response
    }
}

impl Middleware for Cors {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        // The head is kept: a middleware behind this one may change the request.
        let head = request
            .headers()
            .contains("origin")
            .then(|| request.shared_head());
        let asking = head.as_ref().and_then(|head| head.headers().get("origin"));
        let origin = asking.map_or_else(|| self.star(), |asking| self.allowed(asking));
        let is_preflight = asking.is_some()
            && *request.method() == Method::OPTIONS
            && request.headers().contains("access-control-request-method");
        if is_preflight {
            return self.answer_preflight(request, origin);
        }
        // A socket comes with cookies whatever is said here, so an origin has to be meant for that by name.
        if asking.is_some() && origin.is_some() && !self.any {
            request.extensions_mut().insert(OriginAllowed);
        }
        let mut response = next.run(request);
        let headers = response.headers_mut();
        self.allow(headers, origin);
        if origin.is_some() && !self.exposed.is_empty() {
            put(headers, "Access-Control-Expose-Headers", &self.exposed);
        }
        response
    }

    fn start(&self) -> Result<(), StartError> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone().into());
        }
        if self.any && self.credentials {
            return Err("Cors allows every origin together with credentials, so any page could read what its visitor may see here - name the origins by .origin(\"https://...\"), or leave .credentials() out".into());
        }
        if !self.any && self.origins.is_empty() && self.allows.is_none() {
            return Err("Cors allows no origin - name one by .origin(\"https://...\"), or all by .any_origin(), or leave Cors out".into());
        }
        Ok(())
    }
}

impl fmt::Debug for Cors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cors")
            .field("origins", &self.origins)
            .field("any", &self.any)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}

fn put(headers: &mut Headers, name: &str, value: &str) {
    // Values are checked when they are configured, or come from a head that was checked.
    let _ = headers.set(name, value);
}

/// Whether a browser could send this as its `Origin`; else what is wrong with it.
fn check_origin(origin: &str) -> Result<(), &'static str> {
    if origin == "null" {
        return Ok(());
    }
    let Some((scheme, host)) = origin.split_once("://") else {
        return Err("an origin begins with a scheme, as in https://app.example.com");
    };
    if host.contains(['/', '?', '#']) {
        return Err("an origin ends behind host and port - leave out what follows, the slash too");
    }
    if host.contains('*') {
        return Err("an origin has no wildcard - use .origins_where(|origin| ...)");
    }
    if host.is_empty() || host.contains('@') || !origin.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(
            "an origin is scheme, host and port, as in https://app.example.com, in ASCII (xn--...)",
        );
    }
    let usual = [("http", ":80"), ("https", ":443")];
    if usual
        .iter()
        .any(|(name, port)| scheme.eq_ignore_ascii_case(name) && host.ends_with(port))
    {
        return Err("browsers leave out the usual port of a scheme - leave it out too");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: &str = "https://app.example.com";

    fn answer(cors: &Cors, request: &mut Request<'_>, status: StatusCode) -> Response {
        cors.handle(request, Next::new(&[], &move |_| Response::error(status)))
    }

    fn preflight<'r>(origin: &str) -> Request<'r> {
        Request::new(Method::OPTIONS, "/")
            .with_header("Origin", origin)
            .with_header("Access-Control-Request-Method", "PUT")
            .with_header("Access-Control-Request-Headers", "x-one, content-type")
    }

    fn field<'r>(response: &'r Response, name: &str) -> Option<&'r str> {
        response.headers().get(name)
    }

    #[test]
    fn only_allowed_origins_are_named() {
        let listed = Cors::new()
            .origin("HTTPS://app.example.com")
            .origin("https://b:8443");
        let null = Cors::new().origin("null");
        let tested = Cors::new().origins_where(|_| true);
        for (cors, origin, want) in [
            (&listed, APP, true),
            (&listed, "https://b:8443", true),
            (&listed, "https://b", false),
            (&listed, "http://app.example.com", false),
            (&listed, "https://app.example.com.evil.org", false),
            (&listed, "null", false),
            (&listed, "", false),
            (&null, "null", true),
            (&tested, APP, true),
            (&tested, "null", false),
        ] {
            assert!(cors.start().is_ok());
            let mut request = Request::get("/").with_header("Origin", origin);
            let response = answer(cors, &mut request, StatusCode::OK);
            assert_eq!(
                field(&response, "access-control-allow-origin"),
                want.then_some(origin),
                "{origin}"
            );
            assert_eq!(field(&response, "vary"), Some("Origin"), "{origin}");
            let asked = answer(cors, &mut preflight(origin), StatusCode::OK);
            assert_eq!(asked.status() == StatusCode::NO_CONTENT, want, "{origin}");
            assert_eq!(asked.status() == StatusCode::FORBIDDEN, !want, "{origin}");
            assert!(asked.headers().has_token("vary", "origin"));
            assert_eq!(
                asked.headers().contains("access-control-allow-methods"),
                want
            );
        }
    }

    #[test]
    fn errors_carry_the_fields_too() {
        let cors = Cors::new().origin(APP).credentials().expose(["X-Total"]);
        for status in [401, 404, 413, 500] {
            let status = StatusCode::from_u16(status).unwrap();
            let mut request = Request::get("/").with_header("Origin", APP);
            let response = answer(&cors, &mut request, status);
            assert_eq!(response.status(), status);
            for (name, want) in [
                ("access-control-allow-origin", APP),
                ("access-control-allow-credentials", "true"),
                ("access-control-expose-headers", "X-Total"),
                ("vary", "Origin"),
            ] {
                assert_eq!(field(&response, name), Some(want), "{status} {name}");
            }
        }
    }

    #[test]
    fn a_preflight_is_answered_in_place() {
        let reached = |_: &mut Request<'_>| Response::error(StatusCode::IM_A_TEAPOT);
        let cors = Cors::new()
            .origin(APP)
            .methods([Method::PUT, Method::GET])
            .max_age(Duration::from_secs(600))
            .private_network();
        let mut request =
            preflight(APP).with_header("Access-Control-Request-Private-Network", "true");
        let response = cors.handle(&mut request, Next::new(&[], &reached));
        for (name, want) in [
            ("access-control-allow-methods", "PUT, GET"),
            ("access-control-allow-headers", "x-one, content-type"),
            ("access-control-max-age", "600"),
            ("access-control-allow-private-network", "true"),
            (
                "vary",
                "Origin, Access-Control-Request-Method, Access-Control-Request-Headers, Access-Control-Request-Private-Network",
            ),
        ] {
            assert_eq!(field(&response, name), Some(want), "{name}");
        }
        let listed = cors.clone().headers(["X-Two"]);
        let response = listed.handle(&mut request, Next::new(&[], &reached));
        assert_eq!(
            field(&response, "access-control-allow-headers"),
            Some("X-Two")
        );
        // OPTIONS that no browser asks before another request is the application's.
        for request in [
            &mut Request::new(Method::OPTIONS, "/").with_header("Origin", APP),
            &mut Request::new(Method::OPTIONS, "/")
                .with_header("Access-Control-Request-Method", "PUT"),
        ] {
            let response = cors.handle(request, Next::new(&[], &reached));
            assert_eq!(response.status(), StatusCode::IM_A_TEAPOT);
        }
    }

    #[test]
    fn what_a_preflight_asks_for_is_mirrored_up_to_a_length_and_only_names() {
        let cors = Cors::new().origin(APP);
        let longest = "a".repeat(LONGEST_LIST);
        let too_long = "a".repeat(LONGEST_LIST + 1);
        for (asked, mirrored) in [
            ("x-one", true),
            (&*longest, true),
            (&*too_long, false),
            ("x one", false),
            ("a, ,b", false),
        ] {
            let mut request = Request::new(Method::OPTIONS, "/")
                .with_header("Origin", APP)
                .with_header("Access-Control-Request-Method", "PUT")
                .with_header("Access-Control-Request-Headers", asked);
            let response = answer(&cors, &mut request, StatusCode::OK);
            assert_eq!(
                field(&response, "access-control-allow-headers"),
                mirrored.then_some(asked)
            );
        }
    }

    #[test]
    fn any_origin_is_a_star_for_everybody_and_depends_on_nothing() {
        let cors = Cors::new().origin("*");
        assert!(cors.start().is_ok());
        for request in [
            &mut Request::get("/"),
            &mut Request::get("/").with_header("Origin", "null"),
        ] {
            let response = answer(&cors, request, StatusCode::OK);
            assert_eq!(field(&response, "access-control-allow-origin"), Some("*"));
            assert_eq!(field(&response, "vary"), None);
        }
    }

    #[test]
    fn what_is_closed_here_is_not_opened_inside() {
        let inner = |_: &mut Request<'_>| {
            Response::html("")
                .header("Access-Control-Allow-Origin", "*")
                .header("Access-Control-Allow-Credentials", "true")
        };
        let cors = Cors::new().origin(APP);
        let mut request = Request::get("/").with_header("Origin", "https://evil.org");
        let response = cors.handle(&mut request, Next::new(&[], &inner));
        assert_eq!(field(&response, "access-control-allow-origin"), None);
        assert_eq!(field(&response, "access-control-allow-credentials"), None);
    }

    #[test]
    fn mistakes_are_errors_at_start_that_say_what_to_do() {
        for (cors, want) in vec![
            (
                Cors::new().any_origin().credentials(),
                "leave .credentials() out",
            ),
            (Cors::new(), "name one by .origin"),
            (Cors::new().origin("https://a.b/"), "the slash too"),
            (Cors::new().origin("a.b"), "begins with a scheme"),
            (Cors::new().origin("https://*.a.b"), ".origins_where"),
            (Cors::new().origin("https://a.b:443"), "leave it out"),
            (Cors::new().origin("https://a b"), "scheme, host and port"),
            (Cors::new().origin(APP).expose(["a, b"]), "\"a, b\""),
            (Cors::new().origin(APP).headers([""]), "\"\""),
        ] {
            let error = cors.start().unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
        // Also where nobody has asked: no answer opens everything.
        let cors = Cors::new().any_origin().credentials();
        let mut request = Request::get("/").with_header("Origin", APP);
        let response = answer(&cors, &mut request, StatusCode::OK);
        assert_eq!(field(&response, "access-control-allow-origin"), None);
    }
}
