//! Are heads rewritten as a proxy has to?

use std::net::SocketAddr;

use super::*;
use crate::message::{RequestBody, RequestHead};
use crate::proto::h1::parse_request;
use crate::proto::limits::Limits;

/// A request as it comes from a connection; `mounted` is the prefix that belongs to where the gateway is.
fn sent<'c>(text: &str, mounted: &str) -> Request<'c> {
    let mut head = RequestHead::default();
    parse_request(text.as_bytes(), &Limits::DEFAULT, &mut head)
        .unwrap()
        .expect("a complete head");
    let peer: SocketAddr = "192.0.2.1:4711".parse().unwrap();
    let own = crate::message::request::Head::Own(std::sync::Arc::new(head));
    let mut request = Request::assemble(own, peer, RequestBody::empty(), Default::default());
    request.mounted = mounted.len();
    request
}

fn outbound_of(request: &Request<'_>, settings: &Settings, server: &str) -> String {
    let server: Address = server.parse().unwrap();
    let with = Outbound {
        settings,
        server: &server,
        id: &Id::for_test("id-1"),
        length: OutboundLength::None,
        upgrade: false,
        expects_continue: false,
    };
    let mut out = Vec::new();
    super::request(&mut out, request, &with);
    String::from_utf8(out).unwrap()
}

fn stripping() -> Settings {
    Settings {
        strip_path: true,
        ..Settings::default()
    }
}

const SERVER: &str = "http://10.0.0.9:3001";

/// What is said of the client of [`sent`].
const WHO: &str = "X-Forwarded-For: 192.0.2.1\r\nX-Real-IP: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\n\
    Forwarded: for=192.0.2.1;host=\"h\";proto=http\r\nVia: 1.1 cloudgate\r\nX-Request-Id: id-1\r\n\r\n";

#[test]
fn a_plain_request_goes_on_with_who_asks() {
    let request = sent(
        "GET /a?b=c HTTP/1.1\r\nHost: h\r\nAccept: x\r\nCookie: a=1\r\n\r\n",
        "",
    );
    let want =
        format!("GET /a?b=c HTTP/1.1\r\nHost: 10.0.0.9:3001\r\nAccept: x\r\nCookie: a=1\r\n{WHO}");
    assert_eq!(outbound_of(&request, &Settings::default(), SERVER), want);
}

#[track_caller]
fn passes(fields: &str, want: &str) {
    let request = sent(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"), "");
    let got = outbound_of(&request, &Settings::default(), SERVER);
    let want = format!("GET / HTTP/1.1\r\nHost: 10.0.0.9:3001\r\n{want}{WHO}");
    assert_eq!(got, want, "{fields}");
}

#[test]
fn fields_of_the_connection_end_here() {
    passes(
        "Connection: close\r\nKeep-Alive: timeout=5\r\nProxy-Connection: x\r\nTE: gzip\r\nUpgrade: h2c\r\n",
        "",
    );
    passes(
        "Proxy-Authorization: Basic x\r\nProxy-Authenticate: y\r\n",
        "",
    );
    passes(
        "Connection: X-Hop, keep-alive\r\nX-Hop: 1\r\nX-End: 2\r\n",
        "X-End: 2\r\n",
    );
    // An empty first one must not hide the rest.
    passes("Connection:\r\nConnection: x-hop\r\nX-Hop: 1\r\n", "");
    // What the gateway says itself cannot be named away.
    passes(
        "Connection: X-Forwarded-For, Host, Via, Content-Length\r\n",
        "",
    );
}

#[test]
fn a_clients_own_word_for_who_it_is_does_not_go_on() {
    passes(
        "X-Forwarded-For: 6.6.6.6\r\nx-forwarded-proto: https\r\nX-FORWARDED-HOST: evil\r\nForwarded: for=6.6.6.6\r\n\
         X-Real-IP: 6.6.6.6\r\nX-Forwarded-Prefix: /x\r\nX-Forwarded-Port: 1\r\nX-Request-Id: mine\r\n",
        "",
    );
    passes(
        "X_Forwarded_For: 6.6.6.6\r\nX-Forwarded_For: 6\r\nTransfer_Encoding: chunked\r\nContent_Length: 5\r\n",
        "",
    );
    passes(
        "X_Own: 1\r\nX-Forwarded: 2\r\n",
        "X_Own: 1\r\nX-Forwarded: 2\r\n",
    );
}

#[test]
fn a_trusted_proxys_word_goes_on_with_its_own_address_behind() {
    let mut request = sent(
        "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 10.0.0.2\r\nX-Forwarded-Host: shop\r\n\
         X-Forwarded-Port: 443\r\nForwarded: for=1.1.1.1\r\nVia: 1.0 other\r\n\r\n",
        "",
    );
    request.client = Some("1.1.1.1".parse().unwrap());
    request.forwarded_secure = Some(true);
    let got = outbound_of(&request, &Settings::default(), SERVER);
    for line in [
        "X-Forwarded-Port: 443",
        "X-Forwarded-For: 1.1.1.1, 10.0.0.2, 192.0.2.1",
        "X-Real-IP: 1.1.1.1",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: shop",
        "Forwarded: for=1.1.1.1, for=192.0.2.1;host=\"h\";proto=http",
        "Via: 1.0 other, 1.1 cloudgate",
    ] {
        assert_eq!(
            got.matches(&format!("{line}\r\n")).count(),
            1,
            "{line} in {got}"
        );
    }
}

#[test]
fn targets_go_on_byte_for_byte_but_for_the_prefix() {
    for (target, mounted, server, want) in [
        ("/orders/7?a=%41", "/orders", SERVER, "/7?a=%41"),
        ("/orders", "/orders", SERVER, "/"),
        ("/%6frders/a%2fb%20%41", "/orders", SERVER, "/a%2fb%20%41"),
        ("/orders//x/;p=1", "/orders", SERVER, "//x/;p=1"),
        ("/orders/7", "", SERVER, "/orders/7"),
        ("/%61", "", SERVER, "/%61"),
        ("/orders/7", "/orders", "http://a.test/base/", "/base/7"),
        ("http://h/orders/7", "/orders", SERVER, "/7"),
    ] {
        let request = sent(
            &format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"),
            mounted,
        );
        let got = outbound_of(&request, &stripping(), server);
        assert_eq!(got.split(' ').nth(1), Some(want), "{target}");
        let prefix = format!("X-Forwarded-Prefix: {mounted}\r\n");
        assert_eq!(got.contains(&prefix), !mounted.is_empty(), "{got}");
    }
    // A query stands at once behind what is cut.
    let request = sent("GET /orders?a HTTP/1.1\r\nHost: h\r\n\r\n", "/orders");
    assert!(outbound_of(&request, &stripping(), SERVER).starts_with("GET /?a "));
}

#[test]
fn hosts_and_edits_are_as_they_were_set() {
    let request = sent(
        "GET / HTTP/1.1\r\nHost: shop.test\r\nX-A: 1\r\nX-B: 2\r\n\r\n",
        "",
    );
    let mut settings = Settings {
        host: HostField::Keep,
        ..Settings::default()
    };
    settings.request_fields.set("x-a", "new").unwrap();
    settings.request_fields.remove("X-B").unwrap();
    settings.request_fields.add("X-C", "3").unwrap();
    let got = outbound_of(&request, &settings, SERVER);
    assert!(got.contains("\r\nHost: shop.test\r\n"));
    assert!(got.contains("\r\nx-a: new\r\nX-C: 3\r\n"));
    assert!(!got.contains("X-A: 1") && !got.contains("X-B"));
    settings.host = HostField::Named("inner.test".to_owned());
    assert!(outbound_of(&request, &settings, SERVER).contains("\r\nHost: inner.test\r\n"));
    for name in ["Host", "via", "X-Forwarded-For", "Connection", "a b", ""] {
        assert!(settings.request_fields.set(name, "x").is_err(), "{name}");
    }
    assert!(settings.response_fields.add("X-A", "a\r\nb: c").is_err());
}

#[test]
fn steps_up_are_seen_in_every_spelling() {
    for path in [
        "/a/..",
        "/../a",
        "/a/../b",
        "/a/..%2Fb",
        "/a%2F..%2Fb",
        "/a/..\\b",
        "/a/..%5Cb",
        "/a/..;/b",
        "/a/..;x=1/b",
        "/a/..%3B/b",
    ] {
        assert!(climbs(path), "{path}");
    }
    for path in [
        "/",
        "/a..b",
        "/a/...",
        "/a/..b",
        "/.well-known/x",
        "/a/b..",
        "/a;..=1",
    ] {
        assert!(!climbs(path), "{path}");
    }
}

#[track_caller]
fn place(value: &str, mounted: &str, server: &str, want: &str) {
    let request = sent(
        &format!("GET {mounted}/x HTTP/1.1\r\nHost: shop.test\r\n\r\n"),
        mounted,
    );
    let server: Address = server.parse().unwrap();
    let settings = stripping();
    let with = Inbound {
        settings: &settings,
        server: &server,
    };
    let mut headers = Headers::new();
    headers.append("Location", value).unwrap();
    answer(&mut headers, &request, &with);
    assert_eq!(headers.get("location"), Some(want), "{value}");
}

#[test]
fn places_are_named_as_the_client_reaches_them() {
    let base = "http://10.0.0.9:3001/v1";
    place("/a?b", "/orders", SERVER, "/orders/a?b");
    place("/", "/orders", SERVER, "/orders/");
    place("a/b", "/orders", SERVER, "a/b");
    place("?x", "/orders", SERVER, "?x");
    place("//other.test/a", "/orders", SERVER, "//other.test/a");
    place(
        "http://10.0.0.9:3001/a",
        "/orders",
        SERVER,
        "http://shop.test/orders/a",
    );
    place(
        "http://10.0.0.9:3001",
        "/orders",
        SERVER,
        "http://shop.test/orders/",
    );
    place(
        "https://shop.test/a",
        "/orders",
        SERVER,
        "https://shop.test/orders/a",
    );
    place(
        "https://other.test/a",
        "/orders",
        SERVER,
        "https://other.test/a",
    );
    place("mailto:a@b", "/orders", SERVER, "mailto:a@b");
    place("/v1/a", "/orders", base, "/orders/a");
    place("/v1", "/orders", base, "/orders");
    // Not below the server's base, so the client cannot reach it by this gateway.
    place("/v10/a", "/orders", base, "/v10/a");
    place("/a", "", SERVER, "/a");
    place("/v1/a", "", base, "/a");
    place("http://10.0.0.9:3001/a", "", SERVER, "http://shop.test/a");
    place("https://shop.test/a", "", SERVER, "https://shop.test/a");
}

#[test]
fn paths_of_cookies_get_the_prefix_back_and_lines_stay_apart() {
    let request = sent("GET /orders/x HTTP/1.1\r\nHost: h\r\n\r\n", "/orders");
    let server: Address = SERVER.parse().unwrap();
    let settings = stripping();
    let with = Inbound {
        settings: &settings,
        server: &server,
    };
    let mut headers = Headers::new();
    for cookie in [
        "a=1; Path=/; HttpOnly",
        "b=2; Expires=Mon, 01 Jan 2035 00:00:00 GMT; path=/cart",
        "path=/x",
    ] {
        headers.append("Set-Cookie", cookie).unwrap();
    }
    answer(&mut headers, &request, &with);
    let got: Vec<_> = headers
        .get_all("set-cookie")
        .map(|value| String::from_utf8_lossy(value).into_owned())
        .collect();
    assert_eq!(
        got,
        [
            "a=1; Path=/orders; HttpOnly",
            "b=2; Expires=Mon, 01 Jan 2035 00:00:00 GMT; Path=/orders/cart",
            "path=/x",
        ]
    );
}

#[test]
fn fields_of_the_servers_connection_end_here() {
    let request = sent("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "");
    let server: Address = SERVER.parse().unwrap();
    let mut settings = Settings::default();
    settings.response_fields.set("Server", "mine").unwrap();
    let with = Inbound {
        settings: &settings,
        server: &server,
    };
    let mut headers = Headers::new();
    for (name, value) in [
        ("Connection", "X-Hop"),
        ("X-Hop", "1"),
        ("Proxy-Connection", "close"),
        ("Upgrade", "h2c"),
        ("Server", "theirs"),
        ("ETag", "\"e\""),
    ] {
        headers.append(name, value).unwrap();
    }
    answer(&mut headers, &request, &with);
    let names: Vec<_> = headers.iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["ETag", "Server"]);
    assert_eq!(headers.get("server"), Some("mine"));
}
