//! What does a handler answer?

use std::fmt;

use bytes::Bytes;
use http::StatusCode;

use super::file_range::FileRange;
use super::headers::{Headers, Prepared};
use super::outgoing::{Body, BodyWriter};
use super::upgrade::{Upgrade, Upgraded};

// What most responses have, ready to send.
static HTML: Prepared = Prepared::line("Content-Type: text/html; charset=utf-8\r\n");
static PLAIN: Prepared = Prepared::line("Content-Type: text/plain; charset=utf-8\r\n");
static JSON: Prepared = Prepared::line("Content-Type: application/json\r\n");

/// A response: status, header fields and body.
///
/// The server adds `Date`, `Content-Length` or `Transfer-Encoding`, and `Connection`; what a
/// handler sets of these does not go out.
///
/// ```
/// use cloudgate::{Response, Status};
/// let response = Response::html("<h1>Made</h1>").with_status(Status::CREATED).header("X-Id", "7");
/// assert_eq!(response.status(), 201);
/// assert_eq!(response.headers().get("content-type"), Some("text/html; charset=utf-8"));
/// assert_eq!(response.text(), "<h1>Made</h1>");
/// ```
#[derive(Debug, Default)]
pub struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: Headers,
    pub(crate) body: Body,
    pub(crate) note: Note,
}

/// What an application is to do with the answer before it goes out, as long as the body is the one that
/// the note was made with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Note {
    /// Nothing.
    #[default]
    None,
    /// The body is the text of [`Response::error`], which says the status: it may be told in another form.
    Status,
    /// The same, and from this byte on it says what was wrong.
    Because(u8),
    /// The same, and it may be told whoever's fault it was.
    Public(u8),
    /// The body is a whole of which the request may want a part, or none.
    Whole,
}

impl Response {
    /// A response of this status without a body.
    pub fn new(status: StatusCode) -> Response {
        Response {
            status,
            ..Response::default()
        }
    }

    /// 200 with an HTML body.
    pub fn html(body: impl Into<Body>) -> Response {
        Response::prepared(&HTML, body)
    }

    /// 200 with a plain text body.
    pub fn text_plain(body: impl Into<Body>) -> Response {
        Response::prepared(&PLAIN, body)
    }

    /// 200 with a body of this media type; a text type should name its charset.
    pub fn of_type(media_type: &str, body: impl Into<Body>) -> Response {
        Response::default()
            .with_body(body)
            .header("Content-Type", media_type)
    }

    fn prepared(field: &'static Prepared, body: impl Into<Body>) -> Response {
        Response {
            status: StatusCode::OK,
            headers: Headers::prepared(field),
            body: body.into(),
            note: Note::None,
        }
    }

    /// 200 with `value` as JSON. A value that cannot be serialized is a 500, and the log says why.
    pub fn json(value: &impl serde::Serialize) -> Response {
        match serde_json::to_vec(value) {
            Ok(bytes) => Response::prepared(&JSON, bytes),
            Err(error) => {
                log::error!(
                    "a response of type {} is no JSON: {error}",
                    std::any::type_name_of_val(value)
                );
                Response::error(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }

    /// 200 with a piece of a file.
    pub fn file(range: FileRange) -> Response {
        Response {
            status: StatusCode::OK,
            body: Body::File(range),
            ..Response::default()
        }
    }

    /// 200 with whatever `write` writes: its `flush` sends what was written so far.
    ///
    /// ```
    /// use std::io::Write;
    /// let response = cloudgate::Response::stream(|out| {
    ///     writeln!(out, "first")?;
    ///     out.flush()?;
    ///     writeln!(out, "second")
    /// });
    /// ```
    pub fn stream(
        write: impl FnOnce(&mut BodyWriter<'_>) -> std::io::Result<()> + Send + 'static,
    ) -> Response {
        Response {
            status: StatusCode::OK,
            body: Body::Writer(Box::new(write)),
            ..Response::default()
        }
    }

    /// 101: behind it the connection speaks `protocol`, a name or more that go into the field Upgrade, as `talk` does
    /// ([`Upgraded`]). `talk` runs on a coroutine and may wait as a handler may; the connection is closed when it
    /// returns. An error is logged at level debug, for it mostly is the peer's doing.
    ///
    /// Where the request is not HTTP/1.1, or its head asks for no upgrade (RFC 9110 section 7.8), the client gets a 426
    /// in place of this.
    pub fn switching_protocols(
        protocol: &str,
        talk: impl FnOnce(&mut Upgraded<'_>) -> std::io::Result<()> + Send + 'static,
    ) -> Response {
        Response::upgrade(Upgrade::talk(talk)).header("Upgrade", protocol)
    }

    /// 101 with what comes behind it.
    pub(crate) fn upgrade(upgrade: Upgrade) -> Response {
        Response::new(StatusCode::SWITCHING_PROTOCOLS).with_body(Body::Upgrade(upgrade))
    }

    /// This status with its own name as a plain text body, such as `404 Not Found`.
    ///
    /// Where an [`App`](crate::App) answers, a client whose Accept prefers HTML gets a small page
    /// instead, and one that prefers JSON an `application/problem+json` (RFC 9457).
    pub fn error(status: StatusCode) -> Response {
        let name = status.canonical_reason().unwrap_or("Error");
        let mut response = Response::text_plain(format!("{} {name}\n", status.as_u16()));
        response.note = Note::Status;
        response.with_status(status)
    }

    /// As [`Response::error`], with what was wrong: `400 Bad Request: the Host field is missing`.
    pub(crate) fn error_because(status: StatusCode, reason: impl fmt::Display) -> Response {
        let name = status.canonical_reason().unwrap_or("Error");
        let mut text = format!("{} {name}: ", status.as_u16());
        // The names of statuses are short.
        let note = Note::Because(text.len() as u8);
        text.push_str(&format!("{reason}\n"));
        let mut response = Response::text_plain(text);
        response.note = note;
        response.with_status(status)
    }

    /// As [`Response::error_because`], with a reason that is told also where the status is one of the server's faults.
    pub(crate) fn error_public(status: StatusCode, reason: impl fmt::Display) -> Response {
        let mut response = Response::error_because(status, reason);
        if let Note::Because(at) = response.note {
            response.note = Note::Public(at);
        }
        response
    }

    /// The same response with another status.
    pub fn with_status(mut self, status: StatusCode) -> Response {
        self.status = status;
        self
    }

    /// The same response with this header field in place of any of the same name.
    ///
    /// A name that is no token, or a value with a line break or another control character, would
    /// split the response: the answer becomes a 500, and the log names the field.
    pub fn header(mut self, name: &str, value: &str) -> Response {
        match self.headers.set(name, value) {
            Ok(()) => self,
            Err(error) => {
                log::error!(
                    "the response header {name:?} cannot be sent: {error}; its value is {value:?}"
                );
                Response::error(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }

    /// The same response with this body.
    pub fn with_body(mut self, body: impl Into<Body>) -> Response {
        self.body = body.into();
        self.note = Note::None;
        self
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The header fields that were set.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// The header fields, to change them.
    pub fn headers_mut(&mut self) -> &mut Headers {
        &mut self.headers
    }

    /// The body.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Takes the body out and leaves none.
    pub fn take_body(&mut self) -> Body {
        self.note = Note::None;
        std::mem::take(&mut self.body)
    }

    /// The body's bytes, for tests of a handler: streams and files are read to their end here.
    ///
    /// # Panics
    /// When a reader, file or closure body fails.
    pub fn bytes(mut self) -> Bytes {
        collect(self.take_body()).expect("a body that can be read")
    }

    /// The body as text, for tests of a handler; bytes that are no UTF-8 become U+FFFD.
    ///
    /// # Panics
    /// As [`Response::bytes`].
    pub fn text(self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

fn collect(body: Body) -> std::io::Result<Bytes> {
    use std::io::{Read, Seek, SeekFrom};

    struct Memory(Vec<u8>);
    impl super::outgoing::BodySink for Memory {
        fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let mut memory = Memory(Vec::new());
    match body {
        Body::Empty | Body::Upgrade(_) => {}
        Body::Bytes(bytes) => return Ok(bytes),
        Body::File(range) => {
            let mut file = &*range.file;
            file.seek(SeekFrom::Start(range.offset))?;
            file.take(range.length).read_to_end(&mut memory.0)?;
        }
        Body::Reader { reader, length } => {
            reader
                .take(length.unwrap_or(u64::MAX))
                .read_to_end(&mut memory.0)?;
        }
        Body::Writer(write) => write(&mut BodyWriter::new(&mut memory))?,
        Body::Relay(relay) => relay.into_write()(&mut BodyWriter::new(&mut memory))?,
    }
    Ok(memory.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_header_that_would_split_the_response_becomes_a_500() {
        let response = Response::html("secret").header("Location", "/a\r\nSet-Cookie: b=c");
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers().get("set-cookie"), None);
        assert!(!response.text().contains("secret"));
    }

    #[test]
    fn a_media_type_that_would_split_the_response_becomes_a_500() {
        let response = Response::of_type("text/html\r\nSet-Cookie: b=c", "secret");
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(response.headers().get("set-cookie"), None);
    }

    #[test]
    fn every_kind_of_body_can_be_collected() {
        let stream = Response::stream(|out| write!(out, "a{}", 1));
        assert_eq!(stream.text(), "a1");
        let reader = Body::Reader {
            reader: Box::new(&b"abcdef"[..]),
            length: Some(3),
        };
        assert_eq!(Response::default().with_body(reader).text(), "abc");
    }
}
