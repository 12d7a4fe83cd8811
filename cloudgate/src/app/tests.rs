//! Does an application choose the right route, and refuse what it should?

use super::*;

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
