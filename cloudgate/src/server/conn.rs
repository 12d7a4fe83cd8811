//! How does one connection live, from its first byte to its last?
//!
//! ```text
//!  read_head ─▶ Framing ─▶ service.call ─▶ respond::send ─▶ read_head …
//!      │ quiet: buffers given back            │ unread body, error, Connection: close
//!      ▼                                      ▼
//!   closed, or late: 408                   linger, closed
//! ```
//!
//! A connection is a value that a coroutine borrows while there is work. All complete requests
//! that have arrived are answered into one buffer and go out in one write.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Method, StatusCode};

use super::body::{BodyReader, Unread};
use super::clock::Date;
use super::respond::{self, Exchange};
use super::settings::Rules;
use crate::message::request::Scope;
use crate::message::{
    Deadline, Duplex, Request, RequestBody, RequestHead, Response, Service, Version,
};
use crate::net::buffer::ReadBuffer;
use crate::net::deadline::Clock;
use crate::net::home;
use crate::proto::error::ParseError;
use crate::proto::h1::{BodyLength, Framing, parse_request};

/// After how many milliseconds without a request a connection gives its buffers back.
const QUIET: u64 = 1000;

/// How many pipelined requests are answered before other connections get a turn.
const REQUESTS_A_TURN: u32 = 32;

/// How many bytes of answers are gathered before they are sent although more requests are there.
const OUTPUT_ENOUGH: usize = 64 << 10;

/// What all connections of a server share.
pub(crate) struct Surroundings {
    pub(crate) service: Box<dyn Service>,
    pub(crate) rules: Rules,
    pub(crate) clock: Arc<Clock>,
    pub(crate) stopping: AtomicBool,
}

/// One connection: what carries it, what was read and not used, what is to be written.
pub(crate) struct Connection<D> {
    pub(super) io: D,
    pub(super) input: ReadBuffer,
    pub(super) output: Vec<u8>,
    peer: SocketAddr,
    head: Arc<RequestHead>,
    scope: Scope,
    date: Date,
    opened: u64,
    served: u64,
    in_turn: u32,
}

/// Why a connection ended.
#[derive(Debug)]
pub(crate) enum Close {
    /// The peer ended it between two requests.
    Peer,
    /// The peer ended it inside a request.
    Truncated,
    /// The last response was sent and no further request allowed.
    Finished,
    /// No request came in time.
    Idle,
    /// A request head did not arrive whole in time.
    HeadTimeout,
    /// The peer broke a rule.
    Refused(ParseError),
    /// The server stops.
    Stopping,
    /// Reading, writing or waiting failed.
    Failed(io::Error),
    /// The body of a response failed after its head was sent.
    BodyFailed(io::Error),
}

impl fmt::Display for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Close::Peer => f.write_str("the peer ended it"),
            Close::Truncated => f.write_str("the peer ended it inside a request"),
            Close::Finished => f.write_str("the last response was sent"),
            Close::Idle => f.write_str("no request came in time"),
            Close::HeadTimeout => f.write_str("a request head came too slowly"),
            Close::Refused(error) => write!(f, "a request was refused: {error}"),
            Close::Stopping => f.write_str("the server stops"),
            Close::Failed(error) => write!(f, "it failed: {error}"),
            Close::BodyFailed(error) => write!(f, "a response was cut short: {error}"),
        }
    }
}

impl From<io::Error> for Close {
    fn from(error: io::Error) -> Close {
        Close::Failed(error)
    }
}

impl<D: Duplex> Connection<D> {
    pub(crate) fn new(io: D, peer: SocketAddr, now: u64) -> Connection<D> {
        Connection {
            io,
            input: ReadBuffer::new(),
            output: Vec::new(),
            peer,
            head: Arc::default(),
            scope: Scope::default(),
            date: Date::new(),
            opened: now,
            served: 0,
            in_turn: 0,
        }
    }

    /// Serves requests until the connection ends, and says why it did.
    pub(crate) fn serve(&mut self, around: &Surroundings) -> Close {
        loop {
            let framing = match self.read_head(around) {
                Ok(framing) => framing,
                Err(close) => return self.refuse(close, around),
            };
            match self.exchange(framing, around) {
                Ok(()) => {}
                Err(close) => return close,
            }
        }
    }

    /// Reads until a whole request head is there, and finds its framing.
    fn read_head(&mut self, around: &Surroundings) -> Result<Framing, Close> {
        let rules = &around.rules;
        let waiting_since = around.clock.now();
        // The time for a head counts from its first byte; on a new connection from its start.
        let mut began = (self.served == 0).then_some(self.opened);
        let mut looked_at = 0;
        let mut line_seen = false;
        let mut quiet = false;
        loop {
            if looked_at < self.input.filled().len() {
                let filled = self.input.filled();
                let new_line = memchr::memchr(b'\n', &filled[looked_at..]).is_some();
                line_seen |= new_line;
                // A head that drips in is parsed again only when that can change the outcome.
                let worth_it = looked_at == 0
                    || new_line
                    || filled.len() >= rules.limits.head
                    || (!line_seen && filled.len() > rules.limits.target);
                looked_at = filled.len();
                if worth_it {
                    let head = exclusive(&mut self.head);
                    if let Some(length) =
                        parse_request(filled, &rules.limits, head).map_err(Close::Refused)?
                    {
                        self.input.consume(length);
                        return Framing::of(&self.head).map_err(Close::Refused);
                    }
                }
                began.get_or_insert(waiting_since.max(around.clock.now()));
            }
            // Empty lines in front of a request line count in the buffer and not in the limit.
            let most = rules.limits.head + 64;
            match self.input.fill(most, |space| self.io.read(space)) {
                Ok(0) if self.input.is_empty() => {
                    self.flush(around)?;
                    return Err(Close::Peer);
                }
                Ok(0) => {
                    self.flush(around)?;
                    return Err(Close::Truncated);
                }
                Ok(_) => continue,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
                Err(_) => {}
            }
            self.flush(around)?;
            self.in_turn = 0;
            if self.input.is_empty() && around.stopping.load(Ordering::Relaxed) {
                return Err(Close::Stopping);
            }
            let deadline = match began {
                Some(began) => Deadline::after(began, rules.head),
                None => Deadline::after(waiting_since, rules.idle),
            };
            let soon = Deadline::after(waiting_since, QUIET);
            let early = began.is_none() && !quiet && soon < deadline;
            match self.io.wait(if early { soon } else { deadline }) {
                Ok(()) => {}
                Err(error) if error.kind() != ErrorKind::TimedOut => return Err(error.into()),
                Err(_) if early => {
                    quiet = true;
                    self.release_buffers();
                }
                Err(_) if self.input.is_empty() => return Err(Close::Idle),
                Err(_) => return Err(Close::HeadTimeout),
            }
        }
    }

    /// Lets the service answer one request and sends the answer, or at least gathers it.
    fn exchange(&mut self, framing: Framing, around: &Surroundings) -> Result<(), Close> {
        self.served += 1;
        let mut reader = BodyReader::new(
            &mut self.io,
            &mut self.input,
            &mut self.output,
            framing,
            around,
        );
        let mut body = match framing.body {
            BodyLength::None => RequestBody::empty(),
            _ => RequestBody::from_source(&mut reader),
        };
        body.set_limit(around.rules.body_limit);
        let scope = std::mem::take(&mut self.scope);
        let mut request = Request::assemble(Arc::clone(&self.head), self.peer, body, scope);
        let answer = home::catch_panic(|| around.service.call(&mut request));
        self.scope = std::mem::take(&mut request.scope);
        drop(request);
        let unread = if framing.body == BodyLength::None {
            Unread::Nothing
        } else {
            reader.finish()
        };
        let (response, panicked) = match answer {
            Ok(response) => (response, false),
            Err(_) => (Response::error(StatusCode::INTERNAL_SERVER_ERROR), true),
        };
        let keep_alive = framing.keep_alive
            && unread == Unread::Nothing
            && !panicked
            && !around.stopping.load(Ordering::Relaxed);
        let exchange = Exchange {
            version: self.head.version(),
            head_only: *self.head.method() == Method::HEAD,
            keep_alive,
            date: self.date.at(around.clock.now()),
        };
        let keep_alive = respond::send(&mut self.io, &mut self.output, response, exchange, around)?;
        if !keep_alive {
            self.flush(around)?;
            if unread == Unread::Something || !self.input.is_empty() {
                self.linger(around);
            }
            return Err(Close::Finished);
        }
        self.in_turn += 1;
        if self.output.len() >= OUTPUT_ENOUGH {
            self.flush(around)?;
        }
        if self.in_turn >= REQUESTS_A_TURN {
            self.flush(around)?;
            self.io.yield_turn();
            self.in_turn = 0;
        }
        Ok(())
    }

    /// Tells the peer why its request is not answered, if it can still listen.
    fn refuse(&mut self, close: Close, around: &Surroundings) -> Close {
        let (status, reason) = match &close {
            Close::Refused(error) => (error.status(), error.to_string()),
            Close::HeadTimeout => (
                StatusCode::REQUEST_TIMEOUT,
                "the request head came too slowly".to_owned(),
            ),
            _ => return close,
        };
        let name = status.canonical_reason().unwrap_or_default();
        let response = Response::text_plain(format!("{} {name}: {reason}\n", status.as_u16()))
            .with_status(status);
        let exchange = Exchange {
            version: Version::Http11,
            head_only: false,
            keep_alive: false,
            date: self.date.at(around.clock.now()),
        };
        let sent = respond::send(&mut self.io, &mut self.output, response, exchange, around)
            .and_then(|_| self.flush(around));
        if sent.is_ok() {
            self.linger(around);
        }
        close
    }

    /// Ends our side and reads on for a while: closing a socket with unread bytes in it would
    /// destroy the answer on its way (RFC 9112 section 9.6).
    fn linger(&mut self, around: &Surroundings) {
        let deadline = Deadline::after(around.clock.now(), around.rules.linger);
        if around.rules.linger == 0 || self.io.close_write().is_err() {
            return;
        }
        self.input.consume(self.input.filled().len());
        loop {
            match self.input.fill(usize::MAX, |space| self.io.read(space)) {
                Ok(0) => return,
                Ok(count) => {
                    self.input.consume(count);
                    if deadline.has_passed(around.clock.now()) {
                        return;
                    }
                    self.io.yield_turn();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.io.wait(deadline).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }

    fn flush(&mut self, around: &Surroundings) -> Result<(), Close> {
        respond::flush(&mut self.io, &mut self.output, around).map_err(Close::Failed)
    }

    fn release_buffers(&mut self) {
        self.input.release();
        self.output = Vec::new();
        exclusive(&mut self.head).release();
    }
}

/// The head's buffers for the next request; new ones if somebody kept the last request's.
fn exclusive(head: &mut Arc<RequestHead>) -> &mut RequestHead {
    if Arc::get_mut(head).is_none() {
        *head = Arc::default();
    }
    Arc::get_mut(head).expect("no other reference to a head that was just made or checked")
}
