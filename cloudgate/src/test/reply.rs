//! What did a test get back?

use std::any::type_name;
use std::fmt;

use bytes::Bytes;
use http::StatusCode;
use serde::de::DeserializeOwned;

use super::{Answer, ServerEvent, events, fail};
use crate::message::Headers;

/// How many bytes of a body are shown where a test fails.
const MOST_SHOWN: usize = 2000;

/// A whole answer.
#[derive(Clone)]
pub struct Reply {
    /// Method and target.
    asked: String,
    status: StatusCode,
    headers: Headers,
    body: Bytes,
    note: Option<String>,
}

impl Reply {
    pub(super) fn new(asked: String, answer: Answer) -> Reply {
        Reply {
            asked,
            status: answer.status,
            headers: answer.headers,
            body: answer.body.into(),
            note: answer.note,
        }
    }

    /// The status, which compares with a number: `reply.status() == 200`.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The header fields.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The first value of a header field, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)
    }

    /// The body.
    pub fn bytes(&self) -> &Bytes {
        &self.body
    }

    /// The body as text; bytes that are no UTF-8 become U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body, read as JSON.
    ///
    /// ```
    /// use cloudgate::{App, Json, test};
    /// let client = test::client(App::new().get("/sum", || Json(vec![1, 2])));
    /// assert_eq!(client.get("/sum").send().json::<Vec<u32>>(), [1, 2]);
    /// ```
    ///
    /// # Panics
    /// When it is none, or not of this type.
    #[track_caller]
    pub fn json<T: DeserializeOwned>(&self) -> T {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => self.fail(format_args!("no JSON of {}: {error}", type_name::<T>())),
        }
    }

    /// The body as any JSON: `reply.json_value()["name"] == "Ada"`.
    ///
    /// # Panics
    /// When it is none.
    #[track_caller]
    pub fn json_value(&self) -> serde_json::Value {
        self.json()
    }

    /// The server-sent events that have come whole.
    pub fn events(&self) -> Vec<ServerEvent> {
        events::parse(&self.text())
    }

    /// Checks the status, and gives the reply on.
    ///
    /// # Panics
    /// When it is another.
    #[track_caller]
    pub fn assert_status(&self, status: u16) -> &Reply {
        if self.status != status {
            self.fail(format_args!("not the status {status}"));
        }
        self
    }

    /// Checks the first value of a header field, and gives the reply on.
    ///
    /// # Panics
    /// When it is another, or not there.
    #[track_caller]
    pub fn assert_header(&self, name: &str, value: &str) -> &Reply {
        match self.header(name) {
            Some(found) if found == value => self,
            Some(found) => self.fail(format_args!("{name}: {found:?}, not {value:?}")),
            None => self.fail(format_args!("no {name}, which should be {value:?}")),
        }
    }

    #[track_caller]
    fn fail(&self, what: fmt::Arguments<'_>) -> ! {
        fail(format_args!("the answer has {what}\n{self:?}"))
    }
}

/// The request, the status, the fields and the body, as a person reads them.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} was answered with {}", self.asked, self.status)?;
        if let Some(note) = &self.note {
            writeln!(f, "{note}")?;
        }
        for (name, value) in self.headers.iter() {
            writeln!(f, "  {name}: {}", String::from_utf8_lossy(value))?;
        }
        let shown = &self.body[..self.body.len().min(MOST_SHOWN)];
        write!(f, "\n{}", String::from_utf8_lossy(shown))?;
        if shown.len() < self.body.len() {
            write!(f, "\n… {} bytes in all", self.body.len())?;
        }
        Ok(())
    }
}
