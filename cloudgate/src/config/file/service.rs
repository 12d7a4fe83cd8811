//! What can be set about a service, which is a route and the servers behind it?

use std::path::PathBuf;
use std::time::Duration;

use super::guards::{
    ApiKeySection, BasicAuthSection, CompressSection, CorsSection, HeaderEdits, RateLimitSection,
};
use super::node::Node;
use super::reader::Reader;
use super::section::{choice, section};
use super::service_values::{ClientKey, Fields, HostField, StatusRange, Upstream};
use super::values::BodyLimit;
use crate::message::network::Network;

section! {
    /// A route and the servers behind it.
    ServiceSection called "a service" {
        /// What it goes by in the log and the metrics; without it the path.
        name: Option<String>,
        /// The hosts that it is for, such as `api.example.com` or `*.example.com`; without it all.
        hosts: Vec<String>,
        /// The path that it is for, and all below it: `/orders` takes `/orders` and `/orders/7`, and not `/orders2`.
        path: String,
        /// Whether nothing below the path is taken.
        exact: bool = false,
        /// The methods that it is for; without it all.
        methods: Vec<http::Method>,
        /// Fields and values that a request must have.
        headers: Fields,
        /// Takes `path` off before the request is passed on.
        strip_path: bool = false,
        /// From the request's beginning until the answer's head is there; past it the client gets 504. `none` is no limit.
        timeout: Option<Duration> = Some(Duration::from_secs(60)),
        /// How long the parts of it may take.
        timeouts: ServiceTimeouts,
        /// The servers: `http://host:port`, `https://host`, `host:port` or `unix:/path`, or a section with `url`.
        servers: Vec<Upstream>,
        /// Which server gets the next request.
        balance: Balance = Balance::RoundRobin,
        /// With `balance: hash`, what keeps a client at its server: `address`, `header: NAME` or `cookie: NAME`.
        hash_by: Option<ClientKey>,
        /// The field Host that a server gets: `upstream` is the server's own, `keep` the client's, or a name.
        host: HostField = HostField::Upstream,
        /// Changes to the fields of requests.
        request_headers: HeaderEdits,
        /// Changes to the fields of answers.
        response_headers: HeaderEdits,
        /// What is tried again where that is safe.
        retries: RetriesSection,
        /// Which servers are left out.
        health: HealthSection,
        /// When nobody is asked any more for a while.
        circuit_breaker: Option<CircuitBreakerSection>,
        /// The most requests that one server has at once; without it any number.
        max_connections: Option<usize>,
        /// How many requests may wait for a server that has `maxConnections`; past it the client gets 503.
        queue: usize = 0,
        /// How long they may wait.
        queue_timeout: Duration = Duration::from_secs(5),
        /// In what time a server that has come back gets its full share.
        slow_start: Duration = Duration::ZERO,
        /// TLS towards servers with `https`.
        tls: UpstreamTlsSection,
        /// Whether a connection may become another protocol, such as a WebSocket.
        upgrade: bool = true,
        /// Which pages of other origins may ask, in place of the server's.
        cors: Option<CorsSection>,
        /// How often one client may ask.
        rate_limit: Option<RateLimitSection>,
        /// Asks for an API key.
        api_key: Option<ApiKeySection>,
        /// Asks for a name and a password.
        basic_auth: Option<BasicAuthSection>,
        /// Networks that may ask; without it all.
        allow: Vec<Network>,
        /// Networks that may not.
        deny: Vec<Network>,
        /// The largest request body, in place of the server's.
        body_limit: Option<BodyLimit>,
        /// Compresses answers, in place of the server's.
        compress: Option<CompressSection>,
    }
    check check_service
}

section! {
    /// How long the parts of an exchange with a server may take.
    ServiceTimeouts called "`timeouts` of a service" {
        /// To open a connection, its name looked up and its TLS agreed on.
        connect: Duration = Duration::from_secs(5),
        /// From the end of the request to the first byte of the answer; `none` leaves it to `timeout`.
        first_byte: Option<Duration> = None,
        /// Between two pieces of a body, either way.
        idle: Duration = Duration::from_secs(60),
        /// For how long an idle connection to a server is kept; less than the server keeps it.
        pool: Duration = Duration::from_secs(4),
    }
    check check_timeouts
}

choice! {
    /// Which server gets the next request.
    Balance {
        /// One after the other, by weight.
        RoundRobin = "roundRobin",
        /// The one with the fewest requests under way.
        LeastConnections = "leastConnections",
        /// The better one of two that are drawn.
        TwoChoices = "twoChoices",
        /// Always the same one for the same client.
        Hash = "hash",
    }
}

section! {
    /// What is tried again where that is safe.
    RetriesSection called "`retries`" {
        /// How many servers are asked at most, the first among them.
        attempts: usize = 3,
        /// How many retries a hundred requests may have.
        budget: u32 = 20,
    }
    check check_retries
}

section! {
    /// Which servers are left out.
    HealthSection called "`health`" {
        /// Looks at the requests that fail.
        passive: PassiveSection,
        /// Asks the servers.
        active: Option<ActiveSection>,
    }
}

section! {
    /// Leaves a server out that fails.
    PassiveSection called "`passive`" {
        /// After how many failures in a row; 0 for never.
        failures: u32 = 3,
        /// Within what time they have to come.
        within: Duration = Duration::from_secs(10),
        /// For how long it is left out.
        out: Duration = Duration::from_secs(10),
    }
}

section! {
    /// Asks the servers whether they are well.
    ActiveSection called "`active`" {
        /// The path that is asked for.
        path: String,
        /// How often they are asked.
        interval: Duration = Duration::from_secs(5),
        /// How long the answer may take.
        timeout: Duration = Duration::from_secs(2),
        /// How many good answers in a row bring a server back.
        rise: u32 = 2,
        /// How many bad ones in a row put it out.
        fall: u32 = 3,
        /// The statuses that are a good answer, such as `200` or `200..399`.
        status: StatusRange = StatusRange { first: 200, last: 399 },
    }
    check check_active
}

section! {
    /// Asks nobody for a while once too much fails.
    CircuitBreakerSection called "`circuitBreaker`" {
        /// How many of a hundred requests have to fail.
        error_rate: u32 = 50,
        /// Of how many at least.
        min_requests: u32 = 20,
        /// The time over which that is counted.
        window: Duration = Duration::from_secs(10),
        /// For how long nobody is asked.
        open: Duration = Duration::from_secs(5),
    }
    check check_breaker
}

section! {
    /// TLS towards servers.
    UpstreamTlsSection called "`tls`" {
        /// File of those who sign the servers' certificates, in PEM form, in place of those whom the system trusts.
        ca: Option<PathBuf>,
        /// File of the certificate that the gateway shows, in PEM form.
        certificate: Option<PathBuf>,
        /// File of its key; without it that of the certificate.
        key: Option<PathBuf>,
        /// The name that is asked for and looked for in the certificate, in place of the one in the URL.
        server_name: Option<String>,
        /// Trusts any certificate: whoever is in between can read and change all.
        insecure_skip_verify: bool = false,
    }
    check check_tls
}

fn check_service(service: &ServiceSection, node: &Node, reader: &mut Reader<'_>) {
    if !service.path.starts_with('/') {
        let wanted = format!(
            "a path begins with a slash: did you mean `/{}`?",
            service.path
        );
        reader.wrong(node.at("path"), wanted);
    } else if service.path.contains(['?', '#']) {
        reader.wrong(node.at("path"), "a path has no query and no fragment");
    }
    if node.lacks("servers") {
        let wanted =
            "a service needs `servers`: list at least one, such as `- \"http://localhost:3001\"`";
        reader.wrong(node.at("servers"), wanted);
    }
    for (index, host) in service.hosts.iter().enumerate() {
        let name = host.strip_prefix("*.").unwrap_or(host);
        let fine = |letter: char| letter.is_ascii_alphanumeric() || "-._[]:".contains(letter);
        if name.is_empty() || !name.chars().all(fine) {
            let wanted = format!(
                "`{host}` is no host: write a name such as api.example.com or *.example.com"
            );
            reader.wrong(node.at("hosts").item(index), wanted);
        }
    }
    match (service.balance, &service.hash_by) {
        (Balance::Hash, None) => {
            let wanted =
                "`balance: hash` needs `hashBy`: address, `header: NAME` or `cookie: NAME`";
            reader.wrong(node.at("balance"), wanted);
        }
        (Balance::Hash, Some(_)) | (_, None) => {}
        (_, Some(_)) => {
            reader.wrong(node.at_key("hashBy"), "`hashBy` needs `balance: hash`");
        }
    }
    if service.max_connections == Some(0) {
        let wanted = "`maxConnections: 0` would let no request through: leave it out for no limit";
        reader.wrong(node.at("maxConnections"), wanted);
    }
    let limited = service.max_connections.is_some()
        || service
            .servers
            .iter()
            .any(|server| server.max_connections.is_some());
    if service.queue > 0 && !limited {
        let wanted = "`queue` needs `maxConnections`: without it no request ever waits";
        reader.wrong(node.at_key("queue"), wanted);
    }
    if service.timeout.is_some_and(|limit| limit.is_zero()) {
        reader.wrong(
            node.at("timeout"),
            "nothing is answered in no time: write a time such as 60s, or `none` for no limit",
        );
    }
}

fn check_timeouts(timeouts: &ServiceTimeouts, node: &Node, reader: &mut Reader<'_>) {
    for (key, time) in [("connect", timeouts.connect), ("idle", timeouts.idle)] {
        if time.is_zero() {
            reader.wrong(
                node.at(key),
                format!("`{key}` cannot be 0: write a time such as 5s"),
            );
        }
    }
}

fn check_retries(retries: &RetriesSection, node: &Node, reader: &mut Reader<'_>) {
    if retries.attempts == 0 {
        reader.wrong(
            node.at("attempts"),
            "0 attempts would ask nobody: 1 is no retry",
        );
    }
    percent(retries.budget, "budget", node, reader);
}

fn check_active(active: &ActiveSection, node: &Node, reader: &mut Reader<'_>) {
    if !active.path.starts_with('/') {
        let wanted = format!(
            "a path begins with a slash: did you mean `/{}`?",
            active.path
        );
        reader.wrong(node.at("path"), wanted);
    }
    for (key, time) in [("interval", active.interval), ("timeout", active.timeout)] {
        if time.is_zero() {
            reader.wrong(
                node.at(key),
                format!("`{key}` cannot be 0: write a time such as 5s"),
            );
        }
    }
}

fn check_breaker(breaker: &CircuitBreakerSection, node: &Node, reader: &mut Reader<'_>) {
    percent(breaker.error_rate, "errorRate", node, reader);
}

fn check_tls(tls: &UpstreamTlsSection, node: &Node, reader: &mut Reader<'_>) {
    if tls.key.is_some() && tls.certificate.is_none() {
        reader.wrong(
            node.at_key("key"),
            "`key` needs `certificate`: the file of the certificate of this key",
        );
    }
    if tls.insecure_skip_verify && tls.ca.is_some() {
        reader.wrong(
            node.at_key("insecureSkipVerify"),
            "`insecureSkipVerify` would make `ca` useless: leave one out",
        );
    }
}

/// Notes a share that is more than all.
fn percent(value: u32, key: &str, node: &Node, reader: &mut Reader<'_>) {
    if value > 100 {
        reader.wrong(
            node.at(key),
            format!("`{key}` is a number of percent from 0 to 100, not {value}"),
        );
    }
}
