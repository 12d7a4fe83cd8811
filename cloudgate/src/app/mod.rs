//! How do routes, shared state and a fallback become one service?
//!
//! ```text
//!  #[route] ─▶ route::ROUTES ─▶ Route ─▶ router ─▶ handler ─▶ extract … reply
//!                                  │
//!                 no pattern fits  └─▶ fallback (files), or 404
//! ```

pub mod cache;
pub mod event;
pub mod extract;
pub mod html;
pub(crate) mod multipart;
pub mod params;
pub mod path;
pub mod pattern;
pub mod rejection;
pub mod reply;
pub mod route;
mod router;
pub mod state;

use std::any::Any;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use http::{Method, StatusCode};

use crate::error::Error;
use crate::message::{Body, Request, Response, Service, StartError};
use crate::net::home::watchdog;
use route::{Endpoint, Route};
use router::{Found, Router};
use state::States;

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

/// The application as a request knows it.
#[derive(Clone, Default)]
pub(crate) struct Core {
    router: Router,
    pub(crate) routes: Vec<Route>,
    pub(crate) states: States,
    fallback: Option<Arc<dyn Service>>,
    fallback_label: watchdog::Label,
    mistakes: Vec<Arc<Error>>,
    /// What the start-up line says is served: the folder, as it was given.
    pub(crate) folder: Option<String>,
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
            app.add(Route::gathered(entry));
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
    pub fn route<Kind>(
        mut self,
        method: Method,
        pattern: &str,
        endpoint: impl Endpoint<Kind>,
    ) -> App {
        let place = Location::caller();
        self.add(Route::explicit(
            method,
            pattern,
            endpoint,
            format!("{}:{}", place.file(), place.line()),
        ));
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
        self.enter(request);
        match self.core.router.find(request) {
            Found::Route(index) => {
                request.scope.route = index;
                let route = &self.core.routes[index];
                let _watched = watchdog::watch(route.label);
                let mut response = route.handler.call(request);
                watch_writer(&mut response, route.label);
                response
            }
            Found::Answer(response) => response,
            Found::Nothing => match &self.core.fallback {
                Some(fallback) => {
                    let _watched = watchdog::watch(self.core.fallback_label);
                    fallback.call(request)
                }
                None => Response::error(StatusCode::NOT_FOUND),
            },
        }
    }

    /// How many routes there are, each method and pattern counted once.
    pub fn route_count(&self) -> usize {
        self.core
            .routes
            .iter()
            .map(|route| route.methods.len())
            .sum()
    }

    pub(crate) fn core(&self) -> &Core {
        &self.core
    }

    pub(crate) fn core_mut(&mut self) -> &mut Core {
        // A request that was answered before the app was complete may still hold the old one.
        Arc::make_mut(&mut self.core)
    }

    fn add(&mut self, route: Route) {
        let core = self.core_mut();
        match core.router.insert(&route, core.routes.len(), &core.routes) {
            Ok(()) => core.routes.push(route),
            Err(error) => core.mistakes.push(Arc::new(error)),
        }
    }

    /// Notes on the request which application answers it, unless its connection has noted it already.
    fn enter(&self, request: &mut Request<'_>) {
        let scope = &mut request.scope;
        scope.captures.clear();
        let known = scope
            .application
            .as_ref()
            .is_some_and(|noted| std::ptr::addr_eq(Arc::as_ptr(noted), Arc::as_ptr(&self.core)));
        if !known {
            scope.application = Some(Arc::clone(&self.core) as Arc<dyn Any + Send + Sync>);
        }
    }
}

/// Watches the closure that writes the body too: it runs after the handler, on the same worker.
fn watch_writer(response: &mut Response, label: watchdog::Label) {
    if !matches!(response.body(), Body::Writer(_)) {
        return;
    }
    if let Body::Writer(write) = response.take_body() {
        let body = Body::Writer(Box::new(move |out| {
            let _watched = watchdog::watch(label);
            write(out)
        }));
        *response = std::mem::take(response).with_body(body);
    }
}

impl Core {
    /// The application that answers this request.
    pub(crate) fn of<'r>(request: &'r Request<'_>) -> Option<&'r Core> {
        request.scope.application.as_ref()?.downcast_ref()
    }
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
        let core = &self.core;
        if let Some(mistake) = core.mistakes.first() {
            return Err(Box::new(Mistake(Arc::clone(mistake))));
        }
        for route in &core.routes {
            if let Some(type_name) = core.states.first_missing(route.needs) {
                return Err(Box::new(Error::MissingState {
                    type_name,
                    place: route.place.clone(),
                }));
            }
        }
        match &core.fallback {
            Some(fallback) => fallback.start(),
            None if core.routes.is_empty() => Err(Box::new(Error::NothingToServe)),
            None => Ok(()),
        }
    }
}

/// A mistake that the application keeps, lent out as a start error.
#[derive(Debug)]
struct Mistake(Arc<Error>);

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Mistake {}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("routes", &self.core.routes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
