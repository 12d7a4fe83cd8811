//! What may stand between a request and the service that answers it?

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use super::request::Request;
use super::response::Response;
use super::service::StartError;

/// Something that sees a request before a service does, and the response after: it may answer
/// itself, change either, or only look.
///
/// A plain function is one:
///
/// ```
/// use cloudgate::{App, Next, Request, Response};
///
/// fn powered_by(request: &mut Request<'_>, next: Next<'_>) -> Response {
///     next.run(request).header("X-Powered-By", "coroutines")
/// }
///
/// let app = App::new().get("/", || "hello").wrap(powered_by);
/// let response = app.call(&mut Request::get("/"));
/// assert_eq!(response.headers().get("x-powered-by"), Some("coroutines"));
/// ```
///
/// As a handler does, it runs on a coroutine and may wait in cloudgate's own calls.
///
/// # Ready-made ones
/// In the order in which they belong, the first one outermost:
///
/// | middleware | why there |
/// |---|---|
/// | [`AccessLog`](crate::AccessLog) | sees every answer as the client does |
/// | [`RequestIds`](crate::RequestIds) | all that follows can name the request |
/// | [`Cors`](crate::Cors) | answers a preflight, which has no credentials, and lets pages read refusals |
/// | [`SecurityHeaders`](crate::SecurityHeaders) | its fields are on refusals too |
/// | [`Compression`](crate::Compression) | compresses whatever is answered behind it |
/// | [`RateLimit`](crate::RateLimit) | costs little, and so stands in front of what costs more |
/// | [`BasicAuth`](crate::BasicAuth), [`ApiKeyAuth`](crate::ApiKeyAuth) | nothing behind them is reached without a key |
///
/// ```
/// use cloudgate::{AccessLog, ApiKeyAuth, App, Compression, Cors, RequestIds, SecurityHeaders};
///
/// let app = App::gather()
///     .wrap(AccessLog::new())
///     .wrap(RequestIds::new())
///     .wrap(Cors::new().origin("https://app.example.com"))
///     .wrap(SecurityHeaders::new())
///     .wrap(Compression::new())
///     .wrap_at("/admin", ApiKeyAuth::new(["k-1"]));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no middleware",
    label = "not a function of `&mut Request<'_>` and `Next<'_>` that returns a Response",
    note = "write `fn name(request: &mut Request<'_>, next: Next<'_>) -> Response {{ next.run(request) }}`, or implement cloudgate::Middleware"
)]
pub trait Middleware: Send + Sync + 'static {
    /// Answers the request, by [`Next::run`] or alone.
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response;

    /// Checks, before the first request, that it can work.
    ///
    /// # Errors
    /// Whatever makes it pointless to start: the server then does not.
    fn start(&self) -> Result<(), StartError> {
        Ok(())
    }

    /// What the table of routes calls it: by default its type.
    fn name(&self) -> &'static str {
        type_name::<Self>()
    }
}

#[diagnostic::do_not_recommend]
impl<F> Middleware for F
where
    F: Fn(&mut Request<'_>, Next<'_>) -> Response + Send + Sync + 'static,
{
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        self(request, next)
    }
}

/// A middleware in its place: for which paths, and where it was written.
#[derive(Clone)]
pub(crate) struct Layer {
    /// `None` for every path; else without a slash at its end.
    pub(crate) prefix: Option<String>,
    pub(crate) middleware: Arc<dyn Middleware>,
}

impl Layer {
    pub(crate) fn new(middleware: impl Middleware) -> Layer {
        Layer {
            prefix: None,
            middleware: Arc::new(middleware),
        }
    }

    pub(crate) fn concerns(&self, path: &str) -> bool {
        self.prefix
            .as_ref()
            .is_none_or(|prefix| is_below(path, prefix))
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.middleware.name())
    }
}

/// Whether a path is this prefix, which does not end with a slash, or goes on below it.
pub(crate) fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The rest of the way: further middlewares, then the service.
pub struct Next<'n> {
    layers: &'n [Layer],
    service: &'n dyn Fn(&mut Request<'_>) -> Response,
}

impl<'n> Next<'n> {
    pub(crate) fn new(
        layers: &'n [Layer],
        service: &'n dyn Fn(&mut Request<'_>) -> Response,
    ) -> Next<'n> {
        Next { layers, service }
    }

    /// Lets the rest of the way answer the request.
    pub fn run(self, request: &mut Request<'_>) -> Response {
        let Next {
            mut layers,
            service,
        } = self;
        while let Some((layer, rest)) = layers.split_first() {
            layers = rest;
            // A rewrite leads past no guard, of the path that was sent or of the one it became.
            if layer.concerns(request.local_path())
                || request
                    .original_local_path()
                    .is_some_and(|path| layer.concerns(path))
            {
                return layer.middleware.handle(request, Next { layers, service });
            }
        }
        service(request)
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Next").field(&self.layers).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_between_segments() {
        for (path, prefix, want) in [
            ("/a", "/a", true),
            ("/a/", "/a", true),
            ("/a/b", "/a", true),
            ("/ab", "/a", false),
            ("/", "/a", false),
            ("/", "", true),
            ("/b/a", "/a", false),
        ] {
            assert_eq!(is_below(path, prefix), want, "{path} {prefix}");
        }
    }

    #[test]
    fn layers_run_in_their_order_where_they_belong() {
        let layer = |name: &'static str, prefix: Option<&str>| Layer {
            prefix: prefix.map(str::to_owned),
            middleware: Arc::new(move |request: &mut Request<'_>, next: Next<'_>| {
                let inner = next.run(request).text();
                Response::html(format!("{name}({inner})"))
            }),
        };
        let layers = [
            layer("a", None),
            layer("b", Some("/x")),
            layer("c", Some("/x/y")),
        ];
        let end = |_: &mut Request<'_>| Response::html("end");
        for (path, want) in [
            ("/", "a(end)"),
            ("/x/y", "a(b(c(end)))"),
            ("/x/z", "a(b(end))"),
        ] {
            let next = Next::new(&layers, &end);
            assert_eq!(next.run(&mut Request::get(path)).text(), want);
        }
    }
}
