//! How do bodies of requests come in?
//!
//! As nothing, bytes, or a stream that is read as the handler asks for more, so a peer can never send faster than
//! somebody reads.

use std::fmt;
use std::io::{self, Read};

use bytes::Bytes;
use http::StatusCode;

use super::headers::Headers;

/// Where the bytes of a request body come from.
///
/// The server implements it over a connection; tests may implement it over anything.
pub trait BodySource {
    /// Puts the next bytes of the body into `buffer`; 0 is the end of the body, or an empty buffer.
    ///
    /// The reader accepts `allowed` more bytes: a source that knows that more come may say so at
    /// once with [`BodyError::TooLarge`] instead of waiting for them.
    ///
    /// # Errors
    /// [`BodyError`] when the body breaks its framing, ends early, comes too slowly or is too large.
    fn read(&mut self, buffer: &mut [u8], allowed: u64) -> Result<usize, BodyError>;

    /// As [`BodySource::read`], but waits no longer than for so many milliseconds; `None` where nothing came.
    ///
    /// # Errors
    /// As [`BodySource::read`].
    fn read_within(
        &mut self,
        buffer: &mut [u8],
        allowed: u64,
        patience: u64,
    ) -> Result<Option<usize>, BodyError> {
        let _ = patience;
        self.read(buffer, allowed).map(Some)
    }

    /// Whether the client has ended its side of the connection, or the connection has failed: then nobody waits for
    /// an answer.
    fn client_is_gone(&mut self) -> bool {
        false
    }

    /// Tells the client something before the answer (RFC 9110 section 15.2), where it can hear that.
    ///
    /// # Errors
    /// When the connection failed.
    fn interim(&mut self, status: StatusCode, headers: &Headers) -> io::Result<()> {
        let _ = (status, headers);
        Ok(())
    }

    /// The length in bytes that the head announced, if it did; 0 where there is no body.
    fn length(&self) -> Option<u64>;

    /// The fields that came behind the body, once it was read to its end.
    fn trailers(&self) -> Option<&Headers> {
        None
    }
}

/// Why a request body could not be read. Every variant but `Disconnected` is the peer's doing.
#[derive(Debug)]
#[non_exhaustive]
pub enum BodyError {
    /// It is larger than the route allows (bytes); `length` is the announced length, if any.
    TooLarge {
        /// The limit in bytes.
        limit: u64,
        /// The length that Content-Length announced; `None` for a chunked body.
        length: Option<u64>,
    },
    /// Its chunked framing is broken (RFC 9112 section 7.1).
    Malformed,
    /// The trailer section behind it is larger than the server's limit.
    TrailersTooLarge,
    /// The peer ended the connection before the body was complete (RFC 9112 section 8).
    Truncated,
    /// The peer sent slower than the server's minimum rate.
    TooSlow,
    /// The connection failed.
    Disconnected(io::Error),
}

impl BodyError {
    /// The status that tells the client what went wrong.
    pub fn status(&self) -> StatusCode {
        match self {
            BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            BodyError::Malformed | BodyError::Truncated | BodyError::Disconnected(_) => {
                StatusCode::BAD_REQUEST
            }
            BodyError::TrailersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            BodyError::TooSlow => StatusCode::REQUEST_TIMEOUT,
        }
    }

    /// The body error inside an [`io::Error`] that reading a [`RequestBody`] gave, if it is one.
    pub fn within(error: &io::Error) -> Option<&BodyError> {
        error.get_ref()?.downcast_ref()
    }
}

/// How to allow larger bodies.
const RAISE: &str = "; #[route(POST, \"/path\", body_limit = \"10 MiB\")] allows more on a route, Settings::body_limit on all";

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::TooLarge {
                limit,
                length: Some(length),
            } => {
                write!(
                    f,
                    "the request body has {length} bytes, more than the {limit} bytes allowed here{RAISE}"
                )
            }
            BodyError::TooLarge {
                limit,
                length: None,
            } => {
                write!(
                    f,
                    "the request body is larger than the {limit} bytes allowed here{RAISE}"
                )
            }
            BodyError::Malformed => f.write_str("the chunked request body is malformed"),
            BodyError::TrailersTooLarge => f.write_str("the trailer section is too large"),
            BodyError::Truncated => f.write_str("the request body ended before it was complete"),
            BodyError::TooSlow => f.write_str("the request body came too slowly"),
            BodyError::Disconnected(error) => write!(
                f,
                "the connection failed while the request body was read: {error}"
            ),
        }
    }
}

impl std::error::Error for BodyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BodyError::Disconnected(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BodyError> for io::Error {
    fn from(error: BodyError) -> io::Error {
        let kind = match &error {
            BodyError::TooLarge { .. } | BodyError::Malformed | BodyError::TrailersTooLarge => {
                io::ErrorKind::InvalidData
            }
            BodyError::Truncated => io::ErrorKind::UnexpectedEof,
            BodyError::TooSlow => io::ErrorKind::TimedOut,
            BodyError::Disconnected(inner) => inner.kind(),
        };
        io::Error::new(kind, error)
    }
}

/// The body of a request: read it as a stream ([`Read`]) or whole ([`RequestBody::read_all`]).
///
/// Nothing is read from the peer before the handler asks; a client that waits for
/// `100 Continue` gets it at the first read (RFC 9110 section 10.1.1).
pub struct RequestBody<'conn> {
    source: Source<'conn>,
    limit: u64,
    seen: u64,
    failed: bool,
}

enum Source<'conn> {
    Bytes(Bytes),
    Stream(&'conn mut dyn BodySource),
}

impl<'conn> RequestBody<'conn> {
    /// The limit in bytes where neither server nor route says otherwise: 2 MiB.
    pub const DEFAULT_LIMIT: u64 = 2 << 20;

    /// No body.
    pub const fn empty() -> RequestBody<'conn> {
        RequestBody {
            source: Source::Bytes(Bytes::new()),
            limit: Self::DEFAULT_LIMIT,
            seen: 0,
            failed: false,
        }
    }

    /// A body that is in memory already.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> RequestBody<'conn> {
        RequestBody {
            source: Source::Bytes(bytes.into()),
            limit: Self::DEFAULT_LIMIT,
            seen: 0,
            failed: false,
        }
    }

    /// A body that is read as the handler asks for it.
    pub fn from_source(source: &'conn mut dyn BodySource) -> RequestBody<'conn> {
        RequestBody {
            source: Source::Stream(source),
            limit: Self::DEFAULT_LIMIT,
            seen: 0,
            failed: false,
        }
    }

    /// Lets a body that was read be read again.
    pub(crate) fn put_back(&mut self, bytes: Bytes) {
        self.source = Source::Bytes(bytes);
        self.seen = 0;
    }

    /// The largest body in bytes that reading accepts.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Changes [`RequestBody::limit`]; a handler may do so before it reads.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The length in bytes, if it is known before reading: not for chunked bodies.
    pub fn length(&self) -> Option<u64> {
        match &self.source {
            Source::Bytes(bytes) => Some(self.seen + bytes.len() as u64),
            Source::Stream(source) => source.length(),
        }
    }

    /// The fields that came behind a chunked body (RFC 9110 section 6.5), once it was read to its
    /// end; without those that may not come there, such as Content-Length or Host.
    pub fn trailers(&self) -> Option<&Headers> {
        match &self.source {
            Source::Bytes(_) => None,
            Source::Stream(source) => source.trailers(),
        }
    }

    /// Whether a read has failed: then what the handler got is not what the client meant to send.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// As [`Read::read`], but waits no longer than for so many milliseconds; `None` where nothing came. Without any
    /// patience a client that waits for `100 Continue` is not told to go on.
    pub(crate) fn read_within(
        &mut self,
        buffer: &mut [u8],
        patience: u64,
    ) -> Result<Option<usize>, BodyError> {
        self.read_by(buffer, Some(patience))
            .inspect_err(|_| self.failed = true)
    }

    /// Whether the client has ended its side of the connection: then nobody waits for an answer.
    pub(crate) fn client_is_gone(&mut self) -> bool {
        match &mut self.source {
            Source::Bytes(_) => false,
            Source::Stream(source) => source.client_is_gone(),
        }
    }

    /// Tells the client something before the answer (RFC 9110 section 15.2), where it can hear that.
    pub(crate) fn interim(&mut self, status: StatusCode, headers: &Headers) -> io::Result<()> {
        match &mut self.source {
            Source::Bytes(_) => Ok(()),
            Source::Stream(source) => source.interim(status, headers),
        }
    }

    /// Reads what is left of the body into memory.
    ///
    /// # Errors
    /// [`BodyError::TooLarge`] past the limit, decided from the announced length before a byte is
    /// read where there is one; the other variants as the peer or the connection fails.
    pub fn read_all(&mut self) -> Result<Bytes, BodyError> {
        self.collect().inspect_err(|_| self.failed = true)
    }

    fn collect(&mut self) -> Result<Bytes, BodyError> {
        self.check_length()?;
        if let Source::Bytes(bytes) = &mut self.source {
            self.seen += bytes.len() as u64;
            return Ok(std::mem::take(bytes));
        }
        // An announced length is the peer's word: it earns no more than 64 KiB ahead of the bytes.
        let announced = self.length().unwrap_or(4096).clamp(1, 64 << 10) as usize;
        let mut all = vec![0; announced];
        let mut filled = 0;
        loop {
            if filled == all.len() {
                all.resize(filled + filled.clamp(4096, 1 << 20), 0);
            }
            match self.read_some(&mut all[filled..])? {
                0 => break,
                count => filled += count,
            }
            if self.length() == Some(self.seen) {
                break;
            }
        }
        all.truncate(filled);
        Ok(Bytes::from(all))
    }

    fn check_length(&self) -> Result<(), BodyError> {
        match self.length() {
            Some(length) if length > self.limit => Err(BodyError::TooLarge {
                limit: self.limit,
                length: Some(length),
            }),
            _ => Ok(()),
        }
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, BodyError> {
        // Only what does not wait finds nothing.
        Ok(self.read_by(buffer, None)?.unwrap_or_default())
    }

    fn read_by(
        &mut self,
        buffer: &mut [u8],
        patience: Option<u64>,
    ) -> Result<Option<usize>, BodyError> {
        self.check_length()?;
        if self.seen > self.limit {
            return Err(BodyError::TooLarge {
                limit: self.limit,
                length: None,
            });
        }
        let count = match &mut self.source {
            Source::Bytes(bytes) => {
                let count = buffer.len().min(bytes.len());
                buffer[..count].copy_from_slice(&bytes.split_to(count));
                count
            }
            Source::Stream(source) => {
                let allowed = self.limit - self.seen;
                let read = match patience {
                    Some(patience) => source.read_within(buffer, allowed, patience),
                    None => source.read(buffer, allowed).map(Some),
                };
                match read {
                    // The source knows what is left, the reader what was allowed in all.
                    Err(BodyError::TooLarge { .. }) => {
                        return Err(BodyError::TooLarge {
                            limit: self.limit,
                            length: None,
                        });
                    }
                    Ok(None) => return Ok(None),
                    Ok(Some(count)) => count,
                    Err(error) => return Err(error),
                }
            }
        };
        self.seen += count as u64;
        if self.seen > self.limit {
            return Err(BodyError::TooLarge {
                limit: self.limit,
                length: None,
            });
        }
        Ok(Some(count))
    }
}

impl Read for RequestBody<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_some(buffer).inspect_err(|_| self.failed = true)?;
        Ok(count)
    }
}

impl fmt::Debug for RequestBody<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody")
            .field("length", &self.length())
            .field("limit", &self.limit)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pieces(Vec<&'static [u8]>, Option<u64>);

    impl BodySource for Pieces {
        fn read(&mut self, buffer: &mut [u8], _allowed: u64) -> Result<usize, BodyError> {
            let Some(piece) = self.0.first_mut() else {
                return Ok(0);
            };
            let count = piece.len().min(buffer.len());
            buffer[..count].copy_from_slice(&piece[..count]);
            *piece = &piece[count..];
            if piece.is_empty() {
                self.0.remove(0);
            }
            Ok(count)
        }

        fn length(&self) -> Option<u64> {
            self.1
        }
    }

    #[test]
    fn a_stream_is_read_to_its_end() {
        for length in [None, Some(11)] {
            let mut pieces = Pieces(vec![b"hello", b" ", b"world"], length);
            assert_eq!(
                RequestBody::from_source(&mut pieces).read_all().unwrap(),
                "hello world"
            );
        }
    }

    #[test]
    fn the_limit_itself_is_allowed_and_one_past_it_is_not() {
        for length in [None, Some(5)] {
            let mut pieces = Pieces(vec![b"hel", b"lo"], length);
            let mut body = RequestBody::from_source(&mut pieces);
            body.set_limit(5);
            assert_eq!(body.read_all().unwrap(), "hello");

            let mut pieces = Pieces(vec![b"hel", b"lo"], length);
            let mut body = RequestBody::from_source(&mut pieces);
            body.set_limit(4);
            let error = body.read_all().unwrap_err();
            assert!(
                matches!(error, BodyError::TooLarge { limit: 4, length: said } if said == length)
            );
            assert_eq!(error.status(), StatusCode::PAYLOAD_TOO_LARGE);
        }
    }

    #[test]
    fn an_announced_length_past_the_limit_is_refused_before_a_byte_is_read() {
        let mut pieces = Pieces(vec![b"hello"], Some(1 << 40));
        assert!(matches!(
            RequestBody::from_source(&mut pieces).read_all(),
            Err(BodyError::TooLarge { length: Some(length), .. }) if length == 1 << 40
        ));
        assert_eq!(pieces.0.len(), 1);
    }

    #[test]
    fn a_body_error_survives_the_trip_through_io_error() {
        let mut body = RequestBody::from_bytes("hello");
        body.set_limit(4);
        let error = body.read(&mut [0; 8]).unwrap_err();
        assert!(matches!(
            BodyError::within(&error),
            Some(BodyError::TooLarge { limit: 4, .. })
        ));
    }
}
