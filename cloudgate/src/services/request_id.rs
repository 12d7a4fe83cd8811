//! Which request is this, in all logs of all programs that see it?

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use crate::message::headers::is_token;
use crate::message::{Middleware, Next, Request, Response, StartError};

/// The longest id that is taken over from a request, in bytes.
const LONGEST: usize = 128;

/// Gives each request an id: [`RequestId`] on the request's extensions, the field `X-Request-Id` of
/// the response, and a part of its line in the [`AccessLog`](crate::AccessLog).
///
/// ```
/// use cloudgate::{App, Extension, Request, RequestId, RequestIds, route};
///
/// #[route("/id")]
/// fn id(Extension(id): Extension<RequestId>) -> String { id.to_string() }
///
/// let app = App::gather().wrap(RequestIds::new());
/// let response = app.call(&mut Request::get("/id"));
/// let id = response.headers().get("x-request-id").map(str::to_owned);
/// assert_eq!(id, Some(response.text()));
/// ```
///
/// An id that comes with the request is taken over if it is 1 to 128 letters, digits, `.`, `_` and
/// `-`, and if it comes from a proxy that the application trusts
/// ([`App::trust_proxies`](crate::App::trust_proxies)): a stranger could make two requests look like
/// one. Any other is replaced, as if it had not been there. Where no proxy is in front and the clients
/// are your own programs, [`RequestIds::from_anyone`] believes all.
///
/// An id is unique across programs and machines, and no secret: who knows one can guess the next.
#[derive(Clone, Debug)]
pub struct RequestIds {
    header: Cow<'static, str>,
    believes_anyone: bool,
}

impl Default for RequestIds {
    fn default() -> RequestIds {
        RequestIds::new()
    }
}

impl RequestIds {
    /// Ids in the field `X-Request-Id`, taken over from trusted proxies alone.
    pub const fn new() -> RequestIds {
        RequestIds {
            header: Cow::Borrowed("X-Request-Id"),
            believes_anyone: false,
        }
    }

    /// Takes over a valid id from whoever sends one.
    ///
    /// ```
    /// # use cloudgate::{App, Request, RequestIds};
    /// let app = App::new().get("/", || "hello").wrap(RequestIds::new().from_anyone());
    /// let response = app.call(&mut Request::get("/").with_header("X-Request-Id", "a-1"));
    /// assert_eq!(response.headers().get("x-request-id"), Some("a-1"));
    /// ```
    #[must_use]
    pub fn from_anyone(mut self) -> RequestIds {
        self.believes_anyone = true;
        self
    }

    /// Uses another field, such as `X-Correlation-Id`, both ways.
    ///
    /// A name that is no field name is an error at start.
    #[must_use]
    pub fn header(mut self, name: &str) -> RequestIds {
        self.header = Cow::Owned(name.to_owned());
        self
    }

    fn taken_over(&self, request: &Request<'_>) -> Option<RequestId> {
        // The client is named by the application, and only where a proxy that it trusts sent the request.
        if !self.believes_anyone && request.client.is_none() {
            return None;
        }
        let shown = request.header(&self.header)?;
        is_valid(shown).then(|| RequestId(Arc::from(shown)))
    }
}

impl Middleware for RequestIds {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        // An application inside another one goes on with the id of that.
        let known = request.extensions().get::<RequestId>().cloned();
        let id = known
            .or_else(|| self.taken_over(request))
            .unwrap_or_else(RequestId::generate);
        request.extensions_mut().insert(id.clone());
        let mut response = next.run(request);
        // The name was checked at start, and the id is plain.
        let _ = response
            .headers_mut()
            .set(&self.header, id.as_str().as_bytes());
        response
    }

    fn start(&self) -> Result<(), StartError> {
        if is_token(self.header.as_bytes()) {
            return Ok(());
        }
        Err(format!(
            "RequestIds cannot use {:?} as the name of a header field - take one of letters, digits and -, such as X-Request-Id",
            self.header
        )
        .into())
    }
}

fn is_valid(id: &str) -> bool {
    (1..=LONGEST).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// The id of a request, as [`RequestIds`] left it on the request: a handler takes it as
/// [`Extension<RequestId>`](crate::Extension).
///
/// One that was made here has 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(Arc<str>);

/// What all ids of this process begin with, and where its numbers begin.
static PROCESS: LazyLock<(u64, AtomicU64)> = LazyLock::new(|| (random(), AtomicU64::new(random())));

/// A number from the system's randomness, which the keys of hash maps come from too: so no generator has to be kept per thread. It is no secret.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl RequestId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn generate() -> RequestId {
        // The digits are ASCII.
        RequestId(Arc::from(
            std::str::from_utf8(&digits(new())).unwrap_or_default(),
        ))
    }
}

/// A number that no other request has.
fn new() -> u128 {
    let (process, numbers) = &*PROCESS;
    let number = numbers.fetch_add(1, Ordering::Relaxed);
    u128::from(*process) << 64 | u128::from(number)
}

fn digits(number: u128) -> [u8; 32] {
    let mut text = [0; 32];
    let halves = [(number >> 64) as u64, number as u64];
    for (half, digits) in halves.into_iter().zip(text.chunks_exact_mut(16)) {
        for (index, digit) in digits.iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(half >> (60 - 4 * index)) as usize & 15];
        }
    }
    text
}

/// The id of a request that is passed on, which most of the time nobody keeps.
#[derive(Clone, Debug)]
pub(crate) enum Id {
    Known(RequestId),
    New(u128),
}

impl Id {
    /// The id that the request has, or that a trusted proxy gave it, or a new one.
    pub(crate) fn of(request: &Request<'_>) -> Id {
        let known = request.extensions().get::<RequestId>().cloned();
        match known.or_else(|| RequestIds::new().taken_over(request)) {
            Some(known) => Id::Known(known),
            None => Id::New(new()),
        }
    }

    /// Appends it.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Id::Known(id) => out.extend_from_slice(id.0.as_bytes()),
            Id::New(number) => out.extend_from_slice(&digits(*number)),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_test(text: &str) -> Id {
        Id::Known(RequestId(Arc::from(text)))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Known(id) => id.fmt(f),
            Id::New(number) => write!(f, "{number:032x}"),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn id_of(ids: &RequestIds, request: &mut Request<'_>) -> String {
        let end = |request: &mut Request<'_>| {
            let id = request.extensions().get::<RequestId>().unwrap();
            Response::text_plain(id.to_string())
        };
        let response = ids.handle(request, Next::new(&[], &end));
        let sent = response.headers().get(&ids.header).unwrap().to_owned();
        assert_eq!(response.text(), sent);
        sent
    }

    #[test]
    fn ids_differ_and_have_32_digits() {
        let ids = RequestIds::new();
        let mut seen = HashSet::new();
        for _ in 0..1000 {
            let id = id_of(&ids, &mut Request::get("/"));
            assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert!(seen.insert(id));
        }
    }

    #[test]
    fn a_valid_id_is_taken_over_and_any_other_replaced() {
        let ids = RequestIds::new().from_anyone();
        let longest = "a".repeat(LONGEST);
        let too_long = "a".repeat(LONGEST + 1);
        for (shown, taken) in [
            ("abc-DEF_1.2", true),
            (&*longest, true),
            (&*too_long, false),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            ("caf\u{e9}", false),
        ] {
            let mut request = Request::get("/").with_header("X-Request-Id", shown);
            assert_eq!(id_of(&ids, &mut request) == shown, taken, "{shown:?}");
        }
    }

    #[test]
    fn a_stranger_names_no_request() {
        let ids = RequestIds::new();
        let mut request = Request::get("/").with_header("X-Request-Id", "abc");
        assert_ne!(id_of(&ids, &mut request), "abc");
        let mut request = Request::get("/").with_header("X-Request-Id", "abc");
        request.client = Some(request.peer().ip());
        assert_eq!(id_of(&ids, &mut request), "abc");
    }

    #[test]
    fn an_inner_application_keeps_the_id() {
        let ids = RequestIds::new().header("X-Correlation-Id");
        let mut request = Request::get("/");
        let first = id_of(&ids, &mut request);
        assert_eq!(id_of(&ids, &mut request), first);
    }

    #[test]
    fn a_name_that_is_no_field_is_an_error_at_start() {
        assert!(RequestIds::new().start().is_ok());
        let error = RequestIds::new().header("X Id").start().unwrap_err();
        assert!(error.to_string().contains("\"X Id\""), "{error}");
    }
}
