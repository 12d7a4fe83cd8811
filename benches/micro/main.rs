//! How long do the parts of a request take by themselves: the head, the route, the handler, the answer?
//!
//! ```text
//! cargo bench --bench micro
//! ```
//!
//! `httparse` alone, which finds the pieces of a head without a look at what they mean, is the floor.

#![allow(
    missing_docs,
    reason = "criterion's macros write functions without a word"
)]

mod ws;

use std::hint::black_box;

use cloudgate::__fuzz::{ReusedHead, ServiceNumbers, encode_head};
use cloudgate::{
    App, ClientAddr, Cookies, Cors, Limits, Path, Query, RateLimit, Request, RequestIds, Response,
    ResponseCache, SecurityHeaders, SharedMemory, State, Templates,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const SMALL: &[u8] = b"GET /api/tests/simple HTTP/1.1\r\nHost: localhost:3000\r\n\r\n";

const BROWSER: &[u8] = b"GET /api/tests/full?a=1&b=two HTTP/1.1\r\n\
Host: www.example.org\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n\
Accept-Language: en-US,en;q=0.5\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\n\
Referer: https://www.example.org/start/page?from=search\r\n\
Connection: keep-alive\r\n\
Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; consent=yes\r\n\
Upgrade-Insecure-Requests: 1\r\n\
Sec-Fetch-Dest: document\r\n\
Sec-Fetch-Mode: navigate\r\n\
Sec-Fetch-Site: same-origin\r\n\
Priority: u=0, i\r\n\
\r\n";

fn heads(criterion: &mut Criterion) {
    for (name, input) in [("small", SMALL), ("browser", BROWSER)] {
        let mut group = criterion.benchmark_group(format!("head/{name}"));
        group.throughput(Throughput::Bytes(input.len() as u64));
        group.bench_function("floor (httparse alone)", |bencher| {
            bencher.iter(|| {
                let mut fields = [httparse::EMPTY_HEADER; 32];
                let mut request = httparse::Request::new(&mut fields);
                request
                    .parse(black_box(input))
                    .is_ok_and(|status| status.is_complete())
            });
        });
        let (mut head, limits) = (ReusedHead::default(), Limits::DEFAULT);
        assert_eq!(head.parse(input, &limits), Some(input.len()));
        group.bench_function("cloudgate (checked, kept, framing)", |bencher| {
            bencher.iter(|| head.parse(black_box(input), &limits));
        });
        group.finish();
    }
}

fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode");
    let response = Response::html("Hello World!");
    let mut out = Vec::with_capacity(1024);
    group.bench_function("head of a small answer", |bencher| {
        bencher.iter(|| {
            out.clear();
            encode_head(&mut out, black_box(&response), 12);
            out.len()
        });
    });
    let mut large = Response::html("");
    for number in 0..10 {
        large = large.header(&format!("X-Field-{number}"), "a value of usual length");
    }
    group.bench_function("head with eleven fields", |bencher| {
        bencher.iter(|| {
            out.clear();
            encode_head(&mut out, black_box(&large), 12);
            out.len()
        });
    });
    group.finish();
}

/// An application with routes as a larger one has them.
fn app() -> App {
    let mut app = App::new().get("/api/tests/simple", || Response::html("Hello World!"));
    for number in 0..100 {
        app = app
            .get(&format!("/api/items{number}"), || "list")
            .get(&format!("/api/items{number}/{{id}}"), || "item")
            .get(
                &format!("/api/items{number}/{{id}}/parts/{{part}}"),
                || "part",
            );
    }
    app
}

fn calls(criterion: &mut Criterion) {
    let app = app();
    let mut group = criterion.benchmark_group("App::call, 301 routes");
    for (name, target, want) in [
        ("literal route", "/api/tests/simple", "Hello World!"),
        ("one parameter", "/api/items57/1234", "item"),
        ("two parameters", "/api/items57/1234/parts/5", "part"),
    ] {
        let mut request = Request::get(target);
        assert_eq!(app.call(&mut request).text(), want);
        group.bench_function(name, |bencher| {
            bencher.iter(|| app.call(black_box(&mut request)));
        });
    }
    let mut request = Request::get("/api/nothing/here");
    group.bench_function("no route", |bencher| {
        bencher.iter(|| app.call(black_box(&mut request)));
    });
    group.finish();
}

/// What ready-made middlewares cost in front of a trivial route, for a request of the same origin.
fn middleware(criterion: &mut Criterion) {
    let app = || App::new().get("/api/tests/simple", || Response::html("Hello World!"));
    let cors = || Cors::new().origin("https://app.example.com");
    let mut group = criterion.benchmark_group("middleware");
    for (name, app) in [
        ("none", app()),
        ("RequestIds", app().wrap(RequestIds::new())),
        ("SecurityHeaders", app().wrap(SecurityHeaders::new())),
        ("Cors", app().wrap(cors())),
        (
            "RequestIds, Cors, SecurityHeaders",
            app()
                .wrap(RequestIds::new())
                .wrap(cors())
                .wrap(SecurityHeaders::new()),
        ),
    ] {
        // A request keeps its id, so each round has one of its own.
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                || Request::get("/api/tests/simple").with_header("Host", "localhost:3000"),
                |request| app.call(black_box(request)),
                criterion::BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

#[derive(serde::Deserialize)]
struct Page {
    page: u32,
    #[serde(default)]
    sort: String,
}

struct Name(&'static str);

/// A route as a program has it: five arguments out of the request.
#[cloudgate::get("/orders/{id}")]
fn order(
    Path(id): Path<u64>,
    Query(page): Query<Page>,
    cookies: Cookies,
    State(name): State<Name>,
    ClientAddr(client): ClientAddr,
) -> Response {
    black_box((id, page.page, &page.sort, name.0, client));
    black_box(cookies.get("session"));
    Response::html("Hello World!")
}

/// What five extractors and three middlewares of a route cost, beside the same answer without them.
fn route(criterion: &mut Criterion) {
    let plain = App::new().get("/orders", || Response::html("Hello World!"));
    let bare = || App::gather().state(Name("shop"));
    let full = bare()
        .wrap(RequestIds::new())
        .wrap(Cors::new().origin("https://app.example.com"))
        .wrap(SecurityHeaders::new());
    let mut group = criterion.benchmark_group("route");
    for (name, app, target) in [
        ("no argument", plain, "/orders"),
        ("five extractors", bare(), "/orders/7?page=2&sort=name"),
        (
            "five extractors, three middlewares",
            full,
            "/orders/7?page=2&sort=name",
        ),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(
                || {
                    Request::get(target)
                        .with_header("Host", "localhost:3000")
                        .with_header("Cookie", "theme=dark; session=0123456789abcdef")
                },
                |request| app.call(black_box(request)),
                criterion::BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// Everything but the socket: head, framing, route, handler, answer.
fn whole(criterion: &mut Criterion) {
    let app = app();
    let (mut head, limits) = (ReusedHead::default(), Limits::DEFAULT);
    let mut request = Request::get("/api/tests/simple");
    let mut out = Vec::with_capacity(1024);
    criterion.bench_function("whole request in memory", |bencher| {
        bencher.iter(|| {
            head.parse(black_box(SMALL), &limits);
            let response = app.call(&mut request);
            out.clear();
            encode_head(&mut out, &response, 12);
            out.extend_from_slice(&response.bytes());
            out.len()
        });
    });
}

/// What all requests share, as one thread sees it while nobody else wants it.
fn shared(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("shared");
    let memory = SharedMemory::new();
    for number in 0..10_000 {
        let key = format!("key{number}");
        memory.integers("others").set(&key, 1).expect("room");
    }
    let integers = memory.integers("visits");
    integers.set("all", 0).expect("room");
    group.bench_function("increment", |bencher| {
        bencher.iter(|| integers.increment(black_box("all"), 1));
    });
    memory.strings("texts").set("one", "text").expect("room");
    group.bench_function("get a string", |bencher| {
        bencher.iter(|| memory.strings("texts").get(black_box("one")));
    });

    let request = Request::get("/api/tests/simple");
    let limit = RateLimit::per_second(1_000_000).burst(u32::MAX);
    group.bench_function("limit: one client", |bencher| {
        bencher.iter(|| limit.check(black_box(&request)));
    });
    let mut number = 0_u32;
    group.bench_function("limit: a new client each time, the table full", |bencher| {
        bencher.iter(|| {
            number = number.wrapping_add(1);
            let address = std::net::IpAddr::from(number.to_be_bytes());
            limit.ban_address(black_box(address), std::time::Duration::ZERO);
        });
    });

    let cache = ResponseCache::for_seconds(u32::MAX);
    let page = |_: &mut Request<'_>| Response::html("Hello World!");
    let mut request = Request::get("/api/tests/simple").with_header("Host", "localhost:3000");
    cache.answer(&mut request, page);
    group.bench_function("cache: hit", |bencher| {
        bencher.iter(|| cache.answer(black_box(&mut request), page));
    });
    let mut own = Request::get("/").with_header("Cookie", "a=b");
    group.bench_function("cache: passed by", |bencher| {
        bencher.iter(|| cache.answer(black_box(&mut own), page));
    });

    let numbers = ServiceNumbers::new("orders");
    let took = std::time::Duration::from_micros(1700);
    group.bench_function("gateway: a request's numbers", |bencher| {
        bencher.iter(|| numbers.record(black_box(200), black_box(took), 0, black_box(120)));
    });
    group.bench_function("gateway: these, and that it is under way", |bencher| {
        bencher.iter(|| numbers.count(black_box(200), black_box(took), 0, black_box(120)));
    });
    group.finish();
}

/// The page of the generated application, from its template.
fn template(criterion: &mut Criterion) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/template/templates");
    let pages = Templates::folder(folder).expect("the template's templates");
    let values = serde_json::json!({
        "name": "World",
        "path": "/api/tests/template",
        "address": "127.0.0.1",
        "time": 1_700_000_000_000_u64,
    });
    criterion.bench_function("the template's page", |bencher| {
        bencher.iter(|| pages.render("page.html", black_box(&values)));
    });
}

criterion_group!(
    micro,
    heads,
    encode,
    calls,
    middleware,
    route,
    whole,
    shared,
    template,
    ws::sockets
);
criterion_main!(micro);
