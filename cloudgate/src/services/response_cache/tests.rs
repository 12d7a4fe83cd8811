//! Does everybody get what is theirs, and is what many want made once?

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::*;

mod bounds;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn standing(mut cache: ResponseCache) -> (ResponseCache, Clock) {
    let clock = Clock::standing();
    cache.clock = clock.clone();
    (cache, clock)
}

fn cache() -> ResponseCache {
    standing(ResponseCache::for_seconds(10)).0
}

fn get(target: &str, fields: &[(&str, &str)]) -> Request<'static> {
    fields
        .iter()
        .fold(Request::get(target), |request, (name, value)| {
            request.with_header(name, value)
        })
}

/// Asks, with an answer made from `make` if it is made; says whether it came from memory.
fn is_hit(
    cache: &ResponseCache,
    mut request: Request<'_>,
    make: impl FnOnce() -> Response,
) -> bool {
    let mut made = false;
    cache.answer(&mut request, |_| {
        made = true;
        make()
    });
    !made
}

fn page() -> Response {
    Response::html("page")
}

#[test]
fn no_user_gets_what_was_made_for_another() {
    // The Node.js server handed one user's parsed request to the handler for the next one.
    let cache = cache();
    let greet = |request: &mut Request<'_>| {
        Response::html(request.header("cookie").unwrap_or("nobody").to_owned())
    };
    for user in ["user=1", "user=2", "user=3", "user=1"] {
        let mut request = get("/me?x=1", &[("Cookie", user)]);
        assert_eq!(cache.answer(&mut request, greet).text(), user);
    }
    for _ in 0..2 {
        assert_eq!(
            cache.answer(&mut get("/me?x=1", &[]), greet).text(),
            "nobody"
        );
    }
    let mut request = get("/me?x=1", &[("Cookie", "user=4")]);
    assert_eq!(cache.answer(&mut request, greet).text(), "user=4");
}

#[test]
fn one_valid_key_lets_nobody_else_in() {
    for field in ["Authorization", "X-Api-Key", "Proxy-Authorization"] {
        let cache = cache();
        let guarded = |request: &mut Request<'_>| match request.header(field) {
            Some("secret") => Response::html("for you"),
            _ => Response::error(StatusCode::UNAUTHORIZED),
        };
        for (key, want) in [("secret", 200), ("wrong", 401), ("secret", 200)] {
            let response = cache.answer(&mut get("/private", &[(field, key)]), guarded);
            assert_eq!(response.status(), want, "{field}");
        }
        let response = cache.answer(&mut get("/private", &[]), guarded);
        assert_eq!(response.status(), 401, "{field}");
    }
}

#[test]
fn host_target_and_query_tell_answers_apart() {
    let cache = cache();
    assert!(!is_hit(&cache, get("/a?b=1", &[("Host", "one")]), page));
    for (target, host, want) in [
        ("/a?b=1", "one", true),
        ("/a?b=1", "ONE", true),
        ("/a?b=2", "one", false),
        ("/a", "one", false),
        ("/a?", "one", false),
        ("/A?b=1", "one", false),
        ("/a?b=1", "two", false),
        ("/a?b=1", "one:80", false),
    ] {
        let hit = is_hit(&cache, get(target, &[("Host", host)]), page);
        assert_eq!(hit, want, "{host}{target}");
    }
    // Where one text ends and the next begins is not to be moved.
    assert!(!is_hit(&cache, get("/x/y", &[("Host", "h")]), page));
    assert!(!is_hit(&cache, get("/y", &[("Host", "h/x")]), page));
}

#[test]
fn fields_that_vary_names_tell_answers_apart() {
    let cache = cache();
    let vary = || page().header("Vary", "Accept-Language,  x-b");
    assert!(!is_hit(
        &cache,
        get("/", &[("Accept-Language", "de")]),
        vary
    ));
    for (fields, want) in [
        (&[("Accept-Language", "de")][..], true),
        (&[("accept-language", "de"), ("X-Other", "1")], true),
        (&[("Accept-Language", "en")], false),
        (&[], false),
        (&[("Accept-Language", "de"), ("X-B", "")], false),
        (
            &[("Accept-Language", "de"), ("Accept-Language", "en")],
            false,
        ),
        (&[("Accept-Language", "de")], true),
        (&[("Accept-Language", "en")], true),
        (&[], true),
        (&[("Accept-Language", "de"), ("X-B", "")], true),
        (
            &[("Accept-Language", "de"), ("Accept-Language", "en")],
            true,
        ),
    ] {
        assert_eq!(is_hit(&cache, get("/", fields), vary), want, "{fields:?}");
    }
    let cache = standing(ResponseCache::for_seconds(10).vary_by("X-Tenant")).0;
    assert!(!is_hit(&cache, get("/", &[("x-tenant", "a")]), page));
    assert!(!is_hit(&cache, get("/", &[("x-tenant", "b")]), page));
    assert!(is_hit(&cache, get("/", &[("x-tenant", "a")]), page));
    assert!(!is_hit(&cache, get("/", &[]), page));
}

#[test]
fn what_the_handler_does_to_the_request_does_not_change_its_key() {
    let cache = cache();
    let mut request = get("/", &[("Accept-Encoding", "gzip")]);
    cache.answer(&mut request, |request| {
        request.headers_mut().remove("accept-encoding");
        page().header("Vary", "Accept-Encoding")
    });
    assert!(is_hit(
        &cache,
        get("/", &[("Accept-Encoding", "gzip")]),
        page
    ));
    assert!(!is_hit(&cache, get("/", &[]), page));
}

#[test]
fn requests_that_ask_for_something_else_pass_by() {
    for (name, value) in [
        ("Cookie", "a=b"),
        ("Authorization", "Basic eDp5"),
        ("Range", "bytes=0-1"),
        ("If-Match", "\"a\""),
        ("If-Unmodified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("Upgrade", "websocket"),
        ("Cache-Control", "max-age=0, No-Store"),
        ("Transfer-Encoding", "chunked"),
        ("Content-Length", "1"),
    ] {
        let cache = cache();
        assert!(!is_hit(&cache, get("/", &[(name, value)]), page));
        assert!(
            !is_hit(&cache, get("/", &[]), page),
            "{name} left an answer"
        );
        assert!(
            !is_hit(&cache, get("/", &[(name, value)]), page),
            "{name} got one"
        );
        assert!(is_hit(&cache, get("/", &[]), page));
    }
    for (name, value) in [
        ("Cache-Control", "no-cache"),
        ("Pragma", "no-cache"),
        ("Content-Length", "0"),
    ] {
        let cache = cache();
        assert!(!is_hit(&cache, get("/", &[(name, value)]), page));
        assert!(is_hit(&cache, get("/", &[(name, value)]), page), "{name}");
    }
    let cache = standing(ResponseCache::for_seconds(10).ignore_cookies()).0;
    assert!(!is_hit(&cache, get("/", &[("Cookie", "a=1")]), page));
    assert!(is_hit(&cache, get("/", &[("Cookie", "a=2")]), page));
}

#[test]
fn answers_that_may_be_meant_for_one_or_for_now_are_not_kept() {
    let field = |name: &'static str, value: &'static str| move || page().header(name, value);
    #[track_caller]
    fn check(make: impl Fn() -> Response, want: bool) {
        let cache = cache();
        is_hit(&cache, get("/", &[]), &make);
        assert_eq!(is_hit(&cache, get("/", &[]), &make), want, "{:?}", make());
        assert_eq!(cache.store.size().0, usize::from(want));
    }
    check(field("Set-Cookie", "a=b"), false);
    check(field("Cache-Control", "no-store"), false);
    check(field("Cache-Control", "public, Private"), false);
    check(field("Cache-Control", "private=\"X-A\""), false);
    check(field("Cache-Control", "no-cache"), false);
    check(field("Cache-Control", "max-age=0"), false);
    check(field("Cache-Control", "max-age=9, s-maxage=0"), false);
    check(field("Cache-Control", "s-maxage=9, max-age=0"), true);
    check(field("Cache-Control", "max-age=9, max-age=0"), false);
    check(field("Cache-Control", "max-age=soon"), false);
    check(field("Cache-Control", "max-age=-1"), false);
    check(field("Cache-Control", "max-age=\"9\", public"), true);
    check(field("Vary", "Accept, *"), false);
    check(field("Expires", "0"), false);
    check(field("Expires", "Sun, 06 Nov 1994 08:49:37 GMT"), false);
    check(field("Expires", "Fri, 06 Nov 2893 08:49:37 GMT"), true);
    check(|| Response::stream(|_| Ok(())), false);
    check(|| Response::new(StatusCode::OK), true);
    let status = |code: u16| move || Response::new(StatusCode::from_u16(code).unwrap());
    for kept in [200, 203, 204, 300, 301, 308, 404, 410] {
        check(status(kept), true);
    }
    for other in [
        101, 201, 202, 206, 302, 303, 304, 307, 400, 401, 403, 405, 429, 500, 502, 503, 504,
    ] {
        check(status(other), false);
    }
    let statuses = [StatusCode::FOUND, StatusCode::PARTIAL_CONTENT];
    let cache = standing(ResponseCache::for_seconds(10).statuses(statuses)).0;
    for (code, want) in [(302, true), (206, false), (200, false)] {
        let target = format!("/{code}");
        is_hit(&cache, get(&target, &[]), status(code));
        assert_eq!(is_hit(&cache, get(&target, &[]), status(code)), want);
    }
}

#[test]
fn an_answer_is_kept_for_its_time_and_shows_its_age() {
    let (cache, clock) = standing(ResponseCache::for_seconds(10));
    let age = |cache: &ResponseCache, target: &str| {
        let response = cache.answer(&mut Request::get(target), |_| Response::html("new"));
        response.headers().get("age").map(str::to_owned)
    };
    assert!(!is_hit(&cache, get("/", &[]), page));
    is_hit(&cache, get("/short", &[]), || {
        page().header("Cache-Control", "max-age=3")
    });
    is_hit(&cache, get("/long", &[]), || {
        page().header("Cache-Control", "max-age=99")
    });
    is_hit(&cache, get("/old", &[]), || {
        page()
            .header("Cache-Control", "max-age=99")
            .header("Age", "95")
    });
    clock.advance(3 * SECOND - Duration::from_nanos(1));
    assert_eq!(age(&cache, "/short").as_deref(), Some("2"));
    assert_eq!(age(&cache, "/old").as_deref(), Some("97"));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(age(&cache, "/short"), None);
    clock.advance(SECOND);
    assert_eq!(age(&cache, "/old"), None);
    clock.advance(6 * SECOND - Duration::from_nanos(1));
    assert_eq!(age(&cache, "/").as_deref(), Some("9"));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(age(&cache, "/"), None);
    assert_eq!(age(&cache, "/long"), None);
    let cache = standing(ResponseCache::for_seconds(0)).0;
    is_hit(&cache, get("/", &[]), page);
    assert!(!is_hit(&cache, get("/", &[]), page));
}

#[test]
fn head_is_served_from_get_and_leaves_nothing_itself() {
    let cache = cache();
    let head = || Request::new(Method::HEAD, "/");
    assert!(!is_hit(&cache, head(), || Response::new(StatusCode::OK)));
    assert!(!is_hit(&cache, get("/", &[]), page));
    assert!(is_hit(&cache, head(), page));
    // The server takes the length from the body, and leaves the body out.
    let response = cache.answer(&mut head(), |_| panic!("not called"));
    assert_eq!(response.body().length(), Some(4));
    assert!(!is_hit(&cache, Request::new(Method::OPTIONS, "/"), page));
}

#[test]
fn a_client_that_has_it_gets_304() {
    let cache = cache();
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    let tagged = || page().header("ETag", "\"a\"").header("Last-Modified", DATE);
    is_hit(&cache, get("/", &[]), tagged);
    is_hit(&cache, get("/weak", &[]), || {
        page().header("ETag", "W/\"a\"")
    });
    is_hit(&cache, get("/plain", &[]), page);
    is_hit(&cache, get("/gone", &[]), || {
        tagged().with_status(StatusCode::GONE)
    });
    for (target, fields, want) in [
        ("/", &[("If-None-Match", "\"a\"")][..], 304),
        ("/", &[("If-None-Match", "\"b\", W/\"a\"")], 304),
        ("/", &[("If-None-Match", "*")], 304),
        ("/", &[("If-None-Match", "\"b\"")], 200),
        (
            "/",
            &[("If-None-Match", "\"b\""), ("If-Modified-Since", DATE)],
            200,
        ),
        ("/", &[("If-Modified-Since", DATE)], 304),
        ("/", &[("If-Modified-Since", LATER)], 304),
        ("/", &[("If-Modified-Since", EARLIER)], 200),
        ("/weak", &[("If-None-Match", "\"a\"")], 304),
        ("/weak", &[("If-None-Match", "\"W/\"")], 200),
        ("/plain", &[("If-None-Match", "\"a\"")], 200),
        ("/plain", &[("If-Modified-Since", LATER)], 200),
        ("/gone", &[("If-None-Match", "\"a\"")], 410),
    ] {
        let response = cache.answer(&mut get(target, fields), |_| panic!("not called"));
        assert_eq!(response.status(), want, "{target} {fields:?}");
        assert!(response.headers().contains("age"));
        if want == 304 {
            assert!(response.headers().contains("etag"));
            assert_eq!(response.body().length(), Some(0));
        }
    }
}

#[test]
fn a_change_through_the_cache_forgets_the_page() {
    let cache = cache();
    for (method, status, want) in [
        (Method::POST, 200, false),
        (Method::PUT, 204, false),
        (Method::DELETE, 303, false),
        (Method::POST, 400, true),
        (Method::PATCH, 500, true),
        (Method::OPTIONS, 200, true),
    ] {
        is_hit(&cache, get("/a", &[]), page);
        is_hit(&cache, get("/b", &[]), page);
        let status = StatusCode::from_u16(status).unwrap();
        is_hit(&cache, Request::new(method.clone(), "/a"), || {
            Response::new(status)
        });
        assert_eq!(
            is_hit(&cache, get("/a", &[]), page),
            want,
            "{method} {status}"
        );
        assert!(is_hit(&cache, get("/b", &[]), page));
    }
    // What was begun before the change is not kept after it.
    cache.forget("", "/a");
    assert!(!is_hit(&cache, get("/a", &[]), || {
        is_hit(&cache, Request::post("/a"), page);
        page()
    }));
    assert!(!is_hit(&cache, get("/a", &[]), page));
    cache.forget("", "/a");
    assert!(!is_hit(&cache, get("/a", &[]), page));
    cache.clear();
    assert_eq!(cache.store.size(), (0, 0));
    assert!(!is_hit(&cache, get("/b", &[]), || {
        cache.clear();
        page()
    }));
    assert!(!is_hit(&cache, get("/b", &[]), page));
}

#[test]
fn what_one_client_has_left_is_not_told_to_others() {
    let cache = cache();
    let limited = || {
        page()
            .header("RateLimit", "\"a\";r=1;t=1")
            .header("RateLimit-Policy", "\"a\";q=1")
    };
    is_hit(&cache, get("/", &[]), limited);
    let response = cache.answer(&mut get("/", &[]), |_| panic!("not called"));
    assert!(!response.headers().contains("ratelimit"));
    assert!(!response.headers().contains("ratelimit-policy"));
}

#[test]
fn many_at_once_make_one_answer() {
    const THREADS: usize = 8;
    let (cache, made) = (cache().wait_at_most(HOUR), AtomicUsize::new(0));
    let (barrier, asked) = (Barrier::new(THREADS), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                asked.fetch_add(1, Ordering::SeqCst);
                let response = cache.answer(&mut Request::get("/"), |_| {
                    // All the others are on their way, and most of them wait.
                    while asked.load(Ordering::SeqCst) < THREADS {
                        thread::yield_now();
                    }
                    made.fetch_add(1, Ordering::SeqCst);
                    page()
                });
                assert_eq!(response.text(), "page");
            });
        }
    });
    assert_eq!(made.into_inner(), 1);
}

/// Starts a request whose answer is made when the sender says so or is dropped, and waits until it
/// is being made.
fn held<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    cache: &'scope ResponseCache,
    make: fn() -> Response,
) -> (mpsc::Sender<()>, thread::ScopedJoinHandle<'scope, bool>) {
    let (go, goes) = mpsc::channel();
    let (begun, begins) = mpsc::channel();
    let thread = scope.spawn(move || {
        is_hit(cache, Request::get("/"), || {
            begun.send(()).unwrap();
            let _ = goes.recv();
            make()
        })
    });
    begins.recv().unwrap();
    (go, thread)
}

fn is_awaited(cache: &ResponseCache) -> bool {
    let key = cache.store.key_of("", "/").unwrap();
    let shard = cache.store.shard(key.hash());
    shard.flights.values().any(|flight| flight.is_awaited())
}

#[test]
fn where_nothing_can_be_kept_the_next_ones_do_not_wait() {
    let cache = cache().wait_at_most(HOUR);
    let make = || page().header("Cache-Control", "no-store");
    thread::scope(|scope| {
        let (go, first) = held(scope, &cache, make);
        let waiting = scope.spawn(|| is_hit(&cache, Request::get("/"), make));
        while !is_awaited(&cache) {
            thread::yield_now();
        }
        drop(go);
        assert!(!first.join().unwrap());
        assert!(!waiting.join().unwrap());
        // One is being made again; this one would wait for an hour.
        let (go, _) = held(scope, &cache, make);
        assert!(!is_hit(&cache, Request::get("/"), page));
        drop(go);
    });
    // As soon as an answer could be kept, it is used again.
    assert!(is_hit(&cache, Request::get("/"), page));
}

#[test]
fn a_wait_ends_in_its_time_or_when_the_other_fails() {
    let impatient = cache().wait_at_most(Duration::from_millis(1));
    thread::scope(|scope| {
        let (go, first) = held(scope, &impatient, page);
        assert!(!is_hit(&impatient, Request::get("/"), page));
        assert!(is_hit(&impatient, Request::get("/"), page));
        drop(go);
        assert!(!first.join().unwrap());
    });
    let patient = cache().wait_at_most(HOUR);
    let failed = catch_unwind(AssertUnwindSafe(|| {
        patient.answer(&mut Request::get("/"), |_| panic!("the handler fails"))
    }));
    assert!(failed.is_err());
    assert!(!is_hit(&patient, Request::get("/"), page));
    let alone = cache().wait_at_most(Duration::ZERO);
    thread::scope(|scope| {
        let (go, _) = held(scope, &alone, page);
        assert!(!is_hit(&alone, Request::get("/"), page));
        drop(go);
    });
}

#[test]
fn the_same_cache_twice_on_the_way_does_not_wait_for_itself() {
    let cache = cache().wait_at_most(Duration::from_secs(9));
    let app = crate::App::new()
        .get("/", || "page")
        .wrap(cache.clone())
        .wrap(ResponseCache::for_seconds(1).wait_at_most(Duration::from_secs(9)))
        .wrap(cache);
    assert_eq!(app.call(&mut Request::get("/")).text(), "page");
    let again = app.call(&mut Request::get("/"));
    assert!(again.headers().contains("age"));
}
