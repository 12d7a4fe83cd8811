//! Which requests may be answered from memory, and which answers may be kept, for how long?
//!
//! RFC 9111 section 3 with nothing left to doubt: what might be meant for one user is not kept.

use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};

use crate::message::clock::nanoseconds;
use crate::message::{Body, Headers, RequestHead, Response};

/// The statuses that a cache may keep by itself (RFC 9110 section 15.1), without 206, 405, 414 and 501.
const STATUSES: [StatusCode; 8] = [
    StatusCode::OK,
    StatusCode::NON_AUTHORITATIVE_INFORMATION,
    StatusCode::NO_CONTENT,
    StatusCode::MULTIPLE_CHOICES,
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::PERMANENT_REDIRECT,
    StatusCode::NOT_FOUND,
    StatusCode::GONE,
];

/// Fields of a request that say who asks.
const CREDENTIALS: [&str; 3] = ["authorization", "proxy-authorization", "x-api-key"];

/// Fields of a request that ask for something other than the whole answer.
const SPECIAL: [&str; 6] = [
    "range",
    "if-range",
    "if-match",
    "if-unmodified-since",
    "upgrade",
    "transfer-encoding",
];

/// The most fields that an answer may vary by.
const MOST_VARY: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) lifetime: Duration,
    pub(super) statuses: Vec<StatusCode>,
    pub(super) ignore_cookies: bool,
    /// Fields that every answer varies by, whatever it says.
    pub(super) vary: Vec<String>,
    pub(super) most_entry_bytes: u64,
}

impl Policy {
    pub(super) fn new(lifetime: Duration) -> Policy {
        Policy {
            lifetime,
            statuses: STATUSES.to_vec(),
            ignore_cookies: false,
            vary: Vec::new(),
            most_entry_bytes: 1 << 20,
        }
    }

    /// Whether this request may be answered from memory, and the answer to it kept.
    pub(super) fn admits(&self, head: &RequestHead) -> bool {
        let headers = head.headers();
        let body = headers.contains("content-length") && headers.get("content-length") != Some("0");
        matches!(*head.method(), Method::GET | Method::HEAD)
            && !body
            && !self.lifetime.is_zero()
            && (self.ignore_cookies || !headers.contains("cookie"))
            && !CREDENTIALS.iter().any(|name| headers.contains(name))
            && !SPECIAL.iter().any(|name| headers.contains(name))
            && !headers.has_token("cache-control", "no-store")
    }

    /// How long in nanoseconds this answer to an admitted request may be kept; `None` for not at all.
    pub(super) fn lifetime(&self, response: &Response) -> Option<u64> {
        let headers = response.headers();
        let length = match response.body() {
            Body::Empty => 0,
            Body::Bytes(bytes) => bytes.len() as u64,
            _ => return None,
        };
        let kept = self.statuses.contains(&response.status())
            && length <= self.most_entry_bytes
            && !headers.contains("set-cookie")
            && !headers.has_token("vary", "*");
        if !kept {
            return None;
        }
        let said = said_lifetime(headers)?;
        let age = Duration::from_secs(age(headers));
        let lifetime = self.lifetime.min(said.saturating_sub(age));
        Some(nanoseconds(lifetime)).filter(|lifetime| *lifetime > 0)
    }

    /// The names of the fields that this answer varies by; `None` if they are too many.
    pub(super) fn vary(&self, headers: &Headers) -> Option<Vec<String>> {
        let mut names: Vec<String> = self.vary.clone();
        for line in headers.get_all("vary") {
            for name in line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                let name = String::from_utf8_lossy(name).to_ascii_lowercase();
                if !name.is_empty() && !names.contains(&name) {
                    names.push(name);
                }
                if names.len() > MOST_VARY {
                    return None;
                }
            }
        }
        Some(names)
    }
}

/// The value of Age in seconds; 0 without one.
pub(super) fn age(headers: &Headers) -> u64 {
    headers
        .get("age")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// How long the answer itself allows, which may be for ever; `None` if it forbids to keep it.
fn said_lifetime(headers: &Headers) -> Option<Duration> {
    let (mut shared, mut any): (Option<u64>, Option<u64>) = (None, None);
    for line in headers.get_all("cache-control") {
        // A comma in a quoted value yields pieces that are no directives; at worst they forbid.
        for directive in line.split(|&byte| byte == b',') {
            let directive = String::from_utf8_lossy(directive).to_ascii_lowercase();
            let (name, value) = directive.split_once('=').unwrap_or((&directive, ""));
            // What cannot be read means stale (RFC 9111 section 4.2.1), and of two the shorter counts.
            let seconds = || value.trim().trim_matches('"').parse().unwrap_or(0);
            let shorter = |old: Option<u64>| Some(old.unwrap_or(u64::MAX).min(seconds()));
            match name.trim() {
                "no-store" | "no-cache" | "private" => return None,
                "s-maxage" => shared = shorter(shared),
                "max-age" => any = shorter(any),
                _ => {}
            }
        }
    }
    if let Some(seconds) = shared.or(any) {
        return Some(Duration::from_secs(seconds));
    }
    let Some(expires) = headers.get_bytes("expires") else {
        return Some(Duration::MAX);
    };
    let expires = std::str::from_utf8(expires).ok()?;
    let date = httpdate::parse_http_date(expires).ok()?;
    date.duration_since(SystemTime::now()).ok()
}
