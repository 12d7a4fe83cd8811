//! How does a client get a cookie?

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::app::reply::IntoResponse;
use crate::message::Response;

/// The most bytes of name and value together, and of an attribute: browsers leave a cookie out that
/// is larger, without a word (RFC 6265bis section 5.7).
const MOST_BYTES: usize = 4096;
const MOST_ATTRIBUTE_BYTES: usize = 1024;

/// A cookie to set by [`Response::set_cookie`].
///
/// Unless it is told otherwise it counts for the whole site (`Path=/`), until the browser is closed;
/// scripts do not see it (`HttpOnly`), and other sites' forms do not send it (`SameSite=Lax`).
///
/// `Secure`, with which a browser sends it over TLS only, is **off** unless it is asked for, because
/// over plain HTTP such a cookie would silently be lost. Switch it on wherever the site has TLS;
/// [`Request::is_secure`](crate::Request::is_secure) tells whether this client has come by it. It is on by itself where a
/// browser demands it: for a name that begins with `__Host-` or `__Secure-`, and with [`SameSite::None`].
///
/// ```
/// use cloudgate::{Cookie, Response};
/// use std::time::Duration;
///
/// let response = Response::html("hello").set_cookie(
///     Cookie::new("theme", "dark")
///         .max_age(Duration::from_secs(30 * 24 * 60 * 60))
///         .secure(true)
///         .http_only(false),
/// );
/// assert_eq!(
///     response.headers().get("set-cookie"),
///     Some("theme=dark; Path=/; Max-Age=2592000; Secure; SameSite=Lax")
/// );
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Cookie {
    pub(super) name: String,
    pub(super) value: String,
    path: String,
    domain: Option<String>,
    pub(super) max_age: Option<Duration>,
    removal: bool,
    secure: bool,
    http_only: bool,
    same_site: SameSite,
    /// It has no value that could be sent.
    pub(super) broken: bool,
}

/// With which requests from other sites' pages a browser sends a cookie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SameSite {
    /// None, not even when the user follows a link.
    Strict,
    /// When the user follows a link; not with forms that are posted, pictures or scripts.
    #[default]
    Lax,
    /// All of them. Browsers take it together with `Secure` only, which is set then.
    None,
}

/// What `encodeURIComponent` leaves as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'!')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

impl Cookie {
    /// A cookie with this name and value.
    ///
    /// The value may hold ASCII without spaces, quotes, commas, semicolons and backslashes
    /// (RFC 6265 section 4.1.1). For any other text there is [`Cookie::encoded`].
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Cookie {
        Cookie {
            name: name.into(),
            value: value.into(),
            path: "/".to_owned(),
            domain: None,
            max_age: None,
            removal: false,
            secure: false,
            http_only: true,
            same_site: SameSite::Lax,
            broken: false,
        }
    }

    /// A cookie with any text, percent-encoded as JavaScript's `encodeURIComponent` does; read it by
    /// [`Cookies::get_decoded`](crate::Cookies::get_decoded).
    ///
    /// ```
    /// use cloudgate::{Cookie, Response};
    /// let response = Response::html("").set_cookie(Cookie::encoded("city", "São Paulo"));
    /// assert!(response.headers().get("set-cookie").unwrap().starts_with("city=S%C3%A3o%20Paulo;"));
    /// ```
    pub fn encoded(name: impl Into<String>, text: &str) -> Cookie {
        Cookie::new(name, utf8_percent_encode(text, ENCODED).to_string())
    }

    /// What removes the cookie of this name; path and domain must be those that it was set with.
    pub fn removal(name: impl Into<String>) -> Cookie {
        Cookie {
            removal: true,
            ..Cookie::new(name, "")
        }
    }

    /// Whether scripts of the page are kept from it; they are unless this says otherwise.
    pub fn http_only(mut self, http_only: bool) -> Cookie {
        self.http_only = http_only;
        self
    }

    /// Whether it is sent over TLS only.
    pub fn secure(mut self, secure: bool) -> Cookie {
        self.secure = secure;
        self
    }

    /// With which requests from other sites it is sent.
    pub fn same_site(mut self, same_site: SameSite) -> Cookie {
        self.same_site = same_site;
        self
    }

    /// The path below which it counts.
    pub fn path(mut self, path: impl Into<String>) -> Cookie {
        self.path = path.into();
        self
    }

    /// The domain whose hosts get it; without one only the host that sets it does.
    pub fn domain(mut self, domain: impl Into<String>) -> Cookie {
        self.domain = Some(domain.into());
        self
    }

    /// How long the browser keeps it, in whole seconds; without it until the browser is closed.
    pub fn max_age(mut self, age: Duration) -> Cookie {
        self.max_age = Some(age);
        self
    }

    /// The value of the Set-Cookie field, or why there is none.
    fn to_field(&self) -> Result<String, &'static str> {
        let host_only = has_prefix(&self.name, "__Host-");
        let prefixed = host_only || has_prefix(&self.name, "__Secure-");
        if self.broken {
            return Err("the system gave no random bytes to encrypt it");
        }
        if !is_name(&self.name) {
            return Err("a name holds letters, digits and !#$%&'*+-.^_`|~ only");
        }
        if !self.value.bytes().all(is_value_byte) {
            return Err(
                "a value holds no space, quote, comma, semicolon, backslash, control character or letter outside of ASCII: use Cookie::encoded",
            );
        }
        if self.name.len() + self.value.len() > MOST_BYTES {
            return Err("browsers drop a cookie whose name and value have more than 4096 bytes");
        }
        if !self.path.starts_with('/') || !is_attribute(&self.path) {
            return Err("a path begins with a slash and holds no semicolon, at most 1024 bytes");
        }
        if let Some(domain) = &self.domain {
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
            if domain.is_empty() || !is_attribute(domain) || !domain.bytes().all(fits) {
                return Err("a domain is a host name such as example.com, at most 1024 bytes");
            }
        }
        if host_only && (self.domain.is_some() || self.path != "/") {
            return Err("browsers drop a __Host- cookie that has a domain, or a path other than /");
        }
        let mut field = format!("{}={}; Path={}", self.name, self.value, self.path);
        if let Some(domain) = &self.domain {
            field.push_str("; Domain=");
            field.push_str(domain);
        }
        if self.removal {
            field.push_str("; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT");
        } else if let Some(age) = self.max_age {
            field.push_str("; Max-Age=");
            field.push_str(&age.as_secs().to_string());
        }
        if self.secure || prefixed || self.same_site == SameSite::None {
            field.push_str("; Secure");
        }
        if self.http_only {
            field.push_str("; HttpOnly");
        }
        field.push_str(match self.same_site {
            SameSite::Strict => "; SameSite=Strict",
            SameSite::Lax => "; SameSite=Lax",
            SameSite::None => "; SameSite=None",
        });
        Ok(field)
    }
}

/// Browsers compare the prefixes of names in any case.
fn has_prefix(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(fits)
}

/// RFC 6265 section 4.1.1: cookie-octet.
fn is_value_byte(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e)
}

fn is_attribute(text: &str) -> bool {
    text.len() <= MOST_ATTRIBUTE_BYTES
        && text
            .bytes()
            .all(|byte| (b' '..=b'~').contains(&byte) && byte != b';')
}

/// The value of a cookie may be a secret.
impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookie")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// The same response with one more cookie.
    ///
    /// A cookie that would split the field, or that browsers would drop without a word - a name that
    /// is no token, a space in the value, more than 4096 bytes -, is refused: the answer becomes a
    /// 500, and the log says what is wrong.
    ///
    /// ```
    /// use cloudgate::{Cookie, Redirect, Response};
    /// let response = Response::from(Redirect::see_other("/"))
    ///     .set_cookie(Cookie::new("seen", "yes"))
    ///     .set_cookie(Cookie::removal("draft"));
    /// assert_eq!(response.headers().get_all("set-cookie").count(), 2);
    /// ```
    pub fn set_cookie(mut self, cookie: Cookie) -> Response {
        let appended = cookie.to_field().and_then(|field| {
            self.headers_mut()
                .append("Set-Cookie", field)
                .map_err(|_| "it would split the response")
        });
        match appended {
            Ok(()) => self,
            Err(reason) => {
                log::error!("the cookie {:?} cannot be set: {reason}", cookie.name);
                Response::error(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

/// The reply, with this cookie.
impl<T: IntoResponse> IntoResponse for (Cookie, T) {
    fn into_response(self) -> Response {
        self.1.into_response().set_cookie(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cookie: Cookie, want: &str) {
        assert_eq!(cookie.to_field().as_deref(), Ok(want));
    }

    #[test]
    fn attributes_are_safe_unless_told_otherwise() {
        check(Cookie::new("a", "b"), "a=b; Path=/; HttpOnly; SameSite=Lax");
        check(
            Cookie::new("a", "b")
                .path("/x y")
                .domain("example.com")
                .max_age(Duration::from_millis(1999))
                .same_site(SameSite::Strict)
                .http_only(false)
                .secure(true),
            "a=b; Path=/x y; Domain=example.com; Max-Age=1; Secure; SameSite=Strict",
        );
        check(
            Cookie::new("a", "b").same_site(SameSite::None),
            "a=b; Path=/; Secure; HttpOnly; SameSite=None",
        );
        for name in ["__Host-a", "__secure-a"] {
            check(
                Cookie::new(name, ""),
                &format!("{name}=; Path=/; Secure; HttpOnly; SameSite=Lax"),
            );
        }
        check(
            Cookie::removal("a").max_age(Duration::from_secs(9)),
            "a=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Lax",
        );
    }

    #[test]
    fn what_would_split_the_field_or_be_dropped_is_refused() {
        for bad in [
            "",
            "a b",
            "a=b",
            "a;b",
            "a\r\nb",
            "a,b",
            "caf\u{e9}",
            "a\0",
            "\"a\"",
        ] {
            assert!(Cookie::new(bad, "x").to_field().is_err(), "name {bad:?}");
        }
        for bad in [
            " ",
            "a b",
            "a;b",
            "a,b",
            "a\"b",
            "a\\b",
            "a\r\nb",
            "caf\u{e9}",
            "\0",
            "\u{7f}",
        ] {
            assert!(Cookie::new("a", bad).to_field().is_err(), "value {bad:?}");
            check(
                Cookie::encoded("a", bad),
                &format!(
                    "a={}; Path=/; HttpOnly; SameSite=Lax",
                    utf8_percent_encode(bad, ENCODED)
                ),
            );
        }
        for bad in ["", "a", "/;a", "/\r\n", "/caf\u{e9}"] {
            assert!(
                Cookie::new("a", "b").path(bad).to_field().is_err(),
                "path {bad:?}"
            );
        }
        for bad in ["", "a b", "a;b", "a\r\n", "a/b", "caf\u{e9}.fr"] {
            assert!(
                Cookie::new("a", "b").domain(bad).to_field().is_err(),
                "domain {bad:?}"
            );
        }
        assert!(Cookie::new("__Host-a", "b").path("/a").to_field().is_err());
        assert!(
            Cookie::new("__host-a", "b")
                .domain("a.b")
                .to_field()
                .is_err()
        );
        let response = Response::html("secret").set_cookie(Cookie::new("a", "b\r\nX: y"));
        assert_eq!(response.status(), 500);
        assert!(response.headers().get("set-cookie").is_none());
        assert!(!response.text().contains("secret"));
    }

    #[test]
    fn sizes_are_allowed_up_to_what_browsers_take() {
        for (bytes, fits) in [(MOST_BYTES, true), (MOST_BYTES + 1, false)] {
            let cookie = Cookie::new("a", "x".repeat(bytes - 1));
            assert_eq!(cookie.to_field().is_ok(), fits, "{bytes}");
        }
        for (bytes, fits) in [
            (MOST_ATTRIBUTE_BYTES, true),
            (MOST_ATTRIBUTE_BYTES + 1, false),
        ] {
            let path = "/".repeat(bytes);
            assert_eq!(Cookie::new("a", "b").path(path).to_field().is_ok(), fits);
            let domain = "a".repeat(bytes);
            assert_eq!(
                Cookie::new("a", "b").domain(domain).to_field().is_ok(),
                fits
            );
        }
    }

    #[test]
    fn encoded_text_comes_back() {
        let text = "{\"a\": \"caf\u{e9}; 100%\"}";
        let cookie = Cookie::encoded("a", text);
        let request =
            crate::Request::get("/").with_header("Cookie", &format!("a={}", cookie.value));
        assert_eq!(
            crate::Cookies::of(&request).get_decoded("a").as_deref(),
            Some(text)
        );
    }

    proptest::proptest! {
        #[test]
        fn what_is_set_is_what_comes_back(name in ".{0,8}|[!-~]{1,8}", value in ".{0,8}|[!-~]{0,8}") {
            if let Ok(field) = Cookie::new(&*name, &*value).to_field() {
                proptest::prop_assert!(field.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
                let (pair, _) = field.split_once(';').unwrap();
                let request = crate::Request::get("/").with_header("Cookie", pair);
                let cookies = crate::Cookies::of(&request);
                proptest::prop_assert_eq!(cookies.iter().collect::<Vec<_>>(), [(&*name, &*value)]);
            }
        }
    }
}
