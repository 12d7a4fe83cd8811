//! How do routes, shared state and a fallback become one service?
//!
//! ```text
//!  request ─▶ rewrites
//!          ─▶ middlewares ─▶ a site for its host?  ─▶ that application
//!                            a route's pattern?    ─▶ its middlewares ─▶ handler ─▶ extract … reply
//!                            below a mount?        ─▶ that service
//!                            else                  ─▶ fallback (files), or 404
//! ```

pub mod cache;
pub mod client;
pub mod client_certificate;
pub mod cookies;
mod core;
pub mod download;
mod error_page;
pub mod event;
pub mod extract;
pub mod form;
pub mod hub;
pub mod location;
pub(crate) mod multipart;
pub mod options;
pub mod params;
pub mod path;
pub mod pattern;
pub mod problem;
pub mod redirect;
pub mod rejection;
pub mod reply;
pub mod route;
mod router;
pub mod shared;
pub mod sse;
pub mod state;
mod table;
pub mod template;
pub mod time_limit;
pub mod websocket;

use std::any::Any;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use http::{Method, StatusCode};

use crate::error::Error;
use crate::message::host::HostPattern;
use crate::message::{Layer, Middleware, Network, Request, Response, Service, StartError};
use crate::net::home::watchdog;
use client::{ForwardedBy, Proxies};
pub(crate) use core::Core;
use core::{Leaving, Mounted};
use route::{Endpoint, Route};

/// An application: routes, shared state, and what answers when no route does.
///
/// ```
/// use cloudgate::{App, Request, Response, Status};
///
/// let app = App::new()
///     .get("/health", || "ok")
///     .get("/hello/{name}", |request: &mut Request<'_>| {
///         format!("Hello {}!", request.parameter("name").unwrap_or("World"))
///     });
/// assert_eq!(app.call(&mut Request::get("/health")).text(), "ok");
/// assert_eq!(app.call(&mut Request::get("/hello/Ada")).text(), "Hello Ada!");
/// assert_eq!(app.call(&mut Request::get("/nothing")).status(), Status::NOT_FOUND);
/// ```
#[derive(Default)]
pub struct App {
    core: Arc<Core>,
}

impl App {
    /// An application without routes.
    pub fn new() -> App {
        App::default()
    }

    /// An application with every `#[route]` that is linked into the program.
    ///
    /// Routes of a library crate count only if the program names the crate, for instance by
    /// `use my_library as _;`: the linker leaves out what nobody names.
    pub fn gather() -> App {
        let mut app = App::new();
        let mut entries: Vec<_> = route::ROUTES.iter().collect();
        // The linker decides the order of the slice; errors must not depend on it.
        entries.sort_by_key(|entry| (entry.file, entry.line, entry.pattern));
        for entry in entries {
            app.insert(Route::gathered(entry));
        }
        app
    }

    /// Adds a GET route: the endpoint takes nothing or a `&mut Request<'_>`.
    #[track_caller]
    pub fn get<Kind>(self, pattern: &str, endpoint: impl Endpoint<Kind>) -> App {
        self.route(Method::GET, pattern, endpoint)
    }

    /// Adds a POST route; see [`App::get`].
    #[track_caller]
    pub fn post<Kind>(self, pattern: &str, endpoint: impl Endpoint<Kind>) -> App {
        self.route(Method::POST, pattern, endpoint)
    }

    /// Adds a route for any method; see [`App::get`].
    ///
    /// A malformed pattern, or a second route for the same requests, is an error at start.
    #[track_caller]
    pub fn route<Kind>(self, method: Method, pattern: &str, endpoint: impl Endpoint<Kind>) -> App {
        self.add(Route::new(method, pattern, endpoint))
    }

    /// Adds a route that asks something of its requests, such as a limit of its own for bodies; see
    /// [`Route`].
    #[expect(clippy::should_implement_trait, reason = "a route is not added by `+`")]
    pub fn add(mut self, route: Route) -> App {
        self.insert(route);
        self
    }

    /// Registers a value that handlers get by [`State`](crate::State): one of each type, shared by
    /// all requests on all workers.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> App {
        self.core_mut().states.insert(value);
        self
    }

    /// Sets what answers requests that no route's pattern fits; without it they get 404.
    pub fn fallback(mut self, service: impl Service) -> App {
        let core = self.core_mut();
        core.fallback = Some(Arc::new(service));
        core.fallback_label = watchdog::Label::new("the fallback service".to_owned());
        self
    }

    /// Puts a middleware in front of everything this application answers: routes, files, mounted
    /// services, and what is not found. The one that was added first sees a request first.
    ///
    /// See [`Middleware`].
    pub fn wrap(mut self, middleware: impl Middleware) -> App {
        self.core_mut().layers.push(Layer::new(middleware));
        self
    }

    /// As [`App::wrap`], for the paths below a prefix, and the prefix itself: `/admin` stands for
    /// `/admin`, `/admin/` and `/admin/users`, and not for `/administrators`.
    ///
    /// Its place among all middlewares is that of this call.
    #[track_caller]
    pub fn wrap_at(mut self, prefix: &str, middleware: impl Middleware) -> App {
        if let Some(prefix) = self.prefix(prefix, Location::caller()) {
            self.core_mut().layers.push(Layer {
                prefix: Some(prefix),
                ..Layer::new(middleware)
            });
        }
        self
    }

    /// Gives the paths below a prefix, and the prefix itself, to a service: another application, a
    /// folder of files, a gateway. Routes of this application win; of two mounts the longer prefix.
    ///
    /// The service sees the whole [`path`](Request::path), and what is below the prefix as
    /// [`local_path`](Request::local_path). An [`App`] takes its routes relative to the prefix, and
    /// its handlers find the [`State`](crate::State) of both applications, its own first.
    ///
    /// ```
    /// use cloudgate::{App, Request};
    /// let orders = App::new().get("/{id}", |request: &mut Request<'_>| {
    ///     format!("order {}", request.parameter("id").unwrap_or("?"))
    /// });
    /// let app = App::new().mount("/orders", orders);
    /// assert_eq!(app.call(&mut Request::get("/orders/7")).text(), "order 7");
    /// ```
    #[track_caller]
    pub fn mount(mut self, prefix: &str, service: impl Service) -> App {
        if let Some(prefix) = self.prefix(prefix, Location::caller()) {
            self.core_mut().mount(prefix, Mounted::new(service));
        }
        self
    }

    /// Gives all requests for some hosts to a service, before any route of this application: `host`
    /// is a name, `*.example.com` for all names below it, or `*`. The more exact one wins; a request
    /// for any other host is answered here.
    ///
    /// As with [`App::mount`], an [`App`] finds the state of this one.
    ///
    /// ```
    /// use cloudgate::{App, Request};
    /// let app = App::new()
    ///     .host("api.example.com", App::new().get("/", || "api"))
    ///     .get("/", || "web");
    /// let at = |host| app.call(&mut Request::get("/").with_header("Host", host)).text();
    /// assert_eq!((&*at("API.example.com:8080"), &*at("example.com")), ("api", "web"));
    /// ```
    #[track_caller]
    pub fn host(mut self, host: &str, service: impl Service) -> App {
        let place = Location::caller();
        match HostPattern::parse(host) {
            Ok(pattern) => self.core_mut().add_site(pattern, Mounted::new(service)),
            Err(error) => self.note(Error::Host {
                host: host.to_owned(),
                place: spell(place),
                reason: error.to_string(),
            }),
        }
        self
    }

    /// Believes proxies in these networks, such as `10.0.0.0/8`, when they say who their client is:
    /// [`Request::client`] and [`ClientAddr`](crate::ClientAddr) then give the last address that is
    /// no such proxy, and [`Request::is_secure`] tells whether that one spoke TLS (`X-Forwarded-Proto`, or `proto` of
    /// `Forwarded`). Without this nobody is believed. A proxy has to replace what clients claim in `X-Forwarded-Proto`.
    ///
    /// A text that is no network is an error at start.
    #[track_caller]
    pub fn trust_proxies<'n>(
        mut self,
        field: ForwardedBy,
        networks: impl IntoIterator<Item = &'n str>,
    ) -> App {
        let mut trusted: Vec<Network> = Vec::new();
        for text in networks {
            match text.parse() {
                Ok(network) => trusted.push(network),
                Err(_) => self.note(Error::Setting {
                    place: format!("trust_proxies at {}", spell(Location::caller())),
                    value: text.to_owned(),
                    wanted: "an address, or the first address of a network with its length, such as 10.0.0.0/8",
                }),
            }
        }
        self.core_mut().proxies = Proxies::new(trusted, field);
        self
    }

    /// Sets the keys of which a client has to show one for a route that is `private`: as the query
    /// parameter `apiKey` or the field `x-api-key`. An empty key never fits.
    pub fn api_keys<'k>(mut self, keys: impl IntoIterator<Item = &'k str>) -> App {
        let keys = keys.into_iter().filter(|key| !key.is_empty());
        let keys = keys.map(str::to_owned).collect();
        self.core_mut().api_keys = keys;
        self
    }

    /// Answers a request in this process, without a socket: for tests, and for services inside
    /// services.
    pub fn call(&self, request: &mut Request<'_>) -> Response {
        if let Some(mistake) = self.core.mistakes.first() {
            log::error!("the application has a mistake and would not start: {mistake}");
            return Response::text_plain(format!(
                "the application has a mistake and would not start: {mistake}\n"
            ))
            .with_status(StatusCode::INTERNAL_SERVER_ERROR);
        }
        if request.scope.answering {
            return self.call_within(request);
        }
        self.enter(request);
        request.scope.answering = true;
        let leaving = Leaving::new(request, |request| request.scope.answering = false);
        let mut response = self.core.answer(leaving.request);
        // Middlewares make errors of their own.
        core::finish(leaving.request, &mut response);
        response
    }

    /// How many routes there are, each method and pattern counted once, those of mounted
    /// applications too.
    pub fn route_count(&self) -> usize {
        self.core.route_count()
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn core_mut(&mut self) -> &mut Core {
        // A request that was answered before the app was complete may still hold the old one.
        Arc::make_mut(&mut self.core)
    }

    fn insert(&mut self, route: Route) {
        if let Err(error) = self.core_mut().add(route) {
            self.note(error);
        }
    }

    /// Keeps a mistake for the start, which fails with it.
    fn note(&mut self, error: Error) {
        self.core_mut().mistakes.push(Arc::new(error));
    }

    /// A prefix without a slash at its end, spelled as paths of requests are; a mistake is noted.
    fn prefix(&mut self, text: &str, place: &Location<'_>) -> Option<String> {
        let text = text.strip_suffix('/').unwrap_or(text);
        if text.is_empty() {
            return Some(String::new());
        }
        let reason = match pattern::check(text) {
            Ok(()) if pattern::parameters(text).is_empty() => return Some(router::spell(text)),
            Ok(()) => "a prefix has no parameters".to_owned(),
            Err(error) => error.to_string(),
        };
        self.note(Error::Pattern {
            pattern: text.to_owned(),
            place: spell(place),
            reason,
        });
        None
    }

    /// Notes on the request which application answers it, unless its connection has noted it already.
    fn enter(&self, request: &mut Request<'_>) {
        let scope = &mut request.scope;
        scope.captures.clear();
        scope.base = request.mounted;
        let known = scope
            .application
            .as_ref()
            .is_some_and(|noted| std::ptr::addr_eq(Arc::as_ptr(noted), Arc::as_ptr(&self.core)));
        if !known {
            scope.application = Some(Arc::clone(&self.core) as Arc<dyn Any + Send + Sync>);
        }
        if let Some(said) = self.core.proxies.say(request) {
            request.client = Some(said.client);
            request.forwarded_secure = said.secure;
        }
    }

    /// As [`App::call`], for a request that another application is answering: it is that one's again
    /// afterwards.
    fn call_within(&self, request: &mut Request<'_>) -> Response {
        let outer = request.scope.application.take();
        let (route, base) = (request.scope.route, request.scope.base);
        let mut captures = std::mem::take(&mut request.scope.captures);
        request.scope.outer.extend(outer.map(|outer| (outer, base)));
        let leaving = Leaving::new(request, |request| {
            let scope = &mut request.scope;
            scope.application = scope.outer.pop().map(|(outer, _)| outer);
            scope.base = base;
            (scope.route, scope.captures) = (route, std::mem::take(&mut captures));
        });
        self.enter(leaving.request);
        self.core.answer(leaving.request)
    }
}

/// A place in the source as errors show it.
fn spell(place: &Location<'_>) -> String {
    format!("{}:{}", place.file(), place.line())
}

impl Request<'_> {
    /// The part of the path that a parameter of the route's pattern stands for, decoded.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let route = Core::of(self)?.routes.get(self.scope.route)?;
        let index = route
            .parameters
            .iter()
            .position(|parameter| parameter == name)?;
        self.scope.captures.get(index).map(String::as_str)
    }
}

impl Service for App {
    fn call(&self, request: &mut Request<'_>) -> Response {
        App::call(self, request)
    }

    fn start(&self) -> Result<(), StartError> {
        self.core.start(&[])
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("routes", &self.core.routes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
