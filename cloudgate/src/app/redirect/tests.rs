//! Do redirects, rewrites and slashes lead where they should, and nowhere else?

use super::*;
use crate::message::{Middleware, Service};

fn location(app: &App, target: &str) -> (u16, Option<String>) {
    let response = app.call(&mut Request::get(target));
    let location = response.headers().get("location").map(str::to_owned);
    (response.status().as_u16(), location)
}

#[track_caller]
fn leads(from: &str, to: &str, asked: &str, want: &str) {
    let app = App::new().redirect(from, to, StatusCode::PERMANENT_REDIRECT);
    assert!(app.start().is_ok(), "{:?}", app.start());
    assert_eq!(
        location(&app, asked),
        (308, Some(want.to_owned())),
        "{from} {to} {asked}"
    );
}

#[track_caller]
fn refused(app: App, part: &str) {
    let error = app.start().unwrap_err().to_string();
    assert!(
        error.contains(part) && error.contains("cloudgate/src/app/redirect/tests.rs:"),
        "{error}"
    );
}

#[test]
fn redirects_carry_parameters_and_query_over() {
    leads("/old", "/new", "/old", "/new");
    leads("/old/{id}", "/new/{id}", "/old/7", "/new/7");
    leads("/{a}/x/{b}", "/{b}/{a}.html", "/1/x/2", "/2/1.html");
    leads("/old/{*rest}", "/new/{*rest}", "/old/a/b/", "/new/a/b/");
    leads("/old/{*rest}", "/new/{rest}", "/old/a//b", "/new/a//b");
    leads("/old/", "/new", "/old/", "/new");
    // The query of the request, unless the target has one.
    leads("/old", "/new", "/old?a=b&c", "/new?a=b&c");
    leads("/old", "/new?x=1", "/old?a=b", "/new?x=1");
    leads("/old", "/new?", "/old?a=b", "/new");
    leads(
        "/old/{id}",
        "/new?id={id}",
        "/old/a&b%3D",
        "/new?id=a%26b%3D",
    );
    leads(
        "/old/{*r}",
        "/new?r={r}",
        "/old/a/b%2Fc",
        "/new?r=a%2Fb%2Fc",
    );
    leads("/a", "https://h.example", "/a?b", "https://h.example/?b");
    leads(
        "/a/{*r}",
        "http://h.example:8080/x/{r}",
        "/a/b/c",
        "http://h.example:8080/x/b/c",
    );
}

#[test]
fn values_are_encoded_again() {
    for (sent, want) in [
        ("a%2Fb", "a%2Fb"),
        ("a%20b", "a%20b"),
        ("caf%C3%A9", "caf%C3%A9"),
        ("%61", "a"),
        ("a%0D%0AX-Evil:%201", "a%0D%0AX-Evil:%201"),
        ("%3Fa%23b", "%3Fa%23b"),
        ("a\"<>b", "a%22%3C%3Eb"),
        ("100%25", "100%25"),
        ("%252e", "%252e"),
    ] {
        leads(
            "/o/{id}",
            "/n/{id}",
            &format!("/o/{sent}"),
            &format!("/n/{want}"),
        );
        leads(
            "/o/{*r}",
            "/n/{r}/e",
            &format!("/o/x/{sent}"),
            &format!("/n/x/{want}/e"),
        );
    }
    let app = App::new().redirect("/o/{id}", "/n/{id}", StatusCode::FOUND);
    assert_eq!(location(&app, "/o/%FF"), (400, None));
}

#[test]
fn a_path_never_becomes_a_host() {
    for (asked, want) in [
        ("/old//evil.com/", "/evil.com/"),
        ("/old////evil.com", "/evil.com"),
        ("/old/\\evil.com", "/%5Cevil.com"),
        ("/old/\\\\evil.com", "/%5C%5Cevil.com"),
        ("/old/%5Cevil.com", "/%5Cevil.com"),
        ("/old/%2Fevil.com", "/%2Fevil.com"),
        ("/old/%09/evil.com", "/%09/evil.com"),
        ("/old/https:/evil.com", "/https:/evil.com"),
    ] {
        leads("/old/{*rest}", "/{rest}", asked, want);
    }
    let slash = App::new()
        .get("/{a}", || "a")
        .get("/{a}/{b}", || "b")
        .trailing_slash(TrailingSlash::Redirect);
    assert_eq!(location(&slash, "//evil.com/"), (404, None));
    assert_eq!(
        location(&slash, "/\\evil.com/"),
        (308, Some("/%5Cevil.com".to_owned()))
    );
    assert_eq!(
        location(&slash, "/\\/evil.com/"),
        (308, Some("/%5C/evil.com".to_owned()))
    );
}

#[test]
fn a_redirect_is_a_route_among_routes() {
    let app = App::new()
        .redirect("/a/{id}", "/b/{id}", StatusCode::SEE_OTHER)
        .get("/", || "x");
    refused(app, "and not 303");
    let app = App::new()
        .get("/a/special", || "own")
        .redirect("/a/{id}", "/b", StatusCode::MOVED_PERMANENTLY)
        .redirect("/t", "/b", StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(app.call(&mut Request::get("/a/special")).text(), "own");
    assert_eq!(location(&app, "/a/x"), (301, Some("/b".to_owned())));
    assert_eq!(location(&app, "/t"), (307, Some("/b".to_owned())));
    let status = |method| app.call(&mut Request::new(method, "/t")).status();
    for method in METHODS.into_iter().chain([Method::HEAD]) {
        assert_eq!(status(method), 307);
    }
    assert_eq!(status(Method::OPTIONS), 204);
    // Start-up lines count what a person wrote a function for.
    assert_eq!(app.route_count(), 1);
    let twice = App::new()
        .get("/a", || "a")
        .redirect("/a", "/b", StatusCode::FOUND);
    refused(twice, "two routes answer GET /a");
}

#[test]
fn targets_that_cannot_be_are_errors_at_start() {
    for (from, to, part) in [
        (
            "/a/{id}",
            "/b/{name}",
            "{name}, and the pattern has only {id}",
        ),
        ("/a", "/b/{name}", "the pattern has no parameters"),
        ("/a/{id}", "/b/{id", "no partner"),
        ("/a/{id}", "/b/id}", "no partner"),
        ("/a", "b", "begins with one /"),
        ("/a", "", "begins with one /"),
        ("/a", "//evil.com", "begins with http"),
        ("/a", "/b//c", "empty segment"),
        ("/a", "/b c", "%20"),
        ("/a", "/b#c", "behind #"),
        ("/a", "/\\b", "percent-encode"),
        ("/a", "/%zz", "percent-encode"),
        ("/a", "ftp://h/", "begins with one /"),
        ("/a", "https://", "no host"),
        ("/{h}", "https://{h}/", "no host"),
        ("/{h}", "https://{h}.example.com/", "no host"),
        ("/a", "https://user@h/", "no host"),
        ("/a", "https://*.h/", "no host"),
        ("a", "/b", "\"a\" at"),
    ] {
        refused(App::new().redirect(from, to, StatusCode::FOUND), part);
        refused(App::new().rewrite(from, to), part);
    }
    refused(App::new().rewrite("/a", "https://h/"), "not to a URL");
    refused(App::new().rewrite("/a/{b}", "/a/{b}"), "leads to itself");
    refused(
        App::new().rewrite("/a/{b}", "/c").rewrite("/a/{c}", "/d"),
        "there is one for the same paths at",
    );
}

#[test]
fn redirects_without_end_are_errors_at_start() {
    let to = |app: App, from, to| app.redirect(from, to, StatusCode::FOUND);
    let endless = "sent on without end";
    refused(to(App::new(), "/a", "/a"), endless);
    refused(to(App::new(), "/a/{id}", "/a/{id}?x=1"), endless);
    refused(to(App::new(), "/{*rest}", "/new/{rest}"), endless);
    refused(to(to(App::new(), "/a", "/b"), "/b", "/a"), endless);
    refused(to(App::new(), "/%61", "/a"), endless);
    refused(to(App::new(), "/{id}", "/x"), endless);
    for policy in [TrailingSlash::Redirect, TrailingSlash::Ignore] {
        refused(to(App::new(), "/a", "/a/").trailing_slash(policy), endless);
    }
    refused(
        to(App::new(), "/old", "/new").rewrite("/new", "/old"),
        endless,
    );
    // A more exact route ends the way.
    let fine = to(App::new(), "/{*rest}", "/new/{rest}").get("/new/{*rest}", || "new");
    assert!(fine.start().is_ok());
    assert!(to(App::new(), "/a", "/a/").start().is_ok());
    let url = to(App::new(), "/{*rest}", "https://h.example/{rest}");
    assert!(url.start().is_ok());
    let chain = to(to(to(App::new(), "/a", "/b"), "/b", "/c"), "/c", "/d");
    assert!(chain.start().is_ok());
}

fn shows(request: &mut Request<'_>) -> String {
    let id = request.parameter("id").unwrap_or("-");
    format!(
        "{} {} {} {id}",
        request.path(),
        request.original_path(),
        request.query()
    )
}

fn get(app: &App, target: &str) -> String {
    app.call(&mut Request::get(target)).text()
}

#[test]
fn a_rewritten_request_goes_on_under_its_new_path_once() {
    let app = App::new()
        .get("/b/{id}", shows)
        .get("/c", || "c")
        .mount("/m", |request: &mut Request<'_>| {
            Response::text_plain(request.local_path().to_owned())
        })
        .fallback(|request: &mut Request<'_>| {
            Response::text_plain(format!("file {}", request.path()))
        })
        .rewrite("/a/{x}", "/b/{x}")
        .rewrite("/b/again", "/c")
        .rewrite("/a/exact", "/b/1?own=2")
        .rewrite("/to-mount/{*rest}", "/m/{rest}")
        .rewrite("/{*rest}", "/app/{rest}");
    assert!(app.start().is_ok());
    for (asked, want) in [
        ("/a/7?q=1", "/b/7 /a/7 q=1 7"),
        ("/a/x%2Fy", "/b/x%2Fy /a/x%2Fy  x/y"),
        ("/a/exact?q=1", "/b/1 /a/exact own=2 1"),
        // Once: what it leads to is not looked up again.
        ("/a/again", "/b/again /a/again  again"),
        ("/b/again", "c"),
        ("/to-mount/x/y", "/x/y"),
        ("/x.css", "file /app/x.css"),
        ("//evil", "file /app//evil"),
    ] {
        assert_eq!(get(&app, asked), want, "{asked}");
    }
    let mut request = Request::get("/a/7?q=1");
    app.call(&mut request);
    assert_eq!(
        (request.target(), request.original_path()),
        ("/a/7?q=1", "/a/7")
    );
}

/// Lets nobody in.
fn guard(name: &'static str) -> impl Middleware {
    move |_: &mut Request<'_>, _: Next<'_>| Response::text_plain(name)
}

#[test]
fn no_guard_is_passed_by() {
    let app = App::new()
        .wrap_at("/admin", guard("new path"))
        .wrap_at("/closed", guard("old path"))
        .get("/{*rest}", || "inside")
        .rewrite("/open/{*rest}", "/admin/{rest}")
        .rewrite("/slip/{*rest}", "/{rest}")
        .rewrite("/closed/a", "/elsewhere");
    for (asked, want) in [
        ("/open/x", "new path"),
        ("/slip/admin/x", "new path"),
        ("/slip//admin", "new path"),
        ("/closed/a", "old path"),
        ("/slip/other", "inside"),
    ] {
        assert_eq!(get(&app, asked), want, "{asked}");
    }
}

#[test]
fn a_rewrite_of_a_mounted_application_passes_the_guards_around_it() {
    let inner = || {
        App::new()
            .wrap_at("/own", guard("inner"))
            .get("/{*rest}", shows)
            .rewrite("/slip/{*rest}", "/{rest}")
    };
    let note = |request: &mut Request<'_>, next: Next<'_>| {
        let inside = next.run(request).text();
        Response::text_plain(format!("{inside} {}", request.path()))
    };
    let app = App::new()
        .wrap(note)
        .wrap_at("/in/admin", guard("outer"))
        .mount("/in", inner());
    for (asked, want) in [
        ("/in/slip/admin", "outer /in/slip/admin"),
        ("/in/slip/own/x", "inner /in/slip/own/x"),
        ("/in/slip/x", "/in/x /in/slip/x  - /in/slip/x"),
        ("/in/admin/x", "outer /in/admin/x"),
    ] {
        assert_eq!(get(&app, asked), want, "{asked}");
    }
    let deeper = App::new().wrap_at("/a/in/admin", guard("outermost")).mount(
        "/a",
        App::new()
            .wrap_at("/in/x", guard("middle"))
            .mount("/in", inner()),
    );
    assert_eq!(get(&deeper, "/a/in/slip/admin/1"), "outermost");
    assert_eq!(get(&deeper, "/a/in/slip/x"), "middle");
    assert_eq!(get(&deeper, "/a/in/slip/y"), "/a/in/y /a/in/slip/y  -");
}

#[test]
fn inside_a_mounted_application_paths_are_relative() {
    let inner = App::new()
        .get("/page", || "page")
        .redirect("/old/{id}", "/new/{id}", StatusCode::FOUND)
        .redirect("/out", "https://h.example/x", StatusCode::FOUND)
        .trailing_slash(TrailingSlash::Redirect);
    let app = App::new().mount("/m", inner);
    for (asked, want) in [
        ("/m/old/1?q", "/m/new/1?q"),
        ("/m/out", "https://h.example/x"),
        ("/m/page/?q", "/m/page?q"),
    ] {
        assert_eq!(
            location(&app, asked),
            (
                if asked.contains("page") { 308 } else { 302 },
                Some(want.to_owned())
            )
        );
    }
}

#[test]
fn slashes_at_the_end_are_as_the_policy_says() {
    let app = |policy| {
        App::new()
            .get("/a", || "a")
            .get("/b/", || "b")
            .get("/both", || "without")
            .get("/both/", || "with")
            .get("/p/{id}", shows)
            .post("/post", || "post")
            .mount("/m", |_: &mut Request<'_>| Response::text_plain("m"))
            .fallback(|_: &mut Request<'_>| Response::text_plain("file"))
            .trailing_slash(policy)
    };
    for (asked, strict, redirect, ignore) in [
        ("/a", "a", "a", "a"),
        ("/a/", "file", "/a", "a"),
        ("/a//", "file", "file", "file"),
        ("/b?q=1", "file", "/b/?q=1", "b"),
        ("/both", "without", "without", "without"),
        ("/both/", "with", "with", "with"),
        ("/p/7/", "file", "/p/7", "/p/7/ /p/7/  7"),
        ("/p/", "file", "file", "file"),
        ("/m/", "m", "m", "m"),
        ("/x/", "file", "file", "file"),
        ("/", "file", "file", "file"),
        ("/post/", "file", "/post", "405 Method Not Allowed\n"),
    ] {
        for (policy, want) in [
            (TrailingSlash::Strict, strict),
            (TrailingSlash::Redirect, redirect),
            (TrailingSlash::Ignore, ignore),
        ] {
            let response = app(policy).call(&mut Request::get(asked));
            let location = response.headers().get("location").map(str::to_owned);
            let got = location.unwrap_or_else(|| response.text());
            assert_eq!(got, want, "{asked} {policy:?}");
        }
    }
    assert_eq!(TrailingSlash::default(), TrailingSlash::Strict);
}

#[test]
fn a_host_is_sent_to_another() {
    let app = App::new()
        .get("/{*rest}", || "here")
        .rewrite("/r", "/rewritten")
        .redirect_host("*.example.com", "https://example.com:8443")
        .redirect_host("www.example.com", "example.com");
    assert!(app.start().is_ok());
    for (host, target, want) in [
        ("www.example.com", "/a?b=c", Some("//example.com/a?b=c")),
        ("WWW.example.com.:80", "/", Some("//example.com/")),
        (
            "www.example.com",
            "//evil.com",
            Some("//example.com//evil.com"),
        ),
        ("www.example.com", "/r", Some("//example.com/r")),
        ("www.example.com", "*", None),
        ("x.example.com", "/a", Some("https://example.com:8443/a")),
        ("example.com", "/a", None),
        ("www.example.com.evil", "/a", None),
    ] {
        let mut request = Request::get(target).with_header("Host", host);
        let response = app.call(&mut request);
        assert_eq!(response.headers().get("location"), want, "{host} {target}");
        let status = response.status().as_u16();
        assert_eq!(status == 308, want.is_some(), "{host} {target}");
    }
    for (from, to, part) in [
        ("www.a", "www.a", "leads to itself"),
        ("*", "a", "leads to itself"),
        ("*.a", "https://www.A:1", "leads to itself"),
        ("http://a", "b", "a host is a name"),
        ("a", "b/c", "no host to be sent to"),
        ("a", "ftp://b", "no host to be sent to"),
        ("a", "", "no host to be sent to"),
    ] {
        refused(App::new().redirect_host(from, to), part);
    }
    let twice = App::new().redirect_host("a", "b").redirect_host("A", "c");
    refused(twice, "there is one for the same host at");
}
