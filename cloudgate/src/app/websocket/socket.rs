//! How does a handler talk over a WebSocket?
//!
//! One coroutine owns the socket. It reads, hands messages out, answers pings, takes from the outbox what others have
//! put there, and writes, all of it between two waits; so no lock is held over a wait, and control frames never come
//! between the parts of another frame.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::buffers;
use super::error::SocketError;
use super::message::{Compresses, Load, Message};
use super::outbox::{Outbox, SocketSender};
use super::upgrade::Rules;
use crate::message::{Deadline, Duplex, Host, Pace, Upgraded};
use crate::proto::ws::Role;
use crate::proto::ws::close::{Closing, Next};
use crate::proto::ws::decode::{Decoder, Event};
use crate::proto::ws::encode::Encoder;
use crate::proto::ws::extension::Agreed;
use crate::proto::ws::violation::{Violation, code};

/// How many messages are handed out before others on the worker get a turn.
const MESSAGES_A_TURN: u32 = 64;

/// How many bytes are gathered before they are written, and the most of what may be gathered of answers to pings.
const OUTPUT_ENOUGH: usize = 64 << 10;

/// From how many bytes on a frame that others have put in is written from where it lies.
const LARGE: usize = 16 << 10;

/// How long the peer may take to answer a close, in milliseconds.
const CLOSE_TIME: u64 = 5_000;

/// How long a peer that broke a rule is read from, so that it gets to see what it is told.
const LINGER: u64 = 1_000;

/// The longest reason of a close, in bytes (RFC 6455 section 5.5.1).
const LONGEST_REASON: usize = 123;

/// How many pings may go unanswered.
const MISSES: u64 = 2;

/// How a WebSocket has ended, as its peer put it (RFC 6455 section 7.1.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseFrame {
    /// The code: 1005 where the peer gave none, 1006 where the connection was lost.
    pub code: u16,
    /// The reason, often empty.
    pub reason: String,
}

/// What [`WebSocket::recv_timeout`] has got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Message),
    /// Nothing, in the time that there was.
    Nothing,
    /// The socket is closed.
    Closed,
}

/// What a socket keeps while it is parked.
pub(super) struct Core {
    decoder: Decoder,
    encoder: Encoder,
    closing: Closing,
    pub(super) outbox: Arc<Outbox>,
    rules: Arc<Rules>,
    protocol: Option<String>,
    out: Output,
    /// When something came last, and how many pings went out since.
    heard: u64,
    misses: u64,
    /// When the last message came or went.
    message_at: u64,
    /// How many messages of others were seen in the outbox.
    seen: u64,
    /// Until when a close is waited for.
    close_by: Deadline,
    closed: Option<CloseFrame>,
    failed: Option<SocketError>,
}

/// What is to be written next.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    at: usize,
    /// A large frame behind it, how much of that is written, and what goes behind that.
    large: Option<(Bytes, usize)>,
    behind: Vec<u8>,
    /// What it costs the outbox.
    cost: usize,
    /// The time that the peer still has, once it was waited for.
    pace: Option<Pace>,
}

impl Output {
    fn is_empty(&self) -> bool {
        self.at == self.bytes.len() && self.large.is_none()
    }

    fn len(&self) -> usize {
        let large = self
            .large
            .as_ref()
            .map_or(0, |(bytes, at)| bytes.len() - at);
        self.bytes.len() - self.at + large + self.behind.len()
    }

    /// Where more goes.
    fn tail(&mut self) -> &mut Vec<u8> {
        if self.large.is_some() {
            &mut self.behind
        } else {
            &mut self.bytes
        }
    }

    /// What is to be written next; empty where there is nothing.
    fn piece(&self) -> &[u8] {
        match &self.large {
            Some((bytes, at)) if self.at == self.bytes.len() => &bytes[*at..],
            _ => &self.bytes[self.at..],
        }
    }

    fn written(&mut self, count: usize) {
        if self.at < self.bytes.len() {
            self.at += count;
        } else if let Some((bytes, at)) = &mut self.large {
            *at += count;
            if *at == bytes.len() {
                self.large = None;
                std::mem::swap(&mut self.bytes, &mut self.behind);
                self.behind.clear();
                self.at = 0;
                return;
            }
        }
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
    }
}

impl Core {
    pub(super) fn new(
        host: &dyn Host,
        rules: &Arc<Rules>,
        agreed: Option<Agreed>,
        protocol: Option<String>,
    ) -> Core {
        let compresses = agreed.map(|agreed| Compresses {
            coding: agreed.sends(Role::Server),
            how: rules.compressing(),
        });
        let encoder = match compresses {
            Some(how) => Encoder::server().compress(how.coding, how.how),
            None => Encoder::server(),
        };
        let inflate = agreed.map(|agreed| agreed.receives(Role::Server));
        let now = host.now();
        Core {
            decoder: Decoder::new(Role::Server, rules.limits, inflate),
            encoder,
            closing: Closing::new(Role::Server),
            outbox: Outbox::new(
                Arc::clone(host.tie()),
                compresses,
                rules.outbox,
                rules.slow_receiver,
            ),
            rules: Arc::clone(rules),
            protocol,
            out: Output::default(),
            heard: now,
            misses: 0,
            message_at: now,
            seen: 0,
            close_by: Deadline::NEVER,
            closed: None,
            failed: None,
        }
    }

    /// When something is to be done although nothing comes.
    pub(super) fn due(&self) -> Deadline {
        let ping = match self.rules.heartbeat {
            0 => Deadline::NEVER,
            every => Deadline::at(self.heard + every * (self.misses + 1)),
        };
        let idle = Deadline::after(self.message_at, self.rules.idle);
        ping.min(idle).min(self.close_by)
    }

    /// Whether it can do without a coroutine.
    pub(super) fn is_at_rest(&self) -> bool {
        self.out.is_empty() && self.closing.may_talk() && !self.outbox.has_work()
    }

    /// What reaches the socket from elsewhere.
    pub(super) fn sender(&self) -> SocketSender {
        SocketSender(Arc::clone(&self.outbox))
    }

    /// How the socket has ended.
    pub(super) fn close_frame(&self) -> CloseFrame {
        self.closed.clone().unwrap_or_else(|| CloseFrame {
            code: code::ABNORMAL,
            reason: String::new(),
        })
    }

    /// Gives back what is not needed while nothing comes.
    pub(super) fn shrink(&mut self) {
        self.decoder.shrink();
        self.encoder.shrink();
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.outbox.end();
    }
}

/// An open WebSocket, as the function has it that was given to
/// [`WebSocketUpgrade::accept`](super::WebSocketUpgrade::accept).
///
/// Its calls look blocking; while they wait, the thread serves others. While a function waits in them, pings are
/// answered and what [`SocketSender`]s have sent goes out; a function that has something else to wait for should give
/// a sender to whoever has something to say, or wait by [`WebSocket::recv_timeout`].
pub struct WebSocket<'conn> {
    core: &'conn mut Core,
    io: &'conn mut dyn Duplex,
    leftover: &'conn mut Vec<u8>,
    host: &'conn dyn Host,
    /// What was read and not decoded yet.
    input: Vec<u8>,
    start: usize,
    end: usize,
    in_turn: u32,
}

impl<'conn> WebSocket<'conn> {
    pub(super) fn over<'a>(core: &'a mut Core, connection: &'a mut Upgraded<'_>) -> WebSocket<'a> {
        WebSocket {
            core,
            io: &mut *connection.io,
            leftover: &mut *connection.leftover,
            host: connection.host,
            input: Vec::new(),
            start: 0,
            end: 0,
            in_turn: 0,
        }
    }

    /// Waits for the next message; `None` when the socket is closed, by whomever ([`WebSocket::closed`]).
    ///
    /// # Errors
    /// When the connection is lost, the peer breaks a rule or a limit, or answers no pings.
    pub fn recv(&mut self) -> Result<Option<Message>, SocketError> {
        loop {
            match self.next(Deadline::NEVER)? {
                Received::Message(message) => return Ok(Some(message)),
                Received::Closed => return Ok(None),
                Received::Nothing => {}
            }
        }
    }

    /// As [`WebSocket::recv`], for no longer than `limit`, which is kept to within 50 milliseconds.
    ///
    /// # Errors
    /// As [`WebSocket::recv`].
    pub fn recv_timeout(&mut self, limit: Duration) -> Result<Received, SocketError> {
        let until = self.host.now().saturating_add(limit.as_millis() as u64);
        self.next(Deadline::at(until))
    }

    /// Sends a message, and waits until the system has all of it.
    ///
    /// # Errors
    /// [`SocketError::Closed`] when the socket is closed, others when the peer reads too slowly or the connection is
    /// lost.
    pub fn send(&mut self, message: impl Into<Message>) -> Result<(), SocketError> {
        self.feed(message)?;
        self.flush()
    }

    /// Puts a message to what is sent next: by the next [`WebSocket::send`], [`WebSocket::flush`] or
    /// [`WebSocket::recv`], or once 64 KiB have gathered. Many small messages cost less that way.
    ///
    /// # Errors
    /// As [`WebSocket::send`].
    pub fn feed(&mut self, message: impl Into<Message>) -> Result<(), SocketError> {
        self.check()?;
        if !self.core.closing.may_talk() {
            return Err(SocketError::Closed);
        }
        let message = message.into();
        let core = &mut *self.core;
        message.encode(&mut core.encoder, core.out.tail());
        core.message_at = self.host.now();
        if core.out.len() >= OUTPUT_ENOUGH {
            self.flush()?;
        }
        Ok(())
    }

    /// Waits until the system has all that was sent.
    ///
    /// # Errors
    /// As [`WebSocket::send`].
    pub fn flush(&mut self) -> Result<(), SocketError> {
        while !self.try_write()? {
            self.wait(Deadline::NEVER)?;
        }
        Ok(())
    }

    /// Sends a ping of at most 125 bytes, more are cut; the pong that answers it shows in no way but that the peer is
    /// there. Pings are sent anyway when nothing comes ([`WebSocketUpgrade::heartbeat`](super::WebSocketUpgrade::heartbeat)).
    ///
    /// # Errors
    /// As [`WebSocket::send`].
    pub fn ping(&mut self, bytes: &[u8]) -> Result<(), SocketError> {
        self.check()?;
        if !self.core.closing.may_talk() {
            return Err(SocketError::Closed);
        }
        let bytes = &bytes[..bytes.len().min(125)];
        // It is short enough.
        let _ = self.core.encoder.ping(bytes, self.core.out.tail());
        self.flush()
    }

    /// Closes the socket with a code of 1000, 1001, 1003, 1007 to 1014 or 3000 to 4999, and a reason of at most 123 bytes;
    /// another code becomes 1000, and a longer reason is cut. What the peer has sent before it
    /// closes too can still be received.
    ///
    /// A function need not call this: when it returns, the socket is closed with 1000.
    ///
    /// # Errors
    /// As [`WebSocket::send`]; a socket that is closed already is none.
    pub fn close(&mut self, code: u16, reason: &str) -> Result<(), SocketError> {
        self.check()?;
        self.begin_close(code, reason);
        self.flush()
    }

    /// Sends to this socket from elsewhere.
    pub fn sender(&self) -> SocketSender {
        self.core.sender()
    }

    /// The subprotocol that was agreed on.
    pub fn protocol(&self) -> Option<&str> {
        self.core.protocol.as_deref()
    }

    /// How the peer has closed the socket, once it has.
    pub fn closed(&self) -> Option<&CloseFrame> {
        self.core.closed.as_ref()
    }

    fn check(&self) -> Result<(), SocketError> {
        match &self.core.failed {
            Some(error) => Err(error.again()),
            None => Ok(()),
        }
    }

    /// The next message, up to a point.
    pub(super) fn next(&mut self, until: Deadline) -> Result<Received, SocketError> {
        loop {
            self.check()?;
            if let Some(message) = self.decode()? {
                self.take_turn(1);
                return Ok(Received::Message(message));
            }
            self.take_from_outbox();
            self.look_at_the_time()?;
            self.try_write()?;
            if matches!(self.core.closing.next(), Next::End | Next::AwaitEnd) {
                self.flush()?;
                return Ok(Received::Closed);
            }
            if self.core.out.len() < OUTPUT_ENOUGH && self.read()? {
                continue;
            }
            if self.core.out.is_empty() && self.core.outbox.has_work() {
                // More than was taken at once: nobody will say so again.
                self.take_turn(8);
                continue;
            }
            if until.has_passed(self.host.now()) {
                return Ok(Received::Nothing);
            }
            self.wait(until)?;
        }
    }

    /// Notes work that is worth so many messages, and lets others on the worker have a turn after a while.
    fn take_turn(&mut self, messages: u32) {
        self.in_turn += messages;
        if self.in_turn >= MESSAGES_A_TURN {
            self.in_turn = 0;
            self.io.yield_turn();
        }
    }

    /// Decodes up to the next message.
    fn decode(&mut self) -> Result<Option<Message>, SocketError> {
        if self.start == self.end && !self.leftover.is_empty() {
            buffers::give_back(std::mem::take(&mut self.input));
            self.input = std::mem::take(self.leftover);
            (self.start, self.end) = (0, self.input.len());
        }
        while self.start < self.end {
            let core = &mut *self.core;
            let step = match core.decoder.decode(&mut self.input[self.start..self.end]) {
                Ok(step) => step,
                Err(violation) => return Err(self.break_off(violation)),
            };
            self.start += step.consumed;
            match step.event {
                None => {}
                Some(Event::Text(text)) => {
                    core.message_at = self.host.now();
                    return Ok(Some(Message::Text(text.into_owned())));
                }
                Some(Event::Binary(bytes)) => {
                    core.message_at = self.host.now();
                    return Ok(Some(Message::Binary(bytes.into_owned().into())));
                }
                Some(Event::Ping(bytes)) => {
                    if core.closing.may_talk() {
                        // It was no longer than this when it came.
                        let _ = core.encoder.pong(&bytes, core.out.tail());
                    }
                    if core.out.len() >= OUTPUT_ENOUGH {
                        self.flush()?;
                    }
                }
                Some(Event::Pong(_)) => {}
                Some(Event::Close { code, reason }) => {
                    core.closing.receive(code);
                    core.closed = Some(CloseFrame {
                        code: core.closing.code(),
                        reason: reason.into_owned(),
                    });
                    core.outbox.shut();
                    if let Next::Answer(code) = core.closing.next() {
                        // The code has come, so it may be sent.
                        let _ = core.encoder.close(code, "", core.out.tail());
                        let _ = core.closing.send(code);
                        core.close_by = Deadline::at(self.host.now() + CLOSE_TIME);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Reads once; says whether something came.
    fn read(&mut self) -> Result<bool, SocketError> {
        if self.input.is_empty() {
            self.input = buffers::take();
        }
        loop {
            match self.io.read(&mut self.input) {
                Ok(0) => return Err(self.lose(ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    (self.start, self.end) = (0, count);
                    self.core.heard = self.host.now();
                    self.core.misses = 0;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lose(error)),
            }
        }
    }

    /// Takes what others want sent, once what was taken before is out.
    fn take_from_outbox(&mut self) {
        let core = &mut *self.core;
        if !core.out.is_empty() || !core.outbox.has_work() {
            return;
        }
        let taken = core.outbox.take(OUTPUT_ENOUGH);
        core.out.cost = taken.cost;
        if taken.count != core.seen {
            core.seen = taken.count;
            core.message_at = self.host.now();
        }
        if !core.closing.may_talk() {
            return;
        }
        let mut skip = taken.skip;
        for load in taken.loads {
            match load {
                Load::Frame(frame) if frame.len() - skip >= LARGE && core.out.large.is_none() => {
                    core.out.large = Some((frame, skip));
                }
                Load::Frame(frame) => core.out.tail().extend_from_slice(&frame[skip..]),
                Load::Message(message) => message.encode(&mut core.encoder, core.out.tail()),
            }
            skip = 0;
        }
        if let Some(close) = taken.close {
            self.begin_close(close.code, &close.reason);
        }
    }

    /// Writes what can be written now; says whether that is all.
    fn try_write(&mut self) -> Result<bool, SocketError> {
        while !self.core.out.is_empty() {
            match self.io.write(self.core.out.piece()) {
                Ok(count) => {
                    self.core.out.written(count);
                    if let Some(pace) = &mut self.core.out.pace
                        && pace.moved(count, OUTPUT_ENOUGH * 8)
                    {
                        self.io.yield_turn();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let host = self.host;
                    self.core.out.pace.get_or_insert_with(|| host.pace());
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lose(error)),
            }
        }
        let out = &mut self.core.out;
        out.pace = None;
        if out.cost > 0 {
            self.core.outbox.sent(std::mem::take(&mut out.cost));
        }
        Ok(true)
    }

    /// Waits until something can be done, at most until `until`.
    fn wait(&mut self, until: Deadline) -> Result<(), SocketError> {
        self.in_turn = 0;
        if self.start == self.end {
            buffers::give_back(std::mem::take(&mut self.input));
            (self.start, self.end) = (0, 0);
        }
        if self.core.out.is_empty() {
            buffers::give_back(std::mem::take(self.core.out.tail()));
        }
        let began = self.host.now();
        let due = until.min(self.core.due());
        let stalled = match &self.core.out.pace {
            Some(pace) => pace.deadline(began),
            None => Deadline::NEVER,
        };
        let outcome = self.io.wait(due.min(stalled));
        let now = self.host.now();
        if let Some(pace) = &mut self.core.out.pace {
            pace.waited(now - began);
        }
        match outcome {
            Ok(()) => Ok(()),
            Err(error) if error.kind() != ErrorKind::TimedOut => Err(self.lose(error)),
            Err(_) if stalled.has_passed(now) => Err(self.fail(SocketError::TooSlow)),
            Err(_) => Ok(()),
        }
    }

    /// Does what is due by the clock, and closes when the server stops.
    fn look_at_the_time(&mut self) -> Result<(), SocketError> {
        let now = self.host.now();
        if self.core.close_by.has_passed(now) {
            return Err(self.lose(ErrorKind::TimedOut.into()));
        }
        if !self.core.closing.may_talk() {
            return Ok(());
        }
        if self.host.is_stopping() {
            self.begin_close(code::GOING_AWAY, "the server stops");
            return Ok(());
        }
        let core = &mut *self.core;
        let every = core.rules.heartbeat;
        if every > 0 && now >= core.heard + every * (core.misses + 1) {
            if core.misses == MISSES {
                return Err(self.fail(SocketError::Unresponsive));
            }
            core.misses += 1;
            // Nothing is short enough.
            let _ = core.encoder.ping(b"", core.out.tail());
        }
        if Deadline::after(core.message_at, core.rules.idle).has_passed(now) {
            self.begin_close(code::GOING_AWAY, "no message for too long");
        }
        Ok(())
    }

    /// Puts a close frame to what is written next, unless there was one.
    fn begin_close(&mut self, code: u16, reason: &str) {
        let core = &mut *self.core;
        let code = if code::may_be_sent(code) {
            code
        } else {
            code::NORMAL
        };
        if !core.closing.may_talk() || !core.closing.send(Some(code)) {
            return;
        }
        let end = reason.floor_char_boundary(LONGEST_REASON.min(reason.len()));
        // Code and reason were made to fit.
        let _ = core
            .encoder
            .close(Some(code), &reason[..end], core.out.tail());
        core.close_by = Deadline::at(self.host.now() + CLOSE_TIME);
        core.outbox.shut();
    }

    /// Tells a peer that broke a rule, as far as that goes without waiting for long.
    fn break_off(&mut self, violation: Violation) -> SocketError {
        let core = &mut *self.core;
        if let Some(code) = core.closing.fail(violation) {
            // The words are short, and the code is one that may be sent.
            let _ = core
                .encoder
                .close(Some(code), violation.reason(), core.out.tail());
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

    fn lose(&mut self, error: io::Error) -> SocketError {
        self.fail(SocketError::Lost(error))
    }

    /// Notes that the socket cannot be used any more.
    fn fail(&mut self, error: SocketError) -> SocketError {
        let again = error.again();
        let core = &mut *self.core;
        core.failed.get_or_insert(error);
        core.closed.get_or_insert_with(|| CloseFrame {
            code: code::ABNORMAL,
            reason: String::new(),
        });
        core.outbox.shut();
        again
    }

    /// Ends the socket once its function has returned: closes it, if need be, and waits for the peer's close.
    pub(super) fn finish(&mut self, code: u16, reason: &str) {
        // What was put in before the function returned goes out first.
        while self.core.closing.may_talk() && self.core.failed.is_none() {
            self.take_from_outbox();
            if self.core.out.is_empty() || self.flush().is_err() {
                break;
            }
        }
        if self.core.failed.is_none() {
            self.begin_close(code, reason);
            while matches!(self.next(Deadline::NEVER), Ok(received) if received != Received::Closed)
            {
            }
        }
        // Where the connection failed there is nothing left to tell.
        let _ = self.io.close_write();
        if matches!(self.core.failed, Some(SocketError::Broken { .. })) {
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

    /// What the socket keeps.
    pub(super) fn core(&mut self) -> &mut Core {
        self.core
    }

    /// Where the clock stands.
    pub(super) fn host(&self) -> &'conn dyn Host {
        self.host
    }
}

impl Drop for WebSocket<'_> {
    fn drop(&mut self) {
        buffers::give_back(std::mem::take(&mut self.input));
    }
}

impl fmt::Debug for WebSocket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket")
            .field("id", &self.core.outbox.id)
            .field("protocol", &self.core.protocol)
            .field("closed", &self.core.closed)
            .finish_non_exhaustive()
    }
}
