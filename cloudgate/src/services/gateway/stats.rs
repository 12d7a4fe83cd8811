//! What has become of the requests of a gateway, in numbers?
//!
//! Every request counts several times, so each worker has cells of its own on cache lines of its own, and only who asks for
//! the sum looks at all of them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::message::clock::nanoseconds;
use crate::message::metrics::{Collect, Exposition, Kind, register};
use crate::net::home;

/// Up to how many microseconds a request belongs into which bucket.
const BOUNDS: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];

/// The same in seconds.
static SECONDS: [f64; BOUNDS.len()] = {
    let mut seconds = [0.0; BOUNDS.len()];
    let mut index = 0;
    while index < BOUNDS.len() {
        seconds[index] = BOUNDS[index] as f64 / 1e6;
        index += 1;
    }
    seconds
};

/// One more than there are bounds, for what is slower than all of them.
const BUCKETS: usize = BOUNDS.len() + 1;

const CODES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The cells of one worker. Two cache lines are fetched together on many processors.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<const CELLS: usize>([AtomicU64; CELLS]);

/// Numbers that every worker adds to in a place of its own.
#[derive(Debug)]
struct Sharded<const CELLS: usize>(Box<[Arc<Shard<CELLS>>]>);

impl<const CELLS: usize> Sharded<CELLS> {
    fn new() -> Sharded<CELLS> {
        // The workers may start later than this is made. With more of them than was expected some share a place.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let zeros = || Arc::new(Shard([const { AtomicU64::new(0) }; CELLS]));
        let shards = (0..home::workers().max(cores)).map(|_| zeros());
        Sharded(shards.collect())
    }

    /// The place of the calling worker; who is none has the first one too.
    fn own(&self) -> &Arc<Shard<CELLS>> {
        &self.0[home::current().unwrap_or(0) % self.0.len()]
    }

    fn add(&self, cell: usize, number: u64) {
        self.own().add(cell, number);
    }

    fn sum(&self, cell: usize) -> u64 {
        let cells = self.0.iter().map(|shard| &shard.0[cell]);
        cells.fold(0, |sum, cell| {
            sum.wrapping_add(cell.load(Ordering::Relaxed))
        })
    }

    fn hold(&self, cell: usize) -> Held<CELLS> {
        let shard = Arc::clone(self.own());
        shard.add(cell, 1);
        Held { shard, cell }
    }
}

impl<const CELLS: usize> Shard<CELLS> {
    fn add(&self, cell: usize, number: u64) {
        self.0[cell].fetch_add(number, Ordering::Relaxed);
    }
}

/// Something that counts as being there until this is dropped, on whichever worker.
///
/// It shares the cells of one worker, whose reference count is as little contended as they are.
#[derive(Debug)]
#[must_use]
pub(crate) struct Held<const CELLS: usize> {
    shard: Arc<Shard<CELLS>>,
    cell: usize,
}

impl<const CELLS: usize> Drop for Held<CELLS> {
    fn drop(&mut self) {
        self.shard.0[self.cell].fetch_sub(1, Ordering::Relaxed);
    }
}

// The cells of a service: first one for each code and bucket, so that a request counts in one of them for both.
const TOOK: usize = CODES.len() * BUCKETS;
const BYTES_IN: usize = TOOK + 1;
const BYTES_OUT: usize = TOOK + 2;
const RETRIES: usize = TOOK + 3;
const OPEN: usize = TOOK + 4;
const TUNNELS: usize = TOOK + 5;
const SERVICE_CELLS: usize = TOOK + 6;

/// A request or a tunnel that is under way.
pub(crate) type Open = Held<SERVICE_CELLS>;

/// The numbers of one service of a gateway.
#[derive(Debug)]
pub(crate) struct ServiceStats {
    name: String,
    cells: Sharded<SERVICE_CELLS>,
}

impl ServiceStats {
    /// None yet. They are in the metrics of the process for as long as this is held; of several by one name the sums.
    pub(crate) fn new(name: &str) -> Arc<ServiceStats> {
        let stats = Arc::new(ServiceStats {
            name: name.to_owned(),
            cells: Sharded::new(),
        });
        let weak = Arc::downgrade(&stats);
        register(weak as Weak<dyn Collect>);
        stats
    }

    /// A request is under way until the guard is dropped.
    pub(crate) fn open(&self) -> Open {
        self.cells.hold(OPEN)
    }

    /// A connection has become a tunnel until the guard is dropped.
    pub(crate) fn upgraded(&self) -> Open {
        self.cells.hold(TUNNELS)
    }

    /// A request was answered with this status, to the end of its answer. The bytes are those of the bodies. It costs about 20 ns.
    pub(crate) fn record(&self, status: u16, took: Duration, bytes_in: u64, bytes_out: u64) {
        let took = nanoseconds(took);
        let bucket = BOUNDS.partition_point(|bound| bound * 1000 < took);
        let code = usize::from(status / 100).clamp(1, CODES.len()) - 1;
        let own = self.cells.own();
        own.add(code * BUCKETS + bucket, 1);
        own.add(TOOK, took);
        if bytes_in > 0 {
            own.add(BYTES_IN, bytes_in);
        }
        if bytes_out > 0 {
            own.add(BYTES_OUT, bytes_out);
        }
    }

    /// A request was given to another server, or again to the same one.
    pub(crate) fn retried(&self) {
        self.cells.add(RETRIES, 1);
    }
}

impl Collect for ServiceStats {
    fn collect(&self, out: &mut Exposition) {
        let service = ("service", &*self.name);
        let cell = |cell| self.cells.sum(cell) as f64;
        let mut buckets = [0; BUCKETS];
        for (index, code) in CODES.into_iter().enumerate() {
            let mut answered = 0;
            for (bucket, count) in buckets.iter_mut().enumerate() {
                let of_both = self.cells.sum(index * BUCKETS + bucket);
                answered += of_both;
                *count += of_both;
            }
            out.family(
                "cloudgate_gateway_requests_total",
                Kind::Counter,
                "Requests that were answered, by the first digit of the status.",
            )
            .sample(&[service, ("code", code)], answered as f64);
        }
        out.family(
            "cloudgate_gateway_request_duration_seconds",
            Kind::Histogram,
            "Time from the head of a request to the end of its answer.",
        )
        .histogram(&[service], &SECONDS, &buckets, cell(TOOK) / 1e9);
        for (name, kind, help, value) in [
            (
                "cloudgate_gateway_request_bytes_total",
                Kind::Counter,
                "Bytes of bodies that clients have sent.",
                cell(BYTES_IN),
            ),
            (
                "cloudgate_gateway_response_bytes_total",
                Kind::Counter,
                "Bytes of bodies that clients were sent.",
                cell(BYTES_OUT),
            ),
            (
                "cloudgate_gateway_retries_total",
                Kind::Counter,
                "Times that a request was sent once more, to another server or the same one.",
                cell(RETRIES),
            ),
            (
                "cloudgate_gateway_requests_in_flight",
                Kind::Gauge,
                "Requests that are not answered yet.",
                cell(OPEN),
            ),
            (
                "cloudgate_gateway_tunnels",
                Kind::Gauge,
                "Connections that have become tunnels, such as WebSockets.",
                cell(TUNNELS),
            ),
        ] {
            out.family(name, kind, help).sample(&[service], value);
        }
    }
}

/// How often a configuration was read while the program ran.
#[cfg(any(test, feature = "cli"))]
#[derive(Debug, Default)]
pub(crate) struct ReloadStats {
    taken: AtomicU64,
    refused: AtomicU64,
}

#[cfg(any(test, feature = "cli"))]
impl ReloadStats {
    /// Never yet. They are in the metrics of the process for as long as this is held.
    pub(crate) fn new() -> Arc<ReloadStats> {
        let stats = Arc::new(ReloadStats::default());
        let weak = Arc::downgrade(&stats);
        register(weak as Weak<dyn Collect>);
        stats
    }

    /// It was read, and is in force or not.
    #[cfg(feature = "cli")]
    pub(crate) fn count(&self, taken: bool) {
        let count = if taken { &self.taken } else { &self.refused };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(any(test, feature = "cli"))]
impl Collect for ReloadStats {
    fn collect(&self, out: &mut Exposition) {
        for (outcome, count) in [("taken", &self.taken), ("refused", &self.refused)] {
            out.family(
                "cloudgate_gateway_config_reloads_total",
                Kind::Counter,
                "Times that the configuration was read while the program ran.",
            )
            .sample(
                &[("outcome", outcome)],
                count.load(Ordering::Relaxed) as f64,
            );
        }
    }
}

/// How a request to a server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// With an answer below 500.
    Answered,
    /// With an answer of 500 or above.
    ServerError,
    /// The connection broke, or what came was no HTTP.
    Broken,
    /// It took too long.
    Timeout,
    /// The client went away first.
    Cancelled,
}

const OUTCOMES: [(Outcome, &str); 5] = [
    (Outcome::Answered, "answered"),
    (Outcome::ServerError, "server_error"),
    (Outcome::Broken, "broken"),
    (Outcome::Timeout, "timeout"),
    (Outcome::Cancelled, "cancelled"),
];

/// What there is of a server at the moment: who looks after it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    /// Whether requests go there.
    pub(crate) up: bool,
    /// Requests and tunnels that it has, each on a connection of its own.
    pub(crate) active: usize,
    /// Connections that wait for a request.
    pub(crate) idle: usize,
    /// Requests that wait for their turn.
    pub(crate) queued: usize,
}

impl Default for Now {
    fn default() -> Now {
        Now {
            up: true,
            active: 0,
            idle: 0,
            queued: 0,
        }
    }
}

// The cells of a server: first those of `Outcome`, in its order.
const CONNECTS: usize = OUTCOMES.len();
const CONNECT_ERRORS: usize = CONNECTS + 1;
const REUSED: usize = CONNECTS + 2;
const SERVER_CELLS: usize = CONNECTS + 3;

/// The numbers of one server that a service passes requests on to.
pub(crate) struct ServerStats {
    service: String,
    server: String,
    look: OnceLock<Box<dyn Fn() -> Now + Send + Sync>>,
    cells: Sharded<SERVER_CELLS>,
}

impl ServerStats {
    /// None yet. As [`ServiceStats::new`]; `server` is shown, so it holds no password.
    pub(crate) fn new(service: &str, server: &str) -> Arc<ServerStats> {
        let stats = Arc::new(ServerStats {
            service: service.to_owned(),
            server: server.to_owned(),
            look: OnceLock::new(),
            cells: Sharded::new(),
        });
        let weak = Arc::downgrade(&stats);
        register(weak as Weak<dyn Collect>);
        stats
    }

    /// Says how to find out what there is of the server at the moment.
    pub(crate) fn look_by(&self, look: impl Fn() -> Now + Send + Sync + 'static) {
        // Whoever was first is right.
        let _ = self.look.set(Box::new(look));
    }

    /// A connection was opened.
    pub(crate) fn connected(&self) {
        self.cells.add(CONNECTS, 1);
    }

    /// A connection could not be opened.
    pub(crate) fn connect_failed(&self) {
        self.cells.add(CONNECT_ERRORS, 1);
    }

    /// A request goes over a connection that has carried one before.
    pub(crate) fn reused(&self) {
        self.cells.add(REUSED, 1);
    }

    /// A request has ended.
    pub(crate) fn ended(&self, outcome: Outcome) {
        self.cells.add(outcome as usize, 1);
    }
}

impl fmt::Debug for ServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerStats")
            .field("service", &self.service)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl Collect for ServerStats {
    fn collect(&self, out: &mut Exposition) {
        let (service, server) = (("service", &*self.service), ("server", &*self.server));
        let cell = |cell| self.cells.sum(cell) as f64;
        let now = self.look.get().map_or_else(Now::default, |look| look());
        out.family(
            "cloudgate_gateway_upstream_up",
            Kind::Latest,
            "1 where requests go to the server, 0 where it is left out.",
        )
        .sample(&[service, server], f64::from(u8::from(now.up)));
        for (state, count) in [("active", now.active), ("idle", now.idle)] {
            out.family(
                "cloudgate_gateway_upstream_connections",
                Kind::Gauge,
                "Connections to the server that are open.",
            )
            .sample(&[service, server, ("state", state)], count as f64);
        }
        for (outcome, name) in OUTCOMES {
            out.family(
                "cloudgate_gateway_upstream_requests_total",
                Kind::Counter,
                "Requests to the server, by how they ended.",
            )
            .sample(
                &[service, server, ("outcome", name)],
                cell(outcome as usize),
            );
        }
        for (name, kind, help, value) in [
            (
                "cloudgate_gateway_upstream_connects_total",
                Kind::Counter,
                "Connections to the server that were opened.",
                cell(CONNECTS),
            ),
            (
                "cloudgate_gateway_upstream_connect_errors_total",
                Kind::Counter,
                "Connections to the server that could not be opened.",
                cell(CONNECT_ERRORS),
            ),
            (
                "cloudgate_gateway_upstream_reused_total",
                Kind::Counter,
                "Requests over a connection that had carried one before.",
                cell(REUSED),
            ),
            (
                "cloudgate_gateway_upstream_queue",
                Kind::Gauge,
                "Requests that wait for their turn at the server.",
                now.queued as f64,
            ),
        ] {
            out.family(name, kind, help)
                .sample(&[service, server], value);
        }
    }
}

#[cfg(test)]
mod tests;
