//! How does a request become one for another server, and that one's answer ours?
//!
//! ```text
//!  Gateway::call ─▶ Picker: which server ─▶ Server: an idle connection, or a new one (link, net::dial)
//!        │              ▲                       │
//!        │              └── the next one ◀──────┤ UpstreamError: may it be asked again?
//!        ▼                                      ▼
//!   rewrite::request ─▶ exchange: body out, head of the answer back ─▶ rewrite::answer
//!                                               │
//!                        relay: the body, as it comes · tunnel: another protocol (101)
//! ```
//!
//! `health` knows who is well, `keeper` asks them, `settings` is what can be set, `address` what a server's URL says.

mod address;
mod balance;
mod build;
mod error;
mod exchange;
mod health;
mod keeper;
mod link;
mod relay;
mod rewrite;
mod server;
mod settings;
pub(crate) mod stats;
#[cfg(any(test, feature = "cli"))]
pub(crate) mod table;
mod tunnel;

use std::fmt;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};

pub use address::InvalidServer;
pub use build::{Gateway, HashBy};
use settings::Settings;

/// What a configuration file is turned into.
#[cfg(feature = "cli")]
pub(crate) mod plain {
    pub(crate) use super::address::Address;
    pub(crate) use super::balance::{Balance, HashKey};
    pub(crate) use super::build::Member;
    pub(crate) use super::settings::{
        Active, BreakerSettings, Edits, HostField, Passive, Settings, Times,
    };
}

use error::{Cause, Failure, Phase, UpstreamError};
use exchange::{Answered, Exchange, Upload};
use health::{Breaker, Circuit, milliseconds};
use link::{Ask, Shelf};
use rewrite::{Inbound, Outbound, OutboundLength};
use server::Server;
use stats::{Outcome, ServiceStats};
use tunnel::Tunnel;

use super::request_id::Id;
use crate::message::request::{Head, Scope};
use crate::message::{
    BodyError, Deadline, Request, RequestBody, RequestHead, Response, Service, StartError, Upgrade,
    Version,
};
use crate::net::dial::Dialer;
use crate::net::home;
use crate::proto::h1::BodyLength;

/// The servers of a gateway, and what is known of them.
pub(crate) struct Group {
    settings: Settings,
    servers: Box<[Server]>,
    picker: balance::Picker,
    breaker: Option<Breaker>,
    budget: Budget,
    shelf: Shelf,
    stats: Arc<ServiceStats>,
}

/// A request in the count of its server: `G` is how the group is held, by a reference or for longer than the call.
struct Seat<G: Deref<Target = Group>> {
    /// `None` once somebody else counts for it.
    group: Option<G>,
    index: usize,
}

/// A seat that outlives the call.
type LongSeat = Seat<Arc<Group>>;

impl Seat<&Group> {
    /// The same seat, for what goes on when the call has ended.
    fn keep(mut self, group: &Arc<Group>) -> LongSeat {
        self.group = None;
        Seat {
            group: Some(Arc::clone(group)),
            index: self.index,
        }
    }
}

impl LongSeat {
    fn group(&self) -> &Arc<Group> {
        self.group
            .as_ref()
            .expect("only a seat that is not kept gives its group away")
    }

    fn server(&self) -> &Server {
        &self.group().servers[self.index]
    }
}

impl<G: Deref<Target = Group>> Drop for Seat<G> {
    fn drop(&mut self) {
        if let Some(group) = &self.group {
            group.servers[self.index].leave();
        }
    }
}

/// What is known of a request until it has ended.
struct Tally {
    began: Instant,
    open: stats::Open,
}

impl Tally {
    /// The request was answered, to the end of that: counts it.
    fn end(self, stats: &ServiceStats, status: StatusCode, bytes_in: u64, bytes_out: u64) {
        stats.record(status.as_u16(), self.began.elapsed(), bytes_in, bytes_out);
        drop(self.open);
    }
}

/// How many more requests may be tried a second time: a share of all of them, so that retries do not bring down what is
/// slow anyway.
#[derive(Debug)]
struct Budget {
    /// In hundredths of a retry.
    tokens: AtomicI64,
    percent: i64,
}

/// How many retries there may be at once, whatever their share.
const BURST: i64 = 10;

impl Budget {
    fn new(percent: u32) -> Budget {
        Budget {
            tokens: (BURST * 100).into(),
            percent: i64::from(percent),
        }
    }

    fn earn(&self) {
        // A full one is not touched, so that workers do not contend for it.
        if self.tokens.load(Relaxed) < BURST * 100 {
            self.tokens.fetch_add(self.percent, Relaxed);
        }
    }

    fn spend(&self) -> bool {
        if self.tokens.load(Relaxed) < 100 {
            return false;
        }
        self.tokens.fetch_sub(100, Relaxed);
        true
    }
}

impl Group {
    /// Answers one request by one of the servers.
    fn answer(self: &Arc<Self>, request: &mut Request<'_>) -> Response {
        let dialer = match Dialer::get() {
            Ok(dialer) if home::current().is_some() => dialer,
            Ok(_) => {
                log::error!(
                    "{}: a gateway answers on the workers of a server alone; in a test, put the application on a port",
                    self.settings.name
                );
                return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
            }
            Err(error) => {
                log::error!("{}: no thread for deadlines: {error}", self.settings.name);
                return Response::error(StatusCode::SERVICE_UNAVAILABLE);
            }
        };
        if let Some(refused) = refuse(request) {
            return refused;
        }
        let tally = Tally {
            began: Instant::now(),
            open: self.stats.open(),
        };
        let id = Id::of(request);
        let circuit = self
            .breaker
            .as_ref()
            .map_or(Circuit::Closed, |breaker| breaker.ask(health::now()));
        if circuit == Circuit::Open {
            return self.fail(request, &Failure::Open, None, &id, tally);
        }
        self.budget.earn();
        let mut last = None;
        let outcome = self.ask(dialer, request, &id, &mut last);
        let failed = match &outcome {
            Ok((_, answered)) => answered.head.status.is_server_error(),
            Err(Failure::Upstream(_)) => true,
            Err(_) => false,
        };
        if let Some(breaker) = &self.breaker
            && breaker.note(circuit, failed, health::now())
        {
            log::warn!(
                "{}: too many requests fail, so none is passed on for a while",
                self.settings.name
            );
        }
        match outcome {
            Ok((seat, answered)) => self.respond(dialer, seat, answered, request, tally),
            Err(failure) => self.fail(request, &failure, last, &id, tally),
        }
    }

    /// Asks one server after the other until one answers.
    fn ask(
        &self,
        dialer: &'static Dialer,
        request: &mut Request<'_>,
        id: &Id,
        last: &mut Option<usize>,
    ) -> Result<(Seat<&Group>, Answered), Failure> {
        let settings = &self.settings;
        let limit = settings.body_limit;
        if let Some(limit) = limit {
            request.body().set_limit(limit);
        }
        let mut upload = Upload::new(length_of(request)?);
        let until = Deadline::after(dialer.present(), milliseconds(settings.times.total));
        let idempotent = rewrite::is_idempotent(request.method());
        let mut tried = Vec::new();
        let mut failure = Failure::Busy;
        while tried.len() < settings.attempts.min(self.servers.len()).max(1) {
            let Some(seat) = self.seat(request, &tried)? else {
                break;
            };
            let index = seat.index;
            *last = Some(index);
            let server = &self.servers[index];
            let outcome = self.ask_server(dialer, server, request, &mut upload, id, until);
            let error = match outcome {
                Ok(answered) => {
                    server.health.succeeded();
                    let bad = answered.head.status.is_server_error();
                    server.stats.ended(if bad {
                        Outcome::ServerError
                    } else {
                        Outcome::Answered
                    });
                    return Ok((seat, answered));
                }
                Err(Failure::Upstream(error)) => error,
                Err(other) => {
                    server.stats.ended(Outcome::Cancelled);
                    return Err(other);
                }
            };
            let late = error.status() == StatusCode::GATEWAY_TIMEOUT;
            server.stats.ended(if late {
                Outcome::Timeout
            } else {
                Outcome::Broken
            });
            if server.health.failed(settings.passive, health::now()) && self.servers.len() > 1 {
                log::warn!(
                    "{}: {} is left out for {} s: {error}",
                    settings.name,
                    server.address,
                    settings.passive.out.as_secs()
                );
            }
            tried.push(index);
            let again = error.retryable(idempotent)
                && upload.is_replayable()
                && !until.has_passed(dialer.now())
                && tried.len() < settings.attempts.min(self.servers.len())
                && self.budget.spend();
            if again {
                self.stats.retried();
                log::info!(
                    "{}: {} failed while {error}; the next server is asked",
                    settings.name,
                    server.address
                );
            }
            failure = Failure::Upstream(error);
            if !again {
                break;
            }
        }
        Err(failure)
    }

    /// A place at a server that was not tried yet: at the one whose turn it is, or at another where that one has as much
    /// as it may have; where all have, a place in the line of the first.
    fn seat(
        &self,
        request: &Request<'_>,
        tried: &[usize],
    ) -> Result<Option<Seat<&Group>>, Failure> {
        let seat = |index| Seat {
            group: Some(self),
            index,
        };
        let Some(first) = self.picker.pick(&self.servers, request, tried) else {
            return Ok(None);
        };
        if self.servers[first].try_enter() {
            return Ok(Some(seat(first)));
        }
        let mut full = tried.to_vec();
        full.push(first);
        while let Some(other) = self.picker.pick(&self.servers, request, &full) {
            if self.servers[other].try_enter() {
                return Ok(Some(seat(other)));
            }
            full.push(other);
        }
        let settings = &self.settings;
        match self.servers[first].enter(settings.queue, settings.times.queue) {
            true => Ok(Some(seat(first))),
            false => Err(Failure::Busy),
        }
    }

    /// Asks one server, and a second time where the first connection had been closed by it.
    fn ask_server(
        &self,
        dialer: &'static Dialer,
        server: &Server,
        request: &mut Request<'_>,
        upload: &mut Upload,
        id: &Id,
        until: Deadline,
    ) -> Result<Answered, Failure> {
        let settings = &self.settings;
        let idempotent = rewrite::is_idempotent(request.method());
        let ask = if idempotent { Ask::Worker } else { Ask::System };
        let mut idle = server.idle_link(dialer, settings.times.pool, ask);
        loop {
            let link = match idle.take() {
                Some(link) => {
                    server.stats.reused();
                    link
                }
                None => {
                    let left = until.as_millis().saturating_sub(dialer.now());
                    let limit = settings.times.connect.min(Duration::from_millis(left));
                    let link = server.connect(dialer, limit);
                    match &link {
                        Ok(_) => server.stats.connected(),
                        Err(_) => server.stats.connect_failed(),
                    }
                    link.map_err(Failure::Upstream)?
                }
            };
            let mut buffers = self.shelf.take();
            let expects_continue = upload.is_untouched()
                && request.version() == Version::Http11
                && request.headers().contains("expect");
            let with = Outbound {
                settings,
                server: &server.address,
                id,
                length: upload.length,
                upgrade: settings.upgrades && wants_upgrade(request, upload),
                expects_continue,
            };
            rewrite::request(&mut buffers.output, request, &with);
            let exchange = Exchange::new(dialer, &settings.times, until, request, link, buffers);
            match exchange.run(upload, expects_continue) {
                Err(Failure::Upstream(error))
                    if error.is_stale()
                        && error.retryable(idempotent)
                        && upload.is_replayable() =>
                {
                    self.stats.retried();
                    log::debug!(
                        "{}: {} had closed an idle connection",
                        settings.name,
                        server.address
                    );
                }
                Ok(answered) => return self.check(request, upload, answered),
                Err(other) => return Err(other),
            }
        }
    }

    /// Refuses a switch of protocols that nobody has asked for.
    fn check(
        &self,
        request: &Request<'_>,
        upload: &Upload,
        answered: Answered,
    ) -> Result<Answered, Failure> {
        let switched = answered.head.status == StatusCode::SWITCHING_PROTOCOLS;
        if !switched || (self.settings.upgrades && wants_upgrade(request, upload)) {
            return Ok(answered);
        }
        Err(Failure::Upstream(UpstreamError {
            phase: Phase::Head,
            cause: Cause::Switched,
            reused: answered.link.reused,
            sent: true,
        }))
    }

    /// Makes the client's answer of the server's.
    fn respond(
        self: &Arc<Self>,
        dialer: &'static Dialer,
        seat: Seat<&Group>,
        mut answered: Answered,
        request: &Request<'_>,
        tally: Tally,
    ) -> Response {
        let mut headers = std::mem::take(&mut answered.head.headers);
        let status = answered.head.status;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            tally.end(&self.stats, status, 0, 0);
            let protocol = headers.get("upgrade").unwrap_or_default().to_owned();
            headers.remove("Connection");
            let mut response =
                Response::upgrade(Upgrade(Box::new(Tunnel::new(answered, seat.keep(self)))));
            response.headers = headers;
            // It was a value before.
            return response.header("Upgrade", &protocol);
        }
        let with = Inbound {
            settings: &self.settings,
            server: &self.servers[seat.index].address,
        };
        rewrite::answer(&mut headers, request, &with);
        let mut response = Response::new(status);
        response.headers = headers;
        response.body = relay::body(self, dialer, seat, answered, tally);
        response
    }

    /// The answer where there is none of a server, and a line in the log that says why.
    fn fail(
        &self,
        request: &Request<'_>,
        failure: &Failure,
        last: Option<usize>,
        id: &Id,
        tally: Tally,
    ) -> Response {
        let status = failure.status();
        tally.end(&self.stats, status, 0, 0);
        let server = last.map_or_else(String::new, |index| {
            format!(" by {}", self.servers[index].address)
        });
        match failure {
            Failure::Client(error) => return Response::error_because(status, error),
            Failure::Gone => log::debug!("{}: {failure}", self.settings.name),
            _ => log::warn!(
                "{}: {} {} was not answered{server}: {failure}; the client got {}, request {id}",
                self.settings.name,
                request.method(),
                request.path(),
                status.as_u16()
            ),
        }
        // Nothing of what lies behind the gateway, and what to ask its operator about.
        let response = Response::error_public(status, format_args!("request {id}"))
            .header("X-Request-Id", &id.to_string());
        match failure {
            Failure::Busy | Failure::Open => response.header("Retry-After", "1"),
            _ => response,
        }
    }
}

/// How the body of a request is passed on.
fn length_of(request: &mut Request<'_>) -> Result<OutboundLength, Failure> {
    let limit = request.body().limit();
    let announced = request.headers().contains("content-length");
    Ok(match request.body().length() {
        Some(0) if !announced => OutboundLength::None,
        Some(length) if length > limit => {
            return Err(Failure::Client(BodyError::TooLarge {
                limit,
                length: Some(length),
            }));
        }
        Some(length) => OutboundLength::Sized(length),
        None => OutboundLength::Chunked,
    })
}

/// Whether the client asks to speak another protocol (RFC 9110 section 7.8).
fn wants_upgrade(request: &Request<'_>, upload: &Upload) -> bool {
    request.version() == Version::Http11
        && matches!(
            upload.length,
            OutboundLength::None | OutboundLength::Sized(0)
        )
        && *request.method() != Method::HEAD
        && request.headers().contains("upgrade")
        && request.headers().has_token("connection", "upgrade")
}

/// Answers what is not for any server.
fn refuse(request: &Request<'_>) -> Option<Response> {
    if rewrite::climbs(request.path()) {
        return Some(Response::error_because(
            StatusCode::BAD_REQUEST,
            "the path has a segment `..`",
        ));
    }
    // It would show fields of the request to scripts that must not see them.
    if *request.method() == Method::TRACE {
        return Some(
            Response::error(StatusCode::METHOD_NOT_ALLOWED)
                .header("Allow", "GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE"),
        );
    }
    // RFC 9110 section 7.6.2.
    if *request.method() == Method::OPTIONS
        && request.headers().get("max-forwards").map(str::trim) == Some("0")
    {
        return Some(Response::new(StatusCode::NO_CONTENT));
    }
    None
}

/// The head that a server gets for a request, for who tries whether that is one request too.
pub(crate) fn passed_on(head: RequestHead, body: BodyLength) -> Vec<u8> {
    let peer = SocketAddr::from(([192, 0, 2, 1], 4711));
    let own = Head::Own(Arc::new(head));
    let request = Request::assemble(own, peer, RequestBody::empty(), Scope::default());
    let server = "http://10.0.0.9:3001".parse::<address::Address>();
    let server = server.expect("a URL of a host and a port");
    let with = Outbound {
        settings: &Settings::default(),
        server: &server,
        id: &Id::of(&request),
        length: match body {
            BodyLength::None => OutboundLength::None,
            BodyLength::Sized(length) => OutboundLength::Sized(length),
            BodyLength::Chunked => OutboundLength::Chunked,
        },
        upgrade: false,
        expects_continue: false,
    };
    let mut out = Vec::new();
    rewrite::request(&mut out, &request, &with);
    out
}

impl Service for Gateway {
    fn call(&self, request: &mut Request<'_>) -> Response {
        match self.group() {
            Ok(group) => group.answer(request),
            Err(error) => {
                log::error!("{error}");
                Response::error(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }

    fn start(&self) -> Result<(), StartError> {
        Ok(self.begin()?)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("name", &self.settings.name)
            .field("servers", &self.servers.len())
            .finish_non_exhaustive()
    }
}
