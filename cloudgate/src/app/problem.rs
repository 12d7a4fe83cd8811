//! How does an API say what went wrong, so that a program can read it?

use std::fmt;

use http::StatusCode;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::rejection::HttpError;
use super::reply::IntoResponse;
use crate::message::Response;

/// An error answer as JSON (RFC 9457): `application/problem+json`.
///
/// ```
/// use cloudgate::{IntoResponse, Problem, Status};
///
/// fn pay() -> Result<String, Problem> {
///     std::fs::read_to_string("accounts.txt")?;     // any error is a 500 without its text
///     Ok("paid".to_owned())
/// }
///
/// let problem = Problem::new(Status::FORBIDDEN)
///     .type_uri("https://example.com/probs/out-of-credit")
///     .title("You do not have enough credit.")
///     .detail("Your current balance is 30, but that costs 50.")
///     .instance("/account/12345/msgs/abc")
///     .with("balance", 30);
/// let response = problem.into_response();
/// assert_eq!(response.status(), 403);
/// assert_eq!(response.headers().get("content-type"), Some("application/problem+json"));
/// # assert!(response.text().ends_with(r#""balance":30}"#));
/// # assert_eq!(pay().unwrap_err().status(), Status::INTERNAL_SERVER_ERROR);
/// ```
///
/// The detail of a 5xx goes to the log and not to the client, as with [`HttpError`]; its title and
/// other members do go out.
pub struct Problem {
    status: StatusCode,
    // Boxed: a handler's result is moved a few times.
    says: Box<Says>,
}

#[derive(Default)]
struct Says {
    type_uri: Option<String>,
    title: Option<String>,
    detail: Option<String>,
    instance: Option<String>,
    members: Map<String, Value>,
}

impl Problem {
    /// A problem of this status; without anything else it says no more than the status does.
    pub fn new(status: StatusCode) -> Problem {
        Problem {
            status,
            says: Box::default(),
        }
    }

    /// What kind of problem it is: a URI that programs compare, and that may lead to its
    /// documentation. `about:blank` unless it is set.
    pub fn type_uri(mut self, uri: impl Into<String>) -> Problem {
        self.says.type_uri = Some(uri.into());
        self
    }

    /// A short text for people, the same for every problem of this type. The name of the status
    /// unless it is set.
    pub fn title(mut self, title: impl Into<String>) -> Problem {
        self.says.title = Some(title.into());
        self
    }

    /// A text for people about this one occurrence.
    pub fn detail(mut self, detail: impl Into<String>) -> Problem {
        self.says.detail = Some(detail.into());
        self
    }

    /// A URI of this one occurrence.
    pub fn instance(mut self, uri: impl Into<String>) -> Problem {
        self.says.instance = Some(uri.into());
        self
    }

    /// One more member for programs (RFC 9457 section 3.2). One of the standard names, or a value
    /// that is no JSON, is left out, and the log says so.
    pub fn with(mut self, name: impl Into<String>, value: impl Serialize) -> Problem {
        let name = name.into();
        match serde_json::to_value(value) {
            _ if STANDARD.contains(&name.as_str()) => {
                log::error!("a problem has its own {name}; it is set by the method of that name");
            }
            Ok(value) => {
                self.says.members.insert(name, value);
            }
            Err(error) => log::error!("the member {name:?} of a problem is no JSON: {error}"),
        }
        self
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

const STANDARD: [&str; 5] = ["type", "status", "title", "detail", "instance"];

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(
            "type",
            self.says.type_uri.as_deref().unwrap_or("about:blank"),
        )?;
        map.serialize_entry("status", &self.status.as_u16())?;
        let name = self.status.canonical_reason().unwrap_or("Error");
        map.serialize_entry("title", self.says.title.as_deref().unwrap_or(name))?;
        if let Some(detail) = &self.says.detail
            && !self.status.is_server_error()
        {
            map.serialize_entry("detail", detail)?;
        }
        if let Some(instance) = &self.says.instance {
            map.serialize_entry("instance", instance)?;
        }
        for (name, value) in &self.says.members {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        if self.status.is_server_error()
            && let Some(detail) = &self.says.detail
        {
            log::error!("a handler failed: {detail}");
        }
        Response::json(&self)
            .header("Content-Type", "application/problem+json")
            .with_status(self.status)
    }
}

impl fmt::Debug for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Problem({}", self.status.as_u16())?;
        let texts = [
            &self.says.type_uri,
            &self.says.title,
            &self.says.detail,
            &self.says.instance,
        ];
        for text in texts.into_iter().flatten() {
            write!(f, ", {text}")?;
        }
        for (name, value) in &self.says.members {
            write!(f, ", {name}: {value}")?;
        }
        f.write_str(")")
    }
}

/// The same status, with the text as the detail.
impl From<HttpError> for Problem {
    fn from(error: HttpError) -> Problem {
        error.into_problem()
    }
}

/// What `?` does in a handler that returns `Result<_, Problem>`: as with [`HttpError`].
impl<E: std::error::Error + 'static> From<E> for Problem {
    fn from(error: E) -> Problem {
        HttpError::from(error).into_problem()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{App, Request};

    fn text(problem: Problem) -> String {
        problem.into_response().text()
    }

    #[test]
    fn members_stand_in_one_order_and_only_those_that_were_set() {
        assert_eq!(
            text(Problem::new(StatusCode::NOT_FOUND)),
            r#"{"type":"about:blank","status":404,"title":"Not Found"}"#
        );
        assert_eq!(
            text(
                Problem::new(StatusCode::CONFLICT)
                    .with("balance", 30)
                    .instance("/a")
                    .detail("d\r\n\"")
                    .title("t")
                    .type_uri("u")
                    .with("accounts", ["/b", "/c"])
            ),
            r#"{"type":"u","status":409,"title":"t","detail":"d\r\n\"","instance":"/a","accounts":["/b","/c"],"balance":30}"#
        );
    }

    #[test]
    fn a_member_of_a_standard_name_or_no_json_is_left_out() {
        let keys_that_are_no_strings = std::collections::HashMap::from([((1, 2), 3)]);
        assert_eq!(
            text(
                Problem::new(StatusCode::GONE)
                    .with("status", 200)
                    .with("a", keys_that_are_no_strings)
            ),
            r#"{"type":"about:blank","status":410,"title":"Gone"}"#
        );
    }

    #[test]
    fn the_detail_of_a_server_error_stays_inside() {
        let problem = Problem::new(StatusCode::BAD_GATEWAY)
            .title("try later")
            .detail("secret")
            .with("retry", 5);
        assert_eq!(
            text(problem),
            r#"{"type":"about:blank","status":502,"title":"try later","retry":5}"#
        );
        let error = std::io::Error::other("secret");
        assert!(!text(Problem::from(error)).contains("secret"));
    }

    #[test]
    fn a_problem_is_one_behind_the_question_mark_too_and_whatever_the_client_accepts() {
        fn find() -> Result<String, Problem> {
            Err(Problem::new(StatusCode::NOT_FOUND).with("id", 7))
        }
        let app = App::new().get("/", || -> Result<String, HttpError> { Ok(find()?) });
        for accept in ["*/*", "text/html"] {
            let mut request = Request::get("/").with_header("Accept", accept);
            let response = app.call(&mut request);
            assert_eq!(response.status(), 404);
            assert!(response.text().contains(r#""id":7"#));
        }
        let back = Problem::from(HttpError::from(Problem::new(StatusCode::GONE).with("a", 1)));
        assert!(text(back).contains(r#""a":1"#));
        let problem = Problem::from(HttpError::new(StatusCode::CONFLICT, "twice"));
        assert!(text(problem).contains(r#""detail":"twice""#));
    }
}
