//! Does the client know a user's name and password (RFC 7617)?

use std::fmt;
use std::sync::Arc;

use http::StatusCode;

use super::{AuthUser, base64, credentials, is_realm, quoted};
use crate::message::{Middleware, Next, Request, Response, StartError, secret};

type Verify = dyn Fn(&str, &str) -> bool + Send + Sync;

/// Lets in who knows a name and its password (RFC 7617), and leaves the name on the request as
/// [`AuthUser`]. Anybody else gets 401, and a browser asks its user.
///
/// ```
/// use cloudgate::{App, AuthUser, BasicAuth, Extension, Request, route};
///
/// #[route("/office/me")]
/// fn me(Extension(user): Extension<AuthUser>) -> String { user.name().to_owned() }
///
/// let app = App::gather().wrap(BasicAuth::new("Office").user("Aladdin", "open sesame"));
/// assert_eq!(app.call(&mut Request::get("/office/me")).status(), 401);
/// let mut request = Request::get("/office/me")
///     .with_header("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
/// assert_eq!(app.call(&mut request).text(), "Aladdin");
/// ```
///
/// Name and password come with every request and are readable on the way: use it behind TLS only.
/// Neither is written to a log by this. An attacker can try passwords as fast as this answers, so
/// take long ones, and limit the rate in front.
#[derive(Clone)]
pub struct BasicAuth {
    realm: String,
    challenge: String,
    /// `name:password`, as the header holds it.
    users: Vec<String>,
    verify: Option<Arc<Verify>>,
    mistake: Option<String>,
}

impl BasicAuth {
    /// Lets nobody in yet. The realm is what a browser may show when it asks for the password, and
    /// for which it remembers it.
    pub fn new(realm: &str) -> BasicAuth {
        let mistake = (!is_realm(realm)).then(|| {
            format!("BasicAuth::new got the realm {realm:?}, which browsers cannot show - take a name of ASCII letters, digits and spaces")
        });
        BasicAuth {
            realm: realm.to_owned(),
            challenge: format!("Basic realm={}, charset=\"UTF-8\"", quoted(realm)),
            users: Vec::new(),
            verify: None,
            mistake,
        }
    }

    /// Lets this user in. The password is compared in a time that does not depend on how much of it
    /// is right.
    ///
    /// A name that is empty or holds a colon, and an empty password, are errors at start.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str) -> BasicAuth {
        if name.is_empty() || name.contains(':') {
            self.note(format!("BasicAuth::user got the name {name:?} - take one that is not empty and has no colon, which ends the name in the header"));
        } else if password.is_empty() {
            self.note(format!("BasicAuth::user got an empty password for {name:?}, which would let anybody in - is the variable set that it comes from?"));
        } else {
            self.users.push(format!("{name}:{password}"));
        }
        self
    }

    /// Lets in whoever `verify` says yes to, by name and password, besides the users that are listed.
    ///
    /// It runs on a coroutine: where it asks a database, or computes a slow hash as it should, it does
    /// that in [`blocking`](crate::blocking).
    ///
    /// ```
    /// use cloudgate::BasicAuth;
    /// # fn stored_hash_fits(_name: &str, _password: &str) -> bool { false }
    /// let auth = BasicAuth::new("Office").verify(|name, password| {
    ///     let (name, password) = (name.to_owned(), password.to_owned());
    ///     cloudgate::blocking(move || stored_hash_fits(&name, &password))
    /// });
    /// ```
    #[must_use]
    pub fn verify(
        mut self,
        verify: impl Fn(&str, &str) -> bool + Send + Sync + 'static,
    ) -> BasicAuth {
        self.verify = Some(Arc::new(verify));
        self
    }

    fn note(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    fn user_of(&self, request: &Request<'_>) -> Option<AuthUser> {
        let shown = base64::decode(credentials(request.headers(), "Basic")?)?;
        let text = std::str::from_utf8(&shown).ok()?;
        let (name, password) = text.split_once(':')?;
        // RFC 7617 section 2: neither holds control characters.
        if name.is_empty() || text.chars().any(char::is_control) {
            return None;
        }
        let listed = secret::is_one_of(&shown, self.users.iter().map(String::as_bytes));
        let fits = listed
            || self
                .verify
                .as_ref()
                .is_some_and(|verify| verify(name, password));
        fits.then(|| AuthUser(Arc::from(name)))
    }
}

impl Middleware for BasicAuth {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        match self.user_of(request) {
            Some(user) => {
                request.extensions_mut().insert(user);
                next.run(request)
            }
            None => Response::error(StatusCode::UNAUTHORIZED)
                .header("WWW-Authenticate", &self.challenge),
        }
    }

    fn start(&self) -> Result<(), StartError> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone().into());
        }
        if self.users.is_empty() && self.verify.is_none() {
            return Err(format!(
                "BasicAuth for {:?} lets nobody in - add .user(name, password) or .verify(|name, password| ...)",
                self.realm
            )
            .into());
        }
        Ok(())
    }
}

/// Without the passwords.
impl fmt::Debug for BasicAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicAuth")
            .field("realm", &self.realm)
            .field("users", &self.users.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(auth: &BasicAuth, fields: &[&str]) -> Response {
        let mut request = Request::get("/");
        for value in fields {
            request = request.with_header("Authorization", value);
        }
        let end = |request: &mut Request<'_>| {
            let user = request.extensions().get::<AuthUser>().unwrap();
            Response::html(user.to_string())
        };
        auth.handle(&mut request, Next::new(&[], &end))
    }

    #[test]
    fn who_knows_name_and_password_comes_in() {
        let auth = BasicAuth::new("a \"b\"")
            .user("Aladdin", "open sesame")
            .user("test", "123\u{a3}");
        assert!(auth.start().is_ok());
        for (fields, want) in [
            (&["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="][..], Some("Aladdin")),
            (&["basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ== "], Some("Aladdin")),
            // RFC 7617 section 2.1: test:123£ in UTF-8.
            (&["Basic dGVzdDoxMjPCow=="], Some("test")),
            // The same in ISO 8859-1 is no UTF-8.
            (&["Basic dGVzdDoxMjOj"], None),
            (&[], None),
            (&["Basic"], None),
            (&["Basic "], None),
            (&["Basic QWxhZGRpbg=="], None),
            (&["BasicQWxhZGRpbjpvcGVuIHNlc2FtZQ=="], None),
            (&["Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ=="], None),
            // Aladdin:open sesam, Aladdin:
            (&["Basic QWxhZGRpbjpvcGVuIHNlc2Ft"], None),
            (&["Basic QWxhZGRpbjo="], None),
            (&["Basic Og=="], None),
            (
                &[
                    "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
                    "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
                ],
                None,
            ),
        ] {
            let response = answer(&auth, fields);
            let challenge = response
                .headers()
                .get("www-authenticate")
                .map(str::to_owned);
            match want {
                Some(name) => assert_eq!(response.text(), name),
                None => {
                    assert_eq!(response.status(), 401, "{fields:?}");
                    assert_eq!(
                        challenge.as_deref(),
                        Some("Basic realm=\"a \\\"b\\\"\", charset=\"UTF-8\"")
                    );
                }
            }
        }
    }

    #[test]
    fn a_function_decides_too_and_a_password_may_hold_colons() {
        let auth = BasicAuth::new("a").verify(|name, password| (name, password) == ("n", "a:b"));
        // n:a:b, n:a
        assert_eq!(answer(&auth, &["Basic bjphOmI="]).text(), "n");
        assert_eq!(answer(&auth, &["Basic bjph"]).status(), 401);
    }

    #[test]
    fn mistakes_are_errors_at_start_that_tell_no_password() {
        for (auth, want) in [
            (BasicAuth::new("a"), ".user(name, password)"),
            (BasicAuth::new("a").user("n", ""), "empty password"),
            (BasicAuth::new("a").user("n:m", "hush"), "no colon"),
            (BasicAuth::new("a").user("", "hush"), "not empty"),
            (BasicAuth::new("").user("n", "hush"), "realm"),
            (BasicAuth::new("a\nb").user("n", "hush"), "realm"),
        ] {
            let error = auth.start().unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
            assert!(!error.contains("hush") && !format!("{auth:?}").contains("hush"));
        }
        // Nobody gets in by a mistake that nobody has looked at: n:
        let auth = BasicAuth::new("a").user("n", "");
        assert_eq!(answer(&auth, &["Basic bjo="]).status(), 401);
    }
}
