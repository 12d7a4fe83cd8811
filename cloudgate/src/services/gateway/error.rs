//! Why did a server not answer, and may another be asked?

use std::fmt;
use std::io::{self, ErrorKind};

use http::StatusCode;

use crate::message::BodyError;
use crate::proto::error::ParseError;

/// Up to where an exchange with a server came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its name was looked up.
    Resolve,
    Connect,
    /// Keys of TLS were agreed on.
    Handshake,
    /// The request was sent.
    Send,
    /// The request had been sent, and nothing of an answer came.
    FirstByte,
    /// A part of the answer's head had come.
    Head,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Resolve => "looking up its name",
            Phase::Connect => "connecting",
            Phase::Handshake => "agreeing on TLS",
            Phase::Send => "sending the request",
            Phase::FirstByte => "waiting for the answer",
            Phase::Head => "reading the answer's head",
        })
    }
}

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Cause {
    Io(io::Error),
    /// The server broke a rule of the protocol.
    Protocol(ParseError),
    /// It speaks another protocol although nobody has asked for that.
    Switched,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Io(error) if error.kind() == ErrorKind::TimedOut => {
                f.write_str("it took too long")
            }
            Cause::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
                f.write_str("it closed the connection")
            }
            Cause::Io(error) => error.fmt(f),
            Cause::Protocol(rule) => write!(f, "its answer breaks a rule: {rule}"),
            Cause::Switched => f.write_str("it switched protocols, which nobody had asked for"),
        }
    }
}

/// A server did not answer.
#[derive(Debug)]
pub(crate) struct UpstreamError {
    pub(crate) phase: Phase,
    pub(crate) cause: Cause,
    /// Whether the connection had carried a request before.
    pub(crate) reused: bool,
    /// Whether the server may have got a byte of the request.
    pub(crate) sent: bool,
}

impl UpstreamError {
    /// The status that tells the client.
    pub(crate) fn status(&self) -> StatusCode {
        match &self.cause {
            Cause::Io(error) if error.kind() == ErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    /// Whether the request may be made once more: nothing of it was sent, or it may be done twice (RFC 9110 section
    /// 9.2.2) and nothing of an answer has come. A server that takes too long to answer may be at it still.
    pub(crate) fn retryable(&self, idempotent: bool) -> bool {
        if !self.sent {
            return true;
        }
        idempotent
            && matches!(self.phase, Phase::Send | Phase::FirstByte)
            && self.status() != StatusCode::GATEWAY_TIMEOUT
    }

    /// Whether the connection had most likely been closed before the request was sent, so that this says nothing of the
    /// server.
    pub(crate) fn is_stale(&self) -> bool {
        let closed = matches!(&self.cause, Cause::Io(error) if matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
        ));
        self.reused && closed && matches!(self.phase, Phase::Send | Phase::FirstByte)
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.phase, self.cause)?;
        if self.reused {
            f.write_str(" (a connection that was used before)")?;
        }
        Ok(())
    }
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No server answered; this was the last.
    Upstream(UpstreamError),
    /// The request's body could not be read.
    Client(BodyError),
    /// The client did not wait for the answer.
    Gone,
    /// All servers have as many requests as they may have, and the lines are full, or too slow.
    Busy,
    /// The circuit breaker is open: too many requests failed.
    Open,
}

impl Failure {
    /// The status that tells the client.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Failure::Upstream(error) => error.status(),
            Failure::Client(error) => error.status(),
            // Nobody hears it; in the log it stands for that.
            Failure::Gone => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_GATEWAY),
            Failure::Busy | Failure::Open => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Upstream(error) => error.fmt(f),
            Failure::Client(error) => error.fmt(f),
            Failure::Gone => f.write_str("the client did not wait for the answer"),
            Failure::Busy => f.write_str("all servers have as many requests as they may have"),
            Failure::Open => f.write_str("the circuit breaker is open"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(phase: Phase, kind: ErrorKind, reused: bool, sent: bool) -> UpstreamError {
        UpstreamError {
            phase,
            cause: Cause::Io(kind.into()),
            reused,
            sent,
        }
    }

    #[test]
    fn what_may_be_asked_again() {
        use ErrorKind::*;
        for (phase, kind, sent, idempotent, want) in [
            (Phase::Connect, ConnectionRefused, false, false, true),
            (Phase::Connect, TimedOut, false, false, true),
            (Phase::Send, BrokenPipe, false, false, true),
            (Phase::Send, BrokenPipe, true, false, false),
            (Phase::Send, BrokenPipe, true, true, true),
            (Phase::FirstByte, UnexpectedEof, true, true, true),
            (Phase::FirstByte, UnexpectedEof, true, false, false),
            (Phase::FirstByte, TimedOut, true, true, false),
            (Phase::Head, UnexpectedEof, true, true, false),
        ] {
            let error = error(phase, kind, true, sent);
            assert_eq!(error.retryable(idempotent), want, "{error:?}");
        }
    }

    #[test]
    fn time_is_504_and_the_rest_502() {
        let status = |kind| error(Phase::FirstByte, kind, false, true).status().as_u16();
        assert_eq!(status(ErrorKind::TimedOut), 504);
        assert_eq!(status(ErrorKind::ConnectionReset), 502);
    }

    #[test]
    fn a_connection_that_was_closed_while_idle_says_nothing_of_the_server() {
        assert!(error(Phase::FirstByte, ErrorKind::ConnectionReset, true, true).is_stale());
        assert!(!error(Phase::FirstByte, ErrorKind::ConnectionReset, false, true).is_stale());
        assert!(!error(Phase::FirstByte, ErrorKind::TimedOut, true, true).is_stale());
        assert!(!error(Phase::Head, ErrorKind::UnexpectedEof, true, true).is_stale());
    }
}
