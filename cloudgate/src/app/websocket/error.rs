//! How does a WebSocket end that is not closed as it should be?

use std::fmt;
use std::io;

use crate::proto::ws::violation::Violation;

/// Why a WebSocket can no longer be used. Who it was is told where the peer can still be told.
#[derive(Debug)]
#[non_exhaustive]
pub enum SocketError {
    /// It was closed: by the peer, by a [`SocketSender`](super::SocketSender), or because the server stops.
    Closed,
    /// The peer broke a rule of the protocol, or a limit; it was told this code (RFC 6455 section 7.4.1).
    Broken {
        /// The code, such as 1002, 1007 or 1009.
        code: u16,
        /// The rule, in words.
        reason: &'static str,
    },
    /// The peer answered none of the pings.
    Unresponsive,
    /// The peer reads too slowly.
    TooSlow,
    /// The connection ended without a close, or failed.
    Lost(io::Error),
}

impl From<Violation> for SocketError {
    fn from(violation: Violation) -> SocketError {
        SocketError::Broken {
            code: violation.close_code(),
            reason: violation.reason(),
        }
    }
}

impl SocketError {
    /// The same error once more, for whoever asks again.
    pub(super) fn again(&self) -> SocketError {
        match self {
            SocketError::Closed => SocketError::Closed,
            SocketError::Broken { code, reason } => SocketError::Broken {
                code: *code,
                reason,
            },
            SocketError::Unresponsive => SocketError::Unresponsive,
            SocketError::TooSlow => SocketError::TooSlow,
            SocketError::Lost(error) => SocketError::Lost(error.kind().into()),
        }
    }
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SocketError::Closed => f.write_str("the WebSocket is closed"),
            SocketError::Broken { code, reason } => {
                write!(f, "the peer broke the protocol ({code}): {reason}")
            }
            SocketError::Unresponsive => f.write_str("the peer answers no pings"),
            SocketError::TooSlow => f.write_str("the peer reads too slowly"),
            SocketError::Lost(error) => write!(f, "the connection is lost: {error}"),
        }
    }
}

impl std::error::Error for SocketError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SocketError::Lost(error) => Some(error),
            _ => None,
        }
    }
}

/// What a function returns that speaks over a WebSocket: any error may leave it by `?`.
///
/// A [`SocketError`] is the peer's doing, mostly, and goes to the log at level debug. Any other error is the
/// application's: it is logged as an error, and the peer is told 1011.
pub type SocketResult<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
