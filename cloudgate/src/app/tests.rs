//! Does an application choose the right route, and refuse what it should?

use super::*;
use crate::message::Next;

fn answer(app: &App, method: Method, path: &str) -> (u16, String) {
    let response = app.call(&mut Request::new(method, path));
    (response.status().as_u16(), response.text())
}

fn get(app: &App, path: &str) -> (u16, String) {
    answer(app, Method::GET, path)
}

fn parameter(name: &'static str) -> impl Fn(&mut Request<'_>) -> String + Send + Sync + 'static {
    move |request| format!("{name}={}", request.parameter(name).unwrap_or("?"))
}

#[test]
fn literals_win_over_parameters_over_wildcards() {
    let app = App::new()
        .get("/a/{*rest}", parameter("rest"))
        .get("/a/{id}", parameter("id"))
        .get("/a/b", || "literal")
        .get("/a/{id}/c", parameter("id"));
    assert_eq!(get(&app, "/a/b"), (200, "literal".into()));
    assert_eq!(get(&app, "/a/x"), (200, "id=x".into()));
    assert_eq!(get(&app, "/a/x/c"), (200, "id=x".into()));
    assert_eq!(get(&app, "/a/b/c"), (200, "id=b".into()));
    assert_eq!(get(&app, "/a/x/y/z"), (200, "rest=x/y/z".into()));
    for path in ["/a/", "/A/b", "/a", "/", "/a//", "//a/b"] {
        // A wildcard takes what is left as it is, an empty segment too.
        let want = if path == "/a//" { 200 } else { 404 };
        assert_eq!(get(&app, path).0, want, "{path}");
    }
}

#[test]
fn a_branch_that_leads_nowhere_is_left_again() {
    let app = App::new()
        .get("/{a}/x", parameter("a"))
        .get("/b/{*rest}", parameter("rest"))
        .get("/b/c/{d}/e", parameter("d"))
        .get("/slash/{a}/", parameter("a"));
    assert_eq!(get(&app, "/b/x"), (200, "rest=x".into()));
    assert_eq!(get(&app, "/b/c/1/e"), (200, "d=1".into()));
    assert_eq!(get(&app, "/b/c/1/f"), (200, "rest=c/1/f".into()));
    assert_eq!(get(&app, "/z/x"), (200, "a=z".into()));
    assert_eq!(get(&app, "/slash/1/"), (200, "a=1".into()));
    assert_eq!(get(&app, "/slash/1").0, 404);
    assert_eq!(get(&app, "/z/y").0, 404);
}

#[test]
fn captures_are_decoded_after_the_path_is_split() {
    let app = App::new().get("/x/{id}", parameter("id"));
    assert_eq!(get(&app, "/x/a%2Fb%20c"), (200, "id=a/b c".into()));
    assert_eq!(get(&app, "/x/caf%C3%A9"), (200, "id=caf\u{e9}".into()));
    assert_eq!(get(&app, "/%78/a"), (200, "id=a".into()));
    assert_eq!(get(&app, "/x/%ff").0, 400);
    assert_eq!(get(&app, "/x/a%00").0, 400);
    assert_eq!(get(&app, "/x%2Fa").0, 404);
}

#[test]
fn methods_are_told_apart_and_a_wrong_one_hears_which_are_right() {
    let app = App::new()
        .get("/a/{id}", parameter("id"))
        .post("/a/{name}", parameter("name"))
        .route(Method::HEAD, "/head", || (StatusCode::OK, "own"))
        .get("/head", || "get");
    assert_eq!(answer(&app, Method::POST, "/a/x").1, "name=x");
    assert_eq!(answer(&app, Method::HEAD, "/a/x").1, "id=x");
    assert_eq!(answer(&app, Method::HEAD, "/head").1, "own");
    let response = app.call(&mut Request::new(Method::DELETE, "/a/x"));
    assert_eq!(response.status(), 405);
    assert_eq!(
        response.headers().get("allow"),
        Some("GET, HEAD, OPTIONS, POST")
    );
    let response = app.call(&mut Request::new(Method::OPTIONS, "/a/x"));
    assert_eq!(response.status(), 204);
    assert_eq!(
        response.headers().get("allow"),
        Some("GET, HEAD, OPTIONS, POST")
    );
    assert_eq!(
        app.call(&mut Request::new(Method::OPTIONS, "*")).status(),
        204
    );
    assert_eq!(
        app.call(&mut Request::new(Method::TRACE, "/a/x")).status(),
        405
    );
}

#[test]
fn two_routes_for_the_same_requests_are_an_error_with_both_places() {
    let app = App::new()
        .get("/a/{id}", || "one")
        .get("/b", || "b")
        .get("/a/{name}", || "two");
    let error = Service::start(&app).unwrap_err().to_string();
    assert!(error.contains("GET /a/{name}"), "{error}");
    assert_eq!(error.matches("tests.rs:").count(), 2, "{error}");
    assert_eq!(get(&app, "/b").0, 500);
}

#[test]
fn a_malformed_pattern_is_an_error_with_its_place() {
    for pattern in ["a", "/{", "/{}", "/a b", "/{*a}/b", "/{a}/{a}", "/a?b"] {
        let app = App::new().get(pattern, || "x");
        let error = Service::start(&app).unwrap_err().to_string();
        assert!(
            error.contains(pattern) && error.contains("tests.rs:"),
            "{error}"
        );
    }
}

#[test]
fn nothing_to_serve_and_missing_state_are_errors_at_start() {
    assert!(matches!(
        Error::from(Service::start(&App::new()).unwrap_err()),
        Error::NothingToServe
    ));
    let mut app = App::new().get("/a", || "a");
    app.core_mut().routes[0].needs = |needs| needs.state::<u32>();
    let error = Service::start(&app).unwrap_err().to_string();
    assert!(
        error.contains("State<u32>") && error.contains(".state("),
        "{error}"
    );
    Service::start(&app.state(7_u32)).unwrap();
}

#[test]
fn a_fallback_answers_what_no_pattern_fits() {
    let app = App::new()
        .get("/a", || "a")
        .fallback(|_: &mut Request<'_>| Response::html("fallback"));
    assert_eq!(get(&app, "/b").1, "fallback");
    assert_eq!(answer(&app, Method::POST, "/a").0, 405);
}

#[test]
fn an_app_can_grow_after_a_request_that_is_still_held() {
    let app = App::new().get("/a", || "a");
    let mut request = Request::get("/a");
    app.call(&mut request);
    let app = app.get("/b", || "b");
    assert_eq!(get(&app, "/b").1, "b");
    assert_eq!(app.call(&mut request).text(), "a");
}

fn named(name: &'static str) -> impl Middleware {
    move |request: &mut Request<'_>, next: Next<'_>| {
        let inner = next.run(request);
        let status = inner.status();
        Response::text_plain(format!("{name}({})", inner.text())).with_status(status)
    }
}

#[test]
fn middlewares_stand_in_front_of_everything_in_their_order() {
    let app = App::new()
        .wrap(named("a"))
        .wrap_at("/x", named("b"))
        .wrap(named("c"))
        .get("/x/y", || "route")
        .get("/", || "root")
        .mount("/x/m", |_: &mut Request<'_>| {
            Response::text_plain("mounted")
        });
    for (path, want) in [
        ("/", (200, "a(c(root))")),
        ("/x/y", (200, "a(b(c(route)))")),
        ("/x/m/1", (200, "a(b(c(mounted)))")),
        ("/xy", (404, "a(c(404 Not Found\n))")),
        // Another spelling of the same path passes the same middlewares.
        ("/%78/y", (200, "a(b(c(route)))")),
    ] {
        assert_eq!(get(&app, path), (want.0, want.1.to_owned()), "{path}");
    }
    let wrong = answer(&app, Method::POST, "/x/y");
    assert_eq!(wrong, (405, "a(b(c(405 Method Not Allowed\n)))".to_owned()));
}

#[test]
fn a_middleware_may_answer_itself_and_leave_values() {
    let guard = |request: &mut Request<'_>, next: Next<'_>| {
        if request.header("x-key") != Some("open") {
            return Response::error(StatusCode::UNAUTHORIZED);
        }
        request.extensions_mut().insert(7_u32);
        next.run(request)
    };
    let app = App::new()
        .wrap(guard)
        .get("/", |request: &mut Request<'_>| {
            format!("{:?}", request.extensions().get::<u32>())
        });
    assert_eq!(get(&app, "/").0, 401);
    let response = app.call(&mut Request::get("/").with_header("X-Key", "open"));
    assert_eq!(response.text(), "Some(7)");
}

#[test]
fn a_mounted_application_is_relative_to_its_prefix() {
    let inner = App::new().wrap(named("inner")).get("/", || "home").get(
        "/{id}",
        |request: &mut Request<'_>| {
            let id = request.parameter("id").unwrap_or("?").to_owned();
            format!("{id} {} {}", request.path(), request.local_path())
        },
    );
    let app = App::new()
        .wrap(|request: &mut Request<'_>, next: Next<'_>| {
            let response = next.run(request);
            // Afterwards the request is the outer application's again.
            assert_eq!(request.local_path(), request.path());
            assert_eq!(request.parameter("id"), None);
            response
        })
        .get("/a/own", || "own")
        .mount("/a", App::new().mount("/b/", inner))
        .mount("/a/b/c", |_: &mut Request<'_>| {
            Response::text_plain("longer")
        });
    for (path, want) in [
        ("/a/b", (200, "inner(home)")),
        ("/a/b/", (200, "inner(home)")),
        ("/a/b/7", (200, "inner(7 /a/b/7 /7)")),
        ("/a/own", (200, "own")),
        ("/a/b/c", (200, "longer")),
        ("/a/bc", (404, "404 Not Found\n")),
        ("/ab", (404, "404 Not Found\n")),
    ] {
        assert_eq!(get(&app, path), (want.0, want.1.to_owned()), "{path}");
    }
    assert_eq!(app.route_count(), 3);
    assert!(app.start().is_ok());
}

#[test]
fn inner_applications_find_the_state_of_outer_ones() {
    let needs = |app: &mut App| app.core_mut().routes[0].needs = |needs| needs.state::<u32>();
    let shows = |request: &mut Request<'_>| {
        use crate::{FromRequest, State};
        State::<u32>::from_request(request).map(|state| state.to_string())
    };
    let build = |inner_state: Option<u32>, outer_state: Option<u32>| {
        let mut inner = App::new().get("/", shows);
        needs(&mut inner);
        let add = |app: App, state: Option<u32>| match state {
            Some(state) => app.state(state),
            None => app,
        };
        add(App::new(), outer_state).mount("/in", add(inner, inner_state))
    };
    assert_eq!(get(&build(Some(1), Some(2)), "/in"), (200, "1".into()));
    let outer = build(None, Some(2));
    assert!(outer.start().is_ok());
    assert_eq!(get(&outer, "/in"), (200, "2".into()));
    let error = build(None, None).start().unwrap_err().to_string();
    assert!(error.contains("State<u32>"), "{error}");
}

#[test]
fn the_most_exact_host_answers() {
    let site = |text: &'static str| App::new().get("/", move || text);
    let app = App::new()
        .host("*.example.com", site("below"))
        .host("api.example.com", site("api"))
        .host("*.a.example.com", site("further below"))
        .get("/", || "any");
    for (host, want) in [
        (Some("api.example.com"), "api"),
        (Some("API.Example.com.:8080"), "api"),
        (Some("x.example.com"), "below"),
        (Some("x.a.example.com"), "further below"),
        (Some("example.com"), "any"),
        (Some("evil-api.example.com.evil"), "any"),
        (None, "any"),
    ] {
        let request = Request::get("/");
        let mut request = match host {
            Some(host) => request.with_header("Host", host),
            None => request,
        };
        assert_eq!(app.call(&mut request).text(), want, "{host:?}");
    }
    assert_eq!(app.route_count(), 4);
}

#[test]
fn routes_of_a_host_win_over_those_of_any() {
    let mut app = App::new().get("/a", || "any").post("/b", || "any");
    for (host, pattern, text) in [
        ("*.h", "/a", "below"),
        ("x.h", "/a", "exact"),
        ("x.h", "/b", "exact"),
    ] {
        app = app.add(Route::get(pattern, move || text).host(host));
    }
    let at = |host: &str, method: Method, path: &str| {
        let response = app.call(&mut Request::new(method, path).with_header("Host", host));
        (response.status().as_u16(), response.text())
    };
    assert_eq!(at("x.h", Method::GET, "/a").1, "exact");
    assert_eq!(at("y.h", Method::GET, "/a").1, "below");
    assert_eq!(at("z", Method::GET, "/a").1, "any");
    // The pattern is there for this host, but only another one has the method.
    assert_eq!(at("x.h", Method::POST, "/b").1, "any");
    assert_eq!(at("x.h", Method::PUT, "/b").0, 405);
}

fn with_options(change: impl FnOnce(Route) -> Route) -> App {
    let echo =
        |request: &mut Request<'_>| request.body().read_all().map_err(crate::Rejection::from);
    App::new().add(change(Route::post("/{id}", echo)))
}

#[test]
fn a_body_limit_holds_for_its_route() {
    let app = with_options(|route| route.body_limit(3));
    for (body, status) in [("abc", 200), ("abcd", 413)] {
        let response = app.call(&mut Request::post("/x").with_body(body));
        assert_eq!(response.status(), status);
    }
}

#[test]
fn a_private_route_wants_one_of_the_keys() {
    let private = || with_options(Route::private);
    let error = private().start().unwrap_err().to_string();
    assert!(
        error.contains("app/tests.rs:")
            && error.contains(" is private")
            && error.contains(".api_keys("),
        "{error}"
    );
    assert!(private().api_keys([""]).start().is_err());
    let app = private().api_keys(["k1", "", "k2"]);
    assert!(app.start().is_ok());
    let status = |target: &str, key: Option<&str>| {
        let request = Request::post(target);
        let mut request = match key {
            Some(key) => request.with_header("X-API-Key", key),
            None => request,
        };
        app.call(&mut request).status().as_u16()
    };
    assert_eq!(status("/x", Some("k1")), 200);
    assert_eq!(status("/x?apiKey=k2", None), 200);
    for (target, key) in [
        ("/x", None),
        ("/x", Some("")),
        ("/x", Some("k")),
        ("/x?apiKey=", None),
        ("/x?apiKey=k3", Some("k1")),
    ] {
        assert_eq!(status(target, key), 403, "{target} {key:?}");
    }
}

#[test]
fn missing_parameters_are_named_and_the_body_is_still_there() {
    let app = with_options(|route| route.params(["id", "a", "b"]));
    let post = |body: &'static str| {
        let request =
            Request::post("/7").with_header("Content-Type", "application/x-www-form-urlencoded");
        let response = app.call(&mut request.with_body(body));
        (response.status().as_u16(), response.text())
    };
    assert_eq!(post("a=1&b=2"), (200, "a=1&b=2".into()));
    // In JSON they need not be texts.
    let json = serde_json::json!({"a": 1, "b": [true]});
    let response = app.call(&mut Request::post("/7").with_json(&json));
    assert_eq!(
        (response.status(), response.text()),
        (StatusCode::OK, json.to_string())
    );
    let (status, text) = post("b=2");
    assert_eq!(status, 400);
    assert!(
        text.contains(r#""code":"MissingMandatoryParams""#) && text.contains(r#""list":["a"]"#),
        "{text}"
    );
}

#[test]
fn prefixes_hosts_and_networks_that_are_none_are_errors_at_start() {
    let ok = || App::new().get("/", || "ok");
    for (app, part) in [
        (
            ok().wrap_at("a", named("x")),
            "\"a\" at cloudgate/src/app/tests.rs:",
        ),
        (ok().wrap_at("/{a}", named("x")), "no parameters"),
        (ok().mount("/a/../b", ok()), "/a/../b"),
        (ok().host("a:80", ok()), "\"a:80\" at"),
        (
            ok().trust_proxies(ForwardedBy::Forwarded, ["10.0.0.1/8"]),
            "trust_proxies at",
        ),
    ] {
        let error = app.start().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}
