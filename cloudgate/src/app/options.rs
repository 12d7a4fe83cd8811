//! What does a route ask of a request before its handler is called?

use std::time::Duration;

use http::StatusCode;

use super::event::Event;
use super::extract::FromRequest;
use super::reply::IntoResponse;
use super::time_limit::TimeLimit;
use crate::message::{Layer, Middleware, Request, Response};

/// What `#[route]` says of a route besides methods and pattern.
#[derive(Clone, Copy, Debug)]
pub struct RouteOptions {
    /// The most bytes of a body.
    pub body_limit: Option<u64>,
    /// How long the handler may take.
    pub timeout: Option<Duration>,
    /// For which hosts it is; `None` for all.
    pub host: Option<&'static str>,
    /// The parameters without which there is no answer.
    pub required: &'static [&'static str],
    /// Whether a client needs an API key.
    pub private: bool,
    /// The middlewares in front of the handler, the first one outermost.
    pub wrap: &'static [fn() -> BoxedMiddleware],
}

impl RouteOptions {
    /// Nothing in particular.
    pub const NONE: RouteOptions = RouteOptions {
        body_limit: None,
        timeout: None,
        host: None,
        required: &[],
        private: false,
        wrap: &[],
    };
}

/// The options of a route of one application, from `#[route]` or from [`Route`](super::route::Route).
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(super) body_limit: Option<u64>,
    pub(super) timeout: Option<Duration>,
    pub(super) host: Option<String>,
    pub(super) required: Vec<String>,
    pub(super) private: bool,
    pub(super) wrap: Vec<Layer>,
}

impl Options {
    /// Whether [`refuse`] has anything to look at.
    #[inline]
    pub(super) fn ask_something(&self) -> bool {
        self.body_limit.is_some() || self.private || !self.required.is_empty()
    }
}

impl From<&RouteOptions> for Options {
    fn from(options: &RouteOptions) -> Options {
        Options {
            body_limit: options.body_limit,
            timeout: options.timeout,
            host: options.host.map(str::to_owned),
            required: options.required.iter().map(ToString::to_string).collect(),
            private: options.private,
            wrap: options.wrap.iter().map(|make| make().0).collect(),
        }
    }
}

/// A middleware of a route.
pub struct BoxedMiddleware(Layer);

impl BoxedMiddleware {
    /// Takes it in.
    pub fn new(middleware: impl Middleware) -> BoxedMiddleware {
        BoxedMiddleware(Layer::new(middleware))
    }
}

impl std::fmt::Debug for BoxedMiddleware {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The middlewares of a route with these options, the first one outermost.
pub(super) fn layers(options: &Options) -> Vec<Layer> {
    let limit = options
        .timeout
        .map(|limit| Layer::new(TimeLimit::new(limit)));
    limit
        .into_iter()
        .chain(options.wrap.iter().cloned())
        .collect()
}

/// The answer to a request that the options do not let through.
pub(super) fn refuse(
    options: &Options,
    api_keys: &[String],
    request: &mut Request<'_>,
) -> Option<Response> {
    if let Some(limit) = options.body_limit {
        request.body().set_limit(limit);
    }
    if options.private && !shows_key(request, api_keys) {
        let body = r#"{"status":"KO","code":"BAD_API_KEY","message":"this needs an API key: the query parameter apiKey, or the field x-api-key"}"#;
        return Some(
            Response::of_type("application/json", body).with_status(StatusCode::FORBIDDEN),
        );
    }
    if options.required.is_empty() {
        return None;
    }
    let event = match Event::from_request(request) {
        Ok(event) => event,
        Err(rejection) => return Some(rejection.into_response()),
    };
    // The handler reads the body again.
    if let Some(body) = event.body() {
        request.body().put_back(body.clone());
    }
    let missing: Vec<&str> = options
        .required
        .iter()
        .map(String::as_str)
        .filter(|name| event.params().value(name).is_none() && request.parameter(name).is_none())
        .collect();
    (!missing.is_empty()).then(|| {
        Response::json(&serde_json::json!({
            "status": "KO",
            "code": "MissingMandatoryParams",
            "message": format!("these parameters are missing: {}", missing.join(", ")),
            "list": missing,
        }))
        .with_status(StatusCode::BAD_REQUEST)
    })
}

/// Whether the request shows one of the keys. Each is compared in the same time, however much of it
/// fits.
fn shows_key(request: &Request<'_>, keys: &[String]) -> bool {
    let in_query = form_urlencoded::parse(request.query().as_bytes())
        .find(|(name, _)| name == "apiKey")
        .map(|(_, value)| value);
    let shown = match &in_query {
        Some(value) => value.as_bytes(),
        None => request.headers().get_bytes("x-api-key").unwrap_or_default(),
    };
    crate::message::secret::is_one_of(shown, keys.iter().map(String::as_bytes))
}
