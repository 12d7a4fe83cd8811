//! Which rule of the protocol did a peer break?

use std::fmt;

use http::StatusCode;

/// The rule that a request broke. Nothing of what the peer sent is kept in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseError {
    /// The request line is not `method SP target SP version` (RFC 9112 section 3).
    InvalidRequestLine,
    /// The first line of a response is not `version SP status SP phrase` (RFC 9112 section 4).
    InvalidStatusLine,
    /// The target is in none of the four forms, or holds a byte it may not hold (RFC 9112 section 3.2).
    InvalidTarget,
    /// The target is longer than the limit.
    TargetTooLong,
    /// The version is not HTTP/1.x (RFC 9110 section 2.5).
    UnsupportedVersion,
    /// A field line has no colon, white space in front of it, or a name that is no token (RFC 9112 section 5).
    InvalidFieldName,
    /// A field value holds a control byte (RFC 9110 section 5.5).
    InvalidFieldValue,
    /// A line ends with a bare LF or holds a bare CR (RFC 9112 section 2.2).
    InvalidLineEnd,
    /// The head is larger than the limit.
    HeadTooLarge,
    /// The head, or the trailer section, has more fields than the limit.
    TooManyFields,
    /// HTTP/1.1 without a Host field (RFC 9112 section 3.2).
    MissingHost,
    /// More than one Host field (RFC 9112 section 3.2).
    RepeatedHost,
    /// The Host field, or the target's authority, is no host and port.
    InvalidHost,
    /// Content-Length and Transfer-Encoding together (RFC 9112 section 6.1).
    AmbiguousFraming,
    /// Content-Length is not one row of digits that fits in 64 bits (RFC 9112 section 6.3).
    InvalidContentLength,
    /// More than one Content-Length, equal or not.
    RepeatedContentLength,
    /// Transfer-Encoding is not exactly `chunked` (RFC 9112 section 6.1).
    UnsupportedTransferCoding,
    /// Transfer-Encoding in an HTTP/1.0 request (RFC 9112 section 6.1).
    TransferCodingInHttp10,
    /// CONNECT: nothing here opens tunnels (RFC 9110 section 9.3.6).
    Connect,
    /// An expectation other than `100-continue` (RFC 9110 section 10.1.1).
    UnknownExpectation,
    /// A chunk's size line or end is malformed (RFC 9112 section 7.1).
    InvalidChunk,
    /// The chunk extensions of a body are larger than the limit.
    ChunkExtensionsTooLarge,
    /// A trailer field is malformed (RFC 9112 section 7.1.2).
    InvalidTrailer,
    /// The trailer section is larger than the limit.
    TrailersTooLarge,
}

impl ParseError {
    /// The status to answer with.
    pub fn status(self) -> StatusCode {
        match self {
            ParseError::TargetTooLong => StatusCode::URI_TOO_LONG,
            ParseError::UnsupportedVersion => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            ParseError::HeadTooLarge | ParseError::TooManyFields | ParseError::TrailersTooLarge => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            ParseError::UnknownExpectation => StatusCode::EXPECTATION_FAILED,
            ParseError::Connect => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParseError::InvalidRequestLine => "the request line is malformed",
            ParseError::InvalidStatusLine => "the status line is malformed",
            ParseError::InvalidTarget => "the request target is malformed",
            ParseError::TargetTooLong => "the request target is too long",
            ParseError::UnsupportedVersion => "only HTTP/1.0 and HTTP/1.1 are spoken here",
            ParseError::InvalidFieldName => "a header field line is malformed",
            ParseError::InvalidFieldValue => "a header field value holds a control character",
            ParseError::InvalidLineEnd => "a line does not end with CR LF",
            ParseError::HeadTooLarge => "the request head is too large",
            ParseError::TooManyFields => "the request has too many header fields",
            ParseError::MissingHost => "the Host field is missing",
            ParseError::RepeatedHost => "there is more than one Host field",
            ParseError::InvalidHost => "the Host field is malformed",
            ParseError::AmbiguousFraming => {
                "Content-Length and Transfer-Encoding exclude each other"
            }
            ParseError::InvalidContentLength => "the Content-Length is malformed",
            ParseError::RepeatedContentLength => "there is more than one Content-Length",
            ParseError::UnsupportedTransferCoding => {
                "the only transfer coding understood is chunked"
            }
            ParseError::TransferCodingInHttp10 => "HTTP/1.0 has no transfer codings",
            ParseError::Connect => "CONNECT is not supported",
            ParseError::UnknownExpectation => "the only expectation understood is 100-continue",
            ParseError::InvalidChunk => "a chunk is malformed",
            ParseError::ChunkExtensionsTooLarge => "the chunk extensions are too large",
            ParseError::InvalidTrailer => "a trailer field is malformed",
            ParseError::TrailersTooLarge => "the trailer section is too large",
        })
    }
}

impl std::error::Error for ParseError {}
