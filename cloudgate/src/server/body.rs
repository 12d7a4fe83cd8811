//! How does a handler read a request body from the connection?

use std::io::{self, ErrorKind};

use http::StatusCode;

use super::conn::Surroundings;
use super::respond;
use crate::message::{BodyError, BodySource, Deadline, Duplex, Headers, Pace, Version};
use crate::net::buffer::ReadBuffer;
use crate::net::home;
use crate::proto::error::ParseError;
use crate::proto::h1::{BodyLength, Decoder, Framing, encode};

/// How many bytes of a body that nobody read are taken in, so that the connection can go on.
const DRAIN: usize = 64 << 10;

/// What a handler left of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It was read, or drained, to its end.
    Nothing,
    /// Bytes of it are still to come, or it failed: nothing behind it can be understood.
    Something,
}

/// The body of the current request, read as the handler asks for it.
pub(crate) struct BodyReader<'c, D> {
    io: &'c mut D,
    input: &'c mut ReadBuffer,
    output: &'c mut Vec<u8>,
    around: &'c Surroundings,
    decoder: Decoder,
    length: Option<u64>,
    version: Version,
    /// Whether the client waits for `100 Continue`.
    continue_awaited: bool,
    pace: Pace,
    failed: bool,
}

impl<'c, D: Duplex> BodyReader<'c, D> {
    pub(crate) fn new(
        io: &'c mut D,
        input: &'c mut ReadBuffer,
        output: &'c mut Vec<u8>,
        framing: Framing,
        version: Version,
        around: &'c Surroundings,
    ) -> BodyReader<'c, D> {
        let decoder = Decoder::new(framing.body);
        BodyReader {
            io,
            input,
            output,
            around,
            length: match framing.body {
                BodyLength::None => Some(0),
                BodyLength::Sized(length) => Some(length),
                BodyLength::Chunked => None,
            },
            version,
            decoder,
            continue_awaited: framing.expects_continue,
            pace: around.rules.pace(),
            failed: false,
        }
    }

    /// Ends the body: what has arrived of it and was not read is thrown away.
    pub(crate) fn finish(mut self) -> Unread {
        if self.decoder.is_done() && !self.failed {
            return Unread::Nothing;
        }
        // A client that waits for leave to send may now send the body or not: nobody can know.
        if self.failed || self.continue_awaited {
            return Unread::Something;
        }
        let mut scratch = vec![0; 4096];
        let mut drained = 0;
        while drained < DRAIN {
            match self.read_now(&mut scratch) {
                Ok(Some(0)) => return Unread::Nothing,
                Ok(Some(count)) => drained += count,
                Ok(None) | Err(_) => break,
            }
        }
        Unread::Something
    }

    /// Reads what is there without waiting; `None` when nothing is, `Some(0)` at the body's end.
    fn read_now(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, BodyError> {
        loop {
            if self.decoder.is_done() {
                return Ok(Some(0));
            }
            if !self.input.is_empty() {
                let limits = &self.around.rules.limits;
                let decoded = self
                    .decoder
                    .decode(self.input.filled(), buffer, limits)
                    .map_err(|error| match error {
                        ParseError::TrailersTooLarge => BodyError::TrailersTooLarge,
                        _ => BodyError::Malformed,
                    })?;
                self.input.consume(decoded.consumed);
                if decoded.produced > 0 {
                    return Ok(Some(decoded.produced));
                }
                if decoded.consumed > 0 {
                    continue;
                }
            }
            // Data can go straight to the reader; framing has to pass through the input.
            let plain = usize::try_from(self.decoder.plain_bytes())
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let read = if plain > 0 {
                self.io.read(&mut buffer[..plain])
            } else {
                self.input.fill(usize::MAX, |space| self.io.read(space))
            };
            match read {
                Ok(0) => return Err(BodyError::Truncated),
                Ok(count) if plain > 0 => {
                    self.decoder.skip_plain(count as u64);
                    return Ok(Some(count));
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(BodyError::Disconnected(error)),
            }
        }
    }

    /// Reads what comes within so many milliseconds.
    fn read_waiting(
        &mut self,
        buffer: &mut [u8],
        allowed: u64,
        patience: u64,
    ) -> Result<Option<usize>, BodyError> {
        let around = self.around;
        let most = buffer.len().min(around.turn());
        let buffer = &mut buffer[..most];
        loop {
            if let Some(count) = self.read_now(buffer)? {
                if self.pace.moved(count, around.turn()) {
                    self.io.yield_turn();
                }
                return Ok(Some(count));
            }
            if patience == 0 {
                return Ok(None);
            }
            if self.decoder.at_least() > allowed {
                return Err(BodyError::TooLarge {
                    limit: allowed,
                    length: self.length,
                });
            }
            if std::mem::take(&mut self.continue_awaited) {
                encode::continue_100(self.output);
            }
            // Earlier answers are not the handler's: half of one must not stay behind when its time is up.
            home::unlimited(|| respond::flush(self.io, self.output, around))
                .map_err(disconnected)?;
            let began = around.clock.now();
            let soon = Deadline::at(began.saturating_add(patience));
            let waited = self.io.wait(self.pace.deadline(began).min(soon));
            let now = around.clock.now();
            self.pace.waited(now - began);
            match waited {
                Ok(()) => {}
                Err(error) if error.kind() != ErrorKind::TimedOut => {
                    return Err(disconnected(error));
                }
                Err(_) if self.pace.deadline(now).has_passed(now) => {
                    return Err(BodyError::TooSlow);
                }
                Err(_) => return Ok(None),
            }
        }
    }
}

fn disconnected(error: io::Error) -> BodyError {
    BodyError::Disconnected(error)
}

impl<D: Duplex> BodySource for BodyReader<'_, D> {
    fn read(&mut self, buffer: &mut [u8], allowed: u64) -> Result<usize, BodyError> {
        // With patience without an end something comes.
        let read = self.read_within(buffer, allowed, u64::MAX)?;
        Ok(read.unwrap_or_default())
    }

    fn read_within(
        &mut self,
        buffer: &mut [u8],
        allowed: u64,
        patience: u64,
    ) -> Result<Option<usize>, BodyError> {
        if buffer.is_empty() {
            return Ok(Some(0));
        }
        if self.failed {
            // What broke once stays broken, whatever a handler tries.
            return Err(BodyError::Malformed);
        }
        let result = self.read_waiting(buffer, allowed, patience);
        self.failed |=
            matches!(&result, Err(error) if !matches!(error, BodyError::TooLarge { .. }));
        result
    }

    fn client_is_gone(&mut self) -> bool {
        self.io.is_gone()
    }

    fn interim(&mut self, status: StatusCode, headers: &Headers) -> io::Result<()> {
        // HTTP/1.0 has no such answers (RFC 9110 section 15.2).
        if self.version == Version::Http10 {
            return Ok(());
        }
        encode::interim(self.output, status, headers);
        home::unlimited(|| respond::flush(self.io, self.output, self.around))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn trailers(&self) -> Option<&Headers> {
        (self.decoder.is_done() && !self.failed).then(|| self.decoder.trailers())
    }
}
