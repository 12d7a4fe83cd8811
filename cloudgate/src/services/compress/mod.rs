//! Which answers are worth compressing?
//!
//! ```text
//!  request ─ accept::choose ─┐
//!  response ─ the policy here ┴─▶ encoder::encode: body in, body out
//! ```

use http::StatusCode;

use super::coding::Coding;
use super::coding::accept::{self, Wanted};
use super::coding::compressible::is_compressible;
use super::coding::encoder;
use super::vary;
use crate::message::{Body, Headers, Middleware, Next, Request, Response, StartError};

/// The smallest body in bytes that is compressed, unless told otherwise: about what one packet holds.
const MINIMUM: u64 = 1024;

/// The level unless told otherwise: gzip makes 15 % of 100 kB of JSON at 217 MB/s, 13 % at 6 with
/// 81 MB/s and 12 % at 9 with 34.
const LEVEL: u32 = 5;

/// Fields that speak of the bytes as they are: whoever sets one has to see them unchanged.
const BOUND_TO_BYTES: [&str; 6] = [
    "content-encoding",
    "content-range",
    "content-digest",
    "repr-digest",
    "digest",
    "content-md5",
];

/// Compresses answers for clients that can decode them: by gzip, and by brotli and zstd where the
/// features `brotli` and `zstd` of this crate are on.
///
/// ```
/// use cloudgate::{App, Compression, Request};
///
/// let app = App::new()
///     .get("/words", || "words ".repeat(1000))
///     .wrap(Compression::new());
/// let mut request = Request::get("/words").with_header("Accept-Encoding", "gzip, br;q=0.5");
/// let response = app.call(&mut request);
/// assert_eq!(response.headers().get("content-encoding"), Some("gzip"));
/// assert!(response.bytes().len() < 100);
/// ```
///
/// Compressed are text, JSON, XML, YAML, JavaScript, SVG, WebAssembly, models and uncompressed fonts of at
/// least 1 KiB, and streams of these types; a stream's `flush` reaches the client at once. Left alone are
/// answers that have a `Content-Encoding` already, that say `Cache-Control: no-transform`, parts of a
/// larger whole (206), what carries a digest, and `text/event-stream`, each of which would hold a
/// coder's memory for as long as it is open (400 KiB for gzip); see [`Compression::also`].
///
/// A strong `ETag` becomes a weak one, because the bytes are no longer those it stands for.
///
/// # Secrets
/// The length of a compressed answer tells how well its parts resemble each other. Where an answer
/// that is read over TLS holds a secret, such as a CSRF token, and also text that an attacker can
/// choose, such as the search term of the query, the attacker can find the secret letter by letter by
/// watching lengths (BREACH). Answer such requests with `Cache-Control: no-transform`, leave the
/// chosen text out, or change how the secret is spelled with each answer.
#[derive(Clone, Debug)]
pub struct Compression {
    level: u32,
    minimum: u64,
    also: Vec<String>,
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::new()
    }
}

impl Compression {
    /// Level 5, from 1 KiB.
    pub const fn new() -> Compression {
        Compression {
            level: LEVEL,
            minimum: MINIMUM,
            also: Vec::new(),
        }
    }

    /// Sets how hard to try: 1, the fastest, to 9, the smallest. Any other is an error at start.
    ///
    /// These are the levels of gzip; of brotli and of zstd 1 to 5 are used, for higher ones take longer
    /// than an answer can wait.
    #[must_use]
    pub const fn level(mut self, level: u32) -> Compression {
        self.level = level;
        self
    }

    /// Sets the length in bytes from which a body is compressed. A client that refuses the answer
    /// as it is (`identity;q=0`) gets shorter ones compressed too.
    #[must_use]
    pub const fn minimum(mut self, bytes: u64) -> Compression {
        self.minimum = bytes;
        self
    }

    /// Compresses answers of this media type too, such as `application/x-ndjson` or
    /// `text/event-stream`.
    #[must_use]
    pub fn also(mut self, media_type: &str) -> Compression {
        self.also.push(essence(media_type).to_ascii_lowercase());
        self
    }

    fn is_compressible(&self, headers: &Headers) -> bool {
        let Some(media_type) = headers.get("content-type") else {
            return false;
        };
        let media_type = essence(media_type).to_ascii_lowercase();
        (is_compressible(&media_type) || self.also.contains(&media_type))
            && !BOUND_TO_BYTES.iter().any(|name| headers.contains(name))
            && !headers.has_token("cache-control", "no-transform")
    }

    fn compress(&self, response: &mut Response, wanted: Wanted) {
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED {
            // It has to say what the answer that it stands for would (RFC 9110 section 15.4.5), and
            // nothing here tells that one's type.
            vary::add(response.headers_mut(), "Accept-Encoding");
            return;
        }
        let length = response.body().length();
        let minimum = if wanted.refuses_plain {
            1
        } else {
            self.minimum.max(1)
        };
        if length.is_some_and(|length| length < minimum)
            || status.is_informational()
            || status == StatusCode::NO_CONTENT
            || !self.is_compressible(response.headers())
        {
            return;
        }
        vary::add(response.headers_mut(), "Accept-Encoding");
        let Some(coding) = wanted.coding else { return };
        if status == StatusCode::PARTIAL_CONTENT {
            return;
        }
        let note = response.note;
        let plain = response.take_body();
        let kept = match &plain {
            Body::Bytes(bytes) => Some(bytes.clone()),
            _ => None,
        };
        match encoder::encode(plain, coding, self.level.clamp(1, 9)) {
            Ok(Body::Bytes(bytes))
                if !wanted.refuses_plain
                    && kept.as_ref().is_some_and(|kept| kept.len() <= bytes.len()) =>
            {
                response.body = kept.map_or(Body::Empty, Body::Bytes);
                response.note = note;
            }
            Ok(body) => {
                response.body = body;
                note_coding(response.headers_mut(), coding);
            }
            Err(error) => {
                log::error!(
                    "a response could not be compressed by {}: {error}",
                    coding.name()
                );
                *response = Response::error(StatusCode::INTERNAL_SERVER_ERROR);
            }
        }
    }
}

/// Says in the fields what has become of the body.
fn note_coding(headers: &mut Headers, coding: Coding) {
    // Plain names, all of them.
    let _ = headers.append("Content-Encoding", coding.name());
    headers.remove("Content-Length");
    // Ranges would be of the bytes as they were.
    headers.remove("Accept-Ranges");
    let weak = headers
        .get("etag")
        .filter(|tag| tag.starts_with('"'))
        .map(|tag| format!("W/{tag}"));
    if let Some(weak) = weak {
        let _ = headers.set("ETag", weak);
    }
}

impl Middleware for Compression {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        // Before anybody changes the request.
        let wanted = accept::choose(request.headers(), Coding::ENCODABLE);
        let mut response = next.run(request);
        self.compress(&mut response, wanted);
        response
    }

    fn start(&self) -> Result<(), StartError> {
        if (1..=9).contains(&self.level) {
            return Ok(());
        }
        Err(format!(
            "Compression::level got {} - take 1, the fastest, to 9, the smallest",
            self.level
        )
        .into())
    }
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or("").trim()
}

#[cfg(test)]
mod tests;
