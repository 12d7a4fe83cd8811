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
//! A handler takes what it needs as arguments - [`Path`], [`Query`], [`Json`], [`State`], [`Event`],
//! `&mut` [`Request`] - and returns anything that is [`IntoResponse`]. It runs on a coroutine: while
//! it waits in cloudgate's own calls, such as reading a body, [`sleep`] or [`blocking`], its thread
//! serves others. What waits elsewhere, for a disk, a database driver or a lock, goes into
//! [`blocking`].
//!
//! Linux on x86-64 and aarch64 is what cloudgate is built and tested for.

mod app;
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
pub use app::cookies::{Cookie, CookieKey, Cookies, PrivateCookies, SameSite, SignedCookies};
pub use app::download::Download;
pub use app::event::Event;
pub use app::extract::{Extension, FromRequest, Query};
pub use app::form::Form;
pub use app::html::escape_html;
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
pub use config::Config;
pub use error::{Error, Result};
pub use message::{
    Body, BodyError, BodySource, BodyWriter, FileRange, HeaderError, Headers, InvalidNetwork,
    Middleware, Network, Next, Request, RequestBody, Response, Service, StartError, Version, mime,
    negotiate,
};
pub use net::home::{
    Busy, Notify, Receiver, RecvError, SendError, Sender, Settings as WorkerSettings, blocking,
    channel, sleep, thread_changes, try_blocking, yield_now,
};
pub use net::listener::Address;
pub use net::unix_socket::UnixSocket;
pub use proto::limits::Limits;
pub use server::{ProxyProtocol, Running, Server, Settings, Timeouts};
pub use services::access_log::{AccessLog, LogFormat};
pub use services::auth::{ApiKeyAuth, AuthUser, BasicAuth};
pub use services::compress::Compression;
pub use services::cors::Cors;
pub use services::files::Files;
pub use services::limits::{RateLimit, Verdict};
pub use services::request_id::{RequestId, RequestIds};
pub use services::response_cache::ResponseCache;
pub use services::security_headers::{ContentSecurityPolicy, SecurityHeaders};

/// What the code that `#[route]` writes uses. Not for people: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::app::host::assert_valid as assert_valid_host;
    pub use crate::app::options::{BoxedMiddleware, RouteOptions};
    pub use crate::app::pattern::assert_valid;
    pub use crate::app::route::{Parcel, ROUTES, RouteEntry, Sendable};
    pub use crate::app::state::Needs;
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
