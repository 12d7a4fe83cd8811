//! How is a client sent elsewhere?

use std::fmt;

use http::StatusCode;

use super::reply::IntoResponse;
use crate::message::Response;

/// A redirect (RFC 9110 section 15.4).
///
/// | function | status | the client |
/// |---|---|---|
/// | [`Redirect::see_other`] | 303 | asks for the target with GET: the answer to a form |
/// | [`Redirect::found`] | 302 | today the target; a POST may become a GET |
/// | [`Redirect::temporary`] | 307 | today the target, with the same method and body |
/// | [`Redirect::moved`] | 301 | from now on the target; a POST may become a GET |
/// | [`Redirect::permanent`] | 308 | from now on the target, with the same method and body |
///
/// ```
/// use cloudgate::{IntoResponse, Redirect};
/// let response = Redirect::see_other("/orders/7?note=très bien").into_response();
/// assert_eq!(response.status(), 303);
/// assert_eq!(response.headers().get("location"), Some("/orders/7?note=tr%C3%A8s%20bien"));
/// ```
///
/// The target is a path or a whole URL. What may not stand in one - spaces, line breaks, quotes,
/// letters outside of ASCII, a `%` that no two hex digits follow - is percent-encoded; what is
/// encoded already stays. Text that the client sent is a target for [`Redirect::to_local`] only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    status: StatusCode,
    location: String,
}

/// A target that may lead away from this site; see [`Redirect::to_local`]. As a reply it is a 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLocal;

impl Redirect {
    /// 302: the target for now. For the answer to a form [`Redirect::see_other`] is clearer.
    pub fn found(target: &str) -> Redirect {
        Redirect::with_status(StatusCode::FOUND, target)
    }

    /// 303: the client asks for the target with GET.
    pub fn see_other(target: &str) -> Redirect {
        Redirect::with_status(StatusCode::SEE_OTHER, target)
    }

    /// 307: the target for now, with the same method and body.
    pub fn temporary(target: &str) -> Redirect {
        Redirect::with_status(StatusCode::TEMPORARY_REDIRECT, target)
    }

    /// 308: the target from now on, with the same method and body. Browsers remember it.
    pub fn permanent(target: &str) -> Redirect {
        Redirect::with_status(StatusCode::PERMANENT_REDIRECT, target)
    }

    /// 301: the target from now on. Browsers remember it.
    pub fn moved(target: &str) -> Redirect {
        Redirect::with_status(StatusCode::MOVED_PERMANENTLY, target)
    }

    /// 303 to a path of this site that the client chose, such as the `next` of a login form.
    ///
    /// ```
    /// use cloudgate::Redirect;
    /// let after_login = |next: &str| {
    ///     Redirect::to_local(next).unwrap_or_else(|_| Redirect::see_other("/"))
    /// };
    /// assert_eq!(after_login("/cart?item=7"), Redirect::see_other("/cart?item=7"));
    /// assert_eq!(after_login("//evil.example/"), Redirect::see_other("/"));
    /// ```
    ///
    /// # Errors
    /// [`NotLocal`] for whatever does not begin with one slash, and for backslashes and control
    /// characters, which browsers read as slashes or leave out.
    pub fn to_local(target: &str) -> Result<Redirect, NotLocal> {
        let rooted = target.starts_with('/') && !target.starts_with("//");
        let odd = |character: char| character == '\\' || character.is_control();
        if !rooted || target.contains(odd) {
            return Err(NotLocal);
        }
        Ok(Redirect::see_other(target))
    }

    fn with_status(status: StatusCode, target: &str) -> Redirect {
        Redirect {
            status,
            location: encode(target),
        }
    }
}

/// The target with every byte encoded that no URI holds (RFC 3986 section 2).
fn encode(target: &str) -> String {
    let mut encoded = String::with_capacity(target.len());
    let bytes = target.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
        let stays = match byte {
            b'%' => is_hex(at + 1) && is_hex(at + 2),
            _ => byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte),
        };
        if stays {
            encoded.push(byte as char);
        } else {
            encoded.push_str(percent_encoding::percent_encode_byte(byte));
        }
    }
    encoded
}

impl IntoResponse for Redirect {
    fn into_response(self) -> Response {
        Response::new(self.status).header("Location", &self.location)
    }
}

impl From<Redirect> for Response {
    fn from(redirect: Redirect) -> Response {
        redirect.into_response()
    }
}

impl fmt::Display for NotLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the target must be a path of this site, such as /a/b")
    }
}

impl std::error::Error for NotLocal {}

impl IntoResponse for NotLocal {
    fn into_response(self) -> Response {
        Response::error_because(StatusCode::BAD_REQUEST, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_encoded_once_and_cannot_split_the_response() {
        for (target, want) in [
            ("/a?b=c&d=e#f", "/a?b=c&d=e#f"),
            (
                "https://user@[::1]:8080/a;b=c,d",
                "https://user@[::1]:8080/a;b=c,d",
            ),
            ("/caf\u{e9} 1", "/caf%C3%A9%201"),
            ("/a%20b%C3%A9", "/a%20b%C3%A9"),
            ("/100%", "/100%25"),
            ("/100%4", "/100%254"),
            ("/%zz", "/%25zz"),
            ("/a\r\nSet-Cookie: b=c", "/a%0D%0ASet-Cookie:%20b=c"),
            ("/\u{2028}\0\t\u{7f}", "/%E2%80%A8%00%09%7F"),
            ("/\"<>\\^`{|}", "/%22%3C%3E%5C%5E%60%7B%7C%7D"),
            ("", ""),
        ] {
            let response = Redirect::found(target).into_response();
            assert_eq!(response.status(), 302);
            assert_eq!(response.headers().get("location"), Some(want), "{target:?}");
            assert_eq!(response.headers().len(), 1);
        }
    }

    #[test]
    fn each_kind_has_its_status() {
        for (redirect, status) in [
            (Redirect::moved("/a"), 301),
            (Redirect::found("/a"), 302),
            (Redirect::see_other("/a"), 303),
            (Redirect::temporary("/a"), 307),
            (Redirect::permanent("/a"), 308),
        ] {
            assert_eq!(Response::from(redirect).status(), status);
        }
    }

    #[test]
    fn only_a_path_of_this_site_is_local() {
        for target in [
            "/",
            "/a",
            "/a//b",
            "/?next=//evil.example",
            "/a:b@c",
            "/%2f/evil.example",
            "/caf\u{e9}",
            "/#//x",
            "/./a",
        ] {
            assert!(Redirect::to_local(target).is_ok(), "{target:?}");
        }
        for target in [
            "",
            "a",
            "?a",
            "#a",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/a\\b",
            "https://evil.example",
            "https:evil.example",
            "javascript:alert(1)",
            " //evil.example",
            "/\t/evil.example",
            "\t//evil.example",
            "/\n/evil.example",
            "\u{a0}/a",
            "/\u{85}/evil.example",
            "/\0",
        ] {
            assert_eq!(Redirect::to_local(target), Err(NotLocal), "{target:?}");
        }
        let response = NotLocal.into_response();
        assert_eq!(response.status(), 400);
        assert_eq!(crate::HttpError::from(NotLocal).status(), 400);
    }

    proptest::proptest! {
        #[test]
        fn any_target_becomes_a_uri_that_stays_as_it_is(target in "\\PC{0,20}|[ -~]{0,20}|[%\r\n\t0-9a-f/]{0,20}") {
            let encoded = encode(&target);
            proptest::prop_assert!(encoded.bytes().all(|byte| (b'!'..=b'~').contains(&byte)));
            proptest::prop_assert_eq!(encode(&encoded), &*encoded);
            let decode = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
            proptest::prop_assert_eq!(decode(&encoded), decode(&target));
        }
    }
}
