//! Which options may a route have, and do they all reach the application?

use std::time::Duration;

use cloudgate::__private::{ROUTES, RouteOptions};
use cloudgate::{
    App, Bytes, Middleware, Next, Path, Request, Response, Status, delete, get, head, options,
    patch, post, put, route,
};

fn trace(request: &mut Request<'_>, next: Next<'_>) -> Response {
    next.run(request)
}

#[derive(Default)]
struct Tag {
    text: &'static str,
}

impl Tag {
    fn new() -> Tag {
        Tag::default()
    }

    fn text(self, text: &'static str) -> Tag {
        Tag { text }
    }
}

impl Middleware for Tag {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        next.run(request).header("X-Tag", self.text)
    }
}

mod middlewares {
    pub(super) fn of_a_module(
        request: &mut cloudgate::Request<'_>,
        next: cloudgate::Next<'_>,
    ) -> cloudgate::Response {
        super::trace(request, next)
    }
}

#[route(
    PUT,
    PATCH,
    "/options/all/{id}",
    wrap(trace, Tag::new().text("all"), middlewares::of_a_module, |request: &mut Request<'_>, next: Next<'_>| next.run(request)),
    host = "*.example.com",
    timeout = "1500 ms",
    params("name", "age"),
    private,
    blocking,
    body_limit = "3 KiB",
)]
fn all(Path(id): Path<u64>, body: Bytes) -> String {
    format!("{id} {}", body.len())
}

#[route("/options/plain")]
fn plain() {}

#[route("/options/bytes", body_limit = 1_000)]
fn bytes() {}

#[get("/options/methods", timeout = "2h")]
#[post("/options/methods", body_limit = "1 B")]
#[put("/options/methods")]
#[patch("/options/methods")]
#[delete("/options/methods")]
#[head("/options/heads")]
#[options("/options/heads")]
fn get(request: &mut Request<'_>) -> Response {
    Response::html("").header("X-Method", request.method().as_str())
}

// Nobody needs it: the underscore says so.
#[get("/options/unused/{*_rest}")]
fn unused() {}

fn entry(pattern: &str) -> RouteOptions {
    ROUTES
        .iter()
        .find(|entry| entry.pattern == pattern)
        .expect("a route of this file")
        .options
}

#[test]
fn every_option_is_in_the_entry() {
    let all = entry("/options/all/{id}");
    assert_eq!(all.body_limit, Some(3 << 10));
    assert_eq!(all.timeout, Some(Duration::from_millis(1500)));
    assert_eq!(all.host, Some("*.example.com"));
    assert_eq!(all.required, ["name", "age"]);
    assert!(all.private);
    assert_eq!(all.wrap.len(), 4);
    let plain = entry("/options/plain");
    assert!(plain.body_limit.is_none() && plain.timeout.is_none() && plain.host.is_none());
    assert!(plain.required.is_empty() && !plain.private && plain.wrap.is_empty());
    assert_eq!(entry("/options/bytes").body_limit, Some(1000));
}

#[test]
fn all_options_work_together() {
    let app = App::gather().state("a word").api_keys(["k"]);
    let request = |host: &str, body: &'static str| {
        Request::new(cloudgate::Method::PUT, "/options/all/7?apiKey=k")
            .with_header("Host", host)
            .with_body(body)
    };
    let response = app.call(&mut request("a.example.com", r#"{"name":1,"age":2}"#));
    let tag = response.headers().get("x-tag").map(str::to_owned);
    assert_eq!((tag.as_deref(), &*response.text()), (Some("all"), "7 18"));
    let response = app.call(&mut request("example.com", "{}"));
    assert_eq!(response.status(), Status::NOT_FOUND);
}

#[test]
fn each_method_has_its_attribute() {
    let app = App::gather().state("a word").api_keys(["k"]);
    for (method, path) in [
        ("GET", "/options/methods"),
        ("POST", "/options/methods"),
        ("PUT", "/options/methods"),
        ("PATCH", "/options/methods"),
        ("DELETE", "/options/methods"),
        ("HEAD", "/options/heads"),
        ("OPTIONS", "/options/heads"),
    ] {
        let response = app.call(&mut Request::new(method.parse().expect("a method"), path));
        assert_eq!(response.headers().get("x-method"), Some(method));
    }
    let heads = app.call(&mut Request::get("/options/heads"));
    assert_eq!(heads.status(), Status::METHOD_NOT_ALLOWED);
    let unused = app.call(&mut Request::get("/options/unused/a/b"));
    assert_eq!(unused.status(), Status::NO_CONTENT);
}
