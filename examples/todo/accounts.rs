//! Who is asking, and how does one become a user?

use std::time::Duration;

use cloudgate::{
    Cookie, FromRequest, HttpError, IntoResponse, Json, Next, PrivateCookies, Request, Response,
    State, Status, post,
};
use serde::Deserialize;

use crate::passwords;
use crate::store::{Store, User};

const SESSION: &str = "session";
const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);

#[derive(Deserialize)]
struct NewAccount {
    name: Name,
    password: Password,
}

/// A name that can be an account's. Whoever has one knows that it was checked: a JSON body with another
/// text is a 422 that names the field, before the handler is called.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

/// As [`Name`]: 8 to 200 bytes.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Password(String);

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Name, &'static str> {
        let fits = |c: char| c.is_alphanumeric() || "._-".contains(c);
        match text.chars().count() {
            1..=40 if text.chars().all(fits) => Ok(Name(text)),
            _ => Err("a name has 1 to 40 letters, digits, dots, hyphens and underscores"),
        }
    }
}

impl TryFrom<String> for Password {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Password, &'static str> {
        match text.len() {
            8..=200 => Ok(Password(text)),
            _ => Err("a password has 8 to 200 bytes"),
        }
    }
}

// `blocking`: hashing computes for long, and a worker serves nobody else meanwhile.
#[post("/sign-up", blocking)]
fn sign_up(
    Json(account): Json<NewAccount>,
    cookies: PrivateCookies,
    store: State<Store>,
) -> Result<(Status, (Cookie, Json<User>)), HttpError> {
    let password = passwords::hash(&account.password.0)?;
    match store.add_user(account.name.0, password)? {
        Some(user) => Ok((Status::CREATED, (session_of(&user, &cookies), Json(user)))),
        None => Err(HttpError::conflict("this name is taken")),
    }
}

#[derive(Deserialize)]
struct Credentials {
    name: String,
    password: String,
}

#[post("/sign-in", blocking)]
fn sign_in(
    Json(claimed): Json<Credentials>,
    cookies: PrivateCookies,
    store: State<Store>,
) -> Result<(Cookie, Json<User>), HttpError> {
    if let Some((user, kept)) = store.credentials(claimed.name)? {
        if passwords::fits(&claimed.password, &kept) {
            return Ok((session_of(&user, &cookies), Json(user)));
        }
    } else {
        // As slow as with a name that exists: the time must not tell who has an account.
        passwords::hash(&claimed.password)?;
    }
    Err(HttpError::unauthorized(
        "there is no such user with this password",
    ))
}

#[post("/sign-out")]
fn sign_out() -> (Cookie, ()) {
    (Cookie::removal(SESSION), ())
}

/// The cookie that says who it is. Sealed, so that nobody writes one for somebody else; `HttpOnly` and
/// `SameSite=Lax` are the defaults. Behind TLS add `.secure(true)`.
fn session_of(user: &User, cookies: &PrivateCookies) -> Cookie {
    cookies.seal(Cookie::new(SESSION, user.id.to_string()).max_age(MONTH))
}

/// The user of a session, unless there is none or the account is gone.
pub fn user_of(cookies: &PrivateCookies, store: &Store) -> Result<Option<User>, HttpError> {
    match cookies.get(SESSION).and_then(|id| id.parse().ok()) {
        Some(id) => store.user(id),
        None => Ok(None),
    }
}

/// A middleware: who is signed in goes on, and handlers take `Extension<User>`; anyone else gets 401.
pub fn require_user(request: &mut Request<'_>, next: Next<'_>) -> Response {
    match signed_in(request) {
        Ok(user) => {
            request.extensions_mut().insert(user);
            next.run(request)
        }
        Err(error) => error.into_response(),
    }
}

fn signed_in(request: &mut Request<'_>) -> Result<User, HttpError> {
    let cookies = PrivateCookies::from_request(request)?;
    let store = State::<Store>::from_request(request)?;
    user_of(&cookies, &store)?.ok_or(HttpError::unauthorized("sign in first"))
}
