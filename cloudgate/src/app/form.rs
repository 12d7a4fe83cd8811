//! How does a form without files become a struct?

use http::Method;
use serde::de::DeserializeOwned;

use super::extract::{FromRequest, Query, essence};
use super::rejection::Rejection;
use crate::message::Request;

/// A form as a struct: an `application/x-www-form-urlencoded` body, as a page's `<form method="post">`
/// sends it. Repeated names fill a `Vec`.
///
/// For GET and HEAD it is the query, as a `<form method="get">` sends it, with [`Query`]'s rejections.
/// A body of another media type is refused with 415, one that does not fit the type with 422 and the
/// name of the field, one that is too large with 413. Forms with files are
/// [`Multipart`](crate::Multipart).
///
/// ```
/// # use cloudgate::{App, Form, Request, route};
/// #[derive(serde::Deserialize)]
/// struct Order { item: String, count: u32, #[serde(default)] tag: Vec<String> }
///
/// #[route(POST, "/orders")]
/// fn order(Form(order): Form<Order>) -> String {
///     format!("{} x {} {:?}", order.count, order.item, order.tag)
/// }
/// # let app = App::gather();
/// # let post = |body: &'static str| {
/// #     let request = Request::post("/orders").with_header("Content-Type", "application/x-www-form-urlencoded");
/// #     app.call(&mut request.with_body(body))
/// # };
/// # assert_eq!(post("item=green+tea&count=2&tag=a&tag=b").text(), r#"2 x green tea ["a", "b"]"#);
/// # assert_eq!(post("item=tea&count=two").status(), 422);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Form<T> {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Form<T>, Rejection> {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            return Query::from_request(request).map(|Query(value)| Form(value));
        }
        let content_type = request.header("content-type").unwrap_or("");
        if !essence(content_type).eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Rejection::NotForm);
        }
        let body = request.body().read_all()?;
        deserialize(&body)
            .map(Form)
            .map_err(|reason| Rejection::FormData { reason })
    }
}

/// The value that pairs of names and values make, or which of them does not fit and how.
pub(super) fn deserialize<T: DeserializeOwned>(pairs: &[u8]) -> Result<T, String> {
    let pairs = form_urlencoded::parse(pairs);
    serde_path_to_error::deserialize(serde_html_form::Deserializer::new(pairs))
        .map_err(|error| error.to_string())
}
