//! Does each option of a route act, from the attribute and from code alike?

use std::net::SocketAddr;

use cloudgate::{
    App, Bytes, Event, Method, Middleware, Next, Request, Response, Route, Running, get, head,
    post, route,
};
use cloudgate_suite::{Answer, ask, start};

/// The key of every private route of this binary.
pub(crate) const KEY: &str = "the key of the suite";

const KEY_IN_A_QUERY: &str = "the%20key+of%20the%20suite";

#[post("/attribute/limited", body_limit = "3 KiB")]
fn limited(body: Bytes) -> String {
    body.len().to_string()
}

// More than the server's 2 MiB.
#[post("/attribute/generous", body_limit = "3 MiB")]
fn generous(body: Bytes) -> String {
    body.len().to_string()
}

#[get("/attribute/hosts")]
fn any_host() -> &'static str {
    "any"
}

#[get("/attribute/hosts", host = "*.example.com")]
fn hosts_below() -> &'static str {
    "below"
}

#[get("/attribute/hosts", host = "api.example.com")]
fn one_host() -> &'static str {
    "one"
}

#[route(GET, POST, "/attribute/asks/{id}", params("id", "name", "age"))]
fn asks(event: Event) -> String {
    format!("{:?}", event.params().value("name"))
}

#[get("/attribute/private", private)]
fn private() -> &'static str {
    "come in"
}

#[post(
    "/attribute/private-asks",
    params("name"),
    private,
    wrap(Note("never"))
)]
fn private_asks(_event: Event) {}

#[get("/attribute/wrapped", wrap(Note("first"), note_second))]
fn wrapped(request: &mut Request<'_>) -> String {
    format!("{:?}", request.headers().get("x-notes"))
}

#[get("/attribute/slow", timeout = "50ms")]
fn slow() -> &'static str {
    cloudgate::sleep(std::time::Duration::from_secs(60));
    "at last"
}

#[head("/attribute/head")]
fn only_head() -> Response {
    Response::html("").header("X-Own", "yes")
}

/// Leaves its name on the request on the way in, and on the response on the way out.
struct Note(&'static str);

impl Middleware for Note {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        let response = next.run(request);
        let notes = response.headers().get("x-notes").unwrap_or("handler");
        let notes = format!("{} < {notes}", self.0);
        response.header("X-Notes", &notes)
    }
}

fn note_second(request: &mut Request<'_>, next: Next<'_>) -> Response {
    Note("second").handle(request, next)
}

/// The same routes below `/code`.
fn app() -> App {
    let length = |request: &mut Request<'_>| {
        let body = request.body().read_all();
        body.map(|body| body.len().to_string())
            .map_err(cloudgate::Rejection::from)
    };
    let name = |request: &mut Request<'_>| {
        let event: Event = cloudgate::FromRequest::from_request(request)?;
        Ok::<_, cloudgate::Rejection>(format!("{:?}", event.params().value("name")))
    };
    let hosts = "/code/hosts";
    let names = ["id", "name", "age"];
    crate::app()
        .wrap(Note("app"))
        .wrap_at("/attribute", Note("prefix"))
        .wrap_at("/code", Note("prefix"))
        .add(Route::post("/code/limited", length).body_limit(3 << 10))
        .add(Route::post("/code/generous", length).body_limit(3 << 20))
        .add(Route::get(hosts, || "any"))
        .add(Route::get(hosts, || "below").host("*.example.com"))
        .add(Route::get(hosts, || "one").host("api.example.com"))
        .add(Route::get("/code/asks/{id}", name).params(names))
        .add(Route::post("/code/asks/{id}", name).params(names))
        .add(Route::get("/code/private", || "come in").private())
        .add(
            Route::post("/code/private-asks", || ())
                .private()
                .params(vec!["name".to_owned()])
                .wrap(Note("never")),
        )
        .add(
            Route::get("/code/wrapped", || "")
                .wrap(Note("first"))
                .wrap(note_second),
        )
        .add(Route::get("/code/slow", slow).timeout(std::time::Duration::from_millis(50)))
        .add(Route::new(Method::HEAD, "/code/head", || {
            Response::html("").header("X-Own", "yes")
        }))
}

/// Runs a test on both forms: the routes of attributes and those of code.
fn on_both(test: impl Fn(&Client<'_>)) {
    let server = start(app());
    for below in ["/attribute", "/code"] {
        test(&Client {
            server: &server,
            below,
        });
    }
}

struct Client<'s> {
    server: &'s Running,
    below: &'static str,
}

impl Client<'_> {
    fn address(&self) -> SocketAddr {
        self.server.addr()
    }

    fn ask(&self, method: &str, target: &str, fields: &str, body: &[u8]) -> Answer {
        let below = self.below;
        let length = body.len();
        let head = format!(
            "{method} {below}{target} HTTP/1.1\r\nContent-Length: {length}\r\nConnection: close\r\n{fields}\r\n"
        );
        ask(self.address(), [head.as_bytes(), body].concat())
    }

    fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, "Host: h\r\n", b"")
    }

    fn post(&self, target: &str, body: &[u8]) -> Answer {
        self.ask("POST", target, "Host: h\r\n", body)
    }
}

#[test]
fn a_body_may_have_its_routes_limit_and_not_one_byte_more() {
    on_both(|client| {
        for (target, limit) in [("/limited", 3 << 10), ("/generous", 3 << 20)] {
            let answer = client.post(target, &vec![b'x'; limit]);
            assert_eq!((answer.status, answer.text()), (200, limit.to_string()));
            // Refused by its announced length, before a byte of it.
            let head = format!(
                "POST {}{target} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n",
                client.below,
                limit + 1
            );
            assert_eq!(ask(client.address(), head).status, 413, "{target}");
        }
    });
}

#[test]
fn a_handler_that_waits_past_its_time_is_a_503() {
    on_both(|client| {
        let answer = client.get("/slow");
        assert_eq!(answer.status, 503);
        assert!(!answer.text().contains("at last"));
    });
}

#[test]
fn a_host_has_routes_of_its_own() {
    on_both(|client| {
        for (host, text) in [
            ("api.example.com", "one"),
            ("API.example.com:8080", "one"),
            ("www.example.com", "below"),
            ("a.b.example.com", "below"),
            ("example.com", "any"),
            ("api.example.com.evil", "any"),
        ] {
            let answer = client.ask("GET", "/hosts", &format!("Host: {host}\r\n"), b"");
            assert_eq!(answer.text(), text, "{host}");
        }
    });
}

#[test]
fn missing_parameters_are_listed() {
    on_both(|client| {
        let answer = client.get("/asks/7?name=Ada&age=36");
        assert_eq!(
            (answer.status, &*answer.text()),
            (200, "Some(String(\"Ada\"))")
        );
        let answer = client.post("/asks/7", br#"{"age": 36, "name": 5}"#);
        assert_eq!((answer.status, &*answer.text()), (200, "Some(Number(5))"));
        for (answer, missing) in [
            (client.get("/asks/7?age=36"), vec!["name"]),
            (client.get("/asks/7"), vec!["name", "age"]),
            // The query is no body.
            (
                client.post("/asks/7?name=Ada&age=36", b"{}"),
                vec!["name", "age"],
            ),
            (client.post("/asks/7", b"no JSON"), vec!["name", "age"]),
        ] {
            let json = answer.json();
            assert_eq!(answer.status, 400);
            assert_eq!(json["list"], serde_json::json!(missing));
            assert_eq!(json["code"], "MissingMandatoryParams");
            assert_eq!(json["status"], "KO");
        }
    });
}

#[test]
fn a_private_route_is_for_those_with_a_key() {
    on_both(|client| {
        let with_field = |key: &str| {
            client.ask(
                "GET",
                "/private",
                &format!("Host: h\r\nX-Api-Key: {key}\r\n"),
                b"",
            )
        };
        for answer in [
            client.get(&format!("/private?a=b&apiKey={KEY_IN_A_QUERY}")),
            with_field(KEY),
        ] {
            assert_eq!((answer.status, &*answer.text()), (200, "come in"));
        }
        for answer in [
            client.get("/private"),
            client.get("/private?apiKey="),
            client.get("/private?apikey=the%20key+of%20the%20suite"),
            with_field("another"),
            with_field(""),
            // The query was shown first.
            client.ask(
                "GET",
                "/private?apiKey=another",
                &format!("Host: h\r\nX-Api-Key: {KEY}\r\n"),
                b"",
            ),
        ] {
            let json = answer.json();
            assert_eq!((answer.status, &json["code"]), (403, &"BAD_API_KEY".into()));
        }
    });
}

#[test]
fn the_application_sees_a_request_before_its_prefix_and_that_before_the_route() {
    on_both(|client| {
        let answer = client.get("/wrapped");
        assert_eq!(
            answer.header("x-notes"),
            Some("app < prefix < first < second < handler")
        );
        let answer = client.get("/hosts");
        assert_eq!(answer.header("x-notes"), Some("app < prefix < handler"));
    });
}

#[test]
fn the_key_is_asked_for_first_and_a_refused_request_comes_to_no_middleware_of_the_route() {
    on_both(|client| {
        for (target, status) in [
            ("/private-asks".to_owned(), 403),
            (format!("/private-asks?apiKey={KEY_IN_A_QUERY}"), 400),
        ] {
            let answer = client.post(&target, b"{}");
            assert_eq!(answer.status, status, "{target}");
            assert_eq!(answer.header("x-notes"), Some("app < prefix < handler"));
        }
        let target = format!("/private-asks?apiKey={KEY_IN_A_QUERY}");
        let answer = client.post(&target, br#"{"name": "Ada"}"#);
        assert_eq!(answer.status, 204);
        assert_eq!(
            answer.header("x-notes"),
            Some("app < prefix < never < handler")
        );
    });
}

#[test]
fn a_head_route_answers_no_get() {
    on_both(|client| {
        let answer = client.get("/head");
        assert_eq!(answer.status, 405);
        assert_eq!(answer.header("allow"), Some("HEAD, OPTIONS"));
    });
    for path in ["/attribute/head", "/code/head"] {
        let response = app().call(&mut Request::new(Method::HEAD, path));
        assert_eq!(response.headers().get("x-own"), Some("yes"), "{path}");
    }
}

#[test]
fn a_private_route_without_a_key_and_a_host_that_is_none_are_errors_at_start() {
    for (route, parts) in [
        (
            Route::get("/", || "").private(),
            ["route_options.rs:", "is private", ".api_keys("],
        ),
        (
            Route::get("/", || "").host("example.com:80"),
            ["route_options.rs:", "\"example.com:80\"", "without port"],
        ),
        (
            Route::patch("/{id", || ""),
            ["route_options.rs:", "\"/{id\"", "not closed"],
        ),
    ] {
        let error = cloudgate::Server::bind("127.0.0.1:0")
            .and_then(|server| server.serve(App::new().add(route)))
            .expect_err("a mistake")
            .to_string();
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    }
}
