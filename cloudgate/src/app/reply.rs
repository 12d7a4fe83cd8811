//! What can a handler return?

use std::borrow::Cow;
use std::convert::Infallible;

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

use crate::message::{Body, Response};

/// Something that a handler can return.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "this type cannot be sent as a response",
    note = "a handler returns Response, &'static str, String, Html<_>, Json<_>, Bytes, Vec<u8>, (), Status, (Status, reply), \
            Option<reply>, Result<reply, error>, or a type of yours that implements cloudgate::IntoResponse",
    note = "a value that serializes is returned as Json<{Self}>"
)]
pub trait IntoResponse {
    /// Turns the value into a response.
    fn into_response(self) -> Response;
}

/// HTML with status 200.
///
/// ```
/// use cloudgate::{Html, IntoResponse};
/// let response = Html("<p>Hello</p>").into_response();
/// assert_eq!(response.headers().get("content-type"), Some("text/html; charset=utf-8"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Html<T>(pub T);

/// JSON: as an argument the request's body, as a reply the response's.
///
/// A body that is no JSON is refused with 400, one that does not fit the type with 422 and the path
/// of the field that does not, one of another media type with 415, one that is too large with 413.
///
/// ```
/// # use cloudgate::{App, Json, Request, route};
/// #[derive(serde::Deserialize, serde::Serialize)]
/// struct Order { item: String, count: u32 }
///
/// #[route(POST, "/double")]
/// fn double(Json(order): Json<Order>) -> Json<Order> {
///     Json(Order { count: order.count * 2, ..order })
/// }
/// # let app = App::gather();
/// # let mut request = Request::post("/double").with_json(&Order { item: "tea".into(), count: 2 });
/// # assert_eq!(app.call(&mut request).text(), r#"{"item":"tea","count":4}"#);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl IntoResponse for Response {
    fn into_response(self) -> Response {
        self
    }
}

impl IntoResponse for () {
    fn into_response(self) -> Response {
        Response::new(StatusCode::NO_CONTENT)
    }
}

/// Just the status; an error also says its name as text.
impl IntoResponse for StatusCode {
    fn into_response(self) -> Response {
        if self.is_client_error() || self.is_server_error() {
            Response::error(self)
        } else {
            Response::new(self)
        }
    }
}

impl IntoResponse for &'static str {
    fn into_response(self) -> Response {
        Response::text_plain(self)
    }
}

impl IntoResponse for String {
    fn into_response(self) -> Response {
        Response::text_plain(self)
    }
}

impl IntoResponse for Cow<'static, str> {
    fn into_response(self) -> Response {
        match self {
            Cow::Borrowed(text) => text.into_response(),
            Cow::Owned(text) => text.into_response(),
        }
    }
}

impl IntoResponse for Bytes {
    fn into_response(self) -> Response {
        Response::of_type("application/octet-stream", self)
    }
}

impl IntoResponse for Vec<u8> {
    fn into_response(self) -> Response {
        Bytes::from(self).into_response()
    }
}

impl<T: Into<Body>> IntoResponse for Html<T> {
    fn into_response(self) -> Response {
        Response::html(self.0)
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        Response::json(&self.0)
    }
}

impl<T: IntoResponse> IntoResponse for (StatusCode, T) {
    fn into_response(self) -> Response {
        self.1.into_response().with_status(self.0)
    }
}

/// `None` is 404.
impl<T: IntoResponse> IntoResponse for Option<T> {
    fn into_response(self) -> Response {
        self.map_or_else(
            || Response::error(StatusCode::NOT_FOUND),
            IntoResponse::into_response,
        )
    }
}

impl<T: IntoResponse, E: IntoResponse> IntoResponse for Result<T, E> {
    fn into_response(self) -> Response {
        match self {
            Ok(value) => value.into_response(),
            Err(error) => error.into_response(),
        }
    }
}

impl IntoResponse for Infallible {
    fn into_response(self) -> Response {
        match self {}
    }
}
