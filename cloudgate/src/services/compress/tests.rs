//! Is the right answer compressed, and does it say so?

use std::io::Read;

use http::Method;

use super::*;

const LONG: &str = "0123456789abcdef";

/// A page of exactly this many bytes.
fn page(length: usize) -> Response {
    Response::html(LONG.repeat(length / 16 + 1)[..length].to_owned())
}

fn answer(
    compression: &Compression,
    accepts: &str,
    response: impl Fn() -> Response + 'static,
) -> Response {
    let mut request = Request::get("/").with_header("Accept-Encoding", accepts);
    let end = move |_: &mut Request<'_>| response();
    compression.handle(&mut request, Next::new(&[], &end))
}

fn is_gzip(response: &Response) -> bool {
    response.headers().get("content-encoding") == Some("gzip")
}

fn varies(response: &Response) -> bool {
    response.headers().has_token("vary", "accept-encoding")
}

fn plain(response: Response) -> String {
    let bytes = response.bytes();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .unwrap();
    text
}

#[test]
fn the_minimum_itself_is_compressed_and_one_byte_less_is_not() {
    let compression = Compression::new();
    let response = answer(&compression, "gzip", || page(1024));
    assert!(is_gzip(&response) && varies(&response));
    assert_eq!(plain(response), page(1024).text());
    let response = answer(&compression, "gzip", || page(1023));
    assert!(!is_gzip(&response) && !varies(&response));
    // Unless the client does not want it plain, for then nothing else is left.
    let response = answer(&compression, "gzip, identity;q=0", || page(1));
    assert!(is_gzip(&response) && varies(&response));
    let response = answer(&compression, "gzip, identity;q=0", || page(0));
    assert!(!is_gzip(&response));
    let response = answer(&compression.minimum(10), "gzip", || page(1000));
    assert!(is_gzip(&response));
}

#[test]
fn what_could_have_been_compressed_says_so_to_everybody() {
    for accepts in ["", "identity", "gzip;q=0", "br2"] {
        let response = answer(&Compression::new(), accepts, || page(5000));
        assert!(!is_gzip(&response) && varies(&response), "{accepts}");
        assert_eq!(response.text(), page(5000).text());
    }
    let response = answer(&Compression::new(), "gzip", || {
        Response::error(StatusCode::NOT_MODIFIED)
    });
    assert!(!is_gzip(&response) && varies(&response));
}

#[test]
fn what_must_stay_as_it_is_does() {
    let with = |name: &'static str, value: &'static str| move || page(5000).header(name, value);
    let of_status = |status: u16| move || page(5000).with_status(status.try_into().unwrap());
    type Respond = Box<dyn Fn() -> Response>;
    let cases: [(&str, Respond); 9] = [
        ("encoded", Box::new(with("Content-Encoding", "br"))),
        (
            "no-transform",
            Box::new(with("Cache-Control", "public, No-Transform")),
        ),
        ("part", Box::new(with("Content-Range", "bytes 0-4999/9000"))),
        (
            "digest",
            Box::new(with("Content-Digest", "sha-256=:AAAA=:")),
        ),
        ("image", Box::new(with("Content-Type", "image/png"))),
        (
            "events",
            Box::new(with("Content-Type", "text/event-stream")),
        ),
        ("204", Box::new(of_status(204))),
        ("206", Box::new(of_status(206))),
        (
            "no type",
            Box::new(|| Response::default().with_body(vec![b'a'; 5000])),
        ),
    ];
    for (name, response) in cases {
        let before = response()
            .headers()
            .get("content-encoding")
            .map(str::to_owned);
        let after = answer(&Compression::new(), "gzip", response);
        assert_eq!(
            after.headers().get("content-encoding"),
            before.as_deref(),
            "{name}"
        );
        assert_eq!(after.body().length(), Some(5000), "{name}");
        // A part varies as its whole does.
        assert_eq!(varies(&after), name == "206", "{name}");
    }
}

#[test]
fn errors_are_compressed_too() {
    let response = answer(&Compression::new(), "gzip", || {
        page(5000).with_status(StatusCode::NOT_FOUND)
    });
    assert!(is_gzip(&response));
    assert_eq!(response.status(), 404);
}

#[test]
fn types_are_compressed_where_that_makes_them_shorter() {
    for (media_type, want) in [
        ("text/html; charset=utf-8", true),
        ("TEXT/Plain", true),
        ("text/css", true),
        ("text/event-stream", false),
        ("application/json", true),
        ("application/problem+json; a=b", true),
        ("application/javascript", true),
        ("application/xhtml+xml", true),
        ("application/wasm", true),
        ("application/octet-stream", false),
        ("application/zip", false),
        ("application/pdf", false),
        ("image/svg+xml", true),
        ("image/png", false),
        ("image/webp", false),
        ("video/mp4", false),
        ("audio/mpeg", false),
        ("font/ttf", true),
        ("font/woff2", false),
        ("json", false),
        ("", false),
    ] {
        let response = answer(&Compression::new(), "gzip", move || {
            page(5000).header("Content-Type", media_type)
        });
        assert_eq!(is_gzip(&response), want, "{media_type}");
    }
    let also = Compression::new().also("Text/Event-Stream; charset=utf-8");
    let response = answer(&also, "gzip", || {
        page(5000).header("Content-Type", "text/event-stream")
    });
    assert!(is_gzip(&response));
}

#[test]
fn fields_tell_what_became_of_the_body() {
    for (tag, want) in [("\"a\"", "W/\"a\""), ("W/\"a\"", "W/\"a\"")] {
        let response = answer(&Compression::new(), "gzip", move || {
            page(5000)
                .header("ETag", tag)
                .header("Content-Length", "5000")
                .header("Accept-Ranges", "bytes")
                .header("Vary", "Cookie")
        });
        let headers = response.headers();
        assert_eq!(headers.get("etag"), Some(want));
        assert_eq!(headers.get("content-length"), None);
        assert_eq!(headers.get("accept-ranges"), None);
        assert_eq!(headers.get("vary"), Some("Cookie, Accept-Encoding"));
        // Nothing of that where the body stays.
        let response = answer(&Compression::new(), "", move || {
            page(5000).header("ETag", tag)
        });
        assert_eq!(response.headers().get("etag"), Some(tag));
    }
}

#[test]
fn what_does_not_get_shorter_stays() {
    // Bytes without a pattern, as far as gzip can see.
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(2000)
    .collect();
    let kept = noise.clone();
    let respond = move || Response::of_type("text/plain", noise.clone());
    let response = answer(&Compression::new(), "gzip", respond.clone());
    assert!(!is_gzip(&response) && varies(&response));
    assert_eq!(response.bytes(), kept);
    assert!(is_gzip(&answer(
        &Compression::new(),
        "gzip, *;q=0",
        respond
    )));
}

#[test]
fn head_is_answered_as_get_is() {
    let end = |_: &mut Request<'_>| page(5000).header("ETag", "\"a\"");
    let answers = [Method::GET, Method::HEAD].map(|method| {
        let mut request = Request::new(method, "/").with_header("Accept-Encoding", "gzip");
        let response = Compression::new().handle(&mut request, Next::new(&[], &end));
        (
            format!("{:?}", response.headers()),
            response.body().length(),
        )
    });
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].0.contains("gzip"));
}

#[test]
fn a_level_that_there_is_not_is_an_error_at_start() {
    for (level, fits) in [(0, false), (1, true), (9, true), (10, false)] {
        assert_eq!(Compression::new().level(level).start().is_ok(), fits);
    }
}
