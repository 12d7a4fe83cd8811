//! Who asked for what, and what became of it?
//!
//! ```text
//!  request ─▶ Line ─▶ format, when the body has ended ─▶ writer: a queue, one thread
//! ```

mod format;
mod writer;

use std::fmt;
use std::io::{self, IsTerminal, Read, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::{Method, StatusCode};

use super::auth::{AuthUser, SecretParameters};
use super::request_id::RequestId;
use crate::message::outgoing::WriteBody;
use crate::message::response::Note;
use crate::message::{
    Body, BodySink, BodyWriter, Headers, Middleware, Next, Request, RequestHead, Response,
    StartError,
};
use crate::net::home;
use format::Entry;
pub use format::LogFormat;
pub(crate) use writer::flush_all;
use writer::{Target, Writer};

/// How many lines wait for the writer before more are dropped, unless told otherwise.
const MOST_LINES: usize = 10_000;

/// Writes a line for each request: client, method, target, status, bytes, time, user agent.
///
/// ```no_run
/// use cloudgate::{AccessLog, App, Config, LogFormat};
///
/// fn main() -> cloudgate::Result<()> {
///     let log = AccessLog::file("access.log").format(LogFormat::JsonLines);
///     App::gather().wrap(log).run(Config::from_env()?)
/// }
/// ```
///
/// Add it first, so that it sees every answer as the client does. A line comes when the answer is
/// complete: for a stream when that has ended, and it says `aborted` where it broke off. A body in
/// memory or of a file counts as complete when it is handed over to be sent. The length is not known of
/// the 500 after a panic, and of an error that a middleware behind this one has answered, for it may still
/// be told as a page or as JSON. What the server refuses by itself, because it is no valid HTTP, has no line.
///
/// Lines are written by a thread of their own. At most 10,000 lines and 8 MiB wait for it; past that
/// lines are dropped, a warning in the program's log says how many, and so does a line here, but for
/// the format [`Combined`](LogFormat::Combined), which has no place for it. At the end of
/// [`App::run`](crate::App::run), and when the last copy of the log is dropped, it waits up to two
/// seconds for the last lines; who ends a program in another way calls [`AccessLog::flush`].
///
/// Control characters, quotes and what is no ASCII are escaped, so no client can forge a line. Texts
/// are cut at 2048 bytes. The values of query parameters that hold secrets are left out: `apiKey`,
/// `token`, `password` and their like, the one of an [`ApiKeyAuth`](crate::ApiKeyAuth), and those that
/// [`AccessLog::redact`] names. Addresses of clients are personal data in many places.
#[derive(Clone)]
pub struct AccessLog {
    rules: Arc<Rules>,
    writer: Arc<Writer>,
}

#[derive(Clone)]
struct Rules {
    format: LogFormat,
    most_lines: usize,
    redacted: Vec<String>,
}

impl Default for AccessLog {
    fn default() -> AccessLog {
        AccessLog::new()
    }
}

impl AccessLog {
    /// Writes to standard output: [`Pretty`](LogFormat::Pretty) where that is a terminal, else
    /// [`Combined`](LogFormat::Combined).
    pub fn new() -> AccessLog {
        let format = if io::stdout().is_terminal() {
            LogFormat::Pretty
        } else {
            LogFormat::Combined
        };
        AccessLog::with(Writer::new(Target::Stdout), format)
    }

    /// Writes to the end of a file, in the format [`Combined`](LogFormat::Combined). A file that is not
    /// there is made; one that cannot be opened is an error at start.
    pub fn file(path: impl AsRef<Path>) -> AccessLog {
        AccessLog::with(Writer::to_file(path.as_ref()), LogFormat::Combined)
    }

    /// Writes to anything, in the format [`Combined`](LogFormat::Combined). It is called on a thread of
    /// its own, which it may block.
    ///
    /// ```
    /// use cloudgate::{AccessLog, App, Request};
    /// let (reader, writer) = std::io::pipe().unwrap();
    /// let app = App::new().get("/", || "hello").wrap(AccessLog::writer(writer));
    /// app.call(&mut Request::get("/?a=b"));
    /// drop(app);
    /// let log = std::io::read_to_string(reader).unwrap();
    /// assert!(log.contains("\"GET /?a=b HTTP/1.1\" 200 5 "));
    /// ```
    pub fn writer(out: impl Write + Send + 'static) -> AccessLog {
        let target = Target::Writer(Box::new(out));
        AccessLog::with(Writer::new(target), LogFormat::Combined)
    }

    fn with(writer: Writer, format: LogFormat) -> AccessLog {
        AccessLog {
            rules: Arc::new(Rules {
                format,
                most_lines: MOST_LINES,
                redacted: Vec::new(),
            }),
            writer: Arc::new(writer),
        }
    }

    /// Sets the format.
    #[must_use]
    pub fn format(mut self, format: LogFormat) -> AccessLog {
        Arc::make_mut(&mut self.rules).format = format;
        self
    }

    /// Sets how many lines may wait for the writer.
    #[must_use]
    pub fn queue(mut self, lines: usize) -> AccessLog {
        Arc::make_mut(&mut self.rules).most_lines = lines.max(1);
        self
    }

    /// Leaves out the values of this query parameter too, in the target and in the referer.
    #[must_use]
    pub fn redact(mut self, parameter: &str) -> AccessLog {
        let rules = Arc::make_mut(&mut self.rules);
        rules.redacted.push(parameter.to_owned());
        self
    }

    /// Opens the file again, under the name that it was given, after something has moved the old one
    /// away. Lines before this call are in the old file when it returns.
    ///
    /// ```no_run
    /// # use cloudgate::AccessLog;
    /// let log = AccessLog::file("access.log");
    /// // A copy is the same log: one goes into the app, one stays here.
    /// let app = cloudgate::App::gather().wrap(log.clone());
    /// std::fs::rename("access.log", "access.log.1")?;
    /// log.reopen()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the file cannot be opened; the log goes on in the old one.
    pub fn reopen(&self) -> io::Result<()> {
        self.writer.reopen()
    }

    /// Waits until all lines up to here are written, for up to two seconds; says whether they are.
    pub fn flush(&self) -> bool {
        self.writer.flush()
    }

    /// How many lines were dropped because too many waited, or because they could not be written.
    pub fn dropped(&self) -> u64 {
        self.writer.dropped()
    }
}

impl Middleware for AccessLog {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        let (began, clock) = (SystemTime::now(), Instant::now());
        let head = request.shared_head();
        let answer = home::catch_panic(|| next.run(request));
        let extensions = request.extensions();
        let mut line = Line {
            log: self.clone(),
            client: request.client(),
            user: extensions.get::<AuthUser>().cloned(),
            id: extensions.get::<RequestId>().cloned(),
            secrets: extensions.get::<SecretParameters>().cloned(),
            head,
            began,
            clock,
            status: StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut response = match answer {
            Ok(response) => response,
            Err(payload) => {
                line.write(None, End::Complete);
                std::panic::resume_unwind(payload);
            }
        };
        line.status = response.status();
        let bodiless = *request.method() == Method::HEAD
            || matches!(
                line.status,
                StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
            );
        if bodiless {
            line.write(Some(0), End::Complete);
            return response;
        }
        match &response.body {
            Body::Writer(_) | Body::Relay(_) | Body::Reader { .. } => {
                let body = counted(response.take_body(), line);
                response.body = body;
            }
            body => {
                // The text of an error may still get the form that the client likes best.
                let known = matches!(response.note, Note::None | Note::Whole);
                line.write(body.length().filter(|_| known), End::Complete);
            }
        }
        response
    }

    fn start(&self) -> Result<(), StartError> {
        if let Some((path, error)) = self.writer.problem() {
            return Err(format!(
                "the access log {} cannot be written: {error} - make its folder, or let this user write there",
                path.display()
            )
            .into());
        }
        self.writer.start(self.rules.format).map_err(|source| {
            crate::error::Error::System {
                wanted: "thread for the access log",
                source,
            }
            .into()
        })
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog")
            .field("format", &self.rules.format)
            .finish_non_exhaustive()
    }
}

/// The same body, which writes its line when it ends.
fn counted(body: Body, line: Line) -> Body {
    match body {
        Body::Writer(write) => Body::Writer(counting(write, Pending::new(line, None))),
        Body::Relay(relay) => {
            let pending = Pending::new(line, None);
            Body::Relay(relay.wrapped(|write| counting(write, pending)))
        }
        Body::Reader { reader, length } => Body::Reader {
            reader: Box::new(CountingReader {
                reader,
                pending: Pending::new(line, length),
            }),
            length,
        },
        body => body,
    }
}

/// The same closure, which writes the line when it returns.
fn counting(write: WriteBody, mut pending: Pending) -> WriteBody {
    Box::new(move |out| {
        let mut sink = CountingSink {
            out,
            pending: &mut pending,
        };
        write(&mut BodyWriter::new(&mut sink))?;
        pending.end(End::Complete);
        Ok(())
    })
}

/// How a body ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    Aborted,
}

/// What is known of a request until its line is written.
struct Line {
    log: AccessLog,
    /// As it came in, whatever was changed of it.
    head: Arc<RequestHead>,
    client: IpAddr,
    user: Option<AuthUser>,
    id: Option<RequestId>,
    secrets: Option<SecretParameters>,
    began: SystemTime,
    clock: Instant,
    status: StatusCode,
}

impl Line {
    fn write(&self, bytes: Option<u64>, end: End) {
        let AccessLog { rules, writer } = &self.log;
        let is_secret = |name: &str| {
            rules.redacted.iter().any(|known| known == name)
                || self
                    .secrets
                    .iter()
                    .flat_map(|secrets| &secrets.0)
                    .any(|known| **known == *name)
        };
        let entry = Entry {
            head: &self.head,
            client: self.client,
            user: self.user.as_ref().map(AuthUser::name),
            id: self.id.as_ref().map(RequestId::as_str),
            began: self.began,
            duration: self.clock.elapsed(),
            status: self.status.as_u16(),
            bytes,
            aborted: end == End::Aborted,
            is_secret: &is_secret,
        };
        let mut text = String::with_capacity(256);
        rules.format.write(&mut text, &entry);
        writer.push(text.as_bytes(), rules.most_lines, rules.format);
    }
}

/// The line of a body that is on its way. Dropped before its end, the body has broken off.
struct Pending {
    line: Option<Box<Line>>,
    length: Option<u64>,
    bytes: u64,
}

impl Pending {
    fn new(line: Line, length: Option<u64>) -> Pending {
        Pending {
            line: Some(Box::new(line)),
            length,
            bytes: 0,
        }
    }

    fn end(&mut self, end: End) {
        if let Some(line) = self.line.take() {
            line.write(Some(self.bytes), end);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // A body of known length is not read beyond it.
        let complete = self.length == Some(self.bytes);
        self.end(if complete {
            End::Complete
        } else {
            End::Aborted
        });
    }
}

struct CountingSink<'s, 'conn> {
    out: &'s mut BodyWriter<'conn>,
    pending: &'s mut Pending,
}

impl BodySink for CountingSink<'_, '_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.pending.bytes += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn is_stopping(&self) -> bool {
        self.out.is_stopping()
    }

    fn client_is_gone(&mut self) -> bool {
        self.out.client_is_gone()
    }

    fn trailers(&mut self, fields: &Headers) {
        self.out.trailers(fields);
    }
}

struct CountingReader {
    reader: Box<dyn Read + Send>,
    pending: Pending,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.pending.bytes += count as u64;
        let short = self
            .pending
            .length
            .is_some_and(|length| self.pending.bytes < length);
        if count == 0 && !buffer.is_empty() && !short {
            self.pending.end(End::Complete);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
