//! Which part of an application answers a request?

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

use http::StatusCode;

use super::App;
use super::client::Proxies;
use super::download;
use super::error_page;
use super::options;
use super::redirect::{self, Detours, TrailingSlash};
use super::route::{Action, Route};
use super::router::{Found, Router};
use super::state::States;
use crate::error::Error;
use crate::message::host::HostPattern;
use crate::message::middleware::is_below;
use crate::message::response::Note;
use crate::message::{
    After, Body, Layer, Next, Protocol, Request, Response, Service, StartError, Upgrade, Upgraded,
};
use crate::net::home::watchdog;

/// The application as a request knows it.
#[derive(Clone, Default)]
pub(crate) struct Core {
    pub(super) layers: Vec<Layer>,
    /// Services for hosts of their own, the most exact host first.
    pub(super) sites: Vec<(HostPattern, Mounted)>,
    /// Routes for hosts of their own, the most exact host first.
    host_routers: Vec<(HostPattern, Router)>,
    router: Router,
    pub(crate) routes: Vec<Route>,
    /// Services below a prefix, the longest one first.
    pub(super) mounts: Vec<(String, Mounted)>,
    pub(super) fallback: Option<Arc<dyn Service>>,
    pub(super) fallback_label: watchdog::Label,
    pub(crate) states: States,
    pub(super) detours: Detours,
    pub(super) proxies: Proxies,
    pub(super) api_keys: Vec<String>,
    pub(super) mistakes: Vec<Arc<Error>>,
    /// What the start-up line says is served: the folder, as it was given.
    pub(crate) folder: Option<String>,
}

/// A service inside an application.
#[derive(Clone)]
pub(super) enum Mounted {
    /// Another application, which finds the state of this one too.
    App(Arc<App>),
    /// With the name of its type.
    Service(Arc<dyn Service>, &'static str),
}

impl Mounted {
    pub(super) fn new<S: Service>(service: S) -> Mounted {
        let any: Box<dyn Any> = Box::new(service);
        match any.downcast::<App>() {
            Ok(app) => Mounted::App(Arc::from(app)),
            Err(any) => {
                let service = any.downcast::<S>().expect("it is what it was made of");
                Mounted::Service(Arc::new(*service), type_name::<S>())
            }
        }
    }

    fn call(&self, request: &mut Request<'_>) -> Response {
        match self {
            Mounted::App(app) => app.call(request),
            Mounted::Service(service, _) => service.call(request),
        }
    }

    fn start(&self, outer: &[&States]) -> Result<(), StartError> {
        match self {
            Mounted::App(app) => app.core().start(outer),
            Mounted::Service(service, _) => service.start(),
        }
    }
}

impl Core {
    /// The application that answers this request.
    pub(crate) fn of<'r>(request: &'r Request<'_>) -> Option<&'r Core> {
        request.scope.application.as_ref()?.downcast_ref()
    }

    /// The application that answers this request, and those around it, the innermost first.
    pub(super) fn all_of<'r>(request: &'r Request<'_>) -> impl Iterator<Item = &'r Core> {
        let around = request.scope.outer.iter().rev().map(|(noted, _)| noted);
        request
            .scope
            .application
            .iter()
            .chain(around)
            .filter_map(|noted| noted.downcast_ref())
    }

    /// Answers a request that is noted as this application's.
    pub(super) fn answer(&self, request: &mut Request<'_>) -> Response {
        if !self.detours.rewrites.is_empty()
            && let Some(response) = self.answer_rewritten(request)
        {
            return response;
        }
        self.answer_here(request)
    }

    /// As [`Core::answer`], for a request that is not to be rewritten.
    pub(super) fn answer_here(&self, request: &mut Request<'_>) -> Response {
        if self.layers.is_empty() {
            return self.dispatch(request);
        }
        let end = |request: &mut Request<'_>| {
            let mut response = self.dispatch(request);
            // Middlewares see what the client is going to get.
            finish(request, &mut response);
            response
        };
        Next::new(&self.layers, &end).run(request)
    }

    /// Answers a request that has passed the middlewares.
    fn dispatch(&self, request: &mut Request<'_>) -> Response {
        if !self.sites.is_empty() || !self.host_routers.is_empty() || !self.detours.hosts.is_empty()
        {
            return self.dispatch_by_host(request);
        }
        match self.router.find(request) {
            Found::Route(index) => self.call_route(index, request),
            Found::Answer(response) => response,
            Found::Nothing => self.dispatch_elsewhere(request),
        }
    }

    fn dispatch_by_host(&self, request: &mut Request<'_>) -> Response {
        let host = request.host_name().unwrap_or_default();
        if let Some(moved) = self.detours.moved(request, &host) {
            return moved;
        }
        if let Some((_, site)) = self.sites.iter().find(|(pattern, _)| pattern.fits(&host)) {
            return site.call(request);
        }
        // A pattern may be there for this host, and the method only for another.
        let mut refusal = None;
        let of_host = self
            .host_routers
            .iter()
            .filter(|(pattern, _)| pattern.fits(&host));
        for router in of_host.map(|(_, router)| router).chain([&self.router]) {
            match router.find(request) {
                Found::Route(index) => return self.call_route(index, request),
                Found::Answer(response) => refusal = refusal.or(Some(response)),
                Found::Nothing => {}
            }
        }
        refusal.unwrap_or_else(|| self.dispatch_elsewhere(request))
    }

    /// Answers a request that no route's pattern fits.
    #[inline(never)]
    fn dispatch_elsewhere(&self, request: &mut Request<'_>) -> Response {
        let path = request.local_path();
        if let Some((prefix, mounted)) = self
            .mounts
            .iter()
            .find(|(prefix, _)| is_below(path, prefix))
        {
            let before = request.mounted;
            request.mounted += prefix.len();
            let leaving = Leaving::new(request, |request| request.mounted = before);
            return mounted.call(leaving.request);
        }
        if let Some(response) = self.answer_other_spelling(request) {
            return response;
        }
        match &self.fallback {
            Some(fallback) => {
                let _watched = watchdog::watch(self.fallback_label);
                fallback.call(request)
            }
            None => Response::error(StatusCode::NOT_FOUND),
        }
    }

    /// The answer to a path that has a route only with a slash more or less at its end.
    fn answer_other_spelling(&self, request: &mut Request<'_>) -> Option<Response> {
        let slash = self.detours.slash;
        if slash == TrailingSlash::Strict {
            return None;
        }
        let other = redirect::other_spelling(request.local_path())?;
        let host = request.host_name().unwrap_or_default();
        let of_host = self
            .host_routers
            .iter()
            .filter(|(pattern, _)| pattern.fits(&host));
        let routers = of_host.map(|(_, router)| router).chain([&self.router]);
        let mut refusal = None;
        for router in routers {
            if slash == TrailingSlash::Redirect {
                if router.locate(&other).is_some() {
                    return Some(redirect::to_spelling(request, &other));
                }
                continue;
            }
            match router.find_as(Some(&other), request) {
                Found::Route(index) => return Some(self.call_route(index, request)),
                Found::Answer(response) => refusal = refusal.or(Some(response)),
                Found::Nothing => {}
            }
        }
        refusal
    }

    pub(super) fn router(&self) -> &Router {
        &self.router
    }

    fn call_route(&self, index: usize, request: &mut Request<'_>) -> Response {
        request.scope.route = index;
        let route = &self.routes[index];
        if route.options.ask_something()
            && let Some(refusal) = options::refuse(&route.options, &self.api_keys, request)
        {
            return refusal;
        }
        let _watched = watchdog::watch(route.label);
        let mut response = if route.layers.is_empty() {
            route.handler.call(request)
        } else {
            Next::new(&route.layers, &|request| route.handler.call(request)).run(request)
        };
        watch_rest(&mut response, route.label);
        response
    }

    /// Adds a route.
    ///
    /// # Errors
    /// When its pattern or host is malformed, or another route answers the same requests.
    pub(super) fn add(&mut self, mut route: Route) -> Result<(), Error> {
        let router = match &route.options.host {
            None => &mut self.router,
            Some(host) => {
                let pattern = HostPattern::parse(host).map_err(|error| Error::Host {
                    host: host.clone(),
                    place: route.place.clone(),
                    reason: error.to_string(),
                })?;
                place(&mut self.host_routers, pattern)
            }
        };
        router.insert(&route, self.routes.len(), &self.routes)?;
        route.layers = options::layers(&route.options);
        self.routes.push(route);
        Ok(())
    }

    pub(super) fn mount(&mut self, prefix: String, service: Mounted) {
        let at = self
            .mounts
            .partition_point(|(known, _)| known.len() >= prefix.len());
        self.mounts.insert(at, (prefix, service));
    }

    pub(super) fn add_site(&mut self, pattern: HostPattern, service: Mounted) {
        let at = self.sites.partition_point(|(known, _)| *known <= pattern);
        self.sites.insert(at, (pattern, service));
    }

    pub(super) fn route_count(&self) -> usize {
        let handled = |route: &&Route| matches!(route.action, Action::Handler(_));
        let own: usize = self
            .routes
            .iter()
            .filter(handled)
            .map(|route| route.methods.len())
            .sum();
        let inner = self.inner().filter_map(|mounted| match mounted {
            Mounted::App(app) => Some(app.core().route_count()),
            Mounted::Service(..) => None,
        });
        own + inner.sum::<usize>()
    }

    fn inner(&self) -> impl Iterator<Item = &Mounted> {
        let sites = self.sites.iter().map(|(_, mounted)| mounted);
        sites.chain(self.mounts.iter().map(|(_, mounted)| mounted))
    }

    /// Checks that all parts can work; `outer` is the state of the applications around this one.
    pub(super) fn start(&self, outer: &[&States]) -> Result<(), StartError> {
        if let Some(mistake) = self.mistakes.first() {
            return Err(Box::new(Mistake(Arc::clone(mistake))));
        }
        self.check_redirects()?;
        let states: Vec<&States> = std::iter::once(&self.states)
            .chain(outer.iter().copied())
            .collect();
        for route in &self.routes {
            if let Some((type_name, line)) = States::first_missing(&states, route.needs) {
                return Err(Box::new(Error::MissingState {
                    type_name,
                    line,
                    place: route.place.clone(),
                }));
            }
            if route.options.private && self.api_keys.is_empty() {
                return Err(Box::new(Error::MissingApiKey {
                    place: route.place.clone(),
                }));
            }
            for layer in &route.layers {
                layer.middleware.start()?;
            }
        }
        for layer in &self.layers {
            layer.middleware.start()?;
        }
        for mounted in self.inner() {
            mounted.start(&states)?;
        }
        match &self.fallback {
            Some(fallback) => fallback.start(),
            None if self.routes.is_empty()
                && self.detours.hosts.is_empty()
                && self.inner().next().is_none() =>
            {
                Err(Box::new(Error::NothingToServe))
            }
            None => Ok(()),
        }
    }
}

/// A request on its way through a part of the application. Whoever was around that part finds it as
/// it was, also where the stack was unwound.
pub(super) struct Leaving<'r, 'conn, F: FnMut(&mut Request<'conn>)> {
    pub(super) request: &'r mut Request<'conn>,
    restore: F,
}

impl<'r, 'conn, F: FnMut(&mut Request<'conn>)> Leaving<'r, 'conn, F> {
    pub(super) fn new(request: &'r mut Request<'conn>, restore: F) -> Leaving<'r, 'conn, F> {
        Leaving { request, restore }
    }
}

impl<'conn, F: FnMut(&mut Request<'conn>)> Drop for Leaving<'_, 'conn, F> {
    fn drop(&mut self) {
        (self.restore)(self.request);
    }
}

/// The router for this host, made in its place if need be.
fn place(routers: &mut Vec<(HostPattern, Router)>, pattern: HostPattern) -> &mut Router {
    let at = match routers.binary_search_by(|(known, _)| known.cmp(&pattern)) {
        Ok(at) => at,
        Err(at) => {
            routers.insert(at, (pattern, Router::default()));
            at
        }
    };
    &mut routers[at].1
}

/// Gives an answer the form, or the part of it, that the request asks for; most stay as they are.
#[inline]
pub(super) fn finish(request: &Request<'_>, response: &mut Response) {
    match response.note {
        Note::None => {}
        Note::Whole => {
            download::finish(request, response);
            // What comes of it may be an error.
            error_page::render(request, response);
        }
        Note::Status | Note::Because(_) | Note::Public(_) => error_page::render(request, response),
    }
}

/// Watches what runs after the handler, on the same worker, too: the closure that writes the body, or the protocol
/// that the connection speaks from then on.
fn watch_rest(response: &mut Response, label: watchdog::Label) {
    if !matches!(response.body(), Body::Writer(_) | Body::Upgrade(_)) {
        return;
    }
    response.body = match response.take_body() {
        Body::Writer(write) => Body::Writer(Box::new(move |out| {
            let _watched = watchdog::watch(label);
            write(out)
        })),
        Body::Upgrade(Upgrade(protocol)) => {
            Body::Upgrade(Upgrade(Box::new(Watched { protocol, label })))
        }
        body => body,
    };
}

/// What a connection speaks behind a handler's response, under the handler's name.
struct Watched {
    protocol: Box<dyn Protocol>,
    label: watchdog::Label,
}

impl Protocol for Watched {
    fn run(&mut self, connection: &mut Upgraded<'_>) -> After {
        let _watched = watchdog::watch(self.label);
        self.protocol.run(connection)
    }

    fn keeps_coroutine(&self) -> bool {
        self.protocol.keeps_coroutine()
    }

    fn has_work(&self) -> bool {
        self.protocol.has_work()
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
