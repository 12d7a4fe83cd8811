//! What can be set about a server?

use std::net::IpAddr;
use std::time::Duration;

use crate::message::{Network, Pace, RequestBody};
use crate::net::home;
use crate::proto::limits::Limits;

/// How long a peer may take. Zero turns a limit off.
///
/// These are deadlines, not timeouts per read: a byte now and then does not extend them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Timeouts {
    /// For a whole request head, from its first byte, or from the connection's start (default 10 s).
    pub head: Duration,
    /// For the next request on a kept-alive connection (default 75 s).
    pub idle: Duration,
    /// After how long without a byte a connection gives up its coroutine (default 1 s); zero for
    /// never. The deadlines above go on. With more than 1,024 coroutines it is less: a quarter with
    /// twice as many.
    pub park: Duration,
    /// How long a body may fall behind [`Timeouts::min_rate`] before it is cut off (default 10 s).
    pub grace: Duration,
    /// Bytes per second that a body must bring, and that a reader of a response must take
    /// (default 240); 0 for no such limit.
    pub min_rate: u32,
    /// How long a response may make no progress at all (default 30 s).
    pub stall: Duration,
    /// How long a connection that was refused is read on, so that the client can read why (default 2 s).
    pub linger: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            park: Duration::from_secs(1),
            grace: Duration::from_secs(10),
            min_rate: 240,
            stall: Duration::from_secs(30),
            linger: Duration::from_secs(2),
        }
    }
}

/// Which peers are proxies that begin each connection with the PROXY protocol, version 1 or 2, to
/// say which client it is for.
///
/// From these a header is required: a connection without a valid one is closed without an answer,
/// at the latest when the time for a request head is over. From all others it is not understood, and
/// is a bad request: whoever may send it may claim any address. The address in it is what handlers,
/// limits and logs see; where it names none, as in a proxy's own health check, it is the proxy's.
///
/// ```
/// use cloudgate::{ProxyProtocol, Settings};
/// let mut settings = Settings::default();
/// settings.proxy_protocol = Some(ProxyProtocol {
///     trusted: vec!["10.0.0.0/8".parse()?, "::1".parse()?],
///     ..ProxyProtocol::default()
/// });
/// # Ok::<(), cloudgate::InvalidNetwork>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ProxyProtocol {
    /// The networks that the proxies are in.
    pub trusted: Vec<Network>,
    /// Whether all who connect by a Unix socket are such proxies.
    pub unix_sockets: bool,
}

impl ProxyProtocol {
    /// Whether the peer with this address has to send a header. A peer without an address, which
    /// came by a Unix socket, has the unspecified one.
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        if peer.is_unspecified() {
            return self.unix_sockets;
        }
        self.trusted.iter().any(|network| network.contains(peer))
    }
}

/// Everything that can be set about a [`Server`](crate::Server).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Worker threads, stacks, pinning: the first server of a process decides for all.
    pub workers: home::Settings,
    /// The most connections at once; past it a new one gets 503. `None` reckons it from the
    /// limits of the process.
    pub max_connections: Option<usize>,
    /// The most connections at once from one IPv4 address or one /64 of IPv6; past it a new one gets
    /// 503. Off (`None`) by default: behind a proxy all come from one address, unless it says for whom
    /// by the PROXY protocol. Peers on Unix sockets have no address and are not limited.
    pub max_connections_per_ip: Option<usize>,
    /// Peers that speak for others by the PROXY protocol; off (`None`) by default.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Limits on heads and chunks.
    pub limits: Limits,
    /// Limits on time.
    pub timeouts: Timeouts,
    /// The largest request body in bytes where the route does not say otherwise (default 2 MiB).
    pub body_limit: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: home::Settings::default(),
            max_connections: None,
            max_connections_per_ip: None,
            proxy_protocol: None,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            body_limit: RequestBody::DEFAULT_LIMIT,
        }
    }
}

/// The settings in the form that a connection uses, shared by all connections of a server.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) limits: Limits,
    pub(crate) body_limit: u64,
    pub(crate) head: u64,
    pub(crate) idle: u64,
    pub(crate) park: u64,
    pub(crate) grace: u64,
    pub(crate) min_rate: u64,
    pub(crate) stall: u64,
    pub(crate) linger: u64,
    /// How long after a change of a file the next one is to be expected: a program that writes into a file in
    /// place seldom does so once.
    pub(crate) restless: Duration,
}

impl Rules {
    pub(crate) fn new(settings: &Settings) -> Rules {
        let millis = |duration: Duration| duration.as_millis() as u64;
        let timeouts = &settings.timeouts;
        Rules {
            limits: settings.limits.clone(),
            body_limit: settings.body_limit,
            head: millis(timeouts.head),
            idle: millis(timeouts.idle),
            park: millis(timeouts.park),
            grace: millis(timeouts.grace),
            min_rate: u64::from(timeouts.min_rate),
            stall: millis(timeouts.stall),
            linger: millis(timeouts.linger),
            restless: Duration::from_secs(10),
        }
    }

    /// How much time a transfer that begins now has.
    pub(crate) fn pace(&self) -> Pace {
        Pace::new(self.grace, self.stall, self.min_rate)
    }
}
