//! How do those who operate a program learn how it is?

use http::{Method, StatusCode};

use crate::message::metrics::MEDIA_TYPE;
use crate::message::{Request, Response, Service};
use crate::services::metrics::metrics;
use crate::services::readiness::Readiness;

/// Answers those who operate the program: whether it lives, whether it is ready, and what it counts.
///
/// | path | answer |
/// |---|---|
/// | `/healthz` | 200 `ok`, as long as there is one: a program that does not answer should be started again |
/// | `/readyz` | 200 `ready`, or 503 with the reasons of [`Readiness`] line by line: others should get its requests |
/// | `/metrics` | what [`metrics`](crate::metrics) tells, for Prometheus |
///
/// It takes GET and HEAD, and no cache keeps what it says. It is no secret to who reaches it, so give it a port of its own that only the right
/// people reach:
///
/// ```
/// use cloudgate::{Admin, App, Readiness, Server};
/// use std::time::Duration;
///
/// let readiness = Readiness::new();
/// let admin = Server::bind("127.0.0.1:0")?.serve(Admin::new(readiness.clone()))?;
/// let server = Server::bind("127.0.0.1:0")?.serve(App::new().get("/", || "Hello World!"))?;
/// // ... and at the end: first let the load balancer look elsewhere, then refuse connections.
/// readiness.set_stopping();
/// server.shutdown(Duration::from_secs(10));
/// admin.shutdown(Duration::from_secs(1));
/// # Ok::<(), cloudgate::Error>(())
/// ```
///
/// or a place in an application, behind what keeps strangers out:
///
/// ```
/// use cloudgate::{Admin, App, IpFilter, Network, Readiness, Request};
///
/// let own: Network = "127.0.0.0/8".parse().unwrap();
/// let app = App::new()
///     .mount("/internal", Admin::new(Readiness::new()))
///     .wrap_at("/internal", IpFilter::new().allow(own));
/// assert_eq!(app.call(&mut Request::get("/internal/healthz")).text(), "ok\n");
/// ```
///
/// The metrics are those of the whole process, whichever of its servers tells them.
#[derive(Clone, Debug, Default)]
pub struct Admin {
    readiness: Readiness,
}

impl Admin {
    /// With the handle by which the program says whether it is ready.
    pub fn new(readiness: Readiness) -> Admin {
        Admin { readiness }
    }

    fn answer(&self, request: &Request<'_>) -> Response {
        let path = request.local_path();
        if !matches!(path, "/healthz" | "/readyz" | "/metrics") {
            return Response::error(StatusCode::NOT_FOUND);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Response::error(StatusCode::METHOD_NOT_ALLOWED).header("Allow", "GET, HEAD");
        }
        match path {
            "/metrics" => Response::of_type(MEDIA_TYPE, metrics()),
            "/readyz" => match self.readiness.ask() {
                Ok(()) => Response::text_plain("ready\n"),
                Err(reasons) => Response::text_plain(reasons.join("\n") + "\n")
                    .with_status(StatusCode::SERVICE_UNAVAILABLE),
            },
            _ => Response::text_plain("ok\n"),
        }
    }
}

impl Service for Admin {
    fn call(&self, request: &mut Request<'_>) -> Response {
        self.answer(request).header("Cache-Control", "no-store")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(admin: &Admin, method: Method, path: &str) -> Response {
        let response = admin.call(&mut Request::new(method, path));
        assert_eq!(response.headers().get("cache-control"), Some("no-store"));
        response
    }

    #[test]
    fn who_is_not_ready_says_why_and_lives_on() {
        let readiness = Readiness::new();
        let admin = Admin::new(readiness.clone());
        let ready = ask(&admin, Method::GET, "/readyz");
        assert_eq!(
            (ready.status(), &*ready.text()),
            (StatusCode::OK, "ready\n")
        );
        readiness.check("a", || Err("not yet".to_owned()));
        readiness.check("b", || Err("nor this".to_owned()));
        let unready = ask(&admin, Method::GET, "/readyz");
        assert_eq!(unready.status(), 503);
        assert_eq!(unready.text(), "a: not yet\nb: nor this\n");
        readiness.set_stopping();
        let stopping = ask(&admin, Method::GET, "/readyz?verbose");
        assert_eq!(stopping.status(), 503);
        assert_eq!(stopping.text(), "stopping\n");
        assert_eq!(ask(&admin, Method::GET, "/healthz").text(), "ok\n");
    }

    #[test]
    fn nothing_else_is_there() {
        let admin = Admin::default();
        for path in ["/", "/healthz/", "/health", "/metrics/x", "/READYZ"] {
            assert_eq!(ask(&admin, Method::GET, path).status(), 404, "{path}");
            assert_eq!(ask(&admin, Method::POST, path).status(), 404, "{path}");
        }
        for path in ["/healthz", "/readyz", "/metrics"] {
            let refused = ask(&admin, Method::POST, path);
            assert_eq!(refused.status(), 405);
            assert_eq!(refused.headers().get("allow"), Some("GET, HEAD"));
            assert_eq!(ask(&admin, Method::HEAD, path).status(), 200);
        }
    }

    #[test]
    fn metrics_are_text_of_their_own_type() {
        let response = ask(&Admin::default(), Method::GET, "/metrics");
        assert_eq!(
            response.headers().get("content-type"),
            Some("text/plain; version=0.0.4; charset=utf-8")
        );
        let text = response.text();
        assert!(text.contains("\nprocess_open_fds "), "{text}");
    }
}
