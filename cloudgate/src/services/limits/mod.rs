//! How often may one client ask?
//!
//! ```text
//!  request ─▶ deny list ─▶ allow list ─▶ key (address, field, closure) ─▶ table: one bucket a key
//!          ─▶ 403          ─▶ no limit                                     ─▶ go on, or 429
//! ```

mod table;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use crate::message::clock::{Clock, nanoseconds};
use crate::message::network::{Network, contains};
use crate::message::{Middleware, Next, Request, Response};
use table::{Bucket, Table};

/// How many clients are told apart, unless it is set.
const KEYS: usize = 100_000;

/// The most clients that one limit can tell apart.
const MOST_KEYS: usize = 1 << 24;

/// The shortest time that one request can be worth, in nanoseconds: a million requests a second.
const SHORTEST: u64 = 1000;

/// The longest time that one request can be worth, in nanoseconds: a year.
const LONGEST: u64 = 365 * 86_400 * 1_000_000_000;

/// The longest time in which a bucket is filled, in nanoseconds: a century, far from where times end.
const LONGEST_FILL: u64 = 100 * LONGEST;

/// The first bits of an IPv6 address that tell one client from another, unless it is set.
const IPV6_BITS: u32 = 64;

/// A limit on how often each client may ask: a token bucket a client, shared by all workers.
///
/// A bucket holds `burst` requests and is filled up evenly at the rate; a request that finds it
/// empty is refused with 429, `Retry-After`, and a body that says so. Counting is exact, also where
/// one client uses many connections on many workers. A clone shares its buckets.
///
/// ```
/// use cloudgate::{App, RateLimit, Request, Status};
///
/// let limit = RateLimit::per_minute(1).burst(2);
/// let app = App::new().get("/", || "Hello World!").wrap(limit);
///
/// let first = app.call(&mut Request::get("/"));
/// assert_eq!(first.status(), Status::OK);
/// assert_eq!(first.headers().get("ratelimit-policy"), Some(r#""default";q=2;w=120"#));
/// assert_eq!(first.headers().get("ratelimit"), Some(r#""default";r=1;t=60"#));
///
/// app.call(&mut Request::get("/"));
/// let third = app.call(&mut Request::get("/"));
/// assert_eq!(third.status(), Status::TOO_MANY_REQUESTS);
/// assert!(third.headers().contains("retry-after"));
/// ```
///
/// **Who is one client.** An IPv4 address, or the first 64 bits of an IPv6 address, for that is what
/// one customer gets; [`RateLimit::by_header`] and [`RateLimit::by`] choose something else. All peers
/// on a Unix socket are one client, and behind a proxy all clients are the proxy, unless it speaks the
/// PROXY protocol or the application trusts it ([`App::trust_proxies`](crate::App::trust_proxies)).
///
/// **Fields.** Every answer that was counted says what is left, by `RateLimit-Policy` and `RateLimit`
/// (draft-ietf-httpapi-ratelimit-headers-10): `q` is the burst, `w` the seconds in which an empty
/// bucket is full again, `r` what is left, `t` the seconds until it is full. On a refusal `r` is 0
/// and `t` is `Retry-After`. Give limits that follow each other a [`RateLimit::named`] each.
///
/// **Memory** is bounded: about 84 bytes a client of [`RateLimit::most_keys`] at most, taken as they come.
/// Where it is full a new client takes the place of the one whose bucket is, or will soonest be, full.
/// A full bucket is no different from a new one, so that costs nobody anything. To have a bucket
/// forgotten before its time, an attacker must empty about as many others as there are places, each as
/// far as that one. Who owns very many IPv6 networks has as many buckets: [`RateLimit::ipv6_bits`]
/// makes them fewer.
#[derive(Clone)]
pub struct RateLimit {
    /// What one request is worth, in nanoseconds.
    interval: u64,
    burst: u64,
    by: By,
    ipv6_bits: u32,
    allowed: Vec<Network>,
    denied: Vec<Network>,
    ban: Option<Ban>,
    name: String,
    /// The value of RateLimit-Policy; `None` where no fields are wanted.
    policy: Option<String>,
    table: Arc<Table>,
    clock: Clock,
}

/// The text that a closure finds in a request.
type Find = dyn Fn(&Request<'_>) -> Option<String> + Send + Sync;

/// What tells one client from another.
#[derive(Clone)]
enum By {
    Address,
    Header(String),
    Closure(Arc<Find>),
}

/// Refusals until a ban, in which time, and how long the ban is; in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Ban {
    refusals: u32,
    within: u64,
    lasting: u64,
}

/// What a [`RateLimit`] says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is on the list of those that are never limited.
    Unlimited,
    /// It may go on.
    Allowed {
        /// How many more could come at once.
        left: u64,
        /// How long until the bucket is full.
        full_in: Duration,
    },
    /// There were too many.
    Refused {
        /// When one more is allowed.
        retry_after: Duration,
    },
    /// There were too many refusals, and this client is not served for a time.
    Banned {
        /// How long it still lasts.
        remaining: Duration,
    },
    /// It is on the list of those that are never served.
    Denied,
}

impl RateLimit {
    /// `count` requests a second, and as many at once: 1 to 1,000,000, and what is outside counts as
    /// the nearest of these.
    pub fn per_second(count: u32) -> RateLimit {
        RateLimit::per(count, Duration::from_secs(1))
    }

    /// `count` requests a minute, and as many at once.
    pub fn per_minute(count: u32) -> RateLimit {
        RateLimit::per(count, Duration::from_secs(60))
    }

    /// `count` requests in each `time`, and as many at once. A rate of less than one in a year is one
    /// in a year.
    pub fn per(count: u32, time: Duration) -> RateLimit {
        let count = u64::from(count.max(1));
        let interval = nanoseconds(time) / count;
        RateLimit {
            interval: interval.clamp(SHORTEST, LONGEST),
            burst: 1,
            by: By::Address,
            ipv6_bits: IPV6_BITS,
            allowed: Vec::new(),
            denied: Vec::new(),
            ban: None,
            name: "default".to_owned(),
            policy: Some(String::new()),
            table: Arc::new(Table::new(KEYS)),
            clock: Clock::default(),
        }
        .with_burst(count)
    }

    /// How many requests may come at once after a pause; at least 1. Without it, as many as the rate
    /// gives in its time.
    pub fn burst(self, burst: u32) -> RateLimit {
        self.with_burst(u64::from(burst.max(1)))
    }

    /// Tells clients apart by the value of a request field, such as `x-api-key`. A request without it
    /// counts by its address.
    ///
    /// A client that may put anything into the field has a new bucket for each value: use it behind
    /// what checks the field, or together with a limit by address.
    pub fn by_header(mut self, name: &str) -> RateLimit {
        self.by = By::Header(name.to_owned());
        self
    }

    /// Tells clients apart by what the closure finds. A request where it finds nothing counts by its
    /// address.
    pub fn by(
        mut self,
        find: impl Fn(&Request<'_>) -> Option<String> + Send + Sync + 'static,
    ) -> RateLimit {
        self.by = By::Closure(Arc::new(find));
        self
    }

    /// How many first bits of an IPv6 address make one client (default 64, at most 128).
    pub fn ipv6_bits(mut self, bits: u32) -> RateLimit {
        self.ipv6_bits = bits.min(128);
        self
    }

    /// Never limits requests from this network.
    pub fn allow(mut self, network: impl Into<Network>) -> RateLimit {
        self.allowed.push(network.into());
        self
    }

    /// Answers requests from this network with 403, also those from an allowed one.
    pub fn deny(mut self, network: impl Into<Network>) -> RateLimit {
        self.denied.push(network.into());
        self
    }

    /// Bans a client for a time at its `refusals`th refusal within a time. The first of them begins
    /// that time. Meanwhile it gets 429 with the rest of the ban as `Retry-After`.
    pub fn ban_after(mut self, refusals: u32, within: Duration, lasting: Duration) -> RateLimit {
        self.ban = Some(Ban {
            refusals: refusals.max(1),
            within: nanoseconds(within),
            lasting: nanoseconds(lasting),
        });
        self
    }

    /// The name of the limit in its fields, without it `default`. What is no printable ASCII, `"` and
    /// `\` become `_`.
    pub fn named(mut self, name: &str) -> RateLimit {
        let fits = |c: char| matches!(c, ' '..='~') && c != '"' && c != '\\';
        self.name = name
            .chars()
            .map(|c| if fits(c) { c } else { '_' })
            .collect();
        let burst = self.burst;
        self.with_burst(burst)
    }

    /// Leaves `RateLimit` and `RateLimit-Policy` out of the answers.
    pub fn without_fields(mut self) -> RateLimit {
        self.policy = None;
        self
    }

    /// How many clients are told apart at once (default 100,000, at most 16,777,216).
    pub fn most_keys(mut self, keys: usize) -> RateLimit {
        self.table = Arc::new(Table::new(keys.min(MOST_KEYS)));
        self
    }

    fn with_burst(mut self, burst: u64) -> RateLimit {
        let burst = burst.min(LONGEST_FILL / self.interval);
        self.burst = burst;
        let window = seconds_up(self.interval * burst);
        if let Some(policy) = &mut self.policy {
            *policy = format!("\"{}\";q={burst};w={window}", self.name);
        }
        self
    }

    /// Counts a request.
    pub fn check(&self, request: &Request<'_>) -> Verdict {
        let address = request.client();
        if contains(&self.denied, address) {
            return Verdict::Denied;
        }
        if contains(&self.allowed, address) {
            return Verdict::Unlimited;
        }
        let hash = match &self.by {
            By::Address => None,
            By::Header(name) => request
                .headers()
                .get_bytes(name)
                .map(|value| self.hash_text(value)),
            By::Closure(find) => find(request).map(|text| self.hash_text(text.as_bytes())),
        };
        self.count(hash.unwrap_or_else(|| self.hash_address(address)))
    }

    /// Counts one use by the client of this key, for limits outside of requests. The key is what
    /// [`RateLimit::by`] would have found.
    ///
    /// ```
    /// use cloudgate::{RateLimit, Verdict};
    /// let mails = RateLimit::per_minute(1);
    /// assert!(matches!(mails.check_key("ada@example.org"), Verdict::Allowed { left: 0, .. }));
    /// assert!(matches!(mails.check_key("ada@example.org"), Verdict::Refused { .. }));
    /// assert!(matches!(mails.check_key("grace@example.org"), Verdict::Allowed { .. }));
    /// ```
    pub fn check_key(&self, key: &str) -> Verdict {
        self.count(self.hash_text(key.as_bytes()))
    }

    /// Bans the client of this address from now on for a time, where clients are told apart by it. A
    /// time of zero ends a ban.
    pub fn ban_address(&self, address: IpAddr, lasting: Duration) {
        let until = Clock::after(self.clock.now(), lasting);
        let hash = self.hash_address(address);
        self.table
            .change(hash, |bucket| bucket.banned_until = until);
    }

    /// Bans the client of this key from now on for a time; see [`RateLimit::check_key`]. A time of zero
    /// ends a ban.
    pub fn ban_key(&self, key: &str, lasting: Duration) {
        let until = Clock::after(self.clock.now(), lasting);
        let hash = self.hash_text(key.as_bytes());
        self.table
            .change(hash, |bucket| bucket.banned_until = until);
    }

    /// Counts the request and answers it: by `next` if it may go on, else with 429 or 403.
    pub fn answer(
        &self,
        request: &mut Request<'_>,
        next: impl FnOnce(&mut Request<'_>) -> Response,
    ) -> Response {
        let verdict = self.check(request);
        let mut response = match verdict {
            Verdict::Unlimited => return next(request),
            Verdict::Allowed { .. } => next(request),
            Verdict::Denied => return Response::error(StatusCode::FORBIDDEN),
            Verdict::Refused { retry_after: wait } | Verdict::Banned { remaining: wait } => {
                refusal(seconds_up(nanoseconds(wait)))
            }
        };
        self.describe(verdict, &mut response);
        response
    }

    /// Adds the fields to a response, behind those of other limits.
    fn describe(&self, verdict: Verdict, response: &mut Response) {
        let Some(policy) = &self.policy else {
            return;
        };
        let (left, time) = match verdict {
            Verdict::Allowed { left, full_in } => (left, full_in),
            Verdict::Refused { retry_after: wait } | Verdict::Banned { remaining: wait } => {
                (0, wait)
            }
            Verdict::Unlimited | Verdict::Denied => return,
        };
        let seconds = seconds_up(nanoseconds(time));
        let current = format!("\"{}\";r={left};t={seconds}", self.name);
        let headers = response.headers_mut();
        // Names and values are tokens, digits and printable ASCII.
        let _ = headers.append("RateLimit-Policy", policy);
        let _ = headers.append("RateLimit", current);
    }

    fn count(&self, hash: u64) -> Verdict {
        let now = self.clock.now();
        self.table.change(hash, |bucket| self.take(bucket, now))
    }

    /// Takes one request out of the bucket.
    fn take(&self, bucket: &mut Bucket, now: u64) -> Verdict {
        if bucket.banned_until > now {
            return Verdict::Banned {
                remaining: Duration::from_nanos(bucket.banned_until - now),
            };
        }
        let whole = self.interval * self.burst;
        let full_at = bucket.full_at.max(now).saturating_add(self.interval);
        let missing = full_at - now;
        if missing <= whole {
            bucket.full_at = full_at;
            return Verdict::Allowed {
                left: (whole - missing) / self.interval,
                full_in: Duration::from_nanos(missing),
            };
        }
        let refused = Verdict::Refused {
            retry_after: Duration::from_nanos(missing - whole),
        };
        let Some(ban) = self.ban else {
            return refused;
        };
        // Another thread may have looked at the clock later and been here earlier.
        if bucket.refusals == 0 || now.saturating_sub(bucket.refused_since) >= ban.within {
            bucket.refusals = 0;
            bucket.refused_since = now;
        }
        bucket.refusals += 1;
        if bucket.refusals < ban.refusals {
            return refused;
        }
        bucket.refusals = 0;
        bucket.banned_until = now.saturating_add(ban.lasting);
        Verdict::Banned {
            remaining: Duration::from_nanos(ban.lasting),
        }
    }

    fn hash_text(&self, text: &[u8]) -> u64 {
        self.table.hash((1_u8, text))
    }

    fn hash_address(&self, address: IpAddr) -> u64 {
        // What a text hashes to is never what an address hashes to: a field cannot name a client.
        let bits = match address.to_canonical() {
            IpAddr::V4(address) => (4_u8, u128::from(address.to_bits())),
            IpAddr::V6(address) => {
                let rest = 128 - self.ipv6_bits;
                (6_u8, address.to_bits().checked_shr(rest).unwrap_or(0))
            }
        };
        self.table.hash(bits)
    }
}

/// Nanoseconds as whole seconds, rounded up: who waits that long is not too early.
fn seconds_up(nanoseconds: u64) -> u64 {
    nanoseconds.div_ceil(1_000_000_000)
}

fn refusal(seconds: u64) -> Response {
    let reason = format!("try again in {seconds} seconds");
    Response::error_because(StatusCode::TOO_MANY_REQUESTS, reason)
        .header("Retry-After", &seconds.to_string())
}

impl Middleware for RateLimit {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        self.answer(request, |request| next.run(request))
    }

    fn name(&self) -> &'static str {
        "cloudgate::RateLimit"
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("name", &self.name)
            .field("interval", &Duration::from_nanos(self.interval))
            .field("burst", &self.burst)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
