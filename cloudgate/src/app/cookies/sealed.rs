//! Which cookies can the client not forge, or not read?

use std::fmt;

use super::Cookies;
use super::cookie::Cookie;
use super::key::{CookieKey, now};
use crate::app::extract::FromRequest;
use crate::app::rejection::Rejection;
use crate::app::state::{Needs, State};
use crate::message::Request;

/// Cookies that the client can read but not change; the application has a [`CookieKey`] as its state.
///
/// ```
/// use cloudgate::{App, Cookie, CookieKey, Redirect, SignedCookies, route};
///
/// #[route(POST, "/login")]
/// fn login(cookies: SignedCookies) -> (Cookie, Redirect) {
///     (cookies.seal(Cookie::new("user", "Ada")), Redirect::see_other("/me"))
/// }
///
/// #[route("/me")]
/// fn me(cookies: SignedCookies) -> String {
///     cookies.get("user").unwrap_or_else(|| "nobody".to_owned())
/// }
///
/// # fn main() -> cloudgate::Result<()> {
/// let app = App::gather().state(CookieKey::generate()?);
/// # use cloudgate::Request;
/// # let response = app.call(&mut Request::post("/login"));
/// # let cookie = response.headers().get("set-cookie").unwrap().split(';').next().unwrap();
/// # assert_eq!(app.call(&mut Request::get("/me").with_header("Cookie", cookie)).text(), "Ada");
/// # assert_eq!(app.call(&mut Request::get("/me").with_header("Cookie", "user=Ada")).text(), "nobody");
/// # Ok(()) }
/// ```
///
/// One that was changed, set under another name or by another key, or whose
/// [`max_age`](Cookie::max_age) has passed, is as if it were not there. Who copies a cookie has it:
/// a signature does not tell two clients apart, and without a `max_age` it counts for ever.
#[derive(Clone)]
pub struct SignedCookies {
    cookies: Cookies,
    key: State<CookieKey>,
}

/// Cookies that the client can neither read nor change; otherwise as [`SignedCookies`].
///
/// ```
/// # use cloudgate::{App, Cookie, CookieKey, PrivateCookies, Request, Response, route};
/// #[route("/quiz")]
/// fn quiz(cookies: PrivateCookies) -> Response {
///     let answer = cookies.get("answer");
///     Response::html(if answer.is_some() { "go on" } else { "begin" })
///         .set_cookie(cookies.seal(Cookie::new("answer", "any text: it is 42")))
/// }
/// # let app = App::gather().state(CookieKey::generate().unwrap());
/// # let response = app.call(&mut Request::get("/quiz"));
/// # let cookie = response.headers().get("set-cookie").unwrap().split(';').next().unwrap();
/// # assert_eq!(app.call(&mut Request::get("/quiz").with_header("Cookie", cookie)).text(), "go on");
/// ```
#[derive(Clone)]
pub struct PrivateCookies {
    cookies: Cookies,
    key: State<CookieKey>,
}

impl SignedCookies {
    /// The text of the first cookie of this name whose signature is right.
    // Not the first one and then its signature: another host of the domain may have set one that the
    // browser sends before ours.
    pub fn get(&self, name: &str) -> Option<String> {
        self.cookies
            .all(name)
            .find_map(|value| self.key.verify(name, value, now()))
    }

    /// The same cookie with its value signed: any text, which about 4/3 as many bytes and 54 more
    /// carry.
    pub fn seal(&self, cookie: Cookie) -> Cookie {
        let value = self.key.sign(&cookie.name, &cookie.value, expiry(&cookie));
        with_value(cookie, value)
    }
}

impl PrivateCookies {
    /// The text of the first cookie of this name that this application has encrypted.
    pub fn get(&self, name: &str) -> Option<String> {
        self.cookies
            .all(name)
            .find_map(|value| self.key.decrypt(name, value, now()))
    }

    /// The same cookie with its value encrypted: any text, which about 4/3 as many bytes and 75 more
    /// carry.
    pub fn seal(&self, cookie: Cookie) -> Cookie {
        let value = self
            .key
            .encrypt(&cookie.name, &cookie.value, expiry(&cookie));
        with_value(cookie, value)
    }
}

/// When the value stops to open, in seconds since 1970.
fn expiry(cookie: &Cookie) -> u64 {
    cookie
        .max_age
        .map_or(u64::MAX, |age| now().saturating_add(age.as_secs()))
}

fn with_value(mut cookie: Cookie, value: Option<String>) -> Cookie {
    cookie.broken |= value.is_none();
    cookie.value = value.unwrap_or_default();
    cookie
}

/// What the start of a server says to an application without a key.
const LINE: &str = ".state(CookieKey::from_env(\"COOKIE_KEY\")?)";

impl FromRequest for SignedCookies {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<SignedCookies, Rejection> {
        Ok(SignedCookies {
            key: State::from_request(request)?,
            cookies: Cookies::of(request),
        })
    }

    fn needs(needs: &mut Needs) {
        needs.state_by_line::<CookieKey>(LINE);
    }
}

impl FromRequest for PrivateCookies {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<PrivateCookies, Rejection> {
        Ok(PrivateCookies {
            key: State::from_request(request)?,
            cookies: Cookies::of(request),
        })
    }

    fn needs(needs: &mut Needs) {
        needs.state_by_line::<CookieKey>(LINE);
    }
}

impl fmt::Debug for SignedCookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedCookies")
    }
}

impl fmt::Debug for PrivateCookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateCookies")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_that_another_host_put_in_front_does_not_hide_ours() {
        let key = CookieKey::generate().unwrap();
        let ours = key.sign("a", "ours", u64::MAX).unwrap();
        let request = Request::get("/").with_header("Cookie", &format!("a=evil; a={ours}; a=x"));
        let cookies = SignedCookies {
            cookies: Cookies::of(&request),
            key: State(std::sync::Arc::new(key)),
        };
        assert_eq!(cookies.get("a").as_deref(), Some("ours"));
    }

    #[test]
    fn an_application_without_a_key_does_not_start_and_says_what_to_add() {
        use crate::{App, Service};
        for needs in [SignedCookies::needs, PrivateCookies::needs] {
            let mut app = App::new().get("/a", || "a");
            app.core_mut().routes[0].needs = needs;
            let error = Service::start(&app).unwrap_err().to_string();
            assert!(
                error.contains("needs a CookieKey, which nobody registered - add .state(CookieKey::from_env(\"COOKIE_KEY\")?) to the App"),
                "{error}"
            );
            Service::start(&app.state(CookieKey::generate().unwrap())).unwrap();
        }
        // Where nothing started, the client hears nothing of it.
        let rejection = SignedCookies::from_request(&mut Request::get("/")).unwrap_err();
        assert_eq!(rejection.status(), 500);
    }

    #[test]
    fn a_cookie_without_time_left_does_not_open() {
        let cookies = SignedCookies {
            cookies: Cookies::default(),
            key: State(std::sync::Arc::new(CookieKey::generate().unwrap())),
        };
        for (seconds, want) in [(0, None), (3600, Some("x"))] {
            let age = std::time::Duration::from_secs(seconds);
            let cookie = cookies.seal(Cookie::new("a", "x").max_age(age));
            assert_eq!(
                cookies.key.verify("a", &cookie.value, now()).as_deref(),
                want
            );
        }
    }
}
