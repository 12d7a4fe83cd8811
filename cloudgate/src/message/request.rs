//! What does a handler know of a request?

use std::any::Any;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytes::Bytes;
use http::{Extensions, Method};

use super::body::RequestBody;
use super::certificate::Certificate;
use super::headers::Headers;
use super::query;
use super::tls_session::TlsSession;

/// The version of HTTP that a request was made in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: one request a connection unless asked otherwise, no chunked coding.
    Http10,
    /// HTTP/1.1, and any later minor version (RFC 9110 section 2.5).
    #[default]
    Http11,
}

/// Everything in front of the body, in buffers that the connection uses again.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// Path and query, or `*`.
    pub(crate) target: String,
    /// Where the `?` stands in `target`.
    pub(crate) question: Option<usize>,
    /// Path and query as they were sent, where that is not `target`.
    pub(crate) sent: Option<String>,
    /// The authority of an absolute-form target, which counts more than Host (RFC 9112 section 3.2.2).
    pub(crate) authority: Option<String>,
    pub(crate) headers: Headers,
}

impl RequestHead {
    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The version of HTTP.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Path and query, as in `/a/b?c=d`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Path and query with each byte as it was sent: for who passes the request on.
    pub(crate) fn sent_target(&self) -> &str {
        self.sent.as_deref().unwrap_or(&self.target)
    }

    /// The path, percent-encoded as it was sent but for characters that need no encoding.
    pub fn path(&self) -> &str {
        &self.target[..self.question.unwrap_or(self.target.len())]
    }

    /// The text behind the `?`; empty if there is none.
    pub fn query(&self) -> &str {
        self.question.map_or("", |at| &self.target[at + 1..])
    }

    /// The header fields.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The host and port that the client wants to talk to.
    pub fn host(&self) -> Option<&str> {
        self.authority
            .as_deref()
            .or_else(|| self.headers.get("host"))
    }

    /// Forgets the request and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.target.clear();
        self.question = None;
        self.sent = None;
        self.authority = None;
        self.headers.clear();
    }
}

/// What the application notes on a request: itself, the route that was matched, the path's captures.
///
/// It stays with the connection from one request to the next, so the reference count of the
/// application changes once a connection and not once a request.
#[derive(Default)]
pub(crate) struct Scope {
    pub(crate) application: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) route: usize,
    pub(crate) captures: Vec<String>,
    /// How many bytes of the path stand before what the application is for.
    pub(crate) base: usize,
    /// The applications around this one, the outermost first, each with its `base`.
    pub(crate) outer: Vec<(Arc<dyn Any + Send + Sync>, usize)>,
    /// Whether an application is answering the request.
    pub(crate) answering: bool,
}

/// A request, as handlers and services get it.
///
/// It lends out the connection's buffers, hence the one lifetime, which is elided wherever a
/// handler is written. A test makes one without a connection:
///
/// ```
/// use cloudgate::{Method, Request};
/// let request = Request::new(Method::GET, "/a?b=c").with_header("Accept", "text/html");
/// assert_eq!((request.path(), request.query()), ("/a", "b=c"));
/// assert_eq!(request.header("accept"), Some("text/html"));
/// ```
pub struct Request<'conn> {
    head: Head<'conn>,
    peer: SocketAddr,
    /// The client, where a trusted proxy said who that is.
    pub(crate) client: Option<IpAddr>,
    /// Whether the client speaks TLS, where a trusted proxy said so or not.
    pub(crate) forwarded_secure: Option<bool>,
    body: RequestBody<'conn>,
    pub(crate) scope: Scope,
    extensions: Extensions,
    /// What was agreed on, where it came by TLS.
    tls: Option<Arc<TlsSession>>,
    /// How many bytes of the path belong to where the service is mounted.
    pub(crate) mounted: usize,
    /// What was sent, where a rewrite has put another path in its place.
    pub(crate) original: Option<Arc<RequestHead>>,
}

/// A head that the connection lends for the time of the request: who wants to keep it takes a
/// reference, and who does not pays for none.
pub(crate) enum Head<'conn> {
    Lent(&'conn mut Arc<RequestHead>),
    Own(Arc<RequestHead>),
}

impl Deref for Head<'_> {
    type Target = Arc<RequestHead>;

    fn deref(&self) -> &Arc<RequestHead> {
        match self {
            Head::Lent(head) => head,
            Head::Own(head) => head,
        }
    }
}

impl DerefMut for Head<'_> {
    fn deref_mut(&mut self) -> &mut Arc<RequestHead> {
        match self {
            Head::Lent(head) => head,
            Head::Own(head) => head,
        }
    }
}

impl<'conn> Request<'conn> {
    /// A request for a test or an in-process call, from 127.0.0.1 and without a body.
    ///
    /// # Panics
    /// When `target` is not `*` or a path that begins with `/`, holds a space, a control or a
    /// non-ASCII character, or a `%` in its path that no two hex digits follow.
    pub fn new(method: Method, target: &str) -> Request<'conn> {
        let mut head = RequestHead {
            method,
            ..RequestHead::default()
        };
        head.question = query::normalise_target(target, &mut head.target)
            .expect("a request target is a path such as /a/b?c=d, percent-encoded where needed");
        let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        Request::assemble(
            Head::Own(Arc::new(head)),
            peer,
            RequestBody::empty(),
            Scope::default(),
        )
    }

    /// A GET request; see [`Request::new`].
    ///
    /// # Panics
    /// As [`Request::new`].
    pub fn get(target: &str) -> Request<'conn> {
        Request::new(Method::GET, target)
    }

    /// A POST request; see [`Request::new`].
    ///
    /// # Panics
    /// As [`Request::new`].
    pub fn post(target: &str) -> Request<'conn> {
        Request::new(Method::POST, target)
    }

    /// The same request with one more header field.
    ///
    /// # Panics
    /// When the name is no token or the value holds a control character.
    pub fn with_header(mut self, name: &str, value: &str) -> Request<'conn> {
        self.headers_mut()
            .append(name, value)
            .expect("a header without control characters");
        self
    }

    /// The same request with this body, and its length as Content-Length.
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Request<'conn> {
        let body = body.into();
        self.headers_mut()
            .set("Content-Length", body.len().to_string())
            .expect("digits make a valid header value");
        self.body = RequestBody::from_bytes(body);
        self
    }

    /// The same request with `value` as its JSON body.
    ///
    /// # Panics
    /// When `value` cannot be serialized, for instance a map whose keys are no strings.
    pub fn with_json(self, value: &impl serde::Serialize) -> Request<'conn> {
        let body = serde_json::to_vec(value).expect("a value that serializes to JSON");
        self.with_header("Content-Type", "application/json")
            .with_body(body)
    }

    /// The same request from another address.
    pub fn with_peer(mut self, peer: SocketAddr) -> Request<'conn> {
        self.peer = peer;
        self
    }

    pub(crate) fn assemble(
        head: Head<'conn>,
        peer: SocketAddr,
        body: RequestBody<'conn>,
        scope: Scope,
    ) -> Request<'conn> {
        Request {
            head,
            peer,
            client: None,
            forwarded_secure: None,
            body,
            scope,
            extensions: Extensions::new(),
            tls: None,
            mounted: 0,
            original: None,
        }
    }

    /// The same request, come by a connection that speaks TLS or does not.
    pub(crate) fn by(mut self, tls: Option<Arc<TlsSession>>) -> Request<'conn> {
        self.tls = tls;
        self
    }

    /// The head as it stands.
    pub(crate) fn head(&self) -> &RequestHead {
        &self.head
    }

    /// The head, to be kept beyond the request.
    pub(crate) fn shared_head(&self) -> Arc<RequestHead> {
        Arc::clone(&self.head)
    }

    /// The head, to change it.
    pub(crate) fn head_mut(&mut self) -> &mut RequestHead {
        Arc::make_mut(&mut self.head)
    }

    /// Puts a head in the place of the one that is there.
    pub(crate) fn set_head(&mut self, head: Arc<RequestHead>) {
        *self.head = head;
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.head.method
    }

    /// The version of HTTP.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// Path and query, as in `/a/b?c=d`.
    pub fn target(&self) -> &str {
        self.head.target()
    }

    /// The path, percent-encoded as it was sent but for characters that need no encoding
    /// (RFC 3986 section 6.2.2.2).
    pub fn path(&self) -> &str {
        self.head.path()
    }

    /// The path below the place where the service is mounted: `/7` for `/orders/7` in what
    /// `/orders` was given to. Anywhere else the whole path.
    pub fn local_path(&self) -> &str {
        match &self.path()[self.mounted..] {
            "" => "/",
            rest => rest,
        }
    }

    /// The path that was sent, where a [rewrite](crate::App::rewrite) has put another in its place; else
    /// [`Request::path`].
    pub fn original_path(&self) -> &str {
        self.original_head().path()
    }

    pub(crate) fn original_head(&self) -> &RequestHead {
        self.original.as_ref().unwrap_or(&self.head)
    }

    /// The path that was sent, below where the service is mounted; `None` where that is another place.
    pub(crate) fn original_local_path(&self) -> Option<&str> {
        let original = self.original.as_ref()?.path();
        original.strip_prefix(&self.path()[..self.mounted])
    }

    /// The text behind the `?`; empty if there is none.
    pub fn query(&self) -> &str {
        self.head.query()
    }

    /// The host and port that the client wants to talk to.
    pub fn host(&self) -> Option<&str> {
        self.head.host()
    }

    /// The host that the client wants to talk to, without port, in lower case, and without the dot
    /// that may end a full name.
    pub fn host_name(&self) -> Option<String> {
        let host = self.host()?;
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        Some(name.to_ascii_lowercase())
    }

    /// The header fields.
    pub fn headers(&self) -> &Headers {
        &self.head.headers
    }

    /// The header fields, to change them.
    pub fn headers_mut(&mut self) -> &mut Headers {
        &mut self.head_mut().headers
    }

    /// The first value of a header field, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name)
    }

    /// The address of the other end of the connection, or of the client that a trusted proxy named by
    /// the PROXY protocol. An IPv4 address is one, also on a socket of IPv6.
    ///
    /// A peer on a Unix socket has none, and is shown as `0.0.0.0:0`: a list of trusted addresses,
    /// which may well hold 127.0.0.1, does not let it in by accident.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The address of the client: [`Request::peer`], unless that is a proxy which the application
    /// trusts ([`App::trust_proxies`](crate::App::trust_proxies)) and which named another.
    pub fn client(&self) -> IpAddr {
        self.client.unwrap_or_else(|| self.peer.ip().to_canonical())
    }

    /// What was agreed on by TLS, where the request came over a connection that speaks it.
    ///
    /// ```
    /// use cloudgate::Request;
    ///
    /// fn cipher(request: &mut Request) -> String {
    ///     match request.tls() {
    ///         Some(tls) => format!("{} {}", tls.version(), tls.cipher()),
    ///         None => "none".to_owned(),
    ///     }
    /// }
    /// assert_eq!(cipher(&mut Request::get("/")), "none");
    /// ```
    pub fn tls(&self) -> Option<&TlsSession> {
        self.tls.as_deref()
    }

    /// The certificate by which the client has said who it is, where the server asks for one
    /// ([`Tls::client_ca`](crate::Tls::client_ca)); the extractor [`ClientCertificate`](crate::ClientCertificate) gives it
    /// to a handler that cannot do without.
    pub fn client_certificate(&self) -> Option<&Certificate> {
        self.tls()?.client_certificate()
    }

    /// Whether what the client sends is encrypted on its way: by TLS of this server, or of a proxy which the application
    /// trusts ([`App::trust_proxies`](crate::App::trust_proxies)) and which says so by `X-Forwarded-Proto: https` or
    /// `Forwarded: proto=https`.
    pub fn is_secure(&self) -> bool {
        self.forwarded_secure.unwrap_or(self.tls.is_some())
    }

    /// The same request, as if it had come by TLS: for tests.
    ///
    /// ```
    /// use cloudgate::{Request, TlsSession};
    /// assert!(Request::get("/").with_tls(TlsSession::for_test()).is_secure());
    /// assert!(!Request::get("/").is_secure());
    /// ```
    #[must_use]
    pub fn with_tls(self, tls: TlsSession) -> Request<'conn> {
        self.by(Some(Arc::new(tls)))
    }

    /// Values that middlewares leave for handlers, one of each type; see
    /// [`Extension`](crate::Extension).
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// The values, to add some.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.extensions
    }

    /// The body, to be read.
    pub fn body(&mut self) -> &mut RequestBody<'conn> {
        &mut self.body
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", self.method())
            .field("target", &self.target())
            .field("headers", self.headers())
            .field("body", &self.body)
            .finish()
    }
}
