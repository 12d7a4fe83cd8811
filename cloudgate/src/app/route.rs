//! What is a route, and how do routes find into the program?

use std::any::type_name;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};

use super::options::{Options, RouteOptions};
use super::pattern;
use super::redirect::Target;
use super::reply::IntoResponse;
use super::state::Needs;
use crate::message::{Layer, Middleware, Request, Response};
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

/// A route with what it asks of requests, for [`App::add`](crate::App::add): what `#[route]` says in its
/// attribute, in code.
///
/// ```
/// use cloudgate::{App, Next, Request, Response, Route, Status};
///
/// fn no_store(request: &mut Request<'_>, next: Next<'_>) -> Response {
///     next.run(request).header("Cache-Control", "no-store")
/// }
///
/// fn rename(request: &mut Request<'_>) -> String {
///     format!("{} has a name now", request.parameter("id").unwrap_or("?"))
/// }
///
/// let app = App::new().api_keys(["secret"]).add(
///     Route::post("/users/{id}/name", rename)
///         .body_limit(64 << 10)
///         .params(["name"])
///         .private()
///         .wrap(no_store),
/// );
/// let post = |body| Request::post("/users/7/name?apiKey=secret").with_json(&body);
/// let mut request = post(serde_json::json!({"name": "Ada"}));
/// assert_eq!(app.call(&mut request).text(), "7 has a name now");
/// assert_eq!(app.call(&mut post(serde_json::json!({}))).status(), Status::BAD_REQUEST);
/// assert_eq!(app.call(&mut Request::post("/users/7/name")).status(), Status::FORBIDDEN);
/// ```
#[derive(Clone)]
#[must_use = "a route answers nothing until App::add takes it"]
pub struct Route {
    pub(crate) methods: Vec<Method>,
    pub(crate) pattern: String,
    /// The names of the pattern's parameters, in order.
    pub(crate) parameters: Vec<String>,
    pub(crate) handler: Handler,
    pub(crate) action: Action,
    pub(crate) needs: fn(&mut Needs),
    pub(crate) options: Options,
    /// The middlewares in front of the handler alone, from the options.
    pub(crate) layers: Vec<Layer>,
    /// Where it was written: `file:line`.
    pub(crate) place: String,
    /// What the log calls it when it holds its worker up.
    pub(crate) label: watchdog::Label,
}

/// What a route is there for.
#[derive(Clone)]
pub(crate) enum Action {
    /// Calling a function of this name.
    Handler(&'static str),
    Redirect(StatusCode, Arc<Target>),
    Rewrite(Arc<Target>),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Handler(name) => f.write_str(name),
            Action::Redirect(status, to) => write!(f, "{} to {to}", status.as_u16()),
            Action::Rewrite(to) => write!(f, "as {to}"),
        }
    }
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
    /// A route for any method: the endpoint takes nothing or a `&mut Request<'_>`.
    ///
    /// A malformed pattern is an error at start.
    #[track_caller]
    pub fn new<Kind>(method: Method, pattern: &str, endpoint: impl Endpoint<Kind>) -> Route {
        Route::explicit(method, pattern, endpoint, super::spell(Location::caller()))
    }

    pub(crate) fn explicit<Kind, E: Endpoint<Kind>>(
        method: Method,
        pattern: &str,
        endpoint: E,
        place: String,
    ) -> Route {
        Route {
            label: label(method.as_str(), pattern, &place),
            methods: vec![method],
            pattern: pattern.to_owned(),
            parameters: names(pattern),
            handler: Handler::Closure(Arc::new(move |request| endpoint.answer(request))),
            action: Action::Handler(type_name::<E>()),
            needs: |_| (),
            options: Options::default(),
            layers: Vec::new(),
            place,
        }
    }

    /// A GET route, which answers HEAD too; see [`Route::new`].
    #[track_caller]
    pub fn get<Kind>(pattern: &str, endpoint: impl Endpoint<Kind>) -> Route {
        Route::new(Method::GET, pattern, endpoint)
    }

    /// A POST route; see [`Route::new`].
    #[track_caller]
    pub fn post<Kind>(pattern: &str, endpoint: impl Endpoint<Kind>) -> Route {
        Route::new(Method::POST, pattern, endpoint)
    }

    /// A PUT route; see [`Route::new`].
    #[track_caller]
    pub fn put<Kind>(pattern: &str, endpoint: impl Endpoint<Kind>) -> Route {
        Route::new(Method::PUT, pattern, endpoint)
    }

    /// A PATCH route; see [`Route::new`].
    #[track_caller]
    pub fn patch<Kind>(pattern: &str, endpoint: impl Endpoint<Kind>) -> Route {
        Route::new(Method::PATCH, pattern, endpoint)
    }

    /// A DELETE route; see [`Route::new`].
    #[track_caller]
    pub fn delete<Kind>(pattern: &str, endpoint: impl Endpoint<Kind>) -> Route {
        Route::new(Method::DELETE, pattern, endpoint)
    }

    /// The most bytes of a body; more is 413. Without it the limit is the server's, 2 MiB by default,
    /// and this one may be higher.
    pub fn body_limit(mut self, bytes: u64) -> Route {
        self.options.body_limit = Some(bytes);
        self
    }

    /// How long the handler may take.
    pub fn timeout(mut self, limit: Duration) -> Route {
        self.options.timeout = Some(limit);
        self
    }

    /// Answers requests for these hosts only: a name, `*.example.com` for all names below it, or `*`.
    /// Of several routes for one path the one for the more exact host answers.
    ///
    /// What is no host is an error at start.
    pub fn host(mut self, host: &str) -> Route {
        self.options.host = Some(host.to_owned());
        self
    }

    /// Answers 400, with the list of those missing, where one of these parameters is neither among
    /// those of the request, as [`Event::params`](crate::Event::params) gives them, nor in the pattern.
    pub fn params<Name: Into<String>>(mut self, names: impl IntoIterator<Item = Name>) -> Route {
        self.options
            .required
            .extend(names.into_iter().map(Into::into));
        self
    }

    /// Answers 403 to a client that shows none of the keys of [`App::api_keys`](crate::App::api_keys).
    pub fn private(mut self) -> Route {
        self.options.private = true;
        self
    }

    /// Puts a middleware in front of this route alone, behind those of the application. The one that was
    /// added first sees a request first; a request that is refused by an option above comes to none.
    pub fn wrap(mut self, middleware: impl Middleware) -> Route {
        self.options.wrap.push(Layer::new(middleware));
        self
    }

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
            action: Action::Handler(entry.name),
            needs: entry.needs,
            options: Options::from(&entry.options),
            layers: Vec::new(),
            label: label(&entry.methods.join(" "), entry.pattern, &place),
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
        let Route {
            methods,
            pattern,
            action,
            place,
            ..
        } = self;
        write!(f, "{methods:?} {pattern} {action} ({place})")
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
