//! What does a client hear when a handler could not be called, or failed?

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::io;

use http::StatusCode;

use super::location::NotLocal;
use super::multipart::MultipartError;
use super::problem::Problem;
use super::reply::IntoResponse;
use super::websocket;
use crate::message::{BodyError, Response};
use crate::net::home::Busy;
use crate::proto::ws::handshake::HandshakeError;

/// Why an argument could not be taken out of a request.
///
/// | variant | status |
/// |---|---|
/// | `Path` | 400 |
/// | `Query` | 400 |
/// | `NotJson` | 415 |
/// | `JsonSyntax` | 400 |
/// | `JsonData` | 422 |
/// | `NotForm` | 415 |
/// | `FormData` | 422 |
/// | `Multipart` | 415, 400, 413, 408, 507 or 500 as [`MultipartError::status`] says |
/// | `NotText` | 400 |
/// | `WebSocket` | 426, 405 or 400 |
/// | `NoCertificate` | 403 |
/// | `Body` | 413, 400 or 408 as [`BodyError::status`] says |
/// | `MissingState`, `MissingExtension` | 500 |
#[derive(Debug)]
#[non_exhaustive]
pub enum Rejection {
    /// A part of the path is not what the handler wants, such as letters for a number.
    Path {
        /// What is wrong.
        reason: String,
    },
    /// The query is not what the handler wants.
    Query {
        /// Which name is wrong, and how.
        reason: String,
    },
    /// The body is said to be something other than JSON.
    NotJson,
    /// The body is no JSON.
    JsonSyntax {
        /// What is wrong, with line and column.
        reason: String,
    },
    /// The body is JSON of another shape than the handler wants.
    JsonData {
        /// The path of the field, and what is wrong with it.
        reason: String,
    },
    /// The body is said to be something other than a form, `application/x-www-form-urlencoded`.
    NotForm,
    /// The body is a form with other fields or values than the handler wants.
    FormData {
        /// Which field is wrong, and how.
        reason: String,
    },
    /// The body is no form with files, or one that cannot be taken.
    Multipart(MultipartError),
    /// The body is not UTF-8 text.
    NotText,
    /// The request asks for no WebSocket, or not as RFC 6455 wants it.
    WebSocket(HandshakeError),
    /// The client has not said by a certificate who it is.
    NoCertificate,
    /// The body could not be read.
    Body(BodyError),
    /// A handler takes a State that was not registered; the start of a server would have said so.
    MissingState {
        /// The type that is missing.
        type_name: &'static str,
    },
    /// A handler takes an Extension that no middleware left on the request.
    MissingExtension {
        /// The type that is missing.
        type_name: &'static str,
    },
}

impl Rejection {
    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Rejection::Path { .. }
            | Rejection::Query { .. }
            | Rejection::JsonSyntax { .. }
            | Rejection::NotText => StatusCode::BAD_REQUEST,
            Rejection::NoCertificate => StatusCode::FORBIDDEN,
            Rejection::NotJson | Rejection::NotForm => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Rejection::JsonData { .. } | Rejection::FormData { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Rejection::Multipart(error) => error.status(),
            Rejection::WebSocket(error) => error.status(),
            Rejection::Body(error) => error.status(),
            Rejection::MissingState { .. } | Rejection::MissingExtension { .. } => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Path { reason } => write!(f, "the path does not fit: {reason}"),
            Rejection::Query { reason } => write!(f, "the query does not fit: {reason}"),
            Rejection::NotJson => {
                f.write_str("the body must be JSON, with Content-Type: application/json")
            }
            Rejection::JsonSyntax { reason } => write!(f, "the body is no JSON: {reason}"),
            Rejection::JsonData { reason } => write!(f, "the JSON does not fit: {reason}"),
            Rejection::NoCertificate => f.write_str(
                "a certificate is wanted that says who you are (TLS client certificate)",
            ),
            Rejection::NotForm => f.write_str(
                "the body must be a form, with Content-Type: application/x-www-form-urlencoded",
            ),
            Rejection::FormData { reason } => write!(f, "the form does not fit: {reason}"),
            Rejection::Multipart(error) => error.fmt(f),
            Rejection::NotText => f.write_str("the body must be UTF-8 text"),
            Rejection::WebSocket(error) => error.fmt(f),
            Rejection::Body(error) => error.fmt(f),
            Rejection::MissingState { type_name } => {
                write!(
                    f,
                    "State<{type_name}> is not registered: add .state(...) to the App"
                )
            }
            Rejection::MissingExtension { type_name } => write!(
                f,
                "no middleware left a {type_name} on the request: call request.extensions_mut().insert(...) in one that runs before the handler"
            ),
        }
    }
}

impl std::error::Error for Rejection {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Rejection::Body(error) => Some(error),
            Rejection::Multipart(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BodyError> for Rejection {
    fn from(error: BodyError) -> Rejection {
        Rejection::Body(error)
    }
}

impl From<MultipartError> for Rejection {
    fn from(error: MultipartError) -> Rejection {
        Rejection::Multipart(error)
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        match self {
            Rejection::WebSocket(error) => websocket::refuse(error),
            _ => answer(self.status(), &self),
        }
    }
}

/// An error answer: what a handler's `?` turns any error into.
///
/// An error of the program is a 500 whose text goes to the log and never to the client; an error of
/// the client's making, such as a body that is too large, keeps its status and text.
///
/// ```
/// use cloudgate::{HttpError, Status};
///
/// fn find(id: u32) -> Result<String, HttpError> {
///     if id == 0 {
///         return Err(HttpError::not_found("there is no number 0"));
///     }
///     Ok(std::fs::read_to_string("numbers.txt")?)   // a missing file is a 500
/// }
/// assert_eq!(find(0).unwrap_err().status(), Status::NOT_FOUND);
/// assert_eq!(find(1).unwrap_err().status(), Status::INTERNAL_SERVER_ERROR);
/// ```
pub struct HttpError {
    status: StatusCode,
    message: Cow<'static, str>,
    problem: Option<Problem>,
}

impl HttpError {
    /// An error with a text that the client may read, unless the status is 5xx: then only the log does.
    pub fn new(status: StatusCode, message: impl Into<Cow<'static, str>>) -> HttpError {
        HttpError {
            status,
            message: message.into(),
            problem: None,
        }
    }

    /// 400: the request is not what it should be.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> HttpError {
        HttpError::new(StatusCode::BAD_REQUEST, message)
    }

    /// 401: who is it?
    pub fn unauthorized(message: impl Into<Cow<'static, str>>) -> HttpError {
        HttpError::new(StatusCode::UNAUTHORIZED, message)
    }

    /// 403: not for this one.
    pub fn forbidden(message: impl Into<Cow<'static, str>>) -> HttpError {
        HttpError::new(StatusCode::FORBIDDEN, message)
    }

    /// 404: there is no such thing.
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> HttpError {
        HttpError::new(StatusCode::NOT_FOUND, message)
    }

    /// 409: not as things stand.
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> HttpError {
        HttpError::new(StatusCode::CONFLICT, message)
    }

    /// 422: well-formed, but not a value that can be taken.
    pub fn unprocessable(message: impl Into<Cow<'static, str>>) -> HttpError {
        HttpError::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn into_problem(self) -> Problem {
        match self.problem {
            Some(problem) => problem,
            None => Problem::new(self.status).detail(self.message),
        }
    }
}

impl fmt::Debug for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(problem) = &self.problem {
            return problem.fmt(f);
        }
        write!(f, "HttpError({}: {})", self.status.as_u16(), self.message)
    }
}

impl<E: std::error::Error + 'static> From<E> for HttpError {
    fn from(error: E) -> HttpError {
        let any: &dyn Any = &error;
        let carried = any.downcast_ref::<io::Error>();
        let status = carried
            .and_then(BodyError::within)
            .or_else(|| any.downcast_ref())
            .map(BodyError::status)
            .or_else(|| {
                let form = carried.and_then(MultipartError::within);
                form.or_else(|| any.downcast_ref())
                    .map(MultipartError::status)
            })
            .or_else(|| any.downcast_ref().map(Rejection::status))
            .or_else(|| any.is::<NotLocal>().then_some(StatusCode::BAD_REQUEST))
            .or_else(|| any.is::<Busy>().then_some(StatusCode::SERVICE_UNAVAILABLE));
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            // Many errors print their cause already.
            let text = cause.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        HttpError::new(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message)
    }
}

/// The client gets the problem, whatever it accepts.
impl From<Problem> for HttpError {
    fn from(problem: Problem) -> HttpError {
        HttpError {
            status: problem.status(),
            message: Cow::Borrowed(""),
            problem: Some(problem),
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        match self.problem {
            Some(problem) => problem.into_response(),
            None => answer(self.status, &self.message),
        }
    }
}

/// The text of an error answer. That of a server error stays in the log.
fn answer(status: StatusCode, message: &dyn fmt::Display) -> Response {
    if status.is_server_error() {
        log::error!("a handler failed: {message}");
        return Response::error(status);
    }
    Response::error_because(status, message)
}
