//! An application server, static files and more in one crate, on stackful coroutines: handlers are
//! plain functions that may block, without async, `Pin` or lifetimes.
//!
//! ```no_run
//! use cloudgate::{App, Config, Event, Response, route};
//!
//! #[route("/api/tests/simple")]
//! fn simple(_event: Event) -> Response {
//!     Response::html("Hello World!")
//! }
//!
//! fn main() -> cloudgate::Result<()> {
//!     App::gather()                       // every #[route] of this program
//!         .files("public")                // routes win over files
//!         .run(Config::from_env()?)       // PORT, HOST, THREADS
//! }
//! ```
//!
//! What follows names the parts, each with an example. The guide, in `docs/guide` of the repository,
//! takes them in the order in which one meets them. Linux on x86-64 and aarch64 is what cloudgate is
//! built and tested for.
//!
//! # Routes
//!
//! [`route`](macro@route) makes a function the handler of a route, [`modules!`] declares a folder of them, and
//! [`App::gather`] finds them all. [`App::get`] and its siblings take closures. [`App::call`] answers
//! a [`Request`] without a socket: that is how handlers are tested.
//!
//! ```
//! use cloudgate::{App, Path, Request, route};
//!
//! #[route(GET, PUT, "/shelves/{shelf}/books/{book}")]
//! fn book(Path((shelf, book)): Path<(String, u32)>) -> String {
//!     format!("book {book} of {shelf}")
//! }
//!
//! let app = App::gather();
//! assert_eq!(app.call(&mut Request::get("/shelves/red/books/7")).text(), "book 7 of red");
//! assert_eq!(app.call(&mut Request::get("/shelves/red/books/x")).status(), 400);
//! ```
//!
//! # Arguments
//!
//! A handler takes whatever is [`FromRequest`]; what cannot be had answers the request.
//!
//! - of the path and query: [`Path`], [`Query`]
//! - of the body: [`Json`], [`Form`], [`Multipart`] and [`MultipartReader`] (with [`UploadedFile`]),
//!   [`Bytes`], `String`
//! - of the head: [`Headers`], [`Method`], [`Version`], [`Cookies`], [`SignedCookies`],
//!   [`PrivateCookies`], [`LastEventId`]; of the connection [`ClientAddr`]
//! - of the application: [`State`], [`Templates`]; of a middleware [`Extension`]
//! - a connection that becomes a WebSocket: [`WebSocketUpgrade`]
//! - all of it: [`Event`], `&mut` [`Request`]; any of it, or not: `Option`, `Result<_, `[`Rejection`]`>`
//!
//! ```
//! use cloudgate::{App, Cookies, Json, Request, State, route};
//!
//! struct Greeting(&'static str);
//!
//! #[route(POST, "/greetings")]
//! fn greet(State(greeting): State<Greeting>, cookies: Cookies, Json(names): Json<Vec<String>>) -> String {
//!     format!("{} {} {:?}", greeting.0, names.join(" and "), cookies.get("theme"))
//! }
//!
//! let app = App::gather().state(Greeting("Hello"));
//! let request = Request::post("/greetings").with_header("Cookie", "theme=dark");
//! let mut request = request.with_json(&["Ada", "Bob"]);
//! assert_eq!(app.call(&mut request).text(), r#"Hello Ada and Bob Some("dark")"#);
//! ```
//!
//! # Replies
//!
//! A handler returns whatever is [`IntoResponse`]: text, [`Html`], [`Json`], [`Bytes`], a [`Status`],
//! `(Status, reply)`, `(`[`Cookie`]`, reply)`, `Option`, `Result`, [`Redirect`], [`Download`], [`Sse`], or a
//! [`Response`] with any [`Body`]. [`HttpError`] and [`Problem`] are what `?` turns errors into; the
//! text of a 5xx stays in the log. [`negotiate`], [`mime`] and [`escape_html`] help to make one.
//!
//! ```
//! use cloudgate::{App, HttpError, Redirect, Request, Status};
//!
//! let app = App::new()
//!     .get("/old", || Redirect::permanent("/new"))
//!     .get("/new", || -> Result<&str, HttpError> { Err(HttpError::new(Status::GONE, "too late")) });
//! assert_eq!(app.call(&mut Request::get("/old")).headers().get("location"), Some("/new"));
//! assert_eq!(app.call(&mut Request::get("/new")).text(), "410 Gone: too late\n");
//! ```
//!
//! # What requests share
//!
//! [`State`] is one value of a type, [`SharedMemory`] integers and strings by name, [`ResponseCache`]
//! whole answers, [`read_cached`] small files.
//!
//! ```
//! use cloudgate::SharedMemory;
//! let memory = SharedMemory::new();
//! assert_eq!(memory.integers("visits").increment("home", 1)?, 1);
//! assert_eq!(memory.integers("visits").increment("home", 1)?, 2);
//! # Ok::<(), cloudgate::SharedError>(())
//! ```
//!
//! # WebSockets
//!
//! A handler that takes a [`WebSocketUpgrade`] opens one, and gives it to a function that has a [`WebSocket`], or to a
//! [`SocketHandler`] that is called for each [`Message`] while the socket takes next to nothing in between. A [`SocketSender`] sends from
//! anywhere, a [`Hub`] to many at once; [`SlowReceiver`] says what a peer loses that does not read, and a [`Delivery`] whether it did.
//! [`PerMessageDeflate`] compresses. Any other protocol takes a connection over by [`Response::switching_protocols`].
//!
//! ```
//! use cloudgate::{Response, WebSocketUpgrade, route};
//!
//! #[route("/ws-first")]
//! fn first(upgrade: WebSocketUpgrade) -> Response {
//!     upgrade.accept(|mut socket| {
//!         while let Some(message) = socket.recv()? {
//!             socket.send(message)?;
//!         }
//!         Ok(())
//!     })
//! }
//! ```
//!
//! # Middleware, services and sites
//!
//! A [`Middleware`] stands in front of an application ([`App::wrap`]) or of some paths
//! ([`App::wrap_at`]). These are here: [`AccessLog`], [`RequestIds`], [`Cors`], [`SecurityHeaders`],
//! [`Compression`], [`IpFilter`], [`RateLimit`], [`BasicAuth`], [`ApiKeyAuth`], [`ResponseCache`], [`TimeLimit`]. A [`Service`], such as another
//! [`App`] or a folder of [`Files`], answers below a path ([`App::mount`]) or for a host ([`App::host`]).
//!
//! ```
//! use cloudgate::{App, Next, RateLimit, Request, Response};
//!
//! fn stamp(request: &mut Request<'_>, next: Next<'_>) -> Response {
//!     next.run(request).header("X-Stamp", "1")
//! }
//!
//! let api = App::new().get("/now", || "12:00").wrap(RateLimit::per_second(100));
//! let app = App::new().mount("/api", api).wrap(stamp);
//! let answer = app.call(&mut Request::get("/api/now"));
//! assert_eq!(answer.headers().get("x-stamp"), Some("1"));
//! assert_eq!(answer.text(), "12:00");
//! ```
//!
//! # Waiting
//!
//! A handler runs on a coroutine: while it waits in cloudgate's own calls, such as reading a body,
//! [`sleep`], [`Notify`] or a [`channel`], its thread serves others. What waits elsewhere, for a disk, a
//! database driver or a lock, or computes for long, goes into [`blocking`].
//!
//! ```
//! let lines = cloudgate::blocking(|| std::fs::read_to_string("Cargo.toml"))?.lines().count();
//! assert!(lines > 1);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Serving
//!
//! [`App::run`] serves with the settings of the environment ([`Config`]) until a signal comes. A
//! [`Server`] is part of a larger program: ports, Unix and inherited sockets, [`Settings`] with every
//! limit, and a [`Running`] that can be stopped. What keeps either from starting is an [`Error`]. An [`Admin`] tells
//! those who operate it how it is.
//!
//! ```
//! use cloudgate::{App, Server};
//! use std::time::Duration;
//! let server = Server::bind("127.0.0.1:0")?.serve(App::new().get("/health", || "ok"))?;
//! println!("http://{}", server.addr());
//! assert_eq!(server.shutdown(Duration::from_secs(10)), 0);
//! # Ok::<(), cloudgate::Error>(())
//! ```

mod app;
/// What the program `cloudgate` is. Not for other programs: it changes without notice.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
mod config;
mod disk;
mod error;
mod fuzzing;
mod logger;
mod message;
mod net;
mod proto;
mod run;
mod server;
mod services;
pub mod test;

pub use bytes::Bytes;
pub use cloudgate_macros::{delete, get, head, modules, options, patch, post, put, route};
pub use http::{Method, StatusCode as Status};

pub use app::App;
pub use app::cache::read_cached;
pub use app::client::{ClientAddr, ForwardedBy};
pub use app::client_certificate::ClientCertificate;
pub use app::cookies::{Cookie, CookieKey, Cookies, PrivateCookies, SameSite, SignedCookies};
pub use app::download::Download;
pub use app::event::Event;
pub use app::extract::{Extension, FromRequest, Query};
pub use app::form::Form;
pub use app::hub::{Hub, HubCounts, HubError, HubLimits, Published, Seat};
pub use app::location::{NotLocal, Redirect};
pub use app::multipart::{
    FileReader, FormPart, Multipart, MultipartError, MultipartLimits, MultipartReader, UploadedFile,
};
pub use app::params::Params;
pub use app::path::Path;
pub use app::problem::Problem;
pub use app::redirect::TrailingSlash;
pub use app::rejection::{HttpError, Rejection};
pub use app::reply::{Html, IntoResponse, Json};
pub use app::route::{Endpoint, Route};
pub use app::shared::{Integers, SharedError, SharedLimits, SharedMemory, Strings, WhenFull};
pub use app::sse::{LastEventId, Sse, SseEvent, SseSender};
pub use app::state::{Needs, State};
pub use app::template::{TemplateError, Templates};
pub use app::time_limit::TimeLimit;
pub use app::websocket::{
    CloseFrame, Delivery, Dropped, Losses, Message, PerMessageDeflate, Received, SlowReceiver,
    SocketError, SocketHandler, SocketResult, SocketSender, WebSocket, WebSocketUpgrade,
};
pub use config::{Config, TlsConfig, TlsRedirect};
pub use error::{Error, Result};
pub use message::html::escape_html;
pub use message::{
    ApplicationProtocol, Body, BodyError, BodySource, BodyWriter, Certificate, FileRange,
    FileVersion, HeaderError, Headers, InvalidCertificate, InvalidNetwork, Middleware, Network,
    Next, Relay, Request, RequestBody, Response, Service, StartError, TlsSession, Upgrade,
    Upgraded, Version, mime, negotiate,
};
pub use net::home::{
    Busy, Notify, Receiver, RecvError, SendError, Sender, Settings as WorkerSettings, blocking,
    channel, sleep, thread_changes, try_blocking, yield_now,
};
pub use net::listener::Address;
pub use net::tls::client::TlsClient;
pub use net::tls::clients::ClientCa;
pub use net::tls::generated::GeneratedKey;
pub use net::tls::identity::Identity;
pub use net::tls::identity_error::IdentityError;
pub use net::tls::live::CertificateStatus;
pub use net::tls::serving::Tls;
pub use net::unix_socket::UnixSocket;
pub use proto::limits::Limits;
pub use proto::ws::handshake::HandshakeError;
pub use server::{ProxyProtocol, Running, Server, Settings, Timeouts};
pub use services::access_log::{AccessLog, LogFormat};
pub use services::admin::Admin;
pub use services::auth::{ApiKeyAuth, AuthUser, BasicAuth};
pub use services::compress::Compression;
pub use services::cors::Cors;
pub use services::files::Files;
pub use services::files::cache_control::CacheControl;
pub use services::gateway::{Gateway, HashBy, InvalidServer};
pub use services::https_only::HttpsOnly;
pub use services::ip_filter::IpFilter;
pub use services::limits::{RateLimit, Verdict};
pub use services::metrics::metrics;
pub use services::readiness::Readiness;
pub use services::request_id::{RequestId, RequestIds};
pub use services::response_cache::ResponseCache;
pub use services::security_headers::{ContentSecurityPolicy, SecurityHeaders};
pub use services::trace_context::TraceParent;

#[cfg(feature = "embed")]
pub use services::files::embedded::Embedded;

/// Puts the files of a folder into the program while it is built, for [`Files::embedded`]. With the feature
/// `embed`.
///
/// The path has to be absolute, so it begins with `$CARGO_MANIFEST_DIR`, the folder of the package's `Cargo.toml`.
///
/// ```
/// use cloudgate::{App, Files, Request, include_files};
///
/// let site = include_files!("$CARGO_MANIFEST_DIR/src/services/files/listing");
/// let app = App::new().files(Files::embedded(site).listing(true));
/// assert_eq!(app.call(&mut Request::get("/nothing.html")).status(), 404);
/// ```
///
/// What lies there compressed (`app.js.br`) is put in as well and served as from a folder. Cargo sees that a file
/// has changed, but not that one was added: a `build.rs` that prints `cargo::rerun-if-changed=public` makes it look.
#[cfg(feature = "embed")]
#[macro_export]
macro_rules! include_files {
    ($folder:tt) => {{
        use $crate::__private::include_dir;
        static FOLDER: include_dir::Dir<'static> = include_dir::include_dir!($folder);
        $crate::Embedded::new(&FOLDER)
    }};
}

/// What the code that `#[route]` writes uses. Not for people: it changes without notice.
#[doc(hidden)]
pub mod __private {
    #[cfg(feature = "embed")]
    pub use include_dir;

    pub use crate::app::options::{BoxedMiddleware, RouteOptions};
    pub use crate::app::pattern::assert_valid;
    pub use crate::app::route::{Parcel, ROUTES, RouteEntry, Sendable};
    pub use crate::app::state::Needs;
    pub use crate::message::host::assert_valid as assert_valid_host;
    pub use linkme;

    use crate::{FromRequest, IntoResponse, Request, Response};

    /// Takes an argument out of the request, or gives the answer for a request without it.
    pub fn extract<T: FromRequest>(request: &mut Request<'_>) -> Result<T, Response> {
        T::from_request(request).map_err(IntoResponse::into_response)
    }

    /// Notes what an argument needs at start.
    pub fn needs<T: FromRequest>(needs: &mut Needs) {
        T::needs(needs);
    }

    /// As [`extract`], for an argument that another thread is to use.
    pub fn extract_to_send<T: FromRequest + Sendable>(
        request: &mut Request<'_>,
    ) -> Result<Parcel<T>, Response> {
        extract(request).map(Parcel::new)
    }

    /// Lets a thread that may block make the response; a client that there is no room for is turned away.
    pub fn on_a_thread(work: impl FnOnce() -> Response + Send + 'static) -> Response {
        crate::try_blocking(work).unwrap_or_else(IntoResponse::into_response)
    }

    /// Turns a handler's result into a response.
    pub fn reply<T: IntoResponse>(value: T) -> Response {
        value.into_response()
    }
}

/// What fuzzers and micro benchmarks reach. Not for people: it changes without notice.
#[doc(hidden)]
pub mod __fuzz {
    pub use crate::fuzzing::*;
}
