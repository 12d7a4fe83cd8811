//! Which requests are sent elsewhere, or go on inside under another path?
//!
//! A redirect is a route: it wins and loses against other routes by the same rules, and stands
//! behind the same middlewares. A rewrite comes before everything else of its application, so that
//! middlewares are chosen by the path that is answered, and by the one that was sent as well.

mod target;

use std::panic::Location;
use std::sync::Arc;

use http::{Method, StatusCode};

use super::App;
use super::core::{Core, Leaving};
use super::pattern;
use super::route::{Action, Route};
use super::router::Router;
use crate::error::Error;
use crate::message::host::HostPattern;
use crate::message::query::normalise_target;
use crate::message::{Layer, Next, Request, Response};
pub(crate) use target::Target;

/// The methods of a redirect; HEAD goes with GET, and OPTIONS is answered as for any route.
const METHODS: [Method; 5] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
];

/// What an application makes of a path that differs from a route's only by a slash at its end; see
/// [`App::trailing_slash`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrailingSlash {
    /// Another path: `/a/` is not `/a`.
    #[default]
    Strict,
    /// 308 to the spelling that has a route.
    Redirect,
    /// The same path: the route answers both spellings.
    Ignore,
}

/// What an application keeps of rewrites and its like.
#[derive(Clone, Default)]
pub(super) struct Detours {
    pub(super) rewrites: Vec<Route>,
    router: Router,
    /// The host a request is for, and where it is sent: the most exact host first.
    pub(super) hosts: Vec<(HostPattern, HostRedirect)>,
    pub(super) slash: TrailingSlash,
}

/// Where requests for a host are sent.
#[derive(Clone)]
pub(super) struct HostRedirect {
    /// What stands before the path: `//example.com`.
    pub(super) to: String,
    pub(super) place: String,
}

impl App {
    /// Sends requests for a path to another one: with status 301, 302, 307 or 308, of which the last
    /// two tell the client to keep method and body.
    ///
    /// `to` is a path of this application or a URL (`https://example.com/...`), and may hold the
    /// parameters of `from`, which are percent-encoded again. The query of the request is kept, unless
    /// `to` has one. A redirect is a route for GET, HEAD, POST, PUT, PATCH and DELETE: of two that fit
    /// the more exact pattern wins.
    ///
    /// ```
    /// use cloudgate::{App, Request, Status};
    /// let app = App::new()
    ///     .get("/new/{id}", || "new")
    ///     .redirect("/old/{id}", "/new/{id}", Status::PERMANENT_REDIRECT)
    ///     .redirect("/docs/{*rest}", "https://docs.example.com/{rest}", Status::FOUND);
    /// let location = |target| {
    ///     let response = app.call(&mut Request::get(target));
    ///     response.headers().get("location").map(str::to_owned)
    /// };
    /// assert_eq!(location("/old/7?a=b").as_deref(), Some("/new/7?a=b"));
    /// assert_eq!(location("/docs/a/b").as_deref(), Some("https://docs.example.com/a/b"));
    /// ```
    ///
    /// In a [mounted](App::mount) application both paths are relative to its prefix. The `Location` never
    /// names another host than the one in `to`, whatever the client sent.
    ///
    /// These are errors at start: a malformed `from` or `to`, a parameter of `to` that `from` does not
    /// have, another status, and redirects of this application that lead to each other without end.
    #[track_caller]
    pub fn redirect(mut self, from: &str, to: &str, status: StatusCode) -> App {
        let place = super::spell(Location::caller());
        let target = match status.as_u16() {
            301 | 302 | 307 | 308 => Target::parse(to, &pattern::parameters(from)),
            other => Err(format!(
                "its status is 301, 302, 307 or 308, and not {other}"
            )),
        };
        match target {
            Ok(target) if pattern::check(from).is_ok() => {
                self.insert(redirect(from, target, status, place));
            }
            // The router says what is wrong with it.
            Ok(_) => self.insert(Route::explicit(Method::GET, from, || (), place)),
            Err(reason) => self.note(Error::Redirect {
                what: "redirect",
                from: from.to_owned(),
                to: to.to_owned(),
                place,
                reason,
            }),
        }
        self
    }

    /// Answers requests for a path as if they were for another one of this application: a route, a file, a
    /// mounted service. The client does not notice. Parameters and query are as for [`App::redirect`].
    ///
    /// It comes first, before middlewares and routes, and once: what it leads to is not rewritten again
    /// by this application. [`Request::path`] is the new path from then on, and
    /// [`Request::original_path`] the one that was sent. Of two rewrites the more exact one counts.
    ///
    /// ```
    /// use cloudgate::{App, Request};
    /// let app = App::new()
    ///     .get("/products/{id}", |request: &mut Request<'_>| request.path().to_owned())
    ///     .rewrite("/p/{id}", "/products/{id}");
    /// assert_eq!(app.call(&mut Request::get("/p/7")).text(), "/products/7");
    /// ```
    ///
    /// No guard is passed by: a middleware for a prefix ([`App::wrap_at`]) sees a request if the path
    /// that was sent is below its prefix, or the one it became; and a rewrite of a mounted application
    /// that leads below a prefix of one around it runs that one's middlewares for it then.
    ///
    /// These are errors at start: a malformed `from` or `to`, a `to` that is no path or the same as
    /// `from`, a parameter of `to` that `from` does not have, and two rewrites of one pattern.
    #[track_caller]
    pub fn rewrite(mut self, from: &str, to: &str) -> App {
        let place = super::spell(Location::caller());
        let target = Target::parse(to, &pattern::parameters(from)).and_then(|target| {
            if target.is_url() {
                return Err("it goes on inside, so it leads to a path and not to a URL".to_owned());
            }
            let sample = target::sample(from, "sample");
            if target.expand(&target::captures(from, &sample), "", "") == sample {
                return Err("it leads to itself".to_owned());
            }
            Ok(target)
        });
        let added = match target {
            Ok(target) => self.core_mut().detours.add_rewrite(from, target, place),
            Err(reason) => Err(Error::Redirect {
                what: "rewrite",
                from: from.to_owned(),
                to: to.to_owned(),
                place,
                reason,
            }),
        };
        if let Err(error) = added {
            self.note(error);
        }
        self
    }

    /// Sets what becomes of a path that no route or mount fits, where a route fits it with a slash more or
    /// less at its end: by default it is another path. Files see to their own slashes.
    ///
    /// ```
    /// use cloudgate::{App, Request, TrailingSlash};
    /// let app = App::new().get("/about", || "about").trailing_slash(TrailingSlash::Redirect);
    /// let response = app.call(&mut Request::get("/about/?a=b"));
    /// assert_eq!(response.status(), 308);
    /// assert_eq!(response.headers().get("location"), Some("/about?a=b"));
    /// ```
    ///
    /// It holds for the routes of this application, and not for those of mounted ones.
    pub fn trailing_slash(mut self, policy: TrailingSlash) -> App {
        self.core_mut().detours.slash = policy;
        self
    }

    /// Sends all requests for a host to another one, by 308 and with path and query as they are:
    /// `redirect_host("www.example.com", "example.com")`. `from` may be `*.example.com` too.
    ///
    /// The `Location` has no scheme, so the client keeps the one it came by, which a server behind a
    /// proxy does not know. `to` may name a port, or a scheme to change to: `https://example.com`.
    ///
    /// ```
    /// use cloudgate::{App, Request};
    /// let app = App::new().get("/", || "home").redirect_host("www.example.com", "example.com");
    /// let response = app.call(&mut Request::get("/a?b=c").with_header("Host", "www.example.com"));
    /// assert_eq!(response.headers().get("location"), Some("//example.com/a?b=c"));
    /// ```
    ///
    /// It is behind the middlewares and before the routes. A host that is none, or `to` being one of the
    /// hosts of `from`, is an error at start.
    #[track_caller]
    pub fn redirect_host(mut self, from: &str, to: &str) -> App {
        let place = super::spell(Location::caller());
        let error = |reason: String| Error::Redirect {
            what: "host redirect",
            from: from.to_owned(),
            to: to.to_owned(),
            place: place.clone(),
            reason,
        };
        let (scheme, authority) = match to.split_once("//") {
            Some((scheme @ ("http:" | "https:"), authority)) => (scheme, authority),
            _ => ("", to),
        };
        let parsed = HostPattern::parse(from)
            .map_err(|invalid| error(invalid.to_string()))
            .and_then(|pattern| {
                let name = target::host_of(authority).map_err(error)?;
                if pattern.fits(&name) {
                    return Err(error("it leads to itself".to_owned()));
                }
                Ok(pattern)
            });
        match parsed {
            Ok(pattern) => {
                let hosts = &mut self.core_mut().detours.hosts;
                let to = format!("{scheme}//{authority}");
                match hosts.binary_search_by(|(known, _)| known.cmp(&pattern)) {
                    Err(at) => hosts.insert(
                        at,
                        (
                            pattern,
                            HostRedirect {
                                to,
                                place: place.clone(),
                            },
                        ),
                    ),
                    Ok(at) => {
                        let first = &hosts[at].1.place;
                        let reason = format!("there is one for the same host at {first}");
                        self.note(error(reason));
                    }
                }
            }
            Err(error) => self.note(error),
        }
        self
    }
}

fn redirect(from: &str, target: Target, status: StatusCode, place: String) -> Route {
    let (pattern, target) = (from.to_owned(), Arc::new(target));
    let kept = Arc::clone(&target);
    let answer = move |request: &mut Request<'_>| {
        let base = &request.path()[..request.mounted];
        let captures = target::captures(&pattern, request.local_path());
        let location = target.expand(&captures, base, request.query());
        Response::new(status).header("Location", &location)
    };
    Route {
        methods: METHODS.to_vec(),
        action: Action::Redirect(status, kept),
        ..Route::explicit(Method::GET, from, answer, place)
    }
}

impl Detours {
    fn add_rewrite(&mut self, from: &str, target: Target, place: String) -> Result<(), Error> {
        let mut route = Route::explicit(Method::GET, from, || (), place);
        let shown = target.to_string();
        route.action = Action::Rewrite(Arc::new(target));
        self.router
            .insert(&route, self.rewrites.len(), &self.rewrites)
            .map_err(|error| match error {
                Error::RouteConflict { first, second, .. } => Error::Redirect {
                    what: "rewrite",
                    from: from.to_owned(),
                    to: shown,
                    place: second,
                    reason: format!("there is one for the same paths at {first}"),
                },
                other => other,
            })?;
        self.rewrites.push(route);
        Ok(())
    }

    /// The path and query that take the place of these, if a rewrite fits; all without the prefix of
    /// the application.
    fn rewritten(&self, local: &str, base: &str, query: &str) -> Option<String> {
        let route = &self.rewrites[self.router.locate(local)?];
        let Action::Rewrite(target) = &route.action else {
            return None;
        };
        Some(target.expand(&target::captures(&route.pattern, local), base, query))
    }

    /// The answer to a request for a host that moved.
    pub(super) fn moved(&self, request: &Request<'_>, host: &str) -> Option<Response> {
        let (_, redirect) = self.hosts.iter().find(|(from, _)| from.fits(host))?;
        let target = request.original_head().target();
        // `*` stands for the server as a whole.
        target.starts_with('/').then(|| {
            let location = format!("{}{target}", redirect.to);
            Response::new(StatusCode::PERMANENT_REDIRECT).header("Location", &location)
        })
    }
}

impl Core {
    /// Answers a request whose path a rewrite fits, under its new path; `None` if none does. The
    /// request has its own path again afterwards.
    pub(super) fn answer_rewritten(&self, request: &mut Request<'_>) -> Option<Response> {
        let base = &request.path()[..request.mounted];
        let target = self
            .detours
            .rewritten(request.local_path(), base, request.query())?;
        let before = request.shared_head();
        let head = request.head_mut();
        match normalise_target(&target, &mut head.target) {
            Ok(question) => head.question = question,
            Err(_) => {
                log::error!("a rewrite led to {target:?}, which is no path");
                request.set_head(before);
                return Some(Response::error(StatusCode::INTERNAL_SERVER_ERROR));
            }
        }
        // What another rewrite, of an application around this one, began with stays the original.
        let first = request.original.is_none();
        request.original.get_or_insert_with(|| Arc::clone(&before));
        let passed = passed_by(request, before.path());
        let leaving = Leaving::new(request, |request| {
            if first {
                request.original = None;
            }
            request.set_head(Arc::clone(&before));
        });
        Some(if passed.is_empty() {
            self.answer_here(leaving.request)
        } else {
            Next::new(&passed, &|request| self.answer_here(request)).run(leaving.request)
        })
    }

    /// Where this application sends a client that asks for a path; in the order of `dispatch`.
    fn redirects_to(&self, path: &str) -> Option<String> {
        let mut spelled = String::new();
        let question = normalise_target(path, &mut spelled).ok()?;
        spelled.truncate(question.unwrap_or(spelled.len()));
        if let Some(rewritten) = self.detours.rewritten(&spelled, "", "") {
            let end = rewritten.find('?').unwrap_or(rewritten.len());
            rewritten[..end].clone_into(&mut spelled);
        }
        let slash = self.detours.slash;
        let router = self.router();
        let found = router.locate(&spelled).or_else(|| match slash {
            TrailingSlash::Ignore => router.locate(&other_spelling(&spelled)?),
            _ => None,
        });
        match found {
            Some(index) => match &self.routes[index].action {
                Action::Redirect(_, target) if !target.is_url() => {
                    let captures = target::captures(&self.routes[index].pattern, &spelled);
                    Some(target.expand(&captures, "", ""))
                }
                _ => None,
            },
            None if slash == TrailingSlash::Redirect => {
                let other = other_spelling(&spelled)?;
                router.locate(&other).map(|_| other)
            }
            None => None,
        }
    }

    /// Refuses redirects that lead to each other without end. A sample of each is followed; hosts and
    /// mounted applications are left out of account.
    pub(super) fn check_redirects(&self) -> Result<(), Error> {
        let redirects = || {
            self.routes
                .iter()
                .filter(|route| matches!(route.action, Action::Redirect(..)))
        };
        // Each step may be one of these, or put a slash right.
        let most = 2 * redirects().count() + 2;
        for route in redirects() {
            for value in ["sample", "sample/sample"] {
                let mut path = target::sample(&route.pattern, value);
                let mut steps = 0;
                while let Some(next) = self.redirects_to(&path) {
                    path = next;
                    steps += 1;
                    if steps > most {
                        let Action::Redirect(_, target) = &route.action else {
                            break;
                        };
                        return Err(Error::Redirect {
                            what: "redirect",
                            from: route.pattern.clone(),
                            to: target.to_string(),
                            place: route.place.clone(),
                            reason: "a client that follows it is sent on without end".to_owned(),
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

/// The middlewares of applications around this one that stand for the new path and did not see the
/// request under its old one.
fn passed_by(request: &Request<'_>, before: &str) -> Vec<Layer> {
    let mut passed = Vec::new();
    for (application, base) in &request.scope.outer {
        let Some(core) = application.downcast_ref::<Core>() else {
            continue;
        };
        let (Some(old), Some(new)) = (before.get(*base..), request.path().get(*base..)) else {
            continue;
        };
        let missed = core
            .layers
            .iter()
            .filter(|layer| layer.concerns(new) && !layer.concerns(old));
        passed.extend(missed.map(|layer| Layer {
            prefix: None,
            ..layer.clone()
        }));
    }
    passed
}

/// The path with a slash more or less at its end.
pub(super) fn other_spelling(path: &str) -> Option<String> {
    match path.strip_suffix('/') {
        Some("") => None,
        Some(shorter) => Some(shorter.to_owned()),
        None => Some(format!("{path}/")),
    }
}

/// The answer that sends a client to another spelling of the path below this application's prefix.
pub(super) fn to_spelling(request: &Request<'_>, local: &str) -> Response {
    let base = &request.path()[..request.mounted];
    let location = target::location(&format!("{base}{local}"), request.query());
    Response::new(StatusCode::PERMANENT_REDIRECT).header("Location", &location)
}

#[cfg(test)]
mod tests;
