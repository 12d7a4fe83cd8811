//! How does a handler talk over a WebSocket?
//!
//! One coroutine owns the socket. It reads, hands messages out, answers pings, takes from the outbox what others have
//! put there, and writes, all of it between two waits; so no lock is held over a wait, and control frames never come
//! between the parts of another frame.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use super::buffers;
use super::error::SocketError;
use super::message::{COMPRESSED_HERE, Load, Message, frame};
use super::outbox::SocketSender;
use super::session::Session;
use super::upgrade::millis;
use crate::message::{Deadline, Duplex, Host, Upgraded};
use crate::net::home;
use crate::proto::ws::close::Next;
use crate::proto::ws::decode::Event;
use crate::proto::ws::encode::Encoder;
use crate::proto::ws::violation::code;

/// How many messages are handed out before others on the worker get a turn.
const MESSAGES_A_TURN: u32 = 64;

/// How many bytes are gathered before they are written, and the most of what may be gathered of answers to pings.
const OUTPUT_ENOUGH: usize = 64 << 10;

/// From how many bytes on a frame that others have put in is written from where it lies.
const LARGE: usize = 16 << 10;

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

/// An open WebSocket, as the function has it that was given to
/// [`WebSocketUpgrade::accept`](super::WebSocketUpgrade::accept).
///
/// Its calls look blocking; while they wait, the thread serves others. While a function waits in them, pings are
/// answered and what [`SocketSender`]s have sent goes out; a function that has something else to wait for should give
/// a sender to whoever has something to say, or wait by [`WebSocket::recv_timeout`].
pub struct WebSocket<'conn> {
    pub(super) session: &'conn mut Session,
    pub(super) io: &'conn mut dyn Duplex,
    pub(super) leftover: &'conn mut Vec<u8>,
    pub(super) host: &'conn dyn Host,
    /// What was read and not decoded yet.
    pub(super) input: Vec<u8>,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) in_turn: u32,
}

impl<'conn> WebSocket<'conn> {
    pub(super) fn over<'a>(
        session: &'a mut Session,
        connection: &'a mut Upgraded<'_>,
    ) -> WebSocket<'a> {
        WebSocket {
            session,
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
        let until = self.host.now().saturating_add(millis(limit));
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
        if !self.session.closing.may_talk() {
            return Err(SocketError::Closed);
        }
        self.put(message.into());
        let session = &mut *self.session;
        session.message_at = self.host.now();
        if session.out.len() >= OUTPUT_ENOUGH {
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
        if !self.session.closing.may_talk() {
            return Err(SocketError::Closed);
        }
        let bytes = &bytes[..bytes.len().min(125)];
        // It is short enough.
        let _ = self.session.encoder.ping(bytes, self.session.out.tail());
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
        self.session.outbox.ask_to_close(code, reason);
        while self.session.closing.may_talk() {
            self.take_from_outbox();
            self.flush()?;
        }
        self.flush()
    }

    /// Sends to this socket from elsewhere.
    pub fn sender(&self) -> SocketSender {
        self.session.sender()
    }

    /// The subprotocol that was agreed on.
    pub fn protocol(&self) -> Option<&str> {
        self.session.protocol.as_deref()
    }

    /// How the peer has closed the socket, once it has.
    pub fn closed(&self) -> Option<&CloseFrame> {
        self.session.closed.as_ref()
    }

    fn check(&self) -> Result<(), SocketError> {
        match &self.session.failed {
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
            if matches!(self.session.closing.next(), Next::End | Next::AwaitEnd) {
                self.flush()?;
                return Ok(Received::Closed);
            }
            if self.session.out.len() < OUTPUT_ENOUGH && self.read()? {
                continue;
            }
            if self.session.out.is_empty() && self.session.outbox.has_work() {
                // More than was taken at once: nobody will say so again.
                self.take_turn(8);
                continue;
            }
            if until.has_passed(self.host.now()) {
                return Ok(Received::Nothing);
            }
            self.wait(until.min(self.session.due()))?;
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
            let session = &mut *self.session;
            let step = match session
                .decoder
                .decode(&mut self.input[self.start..self.end])
            {
                Ok(step) => step,
                Err(violation) => return Err(self.break_off(violation)),
            };
            self.start += step.consumed;
            match step.event {
                None => {}
                Some(Event::Text(text)) => {
                    session.message_at = self.host.now();
                    return Ok(Some(Message::Text(text.into_owned())));
                }
                Some(Event::Binary(bytes)) => {
                    session.message_at = self.host.now();
                    return Ok(Some(Message::Binary(bytes.into_owned().into())));
                }
                Some(Event::Ping(bytes)) => {
                    if session.closing.may_talk() {
                        // It was no longer than this when it came.
                        let _ = session.encoder.pong(&bytes, session.out.tail());
                    }
                    if session.out.len() >= OUTPUT_ENOUGH {
                        self.flush()?;
                    }
                }
                Some(Event::Pong(_)) => {}
                Some(Event::Close { code, reason }) => {
                    session.closing.receive(code);
                    session.closed = Some(CloseFrame {
                        code: session.closing.code(),
                        reason: reason.into_owned(),
                    });
                    session.outbox.shut();
                    if let Next::Answer(code) = session.closing.next() {
                        // The code has come, so it may be sent.
                        let _ = session.encoder.close(code, "", session.out.tail());
                        let _ = session.closing.send(code);
                        session.close_by =
                            Deadline::at(self.host.now() + super::ending::CLOSE_TIME);
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
                    self.session.heard = self.host.now();
                    self.session.misses = 0;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lose(error)),
            }
        }
    }

    /// Puts a message to what is written next.
    fn put(&mut self, message: Message) {
        let session = &mut *self.session;
        if message.len() < COMPRESSED_HERE || !session.encoder.compresses(message.len()) {
            return message.encode(&mut session.encoder, session.out.tail());
        }
        let mut encoder = std::mem::replace(&mut session.encoder, Encoder::server());
        let (encoder, frame) = home::computing(move || {
            let frame = frame(&message, &mut encoder);
            (encoder, frame)
        });
        let session = &mut *self.session;
        session.encoder = encoder;
        session.out.tail().extend_from_slice(&frame);
    }

    /// Takes what others want sent, once what was taken before is out.
    pub(super) fn take_from_outbox(&mut self) {
        let session = &mut *self.session;
        if !session.out.is_empty() || !session.outbox.has_work() {
            return;
        }
        let taken = session.outbox.take(OUTPUT_ENOUGH);
        session.out.cost = taken.cost;
        if !session.closing.may_talk() {
            return;
        }
        let mut skip = taken.skip;
        for load in taken.loads {
            let out = &mut self.session.out;
            match load {
                Load::Frame(frame) if frame.len() - skip >= LARGE && out.large.is_none() => {
                    out.large = Some((frame, skip));
                }
                Load::Frame(frame) => out.tail().extend_from_slice(&frame[skip..]),
                Load::Message(message) => {
                    let message = Arc::unwrap_or_clone(message);
                    self.put(message);
                }
            }
            skip = 0;
        }
        if let Some(close) = taken.close {
            self.begin_close(close.code, &close.reason);
        }
    }

    /// Writes what can be written now; says whether that is all.
    pub(super) fn try_write(&mut self) -> Result<bool, SocketError> {
        while !self.session.out.is_empty() {
            match self.io.write(self.session.out.piece()) {
                Ok(count) => {
                    self.session.out.written(count);
                    if let Some(pace) = &mut self.session.out.pace
                        && pace.moved(count, OUTPUT_ENOUGH * 8)
                    {
                        self.io.yield_turn();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let host = self.host;
                    self.session.out.pace.get_or_insert_with(|| host.pace());
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lose(error)),
            }
        }
        let out = &mut self.session.out;
        out.pace = None;
        if out.cost > 0 {
            self.session.outbox.sent(std::mem::take(&mut out.cost));
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
        if self.session.out.is_empty() {
            self.session.out.bytes = Vec::new();
        }
        let began = self.host.now();
        let stalled = match &self.session.out.pace {
            Some(pace) => pace.deadline(began),
            None => Deadline::NEVER,
        };
        // A compressor takes much more than a socket else; who has been quiet for a while needs none.
        let quiet = if self.session.can_shrink() {
            Deadline::after(began, self.host.patience())
        } else {
            Deadline::NEVER
        };
        let writes = !self.session.out.is_empty() || !self.session.closing.may_talk();
        if !writes && !self.session.rest() {
            return Ok(());
        }
        let outcome = self.io.wait(until.min(stalled).min(quiet));
        if !writes {
            self.session.outbox.resume();
        }
        let now = self.host.now();
        if let Some(pace) = &mut self.session.out.pace {
            pace.waited(now - began);
        }
        match outcome {
            Ok(()) => Ok(()),
            Err(error) if error.kind() != ErrorKind::TimedOut => Err(self.lose(error)),
            Err(_) if stalled.has_passed(now) => Err(self.fail(SocketError::TooSlow)),
            Err(_) => {
                if quiet.has_passed(now) {
                    self.session.shrink();
                }
                Ok(())
            }
        }
    }

    /// Does what is due by the clock, and closes when the server stops.
    fn look_at_the_time(&mut self) -> Result<(), SocketError> {
        let now = self.host.now();
        if self.session.close_by.has_passed(now) {
            return Err(self.lose(ErrorKind::TimedOut.into()));
        }
        if !self.session.closing.may_talk() {
            return Ok(());
        }
        if self.host.is_stopping() {
            self.begin_close(code::GOING_AWAY, "the server stops");
            return Ok(());
        }
        let session = &mut *self.session;
        if session.next_ping().has_passed(now) {
            if session.misses == MISSES {
                return Err(self.fail(SocketError::Unresponsive));
            }
            session.misses += 1;
            // Nothing is short enough.
            let _ = session.encoder.ping(b"", session.out.tail());
        }
        if session.idle_at().has_passed(now) && session.outbox.count() != session.seen {
            // Messages of others went past this coroutine: they are noticed only now.
            session.seen = session.outbox.count();
            session.message_at = now;
        }
        if session.idle_at().has_passed(now) {
            self.begin_close(code::GOING_AWAY, "no message for too long");
        }
        Ok(())
    }

    /// What the socket keeps.
    pub(super) fn session(&mut self) -> &mut Session {
        self.session
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
            .field("id", &self.session.outbox.id)
            .field("protocol", &self.session.protocol)
            .field("closed", &self.session.closed)
            .finish_non_exhaustive()
    }
}
