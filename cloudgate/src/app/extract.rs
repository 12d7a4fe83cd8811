//! How does a handler's argument come out of a request?

use std::convert::Infallible;

use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;

use super::Core;
use super::form;
use super::rejection::Rejection;
use super::reply::{IntoResponse, Json};
use super::state::Needs;
use crate::message::{Headers, Request, Version};

/// Something that a handler can take as an argument.
///
/// ```
/// use cloudgate::{FromRequest, HttpError, Request, Status};
///
/// struct Language(String);
///
/// impl FromRequest for Language {
///     type Rejection = HttpError;
///
///     fn from_request(request: &mut Request<'_>) -> Result<Language, HttpError> {
///         match request.header("accept-language") {
///             Some(text) => Ok(Language(text.to_owned())),
///             None => Err(HttpError::new(Status::BAD_REQUEST, "say which language you speak")),
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a handler cannot take an argument of type `{Self}`",
    label = "this type does not come out of a request",
    note = "a handler takes Event, Path<T>, Query<T>, Form<T>, Json<T>, Multipart, State<T>, String, Bytes, Headers, Cookies, WebSocketUpgrade, Option<T> or Result<T, Rejection> of these, \
            `&mut Request<'_>`, or a type of yours that implements cloudgate::FromRequest",
    note = "a value shared by all requests is taken as State<{Self}>, a part of the path as Path<{Self}>"
)]
pub trait FromRequest: Sized {
    /// What the client gets when the argument cannot be had.
    type Rejection: IntoResponse;

    /// Takes the argument out of the request.
    ///
    /// # Errors
    /// The answer for a request that does not have it.
    fn from_request(request: &mut Request<'_>) -> Result<Self, Self::Rejection>;

    /// Says what must have been registered at start for this to work.
    fn needs(_needs: &mut Needs) {}
}

/// The query of the target, as a struct: `?page=2&tag=a&tag=b`. Repeated names fill a `Vec`.
///
/// ```
/// # use cloudgate::{App, Query, Request, route};
/// #[derive(serde::Deserialize)]
/// struct Page { page: u32, #[serde(default)] tag: Vec<String> }
///
/// #[route("/items")]
/// fn items(Query(page): Query<Page>) -> String { format!("{} {:?}", page.page, page.tag) }
/// # let app = App::gather();
/// # assert_eq!(app.call(&mut Request::get("/items?page=2&tag=a&tag=b")).text(), r#"2 ["a", "b"]"#);
/// # assert_eq!(app.call(&mut Request::get("/items?page=x")).status(), 400);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Query<T> {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Query<T>, Rejection> {
        form::deserialize(request.query().as_bytes())
            .map(Query)
            .map_err(|reason| Rejection::Query { reason })
    }
}

impl<T: DeserializeOwned> FromRequest for Json<T> {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Json<T>, Rejection> {
        if !is_json(request.header("content-type").unwrap_or("")) {
            return Err(Rejection::NotJson);
        }
        let body = request.body().read_all()?;
        let mut deserializer = serde_json::Deserializer::from_slice(&body);
        let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            if error.inner().is_data() {
                // The path says where. Line and column would be noise to who filled in a field of a page.
                let (reason, inner) = (error.to_string(), error.inner());
                let place = format!(" at line {} column {}", inner.line(), inner.column());
                Rejection::JsonData {
                    reason: reason.strip_suffix(&place).unwrap_or(&reason).to_owned(),
                }
            } else {
                Rejection::JsonSyntax {
                    reason: error.inner().to_string(),
                }
            }
        })?;
        deserializer.end().map_err(|error| Rejection::JsonSyntax {
            reason: error.to_string(),
        })?;
        Ok(Json(value))
    }
}

/// Whether a Content-Type says JSON: `application/json`, or a type with the suffix `+json`.
pub(super) fn is_json(content_type: &str) -> bool {
    let essence = essence(content_type);
    essence.eq_ignore_ascii_case("application/json")
        || essence.len() > 5
            && essence.as_bytes()[essence.len() - 5..].eq_ignore_ascii_case(b"+json")
}

/// A media type without its parameters.
pub(super) fn essence(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or("").trim()
}

/// The whole body.
impl FromRequest for Bytes {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Bytes, Rejection> {
        Ok(request.body().read_all()?)
    }
}

/// The whole body, which must be UTF-8.
impl FromRequest for String {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<String, Rejection> {
        String::from_utf8(request.body().read_all()?.into()).map_err(|_| Rejection::NotText)
    }
}

/// The header fields, copied.
impl FromRequest for Headers {
    type Rejection = Infallible;

    fn from_request(request: &mut Request<'_>) -> Result<Headers, Infallible> {
        Ok(request.headers().clone())
    }
}

/// The method.
impl FromRequest for Method {
    type Rejection = Infallible;

    fn from_request(request: &mut Request<'_>) -> Result<Method, Infallible> {
        Ok(request.method().clone())
    }
}

/// The version of HTTP.
impl FromRequest for Version {
    type Rejection = Infallible;

    fn from_request(request: &mut Request<'_>) -> Result<Version, Infallible> {
        Ok(request.version())
    }
}

/// `None` where `T` would be rejected, except where the body could not be read: one that is too
/// large, broken or cut off gets its answer, for a handler would take it for none at all.
impl<T: FromRequest> FromRequest for Option<T> {
    type Rejection = T::Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Option<T>, Self::Rejection> {
        match T::from_request(request) {
            Ok(value) => Ok(Some(value)),
            Err(rejection) if request.body().has_failed() => Err(rejection),
            Err(_) => Ok(None),
        }
    }

    fn needs(needs: &mut Needs) {
        T::needs(needs);
    }
}

/// The handler sees why `T` was rejected and answers itself.
impl<T: FromRequest> FromRequest for Result<T, T::Rejection> {
    type Rejection = Infallible;

    fn from_request(request: &mut Request<'_>) -> Result<Result<T, T::Rejection>, Self::Rejection> {
        Ok(T::from_request(request))
    }

    fn needs(needs: &mut Needs) {
        T::needs(needs);
    }
}

/// A value that a middleware left on the request.
///
/// ```
/// use cloudgate::{App, Extension, Next, Request, Response, route};
///
/// #[derive(Clone)]
/// struct User(String);
///
/// fn sign_in(request: &mut Request<'_>, next: Next<'_>) -> Response {
///     request.extensions_mut().insert(User("Ada".into()));
///     next.run(request)
/// }
///
/// #[route("/name")]
/// fn name(Extension(user): Extension<User>) -> String { user.0 }
///
/// let app = App::gather().wrap(sign_in);
/// assert_eq!(app.call(&mut Request::get("/name")).text(), "Ada");
/// ```
///
/// Without it the answer is 500, and the log says which type nobody left: an `Option<Extension<T>>`
/// does without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extension<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromRequest for Extension<T> {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Extension<T>, Rejection> {
        request
            .extensions()
            .get::<T>()
            .cloned()
            .map(Extension)
            .ok_or(Rejection::MissingExtension {
                type_name: std::any::type_name::<T>(),
            })
    }
}

/// The captures of the request's path with the names of their parameters.
pub(super) fn captures<'r>(
    request: &'r Request<'_>,
) -> impl ExactSizeIterator<Item = (&'r str, &'r str)> {
    let names = Core::of(request)
        .and_then(|core| core.routes.get(request.scope.route))
        .map_or(&[][..], |route| &route.parameters);
    names
        .iter()
        .map(String::as_str)
        .zip(request.scope.captures.iter().map(String::as_str))
}
