//! How is a gateway put together?

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::address::{Address, InvalidServer};
use super::balance::{Balance, HashKey, Picker};
use super::health::{Breaker, milliseconds};
use super::link::Shelf;
use super::server::Server;
use super::settings::{Active, BreakerSettings, Edits, HostField, Passive, Settings, Times};
use super::stats::{Now, ServiceStats};
use super::{Budget, Group, keeper};
use crate::net::tls::client::TlsClient;
use crate::proto::h1::is_host;

/// Passes requests on to other servers, and their answers back.
///
/// ```no_run
/// use cloudgate::{App, Config, Gateway};
/// use std::time::Duration;
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let orders = Gateway::to(["http://127.0.0.1:3001", "http://127.0.0.1:3002"])?
///         .strip_path(true)
///         .timeout(Duration::from_secs(10));
///     App::new()
///         .get("/health", || "ok")
///         .mount("/orders", orders)
///         .run(Config::from_env()?)?;
///     Ok(())
/// }
/// ```
///
/// **What the server gets.** Method and target as they were sent, byte for byte; the client's fields without those of its
/// connection (RFC 9110 section 7.6.1); `X-Forwarded-For`, `-Proto`, `-Host`, `X-Real-IP`, `Forwarded` (RFC 7239), `Via`
/// and `X-Request-Id`. What a client itself says there is replaced, unless it came by a proxy that the application
/// trusts ([`App::trust_proxies`](crate::App::trust_proxies)). Some programs hold an answer to a request with `Via` back
/// from compression, nginx among them (`gzip_proxied`).
///
/// **What the client gets.** The answer as it comes, nothing gathered; redirects are not followed. A server's answer that
/// could be read in two ways is a 502. WebSockets and other protocols go through ([`Gateway::upgrades`]).
///
/// **When a server fails.** One that cannot be reached is passed over for the next; three failures within ten seconds put
/// it out for ten; when all are out, all are asked. A request is made again only where nothing of it was sent, or where
/// its method may be done twice (RFC 9110 section 9.2.2), its body was kept (64 KiB) and nothing of an answer had come. A
/// connection that a server has closed while it was idle is no failure. What cannot be helped is a 502, 503 or 504 with
/// the request's id, and a line in the log that says which server it was.
///
/// **Bodies** have the limit of the route or server that is in front
/// ([`Settings::body_limit`](crate::Settings::body_limit)), or one of their own ([`Gateway::body_limit`]). They are never
/// held whole.
pub struct Gateway {
    servers: Vec<Member>,
    settings: Settings,
    mistake: Option<String>,
    plan: OnceLock<Arc<Plan>>,
}

/// A server of the list.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) address: Address,
    pub(crate) weight: u32,
    /// The most requests at once, where that is not what holds for all.
    pub(crate) most: Option<usize>,
}

/// What tells one client from another, for [`Gateway::hash_by`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HashBy {
    /// The client's address.
    Address,
    /// The value of this field; without it the client's address.
    Header(String),
    /// The value of this cookie; without it the client's address.
    Cookie(String),
}

impl Gateway {
    /// A gateway to one server, or to several that do the same.
    ///
    /// A server is `http://host:port`, `https://host`, `host:port` or `unix:/path/of.sock`. A path that it has stands in
    /// front of every path that it is asked for. Its name is looked up when it is wanted, and again after ten seconds;
    /// one that cannot be found does not keep the program from starting.
    ///
    /// # Errors
    /// [`InvalidServer`], which says what is wrong with it.
    pub fn to<'s>(servers: impl IntoIterator<Item = &'s str>) -> Result<Gateway, InvalidServer> {
        let servers = servers.into_iter().map(|text| {
            Ok(Member {
                address: text.parse()?,
                weight: 1,
                most: None,
            })
        });
        Ok(Gateway::with(
            servers.collect::<Result<_, _>>()?,
            Settings::default(),
        ))
    }

    /// A gateway with all of its settings.
    pub(crate) fn with(servers: Vec<Member>, settings: Settings) -> Gateway {
        Gateway {
            servers,
            settings,
            mistake: None,
            plan: OnceLock::new(),
        }
    }

    /// One more server, which gets `weight` times as many requests as one of weight 1.
    ///
    /// # Errors
    /// As [`Gateway::to`].
    pub fn server(mut self, server: &str, weight: u32) -> Result<Gateway, InvalidServer> {
        self.servers.push(Member {
            address: server.parse()?,
            weight: weight.max(1),
            most: None,
        });
        Ok(self)
    }

    /// What it goes by in the log and the metrics. Without this, the first of its servers.
    #[must_use]
    pub fn named(mut self, name: &str) -> Gateway {
        name.clone_into(&mut self.settings.name);
        self
    }

    /// Whether the prefix that it is mounted at is cut from what servers see (default false). Then they get it as
    /// `X-Forwarded-Prefix`, and `Location`, `Content-Location` and the paths of cookies that they send get it back.
    #[must_use]
    pub fn strip_path(mut self, strip: bool) -> Gateway {
        self.settings.strip_path = strip;
        self
    }

    /// How long it may take until the head of the answer is there, all servers that are tried and the request's body
    /// included (default 60 s; zero for no limit). Past it the client gets a 504.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Gateway {
        self.settings.times.total = limit;
        self
    }

    /// How long opening a connection may take, its name looked up and TLS agreed on (default 5 s).
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Gateway {
        self.settings.times.connect = limit;
        self
    }

    /// How long the first byte of an answer may take once the request was sent (default: what
    /// [`Gateway::timeout`] leaves).
    #[must_use]
    pub fn first_byte_timeout(mut self, limit: Duration) -> Gateway {
        self.settings.times.first_byte = limit;
        self
    }

    /// How long nothing may come of a body that has begun (default 60 s; zero for no limit).
    #[must_use]
    pub fn idle_timeout(mut self, limit: Duration) -> Gateway {
        self.settings.times.idle = limit;
        self
    }

    /// For how long a connection is kept that nobody uses (default 4 s, for Node.js closes them after 5).
    #[must_use]
    pub fn keep_idle(mut self, time: Duration) -> Gateway {
        self.settings.times.pool = time;
        self
    }

    /// Whether servers may switch to another protocol where a client asks for that, such as WebSocket (default true).
    #[must_use]
    pub fn upgrades(mut self, allowed: bool) -> Gateway {
        self.settings.upgrades = allowed;
        self
    }

    /// For how long nothing may go through a connection that speaks another protocol (default an hour; zero for no
    /// limit).
    #[must_use]
    pub fn tunnel_timeout(mut self, limit: Duration) -> Gateway {
        self.settings.times.tunnel = limit;
        self
    }

    /// The largest body of a request in bytes, in place of the server's limit.
    #[must_use]
    pub fn body_limit(mut self, bytes: u64) -> Gateway {
        self.settings.body_limit = Some(bytes);
        self
    }

    /// Says to servers the Host that the client said, and not their own name.
    #[must_use]
    pub fn keep_host(mut self) -> Gateway {
        self.settings.host = HostField::Keep;
        self
    }

    /// Says this Host to servers.
    #[must_use]
    pub fn host(mut self, host: &str) -> Gateway {
        if !is_host(host.as_bytes()) {
            self.note(format!("Gateway::host got {host:?}, which is no host"));
        }
        self.settings.host = HostField::Named(host.to_owned());
        self
    }

    /// Has this field in what servers get, in place of those of its name.
    ///
    /// A field that is the gateway's own to write, and what is no field, are errors at start.
    #[must_use]
    pub fn set_request_header(mut self, name: &str, value: &str) -> Gateway {
        let done = self.settings.request_fields.set(name, value);
        self.noted(done)
    }

    /// Leaves fields of this name out of what servers get; see [`Gateway::set_request_header`].
    #[must_use]
    pub fn remove_request_header(mut self, name: &str) -> Gateway {
        let done = self.settings.request_fields.remove(name);
        self.noted(done)
    }

    /// Has this field in what clients get, in place of those of its name; see [`Gateway::set_request_header`].
    #[must_use]
    pub fn set_response_header(mut self, name: &str, value: &str) -> Gateway {
        let done = self.settings.response_fields.set(name, value);
        self.noted(done)
    }

    /// Leaves fields of this name out of what clients get; see [`Gateway::set_request_header`].
    #[must_use]
    pub fn remove_response_header(mut self, name: &str) -> Gateway {
        let done = self.settings.response_fields.remove(name);
        self.noted(done)
    }

    /// How servers of `https` are known to be the ones that are meant (default: by whom the system trusts).
    #[must_use]
    pub fn tls(mut self, tls: TlsClient) -> Gateway {
        self.settings.tls = tls;
        self
    }

    /// Gives each request to the server with the fewest, for its weight. Without this they take turns.
    #[must_use]
    pub fn least_connections(mut self) -> Gateway {
        self.settings.balance = Balance::LeastConnections;
        self
    }

    /// Gives each request to the less busy of two servers that are drawn.
    #[must_use]
    pub fn two_choices(mut self) -> Gateway {
        self.settings.balance = Balance::TwoChoices;
        self
    }

    /// Gives requests of one client to the same server, as long as that is well; when one goes, only its clients move.
    #[must_use]
    pub fn hash_by(mut self, what: HashBy) -> Gateway {
        self.settings.balance = Balance::Hash(match what {
            HashBy::Address => HashKey::Address,
            HashBy::Header(name) => HashKey::Header(name),
            HashBy::Cookie(name) => HashKey::Cookie(name),
        });
        self
    }

    /// How many servers are asked at most for one request, the first among them (default 3), and how many retries a
    /// hundred requests may have (default 20; ten at once are always allowed).
    #[must_use]
    pub fn retries(mut self, servers: usize, percent: u32) -> Gateway {
        self.settings.attempts = servers.max(1);
        self.settings.retry_percent = percent;
        self
    }

    /// The most requests that a server has at once (default any number), how many more may wait for their turn, and for
    /// how long. Beyond that the client gets a 503.
    #[must_use]
    pub fn limit(mut self, requests: usize, queue: usize, wait: Duration) -> Gateway {
        self.settings.most_requests = requests;
        self.settings.queue = queue;
        self.settings.times.queue = wait;
        self
    }

    /// After how many failures in a row, within what time, a server is left out, and for how long (default 3, 10 s,
    /// 10 s). No failures at all for never.
    #[must_use]
    pub fn leave_out(mut self, failures: u32, within: Duration, out: Duration) -> Gateway {
        self.settings.passive = Passive {
            failures,
            within,
            out,
        };
        self
    }

    /// Asks each server for this path, again and again: one that does not answer with a status from 200 to 399 within
    /// `timeout`, three times in a row, is left out until it does twice.
    #[must_use]
    pub fn health_check(mut self, path: &str, interval: Duration, timeout: Duration) -> Gateway {
        if !path.starts_with('/')
            || !path
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'#')
        {
            self.note(format!(
                "Gateway::health_check got {path:?}, which is no path"
            ));
            return self;
        }
        self.settings.active = Some(Active {
            path: path.to_owned(),
            interval,
            timeout,
            rise: 2,
            fall: 3,
            statuses: (200, 399),
        });
        self
    }

    /// Asks nobody for `open` once so many of a hundred requests have failed, of at least `requests` within `window`.
    /// Then one is let through, and decides.
    #[must_use]
    pub fn circuit_breaker(
        mut self,
        percent: u32,
        requests: u32,
        window: Duration,
        open: Duration,
    ) -> Gateway {
        self.settings.breaker = Some(BreakerSettings {
            percent,
            requests,
            window,
            open,
        });
        self
    }

    /// In what time a server that has come back gets its full share again (default at once).
    #[must_use]
    pub fn slow_start(mut self, time: Duration) -> Gateway {
        self.settings.slow_start = time;
        self
    }

    fn note(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    fn noted(mut self, done: Result<(), String>) -> Gateway {
        if let Err(mistake) = done {
            self.note(mistake);
        }
        self
    }

    /// Checks what was asked for, and has it looked after.
    pub(super) fn begin(&self) -> Result<(), String> {
        keeper::look_after(self.plan()?)
    }

    fn plan(&self) -> Result<&Arc<Plan>, String> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        if let Some(plan) = self.plan.get() {
            return Ok(plan);
        }
        if self.servers.is_empty() {
            return Err("a gateway without a server was asked for".to_owned());
        }
        let mut settings = self.settings.clone();
        if settings.name.is_empty() {
            settings.name = self.servers[0].address.to_string();
        }
        // Before a port is taken: what cannot be used should be said then.
        if self.servers.iter().any(|member| member.address.secure) {
            let checked = settings.tls.connector().map(drop);
            checked.map_err(|error| {
                format!("{}: TLS to its servers cannot work: {error}", settings.name)
            })?;
        }
        Ok(self.plan.get_or_init(|| {
            Arc::new(Plan {
                servers: self.servers.clone(),
                settings,
                made: OnceLock::new(),
            })
        }))
    }

    /// Its servers, made with the first request.
    pub(super) fn group(&self) -> Result<&Arc<Group>, String> {
        self.plan()?.made()
    }
}

/// What a gateway is to be, until the workers run.
pub(crate) struct Plan {
    servers: Vec<Member>,
    settings: Settings,
    made: OnceLock<Result<Arc<Group>, String>>,
}

impl Plan {
    /// What it is.
    pub(super) fn group(&self) -> Result<Arc<Group>, String> {
        self.made().cloned()
    }

    fn made(&self) -> Result<&Arc<Group>, String> {
        let made = self.made.get_or_init(|| self.make());
        made.as_ref().map_err(Clone::clone)
    }

    fn make(&self) -> Result<Arc<Group>, String> {
        let settings = self.settings.clone();
        let connect = |member: &Member| {
            let connector = match member.address.secure {
                true => Some(
                    settings
                        .tls
                        .connector()
                        .map_err(|error| error.to_string())?,
                ),
                false => None,
            };
            let most = member.most.unwrap_or(settings.most_requests);
            Ok(Server::new(
                &settings.name,
                member.address.clone(),
                member.weight,
                most,
                connector,
            ))
        };
        let servers: Result<Box<[Server]>, String> = self.servers.iter().map(connect).collect();
        let weights: Vec<u32> = self.servers.iter().map(|member| member.weight).collect();
        let slow_start = milliseconds(settings.slow_start);
        let group = Arc::new(Group {
            servers: servers?,
            picker: Picker::new(settings.balance.clone(), &weights, slow_start),
            breaker: settings.breaker.map(Breaker::new),
            budget: Budget::new(settings.retry_percent),
            shelf: Shelf::new(),
            stats: ServiceStats::new(&settings.name),
            settings,
        });
        for (index, server) in group.servers.iter().enumerate() {
            let group = Arc::downgrade(&group);
            server.stats.look_by(move || {
                let group = group.upgrade();
                group.map_or_else(Now::default, |group| group.servers[index].look())
            });
        }
        Ok(group)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            name: String::new(),
            strip_path: false,
            host: HostField::default(),
            request_fields: Edits::default(),
            response_fields: Edits::default(),
            body_limit: None,
            upgrades: true,
            times: Times::default(),
            balance: Balance::default(),
            tls: TlsClient::new(),
            attempts: 3,
            retry_percent: 20,
            most_requests: 0,
            queue: 0,
            passive: Passive::default(),
            active: None,
            breaker: None,
            slow_start: Duration::ZERO,
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self
            .servers
            .iter()
            .map(|member| member.address.to_string())
            .collect();
        f.debug_struct("Gateway")
            .field("servers", &servers)
            .finish_non_exhaustive()
    }
}
