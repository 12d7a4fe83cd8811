//! How does a response reach the client?

use std::io::{self, ErrorKind, IoSlice, Read};
use std::sync::atomic::Ordering;

use http::StatusCode;

use super::conn::{Close, Surroundings};
use super::send_file::send_file;
use crate::message::{Body, BodySink, BodyWriter, Duplex, Headers, Pace, Response, Version};
use crate::net::home;
use crate::proto::h1::encode::{self, Envelope, ResponseLength};

/// Up to this many bytes a body is copied behind its head; a larger one is sent from where it lies. Of 15 kB that
/// takes 5.7 us in place of 5.9 (medians of five rounds in turn).
const COPY: usize = 4 << 10;

/// How much of a reader or closure body is gathered before it is sent, in bytes.
const PIECE: usize = 16 << 10;

/// What the request says about its response.
pub(crate) struct Exchange<'a> {
    pub(crate) version: Version,
    /// Whether only the head is wanted (HEAD).
    pub(crate) head_only: bool,
    pub(crate) keep_alive: bool,
    /// Whether the connection speaks another protocol behind this response.
    pub(crate) upgrades: bool,
    pub(crate) date: &'a [u8; 29],
}

/// Puts a response into `output` and sends what is large of it; the rest goes out with the next
/// [`flush`]. Says whether the connection may go on.
pub(crate) fn send<D: Duplex>(
    io: &mut D,
    output: &mut Vec<u8>,
    mut response: Response,
    exchange: Exchange<'_>,
    around: &Surroundings,
) -> Result<bool, Close> {
    let status = if exchange.upgrades {
        response.status
    } else {
        sendable(response.status)
    };
    let length = if exchange.upgrades {
        ResponseLength::Upgrade
    } else if status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
        ResponseLength::Bodiless
    } else {
        match response.body.length() {
            Some(length) => ResponseLength::Sized(length),
            None if exchange.version == Version::Http11 => ResponseLength::Chunked,
            None => ResponseLength::UntilClose,
        }
    };
    let head_only =
        exchange.head_only || matches!(length, ResponseLength::Bodiless | ResponseLength::Upgrade);
    let keep_alive = exchange.keep_alive && (head_only || length != ResponseLength::UntilClose);
    let envelope = Envelope {
        version: exchange.version,
        keep_alive,
        length,
        date: exchange.date,
    };
    encode::head(output, status, &response.headers, envelope);
    if head_only {
        return Ok(keep_alive);
    }
    match response.take_body() {
        Body::Empty | Body::Upgrade(_) => {}
        Body::Bytes(bytes) if bytes.len() <= COPY => output.extend_from_slice(&bytes),
        Body::Bytes(bytes) => {
            send_both(io, output, &bytes, around, &mut around.rules.pace())?;
        }
        Body::File(range) => send_file(io, output, &range, around)?,
        Body::Reader { mut reader, .. } => {
            let mut sink = Sink::new(io, output, around, length);
            let copied = sink.copy_from(&mut *reader);
            sink.finish_after(copied)?;
        }
        body @ (Body::Writer(_) | Body::Relay(_)) => {
            let write = match body {
                Body::Writer(write) => write,
                Body::Relay(relay) => relay.into_write(),
                _ => return Ok(keep_alive),
            };
            let mut sink = Sink::new(io, output, around, length);
            let written = home::catch_panic(|| write(&mut BodyWriter::new(&mut sink)))
                .unwrap_or_else(|_| {
                    Err(io::Error::other(
                        "the closure that writes the body panicked",
                    ))
                });
            sink.finish_after(written)?;
        }
    }
    Ok(keep_alive)
}

/// Interim statuses are not a handler's to send as an answer: the client would wait for ever.
fn sendable(status: StatusCode) -> StatusCode {
    if status.is_informational() {
        log::error!("a handler answered with the interim status {status}; the client gets a 500");
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    status
}

/// Sends everything in `output`.
///
/// # Errors
/// `TimedOut` when the peer reads too slowly, others when the connection failed.
pub(crate) fn flush<D: Duplex>(
    io: &mut D,
    output: &mut Vec<u8>,
    around: &Surroundings,
) -> io::Result<()> {
    if output.is_empty() {
        return Ok(());
    }
    flush_at(io, output, around, &mut around.rules.pace())
}

/// As [`flush`], for a part of a body whose pace is kept from part to part.
fn flush_at<D: Duplex>(
    io: &mut D,
    output: &mut Vec<u8>,
    around: &Surroundings,
    pace: &mut Pace,
) -> io::Result<()> {
    let written = write_all(around, io, output.len(), pace, |io, at| {
        io.write(&output[at..])
    });
    output.clear();
    written
}

/// Sends `output` and then `bytes`, without copying them together.
fn send_both<D: Duplex>(
    io: &mut D,
    output: &mut Vec<u8>,
    bytes: &[u8],
    around: &Surroundings,
    pace: &mut Pace,
) -> io::Result<()> {
    let first = output.len();
    let written = write_all(around, io, first + bytes.len(), pace, |io, at| {
        let rest = &bytes[at.saturating_sub(first)..];
        let piece = &rest[..rest.len().min(around.turn())];
        if at >= first {
            io.write(piece)
        } else {
            io.write_vectored(&[IoSlice::new(&output[at..]), IoSlice::new(piece)])
        }
    });
    output.clear();
    written
}

/// Calls `write` with how much is written until `total` is.
pub(super) fn write_all<D: Duplex>(
    around: &Surroundings,
    io: &mut D,
    total: usize,
    pace: &mut Pace,
    mut write: impl FnMut(&mut D, usize) -> io::Result<usize>,
) -> io::Result<()> {
    let mut written = 0;
    while written < total {
        match write(io, written) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => {
                written += count;
                if pace.moved(count, around.turn()) {
                    io.yield_turn();
                }
            }
            Err(error) => wait_to_go_on(io, error, around, pace)?,
        }
    }
    Ok(())
}

/// Waits where `error` says that nothing can be sent now; gives any other error back.
pub(super) fn wait_to_go_on<D: Duplex>(
    io: &mut D,
    error: io::Error,
    around: &Surroundings,
    pace: &mut Pace,
) -> io::Result<()> {
    match error.kind() {
        ErrorKind::WouldBlock => pace.wait(io, || around.clock.now()),
        ErrorKind::Interrupted => Ok(()),
        _ => Err(error),
    }
}

/// Where a reader or closure body goes: gathered, framed, sent.
struct Sink<'c, D> {
    io: &'c mut D,
    output: &'c mut Vec<u8>,
    around: &'c Surroundings,
    pace: Pace,
    /// Gathered data that has no framing yet.
    pending: Vec<u8>,
    chunked: bool,
    /// Bytes that the head promised and that were not written yet.
    left: Option<u64>,
    /// What goes out behind the last chunk.
    trailers: Headers,
    /// Whether sending failed: then it is the peer who is gone or too slow, whatever the body says.
    lost: bool,
}

impl<'c, D: Duplex> Sink<'c, D> {
    fn new(
        io: &'c mut D,
        output: &'c mut Vec<u8>,
        around: &'c Surroundings,
        length: ResponseLength,
    ) -> Sink<'c, D> {
        let left = if let ResponseLength::Sized(length) = length {
            Some(length)
        } else {
            None
        };
        Sink {
            io,
            output,
            around,
            pace: around.rules.pace(),
            pending: Vec::new(),
            chunked: length == ResponseLength::Chunked,
            left,
            trailers: Headers::new(),
            lost: false,
        }
    }

    fn copy_from(&mut self, reader: &mut dyn Read) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            let most = self
                .left
                .map_or(PIECE, |left| left.min(PIECE as u64) as usize);
            if most == 0 {
                return Ok(());
            }
            match reader.read(&mut piece[..most]) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    self.write_all(&piece[..count])?;
                    // A full piece is on its way already.
                    if !self.pending.is_empty() {
                        self.flush()?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn frame(&mut self) {
        if self.chunked {
            encode::chunk(self.output, &self.pending);
        } else {
            self.output.extend_from_slice(&self.pending);
        }
        self.pending.clear();
    }

    /// Sends a large piece from where it lies.
    fn write_through(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.frame();
        if self.chunked {
            encode::chunk_start(self.output, bytes.len());
        }
        let sent = send_both(self.io, self.output, bytes, self.around, &mut self.pace);
        self.lost |= sent.is_err();
        if self.chunked {
            // With what follows, which may be a while: nothing of the data is behind it.
            self.output.extend_from_slice(b"\r\n");
        }
        sent
    }

    /// Ends the body, unless it failed: then says whose fault that was.
    fn finish_after(&mut self, written: io::Result<()>) -> Result<(), Close> {
        match written.and_then(|()| self.finish()) {
            Ok(()) => Ok(()),
            Err(error) if self.lost => Err(Close::Failed(error)),
            Err(error) => Err(Close::BodyFailed(error)),
        }
    }

    /// Ends the body; what was gathered goes out with the connection's next flush.
    fn finish(&mut self) -> io::Result<()> {
        if self.left.is_some_and(|left| left > 0) {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "the body is shorter than its length says",
            ));
        }
        self.frame();
        if self.chunked {
            encode::last_chunk(self.output, &self.trailers);
        }
        Ok(())
    }
}

impl<D: Duplex> BodySink for Sink<'_, D> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
                io::Error::new(
                    ErrorKind::InvalidData,
                    "the body is longer than its length says",
                )
            })?;
        }
        if bytes.len() >= PIECE {
            return self.write_through(bytes);
        }
        // However much is written at once, no more than a piece of it is held here.
        for piece in bytes.chunks(PIECE) {
            self.pending.extend_from_slice(piece);
            if self.pending.len() >= PIECE {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.frame();
        flush_at(self.io, self.output, self.around, &mut self.pace)
            .inspect_err(|_| self.lost = true)
    }

    fn is_stopping(&self) -> bool {
        self.around.stopping.load(Ordering::Relaxed)
    }

    fn client_is_gone(&mut self) -> bool {
        self.io.is_gone()
    }

    fn trailers(&mut self, fields: &Headers) {
        if self.chunked {
            self.trailers = fields.clone();
        }
    }
}
