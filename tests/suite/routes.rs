//! Which handler answers which request?

use cloudgate::{App, Path, Request, Server, State, Status, route};
use cloudgate_suite::{Wire, ask, get, start};

#[route("/routes/get")]
fn plain() -> &'static str {
    "get"
}

#[route(POST, "/routes/post")]
fn posted() -> &'static str {
    "post"
}

#[route(GET, POST, DELETE, "/routes/several")]
fn several(request: &mut Request<'_>) -> String {
    format!("several {}", request.method())
}

#[route("/routes/twice/one")]
#[route(PUT, "/routes/twice/two")]
fn twice(request: &mut Request<'_>) -> String {
    format!("twice {}", request.path())
}

#[route("/routes/items/special")]
fn literal() -> &'static str {
    "literal"
}

#[route("/routes/items/{id}")]
fn parameter(Path(id): Path<String>) -> String {
    format!("id={id}")
}

#[route("/routes/items/{id}/parts/{part}")]
fn parameters(Path((id, part)): Path<(String, u8)>) -> String {
    format!("id={id} part={part}")
}

#[route("/routes/items/{*rest}")]
fn wildcard(Path(rest): Path<String>) -> String {
    format!("rest={rest}")
}

#[route(HEAD, "/routes/own-head")]
fn own_head() -> cloudgate::Response {
    cloudgate::Response::html("").header("X-Own", "yes")
}

#[test]
fn requests_find_their_handler() {
    let server = start(crate::app());
    for (line, status, text) in vec![
        ("GET /routes/get", 200, "get"),
        ("GET /routes/get?a=b", 200, "get"),
        ("GET /%72outes/get", 200, "get"),
        ("POST /routes/post", 200, "post"),
        ("DELETE /routes/several", 200, "several DELETE"),
        ("POST /routes/several", 200, "several POST"),
        ("GET /routes/twice/one", 200, "twice /routes/twice/one"),
        ("PUT /routes/twice/two", 200, "twice /routes/twice/two"),
        // Static before parameter before wildcard.
        ("GET /routes/items/special", 200, "literal"),
        ("GET /routes/items/7", 200, "id=7"),
        ("GET /routes/items/7/parts/3", 200, "id=7 part=3"),
        ("GET /routes/items/7/parts", 200, "rest=7/parts"),
        (
            "GET /routes/items/special/parts/3",
            200,
            "id=special part=3",
        ),
        ("GET /routes/items/a/b/c/", 200, "rest=a/b/c/"),
        // RFC 3986: split first, decode after.
        ("GET /routes/items/a%2Fb", 200, "id=a/b"),
        ("GET /routes/items/a%2fb%20c", 200, "id=a/b c"),
        ("GET /routes/items/caf%C3%A9", 200, "id=caf\u{e9}"),
        ("GET /routes/items/%2e%2e", 200, "id=.."),
        ("GET /routes%2Fget", 404, "404 Not Found\n"),
        ("GET /routes/items/%ff", 400, "400 Bad Request\n"),
        ("GET /routes/items/a%00", 400, "400 Bad Request\n"),
        (
            "GET /routes/items/%zz",
            400,
            "400 Bad Request: the request target is malformed\n",
        ),
        // Nothing is guessed.
        ("GET /routes/get/", 404, "404 Not Found\n"),
        ("GET /Routes/get", 404, "404 Not Found\n"),
        ("GET //routes/get", 404, "404 Not Found\n"),
        ("GET /routes/./get", 404, "404 Not Found\n"),
        ("GET /routes/items/", 404, "404 Not Found\n"),
        ("GET /", 404, "404 Not Found\n"),
        ("POST /nothing", 404, "404 Not Found\n"),
    ] {
        let answer = ask(
            server.addr(),
            format!("{line} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"),
        );
        assert_eq!((answer.status, &*answer.text()), (status, text), "{line}");
    }
}

#[test]
fn a_wrong_method_hears_which_are_right() {
    let server = start(crate::app());
    for (line, status, allow) in [
        ("PUT /routes/get", 405, "GET, HEAD, OPTIONS"),
        ("GET /routes/post", 405, "OPTIONS, POST"),
        ("HEAD /routes/post", 405, "OPTIONS, POST"),
        (
            "PATCH /routes/several",
            405,
            "DELETE, GET, HEAD, OPTIONS, POST",
        ),
        ("BREW /routes/items/7", 405, "GET, HEAD, OPTIONS"),
        ("OPTIONS /routes/get", 204, "GET, HEAD, OPTIONS"),
        ("OPTIONS /routes/items/7", 204, "GET, HEAD, OPTIONS"),
    ] {
        let mut wire = Wire::open(server.addr());
        let answer = wire
            .send(format!("{line} HTTP/1.1\r\nHost: h\r\n\r\n"))
            .answer_to_head();
        let got = (answer.status, answer.header("allow"));
        assert_eq!(got, (status, Some(allow)), "{line}");
    }
    let answer = ask(server.addr(), "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(answer.status, 204);
    assert!(answer.header("allow").is_some());
}

#[test]
fn head_is_get_without_the_body_and_the_connection_goes_on() {
    let server = start(crate::app());
    let mut wire = Wire::open(server.addr());
    let head = wire
        .send("HEAD /routes/get HTTP/1.1\r\nHost: h\r\n\r\n")
        .answer_to_head();
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("3"))
    );
    assert_eq!(wire.send_get("/routes/get").answer().text(), "get");
    let own = wire
        .send("HEAD /routes/own-head HTTP/1.1\r\nHost: h\r\n\r\n")
        .answer_to_head();
    assert_eq!(own.header("x-own"), Some("yes"));
}

#[test]
fn a_state_that_nobody_registered_is_a_start_error_that_says_what_to_add() {
    // The other routes' states are missing too; one of them is named.
    let error = Server::bind("127.0.0.1:0")
        .and_then(|server| server.serve(App::gather().state(crate::cookies::key())))
        .expect_err("a missing state")
        .to_string();
    assert!(error.contains("takes State<"), "{error}");
    assert!(
        error.contains(".state(") && error.contains(".rs:"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn two_routes_for_the_same_requests_are_a_start_error_with_both_places() {
    let app = App::new()
        .get("/a/{id}", || "one")
        .get("/a/{name}", || "two");
    let error = Server::bind("127.0.0.1:0")
        .and_then(|server| server.serve(app))
        .expect_err("a conflict")
        .to_string();
    assert!(error.contains("GET /a/{name}"), "{error}");
    assert_eq!(error.matches("routes.rs:").count(), 2, "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn routes_and_state_also_work_without_attributes() {
    let app = App::new()
        .get("/closure/{name}", |request: &mut Request<'_>| {
            format!("hello {}", request.parameter("name").unwrap_or("?"))
        })
        .fallback(|request: &mut Request<'_>| {
            cloudgate::Response::html(format!("fallback {}", request.path()))
        });
    let server = start(app);
    assert_eq!(get(server.addr(), "/closure/a%20b").text(), "hello a b");
    assert_eq!(get(server.addr(), "/else").text(), "fallback /else");
}

#[route("/routes/state")]
fn stated(State(word): State<crate::extract::Word>) -> &'static str {
    word.0
}

#[test]
fn two_applications_of_one_process_keep_their_states_apart() {
    let one = start(crate::app());
    let other = start(crate::app().state(crate::extract::Word("other")));
    for _ in 0..3 {
        assert_eq!(get(one.addr(), "/routes/state").text(), "shared");
        assert_eq!(get(other.addr(), "/routes/state").text(), "other");
    }
}

#[test]
fn redirects_and_rewrites_work_on_the_wire() {
    let app = App::new()
        .get("/new/{id}", |request: &mut Request<'_>| {
            format!("{} {}", request.target(), request.original_path())
        })
        .redirect("/old/{*rest}", "/{rest}", Status::PERMANENT_REDIRECT)
        .rewrite("/short/{id}", "/new/{id}")
        .redirect_host("www.example.com", "example.com");
    let server = start(app);
    let moved = get(server.addr(), "/old/new/7?a=b");
    assert_eq!(
        (moved.status, moved.header("location")),
        (308, Some("/new/7?a=b"))
    );
    for target in ["/old//evil.com", "/old/\\evil.com", "/old/%5Cevil.com"] {
        let location = get(server.addr(), target)
            .header("location")
            .map(str::to_owned);
        let location = location.expect("a Location");
        assert!(
            !location.starts_with("//") && !location.contains('\\'),
            "{location}"
        );
    }
    let short = get(server.addr(), "/short/7?a=b");
    assert_eq!(short.text(), "/new/7?a=b /short/7");
    let host = ask(
        server.addr(),
        "GET /a HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(host.header("location"), Some("//example.com/a"));
}

#[test]
fn a_panic_in_a_mounted_application_leaves_nothing_to_the_next_request() {
    fn panics() -> &'static str {
        panic!("on purpose")
    }
    let inner = App::new().state(1_u8).get("/panic", panics);
    let app = App::new()
        .mount("/in", inner)
        .get("/state", |request: &mut Request<'_>| {
            use cloudgate::FromRequest;
            State::<u8>::from_request(request).map_or("none", |_| "found")
        });
    let server = cloudgate_suite::start_with(app, |settings| settings.workers.workers = 1);
    for _ in 0..3 {
        assert_eq!(get(server.addr(), "/in/panic").status, 500);
        assert_eq!(get(server.addr(), "/state").text(), "none");
    }
}
