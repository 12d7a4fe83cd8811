//! Does the client have one of the keys?

use std::fmt;
use std::sync::Arc;

use http::StatusCode;

use super::{credentials, is_realm, keep_secret, quoted};
use crate::message::headers::is_token;
use crate::message::{Middleware, Next, Request, Response, StartError, secret};

/// Lets in who shows one of some keys: in a header field, as a bearer token, or in the query. Anybody
/// else gets 401.
///
/// ```
/// use cloudgate::{ApiKeyAuth, App, Request};
///
/// let app = App::new()
///     .get("/", || "hello")
///     .wrap(ApiKeyAuth::new(["k-1", "k-2"]));
/// assert_eq!(app.call(&mut Request::get("/")).status(), 401);
/// assert_eq!(app.call(&mut Request::get("/").with_header("X-Api-Key", "k-2")).text(), "hello");
/// ```
///
/// Several keys let one be replaced without a moment at which none fits. Keys are compared in a time
/// that does not depend on how much of one is right, and this writes none to a log. An empty key
/// never fits: a variable that is not set opens nothing.
#[derive(Clone)]
pub struct ApiKeyAuth {
    keys: Vec<String>,
    place: Place,
    challenge: Option<String>,
    mistake: Option<String>,
}

#[derive(Clone, Debug)]
enum Place {
    Field(String),
    Bearer,
    Query(Arc<str>),
}

impl ApiKeyAuth {
    /// Takes one of these keys in the field `X-Api-Key`.
    pub fn new<'k>(keys: impl IntoIterator<Item = &'k str>) -> ApiKeyAuth {
        let keys = keys.into_iter().filter(|key| !key.is_empty());
        ApiKeyAuth {
            keys: keys.map(str::to_owned).collect(),
            place: Place::Field("X-Api-Key".to_owned()),
            challenge: None,
            mistake: None,
        }
    }

    /// Takes the key in this field instead.
    ///
    /// A name that is no field name is an error at start.
    #[must_use]
    pub fn header(mut self, name: &str) -> ApiKeyAuth {
        if !is_token(name.as_bytes()) {
            self.mistake.get_or_insert(format!(
                "ApiKeyAuth cannot use {name:?} as the name of a header field - take one of letters, digits and -, such as X-Api-Key"
            ));
        }
        self.place = Place::Field(name.to_owned());
        self.challenge = None;
        self
    }

    /// Takes the key as `Authorization: Bearer KEY` instead (RFC 6750), and says so with the 401.
    ///
    /// ```
    /// # use cloudgate::{ApiKeyAuth, App, Request};
    /// let app = App::new().get("/", || "hello").wrap(ApiKeyAuth::new(["k-1"]).bearer("api"));
    /// let response = app.call(&mut Request::get("/"));
    /// assert_eq!(response.headers().get("www-authenticate"), Some("Bearer realm=\"api\""));
    /// ```
    #[must_use]
    pub fn bearer(mut self, realm: &str) -> ApiKeyAuth {
        if !is_realm(realm) {
            self.mistake.get_or_insert(format!(
                "ApiKeyAuth::bearer got the realm {realm:?} - take a name of ASCII letters, digits and spaces"
            ));
        }
        self.challenge = Some(format!("Bearer realm={}", quoted(realm)));
        self.place = Place::Bearer;
        self
    }

    /// Takes the key in this parameter of the query instead, for clients that can send no fields.
    ///
    /// Queries stand in histories, in bookmarks and in the logs of every program on the way. The
    /// [`AccessLog`](crate::AccessLog) of this application leaves the value out.
    #[must_use]
    pub fn query(mut self, name: &str) -> ApiKeyAuth {
        self.place = Place::Query(Arc::from(name));
        self.challenge = None;
        self
    }

    fn lets_in(&self, request: &mut Request<'_>) -> bool {
        let fits = |shown: &[u8]| secret::is_one_of(shown, self.keys.iter().map(String::as_bytes));
        match &self.place {
            Place::Field(name) => request.headers().get_bytes(name).is_some_and(fits),
            Place::Bearer => credentials(request.headers(), "Bearer").is_some_and(fits),
            Place::Query(name) => {
                let let_in = form_urlencoded::parse(request.query().as_bytes())
                    .find(|(known, _)| *known == **name)
                    .is_some_and(|(_, shown)| fits(shown.as_bytes()));
                keep_secret(request, name);
                let_in
            }
        }
    }
}

impl Middleware for ApiKeyAuth {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        if self.lets_in(request) {
            return next.run(request);
        }
        let response = Response::error(StatusCode::UNAUTHORIZED);
        match &self.challenge {
            Some(challenge) => response.header("WWW-Authenticate", challenge),
            None => response,
        }
    }

    fn start(&self) -> Result<(), StartError> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone().into());
        }
        if self.keys.is_empty() {
            return Err("ApiKeyAuth has no key to let anybody in, or only empty ones - is the variable set that they come from?".into());
        }
        Ok(())
    }
}

/// Without the keys.
impl fmt::Debug for ApiKeyAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyAuth")
            .field("place", &self.place)
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::auth::SecretParameters;

    fn status(auth: &ApiKeyAuth, mut request: Request<'_>) -> u16 {
        let end = |_: &mut Request<'_>| Response::html("in");
        let response = auth.handle(&mut request, Next::new(&[], &end));
        response.status().as_u16()
    }

    #[test]
    fn a_key_fits_whole_and_an_empty_one_never() {
        let auth = ApiKeyAuth::new(["one", "", "three"]);
        let query = auth.clone().query("k y");
        let bearer = auth.clone().bearer("api");
        for (shown, want) in [
            ("one", 200),
            ("three", 200),
            ("", 401),
            ("on", 401),
            ("onee", 401),
            ("One", 401),
        ] {
            let request = Request::get("/").with_header("x-api-key", shown);
            assert_eq!(status(&auth, request), want, "{shown}");
            let request = Request::get(&format!("/?a=b&k+y={shown}"));
            assert_eq!(status(&query, request), want, "{shown}");
            let request =
                Request::get("/").with_header("Authorization", &format!("bearer {shown}"));
            assert_eq!(status(&bearer, request), want, "{shown}");
        }
        for auth in [&auth, &query, &bearer] {
            assert_eq!(status(auth, Request::get("/")), 401);
        }
        assert_eq!(status(&auth, Request::get("/?k+y=one")), 401);
        let other = auth.header("X-Key");
        assert_eq!(
            status(&other, Request::get("/").with_header("X-Api-Key", "one")),
            401
        );
        assert_eq!(
            status(&other, Request::get("/").with_header("X-Key", "one")),
            200
        );
    }

    #[test]
    fn a_key_in_the_query_is_marked_as_a_secret() {
        let mut request = Request::get("/?key=wrong");
        ApiKeyAuth::new(["one"]).query("key").lets_in(&mut request);
        let secrets = request.extensions().get::<SecretParameters>().unwrap();
        assert_eq!(*secrets.0, [Arc::from("key")]);
    }

    #[test]
    fn mistakes_are_errors_at_start_and_debug_tells_no_key() {
        let auth = ApiKeyAuth::new(["hush"]);
        assert!(auth.start().is_ok());
        assert!(!format!("{auth:?}").contains("hush"));
        for (auth, want) in [
            (ApiKeyAuth::new([]), "no key"),
            (ApiKeyAuth::new([""]), "only empty ones"),
            (auth.clone().header("a b"), "\"a b\""),
            (auth.bearer("a\r\nb"), "realm"),
        ] {
            let error = auth.start().unwrap_err().to_string();
            assert!(error.contains(want), "{error}");
        }
    }
}
