//! How does one connection live, from its first byte to its last?
//!
//! ```text
//!  read_head ─▶ Framing ─▶ service.call ─▶ respond::send ─▶ read_head …
//!      │ nothing there: buffers given back,   │ unread body, error, Connection: close
//!      │ and after a while parked             │
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
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::{Method, StatusCode};

use super::body::{BodyReader, Unread};
use super::clock::Date;
use super::lease::{self, Lease};
use super::respond::{self, Exchange};
use super::settings::Rules;
use crate::message::request::Head;
use crate::message::{
    Body, Deadline, Duplex, Request, RequestBody, RequestHead, Response, Service, TlsSession,
    Upgrade, Version,
};
use crate::net::deadline::Clock;
use crate::net::home;
use crate::proto::error::ParseError;
use crate::proto::h1::{BodyLength, Framing, parse_request};

/// How many pipelined requests are answered before other connections get a turn.
const REQUESTS_A_TURN: u32 = 32;

/// How many bytes of answers are gathered before they are sent although more requests are there.
const OUTPUT_ENOUGH: usize = 64 << 10;

/// Up to how many connections with a coroutine each may keep it for the whole time of
/// [`Timeouts::park`](crate::Timeouts::park). Beyond, twice as many have a quarter of it: a crowd that
/// asks once and rests does not hold a stack each for a second.
pub(crate) const COMFORTABLE: usize = 1024;

/// How many bytes a connection moves at most without a wait while up to [`FEW`] have a coroutine.
const LONGEST_TURN: usize = 512 << 10;

/// How many bytes it may move in any case. Less would not pay for the change.
const SHORTEST_TURN: usize = 128 << 10;

/// Up to how many connections with a coroutine turns are as long as may be.
const FEW: usize = 256;

/// What all connections of a server share.
pub(crate) struct Surroundings {
    pub(crate) service: Box<dyn Service>,
    pub(crate) rules: Rules,
    pub(crate) clock: Arc<Clock>,
    pub(crate) stopping: AtomicBool,
    /// How many connections have a coroutine.
    pub(crate) active: AtomicUsize,
    /// How many of them keep it until they end, for a protocol other than HTTP, and how many may.
    pub(crate) kept: AtomicUsize,
    pub(crate) most_kept: usize,
}

impl Surroundings {
    /// For how many milliseconds a connection without a byte keeps its coroutine; 0 for ever.
    pub(super) fn patience(&self) -> u64 {
        let park = self.rules.park;
        let active = self.active.load(Ordering::Relaxed).max(COMFORTABLE) as u64;
        let part = |time: u64| time.saturating_mul(COMFORTABLE as u64) / active;
        part(part(park)).max(park.min(1))
    }

    /// After how many bytes without a wait a connection lets the others of its worker have a turn:
    /// fewer when there are many of them, for a short answer waits for one turn of each.
    pub(super) fn turn(&self) -> usize {
        let active = self.active.load(Ordering::Relaxed).max(FEW);
        (LONGEST_TURN * FEW / active).max(SHORTEST_TURN)
    }
}

/// One connection: what carries it, and the buffers of the request in flight.
pub(crate) struct Connection<D> {
    io: D,
    lease: Option<Box<Lease>>,
    peer: SocketAddr,
    /// What was agreed on by TLS.
    tls: Option<Arc<TlsSession>>,
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
    /// Nothing came for a while: the connection can be parked until this point.
    Quiet(Deadline),
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
    /// It speaks another protocol from now on, and this came behind the request.
    Upgraded(Upgrade, Vec<u8>),
}

impl fmt::Display for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Close::Peer => f.write_str("the peer ended it"),
            Close::Truncated => f.write_str("the peer ended it inside a request"),
            Close::Finished => f.write_str("the last response was sent"),
            Close::Quiet(_) => f.write_str("it is parked"),
            Close::Idle => f.write_str("no request came in time"),
            Close::HeadTimeout => f.write_str("a request head came too slowly"),
            Close::Refused(error) => write!(f, "a request was refused: {error}"),
            Close::Stopping => f.write_str("the server stops"),
            Close::Failed(error) => write!(f, "it failed: {error}"),
            Close::BodyFailed(error) => write!(f, "a response was cut short: {error}"),
            Close::Upgraded(..) => f.write_str("it speaks another protocol"),
        }
    }
}

impl From<io::Error> for Close {
    fn from(error: io::Error) -> Close {
        Close::Failed(error)
    }
}

impl<D: Duplex> Connection<D> {
    /// A connection that came at `opened` on the server's clock and has had `served` answers.
    pub(crate) fn resume(
        io: D,
        peer: SocketAddr,
        tls: Option<Arc<TlsSession>>,
        opened: u64,
        served: u64,
    ) -> Connection<D> {
        Connection {
            io,
            tls,
            lease: None,
            peer,
            date: Date::new(),
            opened,
            served,
            in_turn: 0,
        }
    }

    /// How many requests were answered.
    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    /// What carries the connection.
    pub(crate) fn into_io(self) -> D {
        self.io
    }

    /// Serves requests until the connection ends, and says why it did.
    pub(crate) fn serve(&mut self, around: &Surroundings) -> Close {
        let close = loop {
            let outcome = self
                .read_head(around)
                .and_then(|framing| self.exchange(framing, around));
            if let Err(close) = outcome {
                break self.refuse(close, around);
            }
        };
        self.give_lease_back();
        close
    }

    /// Reads until a whole request head is there, and finds its framing.
    fn read_head(&mut self, around: &Surroundings) -> Result<Framing, Close> {
        let rules = &around.rules;
        let waiting_since = around.clock.now();
        // The time for a head counts from its first byte; on a new connection from its start.
        let mut began = (self.served == 0).then_some(self.opened);
        let mut looked_at = 0;
        let mut line_seen = false;
        loop {
            let lease = self.lease.get_or_insert_with(lease::take);
            if looked_at < lease.input.filled().len() {
                let filled = lease.input.filled();
                let new_line = memchr::memchr(b'\n', &filled[looked_at..]).is_some();
                line_seen |= new_line;
                // A head that drips in is parsed again only when that can change the outcome.
                let worth_it = looked_at == 0
                    || new_line
                    || filled.len() >= rules.limits.head
                    || (!line_seen && filled.len() > rules.limits.target);
                looked_at = filled.len();
                if worth_it && let Some(framing) = lease.parse(rules)? {
                    return Ok(framing);
                }
                began.get_or_insert(waiting_since.max(around.clock.now()));
            }
            // Empty lines in front of a request line count in the buffer and not in the limit.
            let most = rules.limits.head + 64;
            match lease.input.fill(most, |space| self.io.read(space)) {
                Ok(0) => {
                    let unfinished = !lease.input.is_empty();
                    self.flush(around)?;
                    return Err(if unfinished {
                        Close::Truncated
                    } else {
                        Close::Peer
                    });
                }
                Ok(_) => continue,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
                Err(_) => {}
            }
            let unfinished = !lease.input.is_empty();
            self.flush(around)?;
            self.in_turn = 0;
            if !unfinished {
                if around.stopping.load(Ordering::Relaxed) {
                    return Err(Close::Stopping);
                }
                self.give_lease_back();
            }
            let deadline = match began {
                Some(began) => Deadline::after(began, rules.head),
                None => Deadline::after(waiting_since, rules.idle),
            };
            let quiet = Deadline::after(waiting_since, around.patience());
            let parks = !unfinished && quiet < deadline;
            match self.io.wait(if parks { quiet } else { deadline }) {
                Ok(()) => {}
                Err(error) if error.kind() != ErrorKind::TimedOut => return Err(error.into()),
                Err(_) if unfinished => return Err(Close::HeadTimeout),
                Err(_) if parks => return Err(Close::Quiet(deadline)),
                Err(_) => return Err(Close::Idle),
            }
        }
    }

    /// Lets the service answer one request and sends the answer, or at least gathers it.
    fn exchange(&mut self, framing: Framing, around: &Surroundings) -> Result<(), Close> {
        self.served += 1;
        let Lease {
            input,
            output,
            head,
            scope,
        } = &mut **self.lease.get_or_insert_with(lease::take);
        let version = head.version();
        let mut reader = BodyReader::new(&mut self.io, input, output, framing, version, around);
        let mut body = RequestBody::from_source(&mut reader);
        body.set_limit(around.rules.body_limit);
        let mut request =
            Request::assemble(Head::Lent(head), self.peer, body, std::mem::take(scope))
                .by(self.tls.clone());
        let answer = home::catch_panic(|| around.service.call(&mut request));
        if answer.is_ok() {
            // After a panic it may name applications that were in the middle of something.
            *scope = std::mem::take(&mut request.scope);
        }
        drop(request);
        let unread = if framing.body == BodyLength::None {
            Unread::Nothing
        } else {
            reader.finish()
        };
        let (mut response, panicked) = match answer {
            Ok(response) => (response, false),
            Err(_) => (Response::error(StatusCode::INTERNAL_SERVER_ERROR), true),
        };
        let upgrade = match response.body {
            Body::Upgrade(_) => upgrade(&mut response, head, unread, around),
            _ => None,
        };
        let keep_alive = framing.keep_alive
            && unread == Unread::Nothing
            && !panicked
            && !around.stopping.load(Ordering::Relaxed);
        let exchange = Exchange {
            version: head.version(),
            head_only: *head.method() == Method::HEAD,
            keep_alive,
            upgrades: upgrade.is_some(),
            date: self.date.at(around.clock.now()),
        };
        let keep_alive = match respond::send(&mut self.io, output, response, exchange, around) {
            Ok(keep_alive) => keep_alive,
            Err(close) => {
                // The answers in front of the one that failed are whole: they still go out.
                if matches!(close, Close::BodyFailed(_)) {
                    self.flush(around)?;
                }
                return Err(close);
            }
        };
        if let Some(upgrade) = upgrade {
            let leftover = input.filled().to_vec();
            self.flush(around)?;
            return Err(Close::Upgraded(upgrade, leftover));
        }
        let enough = output.len() >= OUTPUT_ENOUGH;
        if !keep_alive {
            let unread = unread == Unread::Something || !input.is_empty();
            self.flush(around)?;
            if unread {
                self.linger(around);
            }
            return Err(Close::Finished);
        }
        self.in_turn += 1;
        if enough {
            self.flush(around)?;
        }
        if self.in_turn >= REQUESTS_A_TURN {
            self.flush(around)?;
            self.io.yield_turn();
            self.in_turn = 0;
        }
        Ok(())
    }

    /// Tells the peer why its request is not answered, where there is something to tell.
    fn refuse(&mut self, close: Close, around: &Surroundings) -> Close {
        let response = match &close {
            Close::Refused(error) => Response::error_because(error.status(), error),
            Close::HeadTimeout => Response::error_because(
                StatusCode::REQUEST_TIMEOUT,
                "the request head came too slowly",
            ),
            _ => return close,
        };
        let Lease { output, .. } = &mut **self.lease.get_or_insert_with(lease::take);
        let exchange = Exchange {
            version: Version::Http11,
            head_only: false,
            keep_alive: false,
            upgrades: false,
            date: self.date.at(around.clock.now()),
        };
        let sent = respond::send(&mut self.io, output, response, exchange, around)
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
        let input = &mut self.lease.get_or_insert_with(lease::take).input;
        loop {
            input.empty();
            match input.fill(usize::MAX, |space| self.io.read(space)) {
                Ok(0) => return,
                Ok(_) if deadline.has_passed(around.clock.now()) => return,
                Ok(_) => self.io.yield_turn(),
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
        match &mut self.lease {
            Some(lease) => {
                respond::flush(&mut self.io, &mut lease.output, around).map_err(Close::Failed)
            }
            None => Ok(()),
        }
    }

    fn give_lease_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease::give_back(lease);
        }
    }
}

/// Takes the protocol out of a response of status 101, or makes another of it where the connection cannot be upgraded.
fn upgrade(
    response: &mut Response,
    head: &RequestHead,
    unread: Unread,
    around: &Surroundings,
) -> Option<Upgrade> {
    let protocol = response
        .headers()
        .get("upgrade")
        .unwrap_or_default()
        .to_owned();
    let Body::Upgrade(upgrade) = response.take_body() else {
        return None;
    };
    // RFC 9110 section 7.8.
    let asked = head.version() == Version::Http11
        && head.headers().has_token("connection", "upgrade")
        && head.headers().contains("upgrade");
    let full =
        upgrade.0.keeps_coroutine() && around.kept.load(Ordering::Relaxed) >= around.most_kept;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS || protocol.is_empty() {
        log::error!(
            "a handler upgraded a connection with the status {} and the protocol {protocol:?}; the client gets a 500",
            response.status()
        );
        *response = Response::error(StatusCode::INTERNAL_SERVER_ERROR);
    } else if !asked || *head.method() == Method::HEAD {
        let reason =
            format_args!("the fields `Connection: Upgrade` and `Upgrade: {protocol}` are wanted");
        *response = Response::error_because(StatusCode::UPGRADE_REQUIRED, reason)
            .header("Upgrade", &protocol);
    } else if unread != Unread::Nothing {
        *response = Response::error_because(
            StatusCode::BAD_REQUEST,
            "a request to upgrade the connection has no body",
        );
    } else if full || around.stopping.load(Ordering::Relaxed) {
        *response = Response::error(StatusCode::SERVICE_UNAVAILABLE).header("Retry-After", "1");
    } else {
        return Some(upgrade);
    }
    None
}

impl Lease {
    /// Parses a head from the input and finds its framing; `None` where more bytes are needed.
    fn parse(&mut self, rules: &Rules) -> Result<Option<Framing>, Close> {
        let head = lease::exclusive(&mut self.head);
        let parsed =
            parse_request(self.input.filled(), &rules.limits, head).map_err(Close::Refused)?;
        let Some(length) = parsed else {
            return Ok(None);
        };
        self.input.consume(length);
        Framing::of(&self.head).map(Some).map_err(Close::Refused)
    }
}
