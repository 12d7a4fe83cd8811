//! How is an answer made once and given to many, but never to the wrong one?
//!
//! ```text
//!  request ─▶ policy: may it? ─no─▶ next
//!      │ yes
//!      ▼
//!    store: is it there? ─yes─▶ 200 with Age, or 304
//!      │ no
//!      ▼
//!    flight: is it being made? ─yes─▶ wait, look again
//!      │ no
//!      ▼
//!    next ─▶ policy: may it be kept, for how long? ─▶ store
//! ```
//!
//! It is a service and no part of `app`: it knows requests and responses, and nothing of routes.

mod flight;
mod policy;
mod store;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};

use crate::message::clock::Clock;
use crate::message::conditional;
use crate::message::{Body, Middleware, Next, Request, RequestHead, Response};
use flight::Part;
use policy::Policy;
use store::{Found, Key, Store, Stored};

/// The most bytes of all answers, unless it is set.
const MOST_BYTES: u64 = 64 << 20;

/// How long a request waits for another that makes its answer, unless it is set.
const WAIT: Duration = Duration::from_secs(5);

/// Keeps whole answers for a short time, so that a page that many want is made once.
///
/// ```
/// use cloudgate::{App, Request, ResponseCache};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// let made = AtomicU32::new(0);
/// let app = App::new()
///     .get("/news", move || format!("made {} times", made.fetch_add(1, Ordering::Relaxed) + 1))
///     .wrap(ResponseCache::for_seconds(10));
///
/// assert_eq!(app.call(&mut Request::get("/news")).text(), "made 1 times");
/// let second = app.call(&mut Request::get("/news"));
/// assert_eq!(second.headers().get("age"), Some("0"));
/// assert_eq!(second.text(), "made 1 times");
/// // Who shows a cookie may be somebody: the answer is made, and not kept.
/// let mut own = Request::get("/news").with_header("Cookie", "user=1");
/// assert_eq!(app.call(&mut own).text(), "made 2 times");
/// ```
///
/// **Which requests.** GET, and HEAD from what GET has left, without a body. A request with `Cookie`,
/// `Authorization`, `Proxy-Authorization`, `X-Api-Key`, `Range`, `If-Match`, `If-Unmodified-Since`,
/// `Upgrade` or `Cache-Control: no-store` passes by: it neither gets a kept answer nor leaves one.
/// `Cache-Control: no-cache` does not, or any client could have every page made anew.
///
/// **Which answers.** Status 200, 203, 204, 300, 301, 308, 404 or 410, with a body in memory of up to
/// 1 MiB: no streams, and of [`Files`](crate::Files) those that it keeps in memory. Not with `Set-Cookie`,
/// `Vary: *`, or `Cache-Control` of `no-store`, `no-cache` or `private`; and no longer than
/// `s-maxage`, `max-age` or `Expires` allow (RFC 9111 section 4.2.1). An error of the server is never
/// kept.
///
/// **Who gets it.** Who asks for the same host and the same target with its whole query, with the same
/// values of all fields that `Vary` names. So a handler whose answer depends on another field has to
/// say so in `Vary`, or [`ResponseCache::vary_by`] does; an answer that depends on the client's address
/// must be `private`. What decides who may see a page goes before the cache, not behind it; what it
/// leaves on the request does not tell answers apart.
///
/// **Many at once.** One request makes the answer and the others wait for it, up to 5 seconds; then, or
/// if it could not be kept, each makes its own. Where nothing can be kept, the next ones do not wait.
///
/// **Changes.** A successful POST, PUT, PATCH or DELETE through the cache forgets what is kept of its
/// target (RFC 9111 section 4.4), and what was begun before it is not kept.
///
/// **Memory** is bounded by bytes (64 MiB); the answer goes that was least recently used. Up to 16
/// answers of one target differ by fields. Host, target and those fields together have up to 4 KiB,
/// and what is longer is not kept. A clone is the same cache.
#[derive(Clone)]
pub struct ResponseCache {
    policy: Policy,
    wait: Duration,
    most_bytes: u64,
    store: Arc<Store>,
    clock: Clock,
}

/// Which caches a request is in, by the addresses of their stores.
#[derive(Clone, Default)]
struct Inside(Vec<usize>);

impl ResponseCache {
    /// Keeps answers for this many seconds; with 0 it keeps none.
    pub fn for_seconds(seconds: u32) -> ResponseCache {
        ResponseCache::lasting(Duration::from_secs(seconds.into()))
    }

    /// Keeps answers for this time.
    pub fn lasting(lifetime: Duration) -> ResponseCache {
        let policy = Policy::new(lifetime);
        ResponseCache {
            store: Arc::new(Store::new(MOST_BYTES, policy.most_entry_bytes)),
            policy,
            wait: WAIT,
            most_bytes: MOST_BYTES,
            clock: Clock::default(),
        }
    }

    /// The most bytes of all answers (default 64 MiB). Set before it is used: it begins empty.
    pub fn most_bytes(mut self, bytes: u64) -> ResponseCache {
        self.most_bytes = bytes;
        self.with_new_store()
    }

    /// The most bytes of one body (default 1 MiB). Set before it is used: it begins empty.
    pub fn most_entry_bytes(mut self, bytes: u64) -> ResponseCache {
        self.policy.most_entry_bytes = bytes;
        self.with_new_store()
    }

    fn with_new_store(mut self) -> ResponseCache {
        self.store = Arc::new(Store::new(self.most_bytes, self.policy.most_entry_bytes));
        self
    }

    /// Keeps answers of these statuses and no others. 206 is part of something and is never kept.
    pub fn statuses(mut self, statuses: impl IntoIterator<Item = StatusCode>) -> ResponseCache {
        self.policy.statuses = statuses
            .into_iter()
            .filter(|status| *status != StatusCode::PARTIAL_CONTENT)
            .collect();
        self
    }

    /// Treats requests with cookies like those without: for handlers that never look at a cookie.
    /// An answer that sets one is not kept even so.
    pub fn ignore_cookies(mut self) -> ResponseCache {
        self.policy.ignore_cookies = true;
        self
    }

    /// Keeps answers apart by the value of this request field, whether they say so in `Vary` or not.
    pub fn vary_by(mut self, name: &str) -> ResponseCache {
        self.policy.vary.push(name.to_ascii_lowercase());
        self
    }

    /// How long a request waits for another that makes the same answer (default 5 seconds). With zero
    /// each makes its own.
    pub fn wait_at_most(mut self, limit: Duration) -> ResponseCache {
        self.wait = limit;
        self
    }

    /// Forgets all answers for this host, as in the field Host, and target, as in `/a?b=c`.
    pub fn forget(&self, host: &str, target: &str) {
        if let Some(key) = self.store.key_of(host, target) {
            self.store.forget(key);
        }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.store.clear();
    }

    /// Answers from memory, or lets `next` make the answer and keeps it if it may.
    pub fn answer(
        &self,
        request: &mut Request<'_>,
        next: impl FnOnce(&mut Request<'_>) -> Response,
    ) -> Response {
        // The same cache twice on the way: it would wait for itself.
        let here = Arc::as_ptr(&self.store).addr();
        let around = request.extensions().get::<Inside>();
        if around.is_some_and(|around| around.0.contains(&here)) {
            return next(request);
        }
        // As it came: what is behind may change the request, and the next one comes as this one did.
        let head = request.shared_head();
        let Some(key) = self.store.key(&head) else {
            return next(request);
        };
        if !self.policy.admits(&head) {
            let response = next(request);
            if !head.method().is_safe() && response.status().as_u16() < 400 {
                self.store.forget(key);
            }
            return response;
        }
        let (mut found, mut generation) = self.store.find(key, &head, self.clock.now());
        let mut making = None;
        let waits = matches!(found, Found::Nothing) && *head.method() == Method::GET;
        if waits && !self.wait.is_zero() {
            match flight::join(&self.store, key.hash(), self.wait) {
                Part::Makes(part) => making = Some(part),
                Part::Waited => {}
            }
            // The one that made it may have been done just before.
            (found, generation) = self.store.find(key, &head, self.clock.now());
        }
        if let Found::Answer(stored) = found {
            return respond(&head, &stored, self.clock.now());
        }
        let inside = request.extensions_mut().get_or_insert_default::<Inside>();
        inside.0.push(here);
        let response = next(request);
        if let Some(inside) = request.extensions_mut().get_mut::<Inside>() {
            inside.0.pop();
        }
        if *head.method() == Method::GET {
            let awaited = making.as_ref().is_some_and(flight::Making::is_awaited);
            self.keep(key, &head, &response, generation, awaited);
        }
        response
    }

    fn keep(
        &self,
        key: Key<'_>,
        head: &RequestHead,
        response: &Response,
        generation: u64,
        awaited: bool,
    ) {
        let now = self.clock.now();
        let lifetime = self.policy.lifetime(response);
        let names = self.policy.vary(response.headers());
        if let Some((lifetime, names)) = lifetime.zip(names) {
            let mut headers = response.headers().clone();
            // They tell one client how much it has left.
            headers.remove("ratelimit");
            headers.remove("ratelimit-policy");
            let stored = Stored {
                status: response.status(),
                age: policy::age(&headers),
                headers,
                body: match response.body() {
                    // A copy: it might be a small piece of a large buffer.
                    Body::Bytes(bytes) => Bytes::copy_from_slice(bytes),
                    _ => Bytes::new(),
                },
                made: now,
                until: now.saturating_add(lifetime),
            };
            self.store.keep(key, head, names, Ok(stored), generation);
        } else if awaited {
            let until = Clock::after(now, self.policy.lifetime);
            self.store
                .keep(key, head, Vec::new(), Err(until), generation);
        }
    }
}

/// A kept answer, or 304 if the client has it already.
fn respond(head: &RequestHead, stored: &Stored, now: u64) -> Response {
    let mut response = Response::new(stored.status);
    *response.headers_mut() = stored.headers.clone();
    let seconds = now.saturating_sub(stored.made) / 1_000_000_000;
    let mut response = response.header("Age", &(stored.age + seconds).to_string());
    if stored.status.is_success() && is_known(head, stored) {
        response.headers_mut().remove("Content-Type");
        return response.with_status(StatusCode::NOT_MODIFIED);
    }
    response.with_body(stored.body.clone())
}

/// Whether the client has this version (RFC 9110 section 13.2.2).
fn is_known(head: &RequestHead, stored: &Stored) -> bool {
    let request = head.headers();
    if request.contains("if-none-match") {
        return stored
            .headers
            .get("etag")
            .is_some_and(|tag| conditional::names(request, tag));
    }
    let date = |text: Option<&str>| text.and_then(|text| httpdate::parse_http_date(text).ok());
    let since = date(request.get("if-modified-since"));
    let modified = date(stored.headers.get("last-modified"));
    since
        .zip(modified)
        .is_some_and(|(since, modified)| modified <= since)
}

impl Middleware for ResponseCache {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        self.answer(request, |request| next.run(request))
    }

    fn name(&self) -> &'static str {
        "cloudgate::ResponseCache"
    }
}

impl fmt::Debug for ResponseCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseCache")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
