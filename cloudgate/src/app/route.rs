//! What is a route, and how do routes find into the program?

use std::fmt;
use std::sync::Arc;

use http::{Method, StatusCode};

use super::options::{self, RouteOptions};
use super::pattern;
use super::reply::IntoResponse;
use super::state::Needs;
use crate::message::{Layer, Request, Response};
use crate::net::home::{Busy, watchdog};

/// Every `#[route]` of the program, gathered by the linker before `main` begins.
#[linkme::distributed_slice]
pub static ROUTES: [RouteEntry];

/// What `#[route]` notes of a function.
#[derive(Debug)]
pub struct RouteEntry {
    /// The methods it answers.
    pub methods: &'static [&'static str],
    /// The pattern of its paths.
    pub pattern: &'static str,
    /// The function with its arguments extracted and its result turned into a response.
    pub handler: fn(&mut Request<'_>) -> Response,
    /// What its arguments need at start.
    pub needs: fn(&mut Needs),
    /// What it asks of requests.
    pub options: RouteOptions,
    /// Module path and name of the function.
    pub name: &'static str,
    /// The source file of the attribute.
    pub file: &'static str,
    /// The line of the attribute.
    pub line: u32,
}

/// A route of one application.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) methods: Vec<Method>,
    pub(crate) pattern: String,
    /// The names of the pattern's parameters, in order.
    pub(crate) parameters: Vec<String>,
    pub(crate) handler: Handler,
    pub(crate) needs: fn(&mut Needs),
    pub(crate) options: RouteOptions,
    /// The middlewares in front of the handler alone.
    pub(crate) layers: Vec<Layer>,
    /// Where it was written: `file:line`.
    pub(crate) place: String,
    /// What the log calls it when it holds its worker up.
    pub(crate) label: watchdog::Label,
}

/// What answers the requests of a route.
#[derive(Clone)]
pub(crate) enum Handler {
    Function(fn(&mut Request<'_>) -> Response),
    Closure(Arc<dyn Fn(&mut Request<'_>) -> Response + Send + Sync>),
}

impl Handler {
    pub(crate) fn call(&self, request: &mut Request<'_>) -> Response {
        match self {
            Handler::Function(function) => function(request),
            Handler::Closure(closure) => closure(request),
        }
    }
}

impl Route {
    pub(crate) fn gathered(entry: &RouteEntry) -> Route {
        let place = format!("{}:{}", entry.file, entry.line);
        Route {
            // The macro lets only known methods through.
            methods: entry
                .methods
                .iter()
                .filter_map(|name| name.parse().ok())
                .collect(),
            pattern: entry.pattern.to_owned(),
            parameters: names(entry.pattern),
            handler: Handler::Function(entry.handler),
            needs: entry.needs,
            options: entry.options,
            layers: options::layers(&entry.options),
            label: label(&entry.methods.join(" "), entry.pattern, &place),
            place,
        }
    }

    pub(crate) fn explicit<Kind>(
        method: Method,
        pattern: &str,
        endpoint: impl Endpoint<Kind>,
        place: String,
    ) -> Route {
        Route {
            label: label(method.as_str(), pattern, &place),
            methods: vec![method],
            pattern: pattern.to_owned(),
            parameters: names(pattern),
            handler: Handler::Closure(Arc::new(move |request| endpoint.answer(request))),
            needs: |_| (),
            options: RouteOptions::NONE,
            layers: Vec::new(),
            place,
        }
    }
}

fn names(text: &str) -> Vec<String> {
    pattern::parameters(text)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn label(methods: &str, pattern: &str, place: &str) -> watchdog::Label {
    watchdog::Label::new(format!("{methods} {pattern} ({place})"))
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} ({})", self.methods, self.pattern, self.place)
    }
}

/// What can be given to [`App::get`](crate::App::get) and its siblings: a function or closure that takes
/// nothing, or a `&mut Request<'_>`, and returns something that can be sent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot answer a route",
    label = "not a function of no argument, or of one `&mut Request<'_>`, that returns a reply",
    note = "write `|| \"text\"` or `|request: &mut Request<'_>| ...`; for extracted arguments use #[route(...)] on a function and App::gather()"
)]
pub trait Endpoint<Kind>: Send + Sync + 'static {
    /// Answers one request.
    fn answer(&self, request: &mut Request<'_>) -> Response;
}

/// The kind of an [`Endpoint`] that takes no argument.
#[derive(Debug)]
pub struct WithoutRequest;

/// The kind of an [`Endpoint`] that takes the request.
#[derive(Debug)]
pub struct WithRequest;

impl<F, R> Endpoint<WithoutRequest> for F
where
    F: Fn() -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    fn answer(&self, _request: &mut Request<'_>) -> Response {
        self().into_response()
    }
}

impl<F, R> Endpoint<WithRequest> for F
where
    F: Fn(&mut Request<'_>) -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    fn answer(&self, request: &mut Request<'_>) -> Response {
        self(request).into_response()
    }
}

/// What an argument of a blocking route is: it goes from the connection to another thread.
// A trait of its own for the sake of its message.
#[diagnostic::on_unimplemented(
    message = "a `blocking` handler cannot take an argument of type `{Self}`",
    label = "this type cannot go to another thread",
    note = "a `blocking` handler runs on another thread than its connection, so its arguments are `Send` and own their data",
    note = "hold an `Arc` instead of an `Rc` in it, or leave `blocking` out and put the part that takes long into cloudgate::blocking"
)]
pub trait Sendable: Send + 'static {}

#[diagnostic::do_not_recommend]
impl<T: Send + 'static> Sendable for T {}

/// An argument on its way to another thread.
// Not the bare value: one that is not Send would be reported where all of them are sent off too.
pub struct Parcel<T>(Box<dyn FnOnce() -> T + Send>);

impl<T> Parcel<T> {
    /// Sends the value off.
    pub(crate) fn new(value: T) -> Parcel<T>
    where
        T: Sendable,
    {
        Parcel(Box::new(move || value))
    }

    /// Takes the value in.
    pub fn open(self) -> T {
        (self.0)()
    }
}

impl<T> fmt::Debug for Parcel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parcel").finish_non_exhaustive()
    }
}

/// 503, and the request to come back in a second.
impl IntoResponse for Busy {
    fn into_response(self) -> Response {
        log::debug!("a request is turned away: {self}");
        Response::error(StatusCode::SERVICE_UNAVAILABLE).header("Retry-After", "1")
    }
}
