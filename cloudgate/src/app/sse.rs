//! How does a page hear of things as they happen?
//!
//! Server-sent events (WHATWG HTML section 9.2): lines of text on an answer that does not end, which
//! a browser reads by `new EventSource("/ticks")` and asks for again when the connection is lost.

use std::convert::Infallible;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

use super::extract::FromRequest;
use super::reply::IntoResponse;
use crate::message::{BodyWriter, Request, Response};

type Run = Box<dyn FnOnce(&mut SseSender<'_>) -> io::Result<()> + Send>;

/// A reply of server-sent events: the closure sends them for as long as it likes.
///
/// ```
/// use cloudgate::{LastEventId, Sse, SseEvent, route, sleep};
/// use std::time::Duration;
///
/// #[route("/ticks")]
/// fn ticks(LastEventId(last): LastEventId) -> Sse {
///     let seen = last.and_then(|id| id.parse().ok()).unwrap_or(0);
///     Sse::new(move |events| {
///         for number in seen + 1.. {
///             events.send(SseEvent::data("tick").name("clock").id(number.to_string()))?;
/// #           if number == 3 { break }
///             sleep(Duration::from_secs(1));
///         }
///         Ok(())
///     })
/// }
/// # use cloudgate::{App, Request};
/// # let mut request = Request::get("/ticks").with_header("Last-Event-ID", "2");
/// # assert_eq!(App::gather().call(&mut request).text(), "id: 3\nevent: clock\ndata: tick\n\n");
/// ```
///
/// A client that has left is an error at one of the next sends; give it back by `?`, and the closure
/// ends. One that waits for events should send a [`SseSender::keep_alive`] every 5 to 15 seconds: proxies
/// end connections that rest, without a send nobody notices that the client is gone, and a server that
/// is to stop waits for the next send, up to its grace (ten seconds with [`App::run`](crate::App::run)).
pub struct Sse(Run);

impl Sse {
    /// A reply that `run` sends the events of; when it returns, the reply ends and the browser
    /// connects again. To keep it from that, answer the next request with 204.
    pub fn new(run: impl FnOnce(&mut SseSender<'_>) -> io::Result<()> + Send + 'static) -> Sse {
        Sse(Box::new(run))
    }
}

impl IntoResponse for Sse {
    fn into_response(self) -> Response {
        let run = self.0;
        Response::stream(move |out: &mut BodyWriter<'_>| {
            // The head alone: the page hears that it is connected before the first event.
            out.flush()?;
            let mut sender = SseSender {
                out,
                stopped: false,
            };
            match run(&mut sender) {
                // It has ended as it should: the browser connects again, to whoever answers then.
                Err(_) if sender.stopped => Ok(()),
                outcome => outcome,
            }
        })
        .header("Content-Type", "text/event-stream")
        .header("Cache-Control", "no-store")
        // nginx would hold events back until its buffer is full.
        .header("X-Accel-Buffering", "no")
    }
}

impl From<Sse> for Response {
    fn from(sse: Sse) -> Response {
        sse.into_response()
    }
}

impl fmt::Debug for Sse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sse")
    }
}

/// Where the closure of an [`Sse`] sends its events.
pub struct SseSender<'c> {
    out: &'c mut (dyn Out + 'c),
    /// Whether a send failed because the server stops.
    stopped: bool,
}

trait Out: Write {
    fn is_stopping(&self) -> bool;
}

impl Out for BodyWriter<'_> {
    fn is_stopping(&self) -> bool {
        BodyWriter::is_stopping(self)
    }
}

impl SseSender<'_> {
    /// Sends an event at once.
    ///
    /// # Errors
    /// `InvalidInput` when its id or name holds a line break or a NUL: nothing was sent, and the
    /// next event can be. Any other kind when the client is gone or reads too slowly, or when the
    /// server is about to stop.
    pub fn send(&mut self, event: SseEvent) -> io::Result<()> {
        let text = event.to_text()?;
        self.write(text.as_bytes())
    }

    /// Sends a comment, which no page sees: it keeps the connection alive and tells whether the
    /// client is there.
    ///
    /// # Errors
    /// When the client is gone or reads too slowly, or when the server is about to stop.
    pub fn keep_alive(&mut self) -> io::Result<()> {
        self.write(b":\n\n")
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        if self.out.is_stopping() {
            self.stopped = true;
            return Err(io::Error::new(
                ErrorKind::ConnectionAborted,
                "the server is about to stop",
            ));
        }
        self.out.write_all(text)?;
        self.out.flush()
    }
}

impl fmt::Debug for SseSender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SseSender")
    }
}

/// An event for a page (not the [`Event`](crate::Event) that a handler gets).
///
/// ```
/// # use cloudgate::{IntoResponse, Sse, SseEvent};
/// # use std::time::Duration;
/// # let response = Sse::new(|events| {
/// events.send(
///     SseEvent::data("two\nlines")
///         .id("7")                              // comes back as Last-Event-ID
///         .name("note")                         // source.addEventListener("note", ...)
///         .retry(Duration::from_secs(2)),       // how long to wait before connecting again
/// )?;
/// events.send(SseEvent::json(&[1, 2])?)
/// # }).into_response();
/// # assert_eq!(
/// #     response.text(),
/// #     "id: 7\nevent: note\nretry: 2000\ndata: two\ndata: lines\n\ndata: [1,2]\n\n"
/// # );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    retry: Option<Duration>,
}

impl SseEvent {
    /// An event with this text. Its line breaks, of whatever kind, arrive as `\n`.
    pub fn data(data: impl Into<String>) -> SseEvent {
        SseEvent {
            data: Some(data.into()),
            ..SseEvent::default()
        }
    }

    /// An event with `value` as JSON.
    ///
    /// # Errors
    /// When it cannot be serialized; `?` turns that into the `io::Error` of the closure.
    pub fn json(value: &impl serde::Serialize) -> Result<SseEvent, serde_json::Error> {
        serde_json::to_string(value).map(SseEvent::data)
    }

    /// The same event with an id, which the browser sends back as `Last-Event-ID`.
    pub fn id(mut self, id: impl Into<String>) -> SseEvent {
        self.id = Some(id.into());
        self
    }

    /// The same event with a name; without one it is a `message`.
    pub fn name(mut self, name: impl Into<String>) -> SseEvent {
        self.name = Some(name.into());
        self
    }

    /// The same event, telling the browser how long to wait before it connects again.
    pub fn retry(mut self, wait: Duration) -> SseEvent {
        self.retry = Some(wait);
        self
    }

    fn to_text(&self) -> io::Result<String> {
        let mut text = String::new();
        for (field, value) in [("id", &self.id), ("event", &self.name)] {
            if let Some(value) = value {
                if value.contains(['\r', '\n', '\0']) {
                    return Err(io::Error::new(
                        ErrorKind::InvalidInput,
                        format!(
                            "the {field} of a server-sent event may hold no line break and no NUL: {value:?}"
                        ),
                    ));
                }
                push_line(&mut text, field, value);
            }
        }
        if let Some(wait) = self.retry {
            push_line(&mut text, "retry", &wait.as_millis().to_string());
        }
        if let Some(data) = &self.data {
            let mut rest = data.as_str();
            // All three kinds of line break end a line for the browser.
            while let Some(at) = rest.find(['\r', '\n']) {
                push_line(&mut text, "data", &rest[..at]);
                let length = if rest[at..].starts_with("\r\n") { 2 } else { 1 };
                rest = &rest[at + length..];
            }
            push_line(&mut text, "data", rest);
        }
        text.push('\n');
        Ok(text)
    }
}

fn push_line(text: &mut String, field: &str, value: &str) {
    // The browser takes one space behind the colon away, so one that belongs to the value stays.
    for part in [field, ": ", value, "\n"] {
        text.push_str(part);
    }
}

/// The id of the last event that the client got before its connection was lost; `None` at first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastEventId(pub Option<String>);

impl FromRequest for LastEventId {
    type Rejection = Infallible;

    fn from_request(request: &mut Request<'_>) -> Result<LastEventId, Infallible> {
        let id = request.header("last-event-id").filter(|id| !id.is_empty());
        Ok(LastEventId(id.map(str::to_owned)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a browser makes of the text: WHATWG HTML section 9.2.6, written down plainly.
    fn read(text: &str) -> Vec<(String, String, String)> {
        let mut events = Vec::new();
        let (mut data, mut name, mut id) = (String::new(), String::new(), String::new());
        for line in text.replace("\r\n", "\n").replace('\r', "\n").split('\n') {
            if line.is_empty() {
                if let Some(whole) = data.strip_suffix('\n') {
                    events.push((id.clone(), name.clone(), whole.to_owned()));
                }
                (data, name) = (String::new(), String::new());
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => data = data + value + "\n",
                "event" => name = value.to_owned(),
                "id" if !value.contains('\0') => id = value.to_owned(),
                _ => {}
            }
        }
        events
    }

    #[track_caller]
    fn check(event: SseEvent, want: &str) {
        assert_eq!(event.to_text().unwrap(), want);
    }

    #[test]
    fn events_are_written_field_by_field() {
        check(SseEvent::data("a"), "data: a\n\n");
        check(SseEvent::data(""), "data: \n\n");
        check(SseEvent::data(" a: b"), "data:  a: b\n\n");
        check(SseEvent::default().id("1"), "id: 1\n\n");
        check(
            SseEvent::default().retry(Duration::from_millis(1500)),
            "retry: 1500\n\n",
        );
        check(
            SseEvent::data("a").name("n").id("").retry(Duration::ZERO),
            "id: \nevent: n\nretry: 0\ndata: a\n\n",
        );
    }

    #[test]
    fn a_browser_reads_the_data_that_was_sent_whatever_it_holds() {
        for (data, want) in [
            ("", ""),
            ("a\nb", "a\nb"),
            ("a\r\nb\rc\n", "a\nb\nc\n"),
            ("\n", "\n"),
            ("\r\n\r\n", "\n\n"),
            (
                "a\n\nevent: evil\nid: 9\n\ndata: b",
                "a\n\nevent: evil\nid: 9\n\ndata: b",
            ),
            (" leading: space", " leading: space"),
            (":comment", ":comment"),
            ("caf\u{e9}\0", "caf\u{e9}\0"),
        ] {
            let text = SseEvent::data(data).id("i").name("n").to_text().unwrap();
            let got = read(&text);
            assert_eq!(got, [("i".into(), "n".into(), want.into())], "{data:?}");
        }
    }

    #[test]
    fn an_id_or_a_name_that_would_make_another_line_is_refused_and_nothing_is_sent() {
        for bad in ["a\nb", "a\rb", "\r\n", "a\0"] {
            for event in [SseEvent::data("x").id(bad), SseEvent::data("x").name(bad)] {
                let response = Sse::new(move |events| {
                    let error = events.send(event).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::InvalidInput);
                    events.keep_alive()
                });
                assert_eq!(response.into_response().text(), ":\n\n");
            }
        }
    }

    #[test]
    fn the_reply_is_not_stored_and_names_its_type() {
        let response = Sse::new(|_| Ok(())).into_response();
        assert_eq!(
            response.headers().get("content-type"),
            Some("text/event-stream")
        );
        assert_eq!(response.headers().get("cache-control"), Some("no-store"));
    }
}
