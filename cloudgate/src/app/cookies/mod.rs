//! Which cookies did the client send, and how does it get new ones?
//!
//! ```text
//!  Cookie field ─▶ Cookies ─▶ SignedCookies, PrivateCookies (sealed) ─▶ handler
//!  handler ─▶ Cookie (cookie) ─▶ seal (sealed, key) ─▶ Response::set_cookie ─▶ Set-Cookie field
//! ```

mod cookie;
mod key;
mod sealed;

use std::borrow::Cow;
use std::convert::Infallible;

use super::extract::FromRequest;
use crate::message::Request;

pub use cookie::{Cookie, SameSite};
pub use key::CookieKey;
pub use sealed::{PrivateCookies, SignedCookies};

/// The most cookies of a request that are kept. Browsers keep up to 180 of a site; without a limit a
/// head of 64 KiB would be thousands of strings.
const MOST_COOKIES: usize = 200;

/// The cookies that the client sent. There is no request that is refused for them: what is no
/// `name=value` is left out (RFC 6265 section 5.4 says what browsers send), and so is what comes
/// behind the 200th.
///
/// ```
/// use cloudgate::{Cookie, Cookies, Response, route};
///
/// #[route("/theme")]
/// fn theme(cookies: Cookies) -> Response {
///     let theme = cookies.get("theme").unwrap_or("light").to_owned();
///     Response::html(format!("It is {}.", cloudgate::escape_html(&theme)))
///         .set_cookie(Cookie::new("theme", "dark"))
/// }
/// # use cloudgate::{App, Request};
/// # let mut request = Request::get("/theme").with_header("Cookie", "a=b; theme=sepia");
/// # let response = App::gather().call(&mut request);
/// # assert_eq!(response.headers().get("set-cookie"), Some("theme=dark; Path=/; HttpOnly; SameSite=Lax"));
/// # assert_eq!(response.text(), "It is sepia.");
/// ```
///
/// Anyone can send any cookie: one that must not be changed by the client belongs into
/// [`SignedCookies`], one that it must not even read into [`PrivateCookies`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cookies(Vec<(String, String)>);

impl Cookies {
    /// The value of the first cookie of this name; browsers send the one with the longest path first.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// As [`Cookies::get`], for one that was set by [`Cookie::encoded`]; bytes that are no UTF-8
    /// become U+FFFD.
    pub fn get_decoded(&self, name: &str) -> Option<Cow<'_, str>> {
        let decoder = percent_encoding::percent_decode_str(self.get(name)?);
        Some(decoder.decode_utf8_lossy())
    }

    /// Every name and value, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.iter()
            .filter(move |(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    fn of(request: &Request<'_>) -> Cookies {
        let pairs = request
            .headers()
            .get_all("cookie")
            .flat_map(|field| field.split(|byte| *byte == b';'))
            .filter_map(|pair| std::str::from_utf8(pair).ok())
            .filter_map(parse_pair)
            .take(MOST_COOKIES)
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Cookies(pairs.collect())
    }
}

/// `name=value`, without the space around both and one pair of quotes around the value.
fn parse_pair(pair: &str) -> Option<(&str, &str)> {
    let (name, value) = pair.split_once('=')?;
    let (name, value) = (name.trim_ascii(), value.trim_ascii());
    let unquoted = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(value);
    (!name.is_empty()).then_some((name, unquoted))
}

impl FromRequest for Cookies {
    type Rejection = Infallible;

    fn from_request(request: &mut Request<'_>) -> Result<Cookies, Infallible> {
        Ok(Cookies::of(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(field: &str, want: &[(&str, &str)]) {
        let request = Request::get("/").with_header("Cookie", field);
        let cookies = Cookies::of(&request);
        assert_eq!(cookies.iter().collect::<Vec<_>>(), want, "{field:?}");
    }

    #[test]
    fn pairs_are_read_and_what_is_none_is_left_out() {
        check("a=b", &[("a", "b")]);
        check(
            "a=b; c=d;e=f ;  g = h ",
            &[("a", "b"), ("c", "d"), ("e", "f"), ("g", "h")],
        );
        check("a=b=c==", &[("a", "b=c==")]);
        check(
            "a=; b=\"\"; c=\"x y\"; d=\"; e=\"x",
            &[
                ("a", ""),
                ("b", ""),
                ("c", "x y"),
                ("d", "\""),
                ("e", "\"x"),
            ],
        );
        check("a; =b; ; =; ;;c=d;", &[("c", "d")]);
        check("a=1; A=2; a=3", &[("a", "1"), ("A", "2"), ("a", "3")]);
        check(
            "a[0]=1; $Version=1; b={\"c\":1,\"d\":2}",
            &[("a[0]", "1"), ("$Version", "1"), ("b", "{\"c\":1,\"d\":2}")],
        );
        check("caf\u{e9}=\u{20ac}", &[("caf\u{e9}", "\u{20ac}")]);
        check("", &[]);
    }

    #[test]
    fn several_fields_are_one_list_and_bytes_that_are_no_text_cost_one_pair() {
        let mut request = Request::get("/").with_header("Cookie", "a=1");
        request
            .headers_mut()
            .append("COOKIE", b"b=2; c=\xff; d=4")
            .unwrap();
        let cookies = Cookies::of(&request);
        assert_eq!(
            cookies.iter().collect::<Vec<_>>(),
            [("a", "1"), ("b", "2"), ("d", "4")]
        );
        assert_eq!(cookies.get("a"), Some("1"));
        assert_eq!(cookies.get("c"), None);
        assert_eq!(Cookies::of(&Request::get("/")), Cookies::default());
    }

    #[test]
    fn the_200th_cookie_is_kept_and_the_next_one_is_not() {
        for (others, kept) in [(199, true), (200, false)] {
            let field = "a=1; ".repeat(others) + "b=2";
            let request = Request::get("/").with_header("Cookie", &field);
            assert_eq!(Cookies::of(&request).get("b").is_some(), kept);
        }
    }

    #[test]
    fn of_two_with_one_name_the_first_counts() {
        let request = Request::get("/").with_header("Cookie", "a=1; a=2");
        assert_eq!(Cookies::of(&request).get("a"), Some("1"));
    }
}
