//! Does a browser get its cookies back as they were set, and does nobody get others?

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use cloudgate::{
    Cookie, CookieKey, Cookies, PrivateCookies, Redirect, Response, SignedCookies, route,
};
use cloudgate_suite::{Answer, ask, start};

/// The state of these tests.
pub(crate) fn key() -> CookieKey {
    CookieKey::from_text(&"0123456789abcdef".repeat(8)).expect("64 bytes in hex")
}

#[route("/cookies/shown")]
fn shown(cookies: Cookies, signed: SignedCookies, private: PrivateCookies) -> String {
    format!(
        "{} {} {}",
        cookies.get("plain").unwrap_or("-"),
        signed.get("signed").unwrap_or_else(|| "-".to_owned()),
        private.get("private").unwrap_or_else(|| "-".to_owned())
    )
}

#[route(POST, "/cookies/login")]
fn login(signed: SignedCookies, private: PrivateCookies) -> Response {
    Response::from(Redirect::see_other("/cookies/shown"))
        .set_cookie(Cookie::new("plain", "p").max_age(Duration::from_secs(60)))
        .set_cookie(signed.seal(Cookie::new("signed", "s; \u{e9}")))
        .set_cookie(private.seal(Cookie::new("private", "secret\r\n")))
}

#[route("/cookies/out")]
fn logout() -> (Cookie, &'static str) {
    (Cookie::removal("signed"), "bye")
}

#[route("/cookies/split")]
fn split() -> (Cookie, &'static str) {
    (Cookie::new("a", "b\r\nX-Evil: 1"), "secret")
}

/// A browser, as far as cookies are concerned.
#[derive(Default)]
struct Browser(BTreeMap<String, String>);

impl Browser {
    #[track_caller]
    fn ask(&mut self, address: SocketAddr, line: &str) -> Answer {
        let pairs: Vec<String> = self
            .0
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let cookies = pairs.join("; ");
        let answer = ask(
            address,
            format!("{line} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nCookie: {cookies}\r\n\r\n"),
        );
        for line in answer.head.lines() {
            let Some(field) = line.strip_prefix("Set-Cookie: ") else {
                continue;
            };
            let (pair, attributes) = field.split_once("; ").expect("attributes");
            let (name, value) = pair.split_once('=').expect("a pair");
            assert!(attributes.contains("HttpOnly") && attributes.contains("SameSite=Lax"));
            if attributes.contains("Max-Age=0") {
                self.0.remove(name);
            } else {
                self.0.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }
}

#[test]
fn a_browser_gets_cookies_sends_them_back_and_loses_them_again() {
    let server = start(crate::app());
    let mut browser = Browser::default();
    assert_eq!(
        browser.ask(server.addr(), "GET /cookies/shown").text(),
        "- - -"
    );
    let answer = browser.ask(server.addr(), "POST /cookies/login");
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some("/cookies/shown"))
    );
    assert_eq!(browser.0.len(), 3);
    assert_eq!(
        browser.ask(server.addr(), "GET /cookies/shown").text(),
        "p s; \u{e9} secret\r\n"
    );
    assert_eq!(browser.ask(server.addr(), "GET /cookies/out").text(), "bye");
    assert_eq!(
        browser.ask(server.addr(), "GET /cookies/shown").text(),
        "p - secret\r\n"
    );
}

#[test]
fn a_sealed_cookie_that_was_tampered_with_is_as_if_it_were_absent() {
    let server = start(crate::app());
    let mut browser = Browser::default();
    browser.ask(server.addr(), "POST /cookies/login");
    let sealed = browser.0.clone();
    for name in ["signed", "private"] {
        let value = &sealed[name];
        let other = if name == "signed" {
            "private"
        } else {
            "signed"
        };
        let flipped = if value.starts_with('A') { "B" } else { "A" };
        for bad in [
            "s",
            "",
            "%%%",
            &value[1..],
            &value[..value.len() - 1],
            &format!("{flipped}{}", &value[1..]),
            &format!("{value}."),
            &sealed[other],
        ] {
            let mut browser = Browser(sealed.clone());
            browser.0.insert(name.to_owned(), bad.to_owned());
            let text = browser.ask(server.addr(), "GET /cookies/shown").text();
            let want = if name == "signed" {
                "p - secret\r\n"
            } else {
                "p s; \u{e9} -"
            };
            assert_eq!(text, want, "{name}={bad}");
        }
    }
}

#[test]
fn cookies_that_are_none_are_no_reason_to_refuse_the_request() {
    let server = start(crate::app());
    for (field, want) in [
        (&b"plain=1; =2; ;;; x; plain"[..], "1 - -"),
        (b"\xff\xfe; plain=\xff; plain=2", "2 - -"),
        (b"plain=\"quoted\"", "quoted - -"),
        (b"", "- - -"),
    ] {
        let request = [
            b"GET /cookies/shown HTTP/1.1\r\nHost: h\r\nCookie: ",
            field,
            b"\r\n\r\n",
        ]
        .concat();
        let answer = ask(server.addr(), request);
        assert_eq!((answer.status, &*answer.text()), (200, want));
    }
}

#[test]
fn a_cookie_that_would_split_the_response_is_a_500() {
    let server = start(crate::app());
    let answer = cloudgate_suite::get(server.addr(), "/cookies/split");
    assert_eq!(answer.status, 500);
    assert!(answer.header("x-evil").is_none() && answer.header("set-cookie").is_none());
    assert_eq!(answer.text(), "500 Internal Server Error\n");
}
