//! How does one request go to one server, and the head of its answer come back?
//!
//! ```text
//!  head and what there is of the body ─▶ rest of the body, while nothing comes back ─▶ 1xx … ─▶ head of the answer
//! ```
//!
//! A server may answer before it has all of the request. Then the rest of that is not sent, and the connection not used
//! again.

use std::io::{self, ErrorKind, IoSlice};

use http::StatusCode;

use super::error::{Cause, Failure, Phase, UpstreamError};
use super::health::milliseconds;
use super::link::{Buffers, Link, fill};
use super::rewrite::OutboundLength;
use super::settings::Times;
use crate::message::{Deadline, Duplex, Headers, Request};
use crate::net::dial::Dialer;
use crate::proto::h1::{ResponseFraming, ResponseHead, encode, parse_response};
use crate::proto::limits::Limits;

/// How much of a request's body is kept so that it can be sent once more, in bytes.
const MOST_KEPT: usize = 64 << 10;

/// How much of a request's body is read at once, in bytes.
const PIECE: usize = 32 << 10;

/// For how long a client is waited for before it is looked whether the server has answered, in milliseconds.
const LOOK: u64 = 250;

/// How often it is looked whether the client still waits, in milliseconds.
pub(crate) const TICK: u64 = 1000;

/// For how long a server is waited for that may want to see the head before the body, in milliseconds (RFC 9110 section
/// 10.1.1: not for ever, for it may not know the expectation).
const CONTINUE: u64 = 1000;

/// The most answers in front of the final one.
const MOST_INTERIM: usize = 16;

/// What servers may send in a head.
const LIMITS: Limits = Limits::DEFAULT;

/// The body of a request on its way to servers, of which more than one may have to be tried.
pub(crate) struct Upload {
    pub(crate) length: OutboundLength,
    /// What was read of it, as long as that is all.
    kept: Vec<u8>,
    /// Whether what was read cannot be sent once more.
    lost: bool,
    ended: bool,
    /// How many bytes were read of it.
    read: u64,
}

impl Upload {
    pub(crate) fn new(length: OutboundLength) -> Upload {
        Upload {
            length,
            kept: Vec::new(),
            lost: false,
            ended: matches!(length, OutboundLength::None | OutboundLength::Sized(0)),
            read: 0,
        }
    }

    /// Whether it can be sent from its beginning.
    pub(crate) fn is_replayable(&self) -> bool {
        !self.lost
    }

    /// Whether nothing of it was read yet although there is something.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.ended && !self.lost && self.kept.is_empty()
    }

    fn note(&mut self, piece: &[u8]) {
        self.read += piece.len() as u64;
        if self.lost || self.kept.len() + piece.len() > MOST_KEPT {
            self.lost = true;
            self.kept = Vec::new();
        } else {
            self.kept.extend_from_slice(piece);
        }
    }
}

/// The head of an answer, and the connection that the rest comes by.
pub(crate) struct Answered {
    pub(crate) head: ResponseHead,
    pub(crate) framing: ResponseFraming,
    pub(crate) link: Link,
    pub(crate) buffers: Buffers,
    /// How many bytes of the request's body were read.
    pub(crate) uploaded: u64,
    /// Whether the server has got all of the request.
    pub(crate) complete: bool,
}

/// One request on one connection.
pub(crate) struct Exchange<'x, 'r, 'conn> {
    pub(crate) dialer: &'x Dialer,
    pub(crate) times: &'x Times,
    /// When the answer's head has to be there.
    pub(crate) until: Deadline,
    pub(crate) request: &'r mut Request<'conn>,
    pub(crate) link: Link,
    pub(crate) buffers: Buffers,
    sent: bool,
    interim: usize,
}

/// How far sending has come.
enum Sent {
    All,
    /// The answer's head is there already.
    Answered(ResponseHead),
}

impl<'x, 'r, 'conn> Exchange<'x, 'r, 'conn> {
    /// An exchange whose head is in the output.
    pub(crate) fn new(
        dialer: &'x Dialer,
        times: &'x Times,
        until: Deadline,
        request: &'r mut Request<'conn>,
        link: Link,
        buffers: Buffers,
    ) -> Exchange<'x, 'r, 'conn> {
        Exchange {
            dialer,
            times,
            until,
            request,
            link,
            buffers,
            sent: false,
            interim: 0,
        }
    }

    /// Sends the request and reads the head of the answer.
    ///
    /// # Errors
    /// [`Failure`]; the connection cannot be used again.
    pub(crate) fn run(
        mut self,
        upload: &mut Upload,
        asks_first: bool,
    ) -> Result<Answered, Failure> {
        let early = match self.send(upload, asks_first)? {
            Sent::All => None,
            Sent::Answered(head) => Some(head),
        };
        let complete = early.is_none();
        let head = match early {
            Some(head) => head,
            None => self.read_head()?,
        };
        let framing = ResponseFraming::of(&head, self.request.method())
            .map_err(|rule| self.failed(Phase::Head, Cause::Protocol(rule)))?;
        Ok(Answered {
            head,
            framing,
            link: self.link,
            buffers: self.buffers,
            uploaded: upload.read,
            complete,
        })
    }

    fn send(&mut self, upload: &mut Upload, asks_first: bool) -> Result<Sent, Failure> {
        if asks_first && upload.is_untouched() {
            if let Some(head) = self.write(&[])? {
                return Ok(Sent::Answered(head));
            }
            if let Some(head) = self.await_leave()? {
                return Ok(Sent::Answered(head));
            }
        }
        let chunked = upload.length == OutboundLength::Chunked;
        // What an earlier attempt has read.
        if !upload.kept.is_empty() {
            if chunked {
                encode::chunk(&mut self.buffers.output, &upload.kept);
            } else {
                self.buffers.output.extend_from_slice(&upload.kept);
            }
        }
        let mut piece = Vec::new();
        while !upload.ended {
            if piece.is_empty() {
                let most = match upload.length {
                    OutboundLength::Sized(length) => length.min(PIECE as u64) as usize,
                    _ => PIECE,
                };
                piece = vec![0; most];
            }
            // What is ready goes out before the client is waited for.
            let patience = if self.buffers.output.is_empty() {
                LOOK
            } else {
                0
            };
            let read = self.request.body().read_within(&mut piece, patience);
            let early = match read.map_err(Failure::Client)? {
                Some(0) => {
                    upload.ended = true;
                    None
                }
                Some(count) => {
                    upload.note(&piece[..count]);
                    self.pass_on(&piece[..count], chunked)?
                }
                None if patience == 0 => self.write(&[])?,
                None => {
                    self.check_time(Phase::Send)?;
                    self.look()?
                }
            };
            if let Some(head) = early {
                return Ok(Sent::Answered(head));
            }
        }
        if chunked {
            let none = Headers::new();
            let trailers = self.request.body().trailers();
            encode::last_chunk(&mut self.buffers.output, trailers.unwrap_or(&none));
        }
        Ok(match self.write(&[])? {
            Some(head) => Sent::Answered(head),
            None => Sent::All,
        })
    }

    /// Sends a piece of the body, or gathers it where it is small.
    fn pass_on(&mut self, piece: &[u8], chunked: bool) -> Result<Option<ResponseHead>, Failure> {
        let output = &mut self.buffers.output;
        if chunked {
            encode::chunk_start(output, piece.len());
        }
        if output.len() + piece.len() <= PIECE / 2 {
            output.extend_from_slice(piece);
            if chunked {
                output.extend_from_slice(b"\r\n");
            }
            return Ok(None);
        }
        let early = self.write(piece)?;
        if chunked {
            self.buffers.output.extend_from_slice(b"\r\n");
        }
        Ok(early)
    }

    /// Sends what is in the output, and `piece` behind it; gives the answer's head where that comes before all is sent.
    fn write(&mut self, piece: &[u8]) -> Result<Option<ResponseHead>, Failure> {
        let first = self.buffers.output.len();
        let total = first + piece.len();
        let mut at = 0;
        while at < total {
            let rest = &piece[at.saturating_sub(first)..];
            let written = if at >= first {
                self.link.stream.write(rest)
            } else {
                let output = &self.buffers.output[at..];
                match rest {
                    [] => self.link.stream.write(output),
                    rest => {
                        let both = [IoSlice::new(output), IoSlice::new(rest)];
                        self.link.stream.write_vectored(&both)
                    }
                }
            };
            match written {
                Ok(0) => return Err(self.io_failed(Phase::Send, ErrorKind::WriteZero.into())),
                Ok(count) => {
                    self.sent = true;
                    at += count;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if let Some(head) = self.look()? {
                        return Ok(Some(head));
                    }
                    self.wait(Phase::Send, self.idle())?;
                }
                // It may have said why it does not want more before it closed the connection.
                Err(error) => {
                    return match self.look() {
                        Ok(Some(head)) => Ok(Some(head)),
                        _ => Err(self.io_failed(Phase::Send, error)),
                    };
                }
            }
        }
        self.buffers.output.clear();
        Ok(None)
    }

    /// Waits a moment for the server to say that it wants the body.
    fn await_leave(&mut self) -> Result<Option<ResponseHead>, Failure> {
        let soon = Deadline::at(self.dialer.now().saturating_add(CONTINUE)).min(self.until);
        loop {
            let before = self.interim;
            if let Some(head) = self.look()? {
                return Ok(Some(head));
            }
            if self.interim > before {
                return Ok(None);
            }
            match self.link.stream.wait(soon) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(None),
                Err(error) => return Err(self.io_failed(Phase::FirstByte, error)),
            }
        }
    }

    /// Reads what has come from the server, without waiting; gives the head of the final answer.
    fn look(&mut self) -> Result<Option<ResponseHead>, Failure> {
        self.link.stream.look_again();
        match fill(
            &mut self.buffers.input,
            &mut self.link.stream,
            LIMITS.head + 1,
        ) {
            Ok(_) => self.parse(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(self.io_failed(Phase::Send, error)),
        }
    }

    /// Reads the head of the final answer.
    fn read_head(&mut self) -> Result<ResponseHead, Failure> {
        let first_byte = match milliseconds(self.times.first_byte) {
            0 => self.until,
            limit => Deadline::after(self.dialer.now(), limit).min(self.until),
        };
        if let Some(head) = self.parse()? {
            return Ok(head);
        }
        loop {
            let phase = match self.buffers.input.is_empty() {
                true => Phase::FirstByte,
                false => Phase::Head,
            };
            match fill(
                &mut self.buffers.input,
                &mut self.link.stream,
                LIMITS.head + 1,
            ) {
                Ok(_) => {
                    if let Some(head) = self.parse()? {
                        return Ok(head);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let until = match phase {
                        Phase::Head => self.until,
                        _ => first_byte,
                    };
                    self.wait(phase, until)?;
                }
                Err(error) => return Err(self.io_failed(phase, error)),
            }
        }
    }

    /// Takes heads off the input: passes on those in front of the final one, and gives that.
    fn parse(&mut self) -> Result<Option<ResponseHead>, Failure> {
        loop {
            if self.buffers.input.is_empty() {
                return Ok(None);
            }
            let parsed = parse_response(self.buffers.input.filled(), &LIMITS);
            let parsed = parsed.map_err(|rule| self.failed(Phase::Head, Cause::Protocol(rule)))?;
            let Some((length, head)) = parsed else {
                return Ok(None);
            };
            self.buffers.input.consume(length);
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Some(head));
            }
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                let many = io::Error::other("it sent too many answers of status 1xx");
                return Err(self.io_failed(Phase::Head, many));
            }
            // That the body is wanted is said where it is read.
            if head.status != StatusCode::CONTINUE {
                let told = self.request.body().interim(head.status, &head.headers);
                told.map_err(|_| Failure::Gone)?;
            }
        }
    }

    /// Waits for the server, and looks now and then whether the client still does.
    fn wait(&mut self, phase: Phase, until: Deadline) -> Result<(), Failure> {
        let soon = Deadline::at(self.dialer.now().saturating_add(TICK));
        match self.link.stream.wait(until.min(soon)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                if until.has_passed(self.dialer.now()) {
                    return Err(self.io_failed(phase, error));
                }
                if self.request.body().client_is_gone() {
                    return Err(Failure::Gone);
                }
                Ok(())
            }
            Err(error) => Err(self.io_failed(phase, error)),
        }
    }

    /// When a server that takes no more of the request has taken too long.
    fn idle(&self) -> Deadline {
        let idle = milliseconds(self.times.idle);
        Deadline::after(self.dialer.now(), idle).min(self.until)
    }

    fn check_time(&self, phase: Phase) -> Result<(), Failure> {
        if self.until.has_passed(self.dialer.now()) {
            return Err(self.io_failed(phase, ErrorKind::TimedOut.into()));
        }
        Ok(())
    }

    fn io_failed(&self, phase: Phase, error: io::Error) -> Failure {
        self.failed(phase, Cause::Io(error))
    }

    fn failed(&self, phase: Phase, cause: Cause) -> Failure {
        Failure::Upstream(UpstreamError {
            phase,
            cause,
            reused: self.link.reused,
            sent: self.sent,
        })
    }
}
