//! How does a socket end?

use std::io::{self, ErrorKind};

use super::buffers;
use super::error::SocketError;
use super::socket::{CloseFrame, Received, WebSocket};
use crate::message::Deadline;
use crate::proto::ws::violation::{Violation, code};

/// How long the peer may take to answer a close, in milliseconds.
pub(super) const CLOSE_TIME: u64 = 5_000;

/// How long a peer that broke a rule is read from, so that it gets to see what it is told.
const LINGER: u64 = 1_000;

/// The longest reason of a close, in bytes (RFC 6455 section 5.5.1).
const LONGEST_REASON: usize = 123;

impl WebSocket<'_> {
    /// Puts a close frame to what is written next, unless there was one.
    pub(super) fn begin_close(&mut self, code: u16, reason: &str) {
        let session = &mut *self.session;
        let code = if code::may_be_sent(code) {
            code
        } else {
            code::NORMAL
        };
        if !session.closing.may_talk() || !session.closing.send(Some(code)) {
            return;
        }
        let end = reason.floor_char_boundary(LONGEST_REASON.min(reason.len()));
        // Code and reason were made to fit.
        let _ = session
            .encoder
            .close(Some(code), &reason[..end], session.out.tail());
        session.close_by = Deadline::at(self.host.now() + CLOSE_TIME);
        session.outbox.shut();
    }

    /// Tells a peer that broke a rule, as far as that goes without waiting for long.
    pub(super) fn break_off(&mut self, violation: Violation) -> SocketError {
        let session = &mut *self.session;
        if let Some(code) = session.closing.fail(violation) {
            // The words are short, and the code is one that may be sent.
            let _ = session
                .encoder
                .close(Some(code), violation.reason(), session.out.tail());
        }
        let by = Deadline::at(self.host.now() + LINGER);
        while let Ok(false) = self.try_write() {
            if self.io.wait(by).is_err() {
                break;
            }
        }
        // Where this fails the peer is gone already.
        let _ = self.io.close_write();
        self.fail(violation.into())
    }

    pub(super) fn lose(&mut self, error: io::Error) -> SocketError {
        self.fail(SocketError::Lost(error))
    }

    /// Notes that the socket cannot be used any more.
    pub(super) fn fail(&mut self, error: SocketError) -> SocketError {
        let again = error.again();
        let session = &mut *self.session;
        session.failed.get_or_insert(error);
        session.closed.get_or_insert_with(|| CloseFrame {
            code: code::ABNORMAL,
            reason: String::new(),
        });
        session.outbox.shut();
        again
    }

    /// Ends the socket once its function has returned: closes it, if need be, and waits for the peer's close.
    pub(super) fn finish(&mut self, code: u16, reason: &str) {
        if self.session.failed.is_none() {
            // Behind what was put in before the function returned.
            self.session.outbox.ask_to_close(code, reason);
            while matches!(self.next(Deadline::NEVER), Ok(received) if received != Received::Closed)
            {
            }
        }
        // Where the connection failed there is nothing left to tell.
        let _ = self.io.close_write();
        if matches!(self.session.failed, Some(SocketError::Broken { .. })) {
            self.linger();
        }
    }

    /// Reads on for a while: closing a socket with unread bytes in it would destroy the close frame on its way.
    fn linger(&mut self) {
        let by = Deadline::at(self.host.now() + LINGER);
        if self.input.is_empty() {
            self.input = buffers::take();
        }
        while !by.has_passed(self.host.now()) {
            match self.io.read(&mut self.input) {
                Ok(0) => return,
                Ok(_) => self.io.yield_turn(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.io.wait(by).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
}
