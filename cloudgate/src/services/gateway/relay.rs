//! How does the body of an answer go from the server to the client?
//!
//! As it comes: what is there is sent before more is waited for, and nothing is read while the client does not take it.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use super::exchange::{Answered, TICK};
use super::health::milliseconds;
use super::link::{Buffers, Link, fill};
use super::{Group, LongSeat, Seat, Tally};
use crate::message::{Body, BodyWriter, Deadline, Duplex, Headers, Relay};
use crate::net::dial::Dialer;
use crate::proto::error::ParseError;
use crate::proto::h1::{BodyLength, Decoder, ResponseEnd};
use crate::proto::limits::Limits;

/// How much of a body is read at once, in bytes.
const PIECE: usize = 32 << 10;

/// The largest chunked body that is put together when it has come with its head, in bytes.
const SMALL: usize = 16 << 10;

/// Makes a body of what is to come, and gives the connection back as soon as that has come.
pub(super) fn body(
    group: &Arc<Group>,
    dialer: &'static Dialer,
    seat: Seat<&Group>,
    answered: Answered,
    tally: Tally,
) -> Body {
    let framing = answered.framing;
    let there = answered.buffers.input.filled();
    let bytes = match framing.body {
        ResponseEnd::None => Some((0, Bytes::new())),
        ResponseEnd::Sized(length) if length <= there.len() as u64 => {
            let length = length as usize;
            Some((length, Bytes::copy_from_slice(&there[..length])))
        }
        ResponseEnd::Chunked if (1..=SMALL).contains(&there.len()) => whole(there),
        _ => None,
    };
    if let Some((consumed, bytes)) = bytes {
        let mut answered = answered;
        answered.buffers.input.consume(consumed);
        let (status, uploaded) = (answered.head.status, answered.uploaded);
        let keep = framing.keep_alive && answered.complete;
        give_back(
            group,
            seat.index,
            dialer,
            answered.link,
            answered.buffers,
            keep,
        );
        drop(seat);
        tally.end(&group.stats, status, uploaded, bytes.len() as u64);
        return match (framing.body, framing.length) {
            // What HEAD asks about.
            (ResponseEnd::None, Some(length)) if length > 0 => {
                Body::Relay(Relay::new(Some(length), |_| Ok(())))
            }
            (ResponseEnd::None, _) => Body::Empty,
            _ => Body::Bytes(bytes),
        };
    }
    let (decoder, length) = match framing.body {
        ResponseEnd::Sized(length) => (BodyLength::Sized(length), Some(length)),
        ResponseEnd::UntilClose => (BodyLength::Sized(u64::MAX), None),
        ResponseEnd::Chunked | ResponseEnd::None => (BodyLength::Chunked, None),
    };
    let download = Download {
        dialer,
        seat: seat.keep(group),
        keep: framing.keep_alive && answered.complete,
        until_close: framing.body == ResponseEnd::UntilClose,
        decoder: Decoder::new(decoder),
        status: answered.head.status,
        uploaded: answered.uploaded,
        passed_on: 0,
        stream: Some((answered.link, answered.buffers)),
        tally: Some(tally),
    };
    Body::Relay(Relay::new(length, move |out| download.run(out)))
}

/// A chunked body without trailers that is there to its end, and how many bytes it takes.
fn whole(input: &[u8]) -> Option<(usize, Bytes)> {
    let mut decoder = Decoder::new(BodyLength::Chunked);
    let mut bytes = vec![0; input.len()];
    let (mut consumed, mut produced) = (0, 0);
    loop {
        let rest = &mut bytes[produced..];
        let step = decoder
            .decode(&input[consumed..], rest, &Limits::DEFAULT)
            .ok()?;
        consumed += step.consumed;
        produced += step.produced;
        if decoder.is_done() {
            bytes.truncate(produced);
            return decoder
                .trailers()
                .is_empty()
                .then(|| (consumed, Bytes::from(bytes)));
        }
        if step.consumed == 0 {
            return None;
        }
    }
}

/// Ends an exchange: the connection is kept for the next one where that can be.
fn give_back(
    group: &Group,
    index: usize,
    dialer: &Dialer,
    link: Link,
    buffers: Buffers,
    keep: bool,
) {
    // Bytes behind the answer belong to nobody's request.
    let clean = buffers.input.is_empty();
    group.shelf.put(buffers);
    if keep && clean {
        group.servers[index].pool.put(link, dialer.now());
    }
}

/// The body of an answer that is still to come, or a part of it.
struct Download {
    dialer: &'static Dialer,
    seat: LongSeat,
    /// Whether the connection can carry another request behind this body.
    keep: bool,
    until_close: bool,
    decoder: Decoder,
    status: StatusCode,
    uploaded: u64,
    passed_on: u64,
    /// `None` once it was given back.
    stream: Option<(Link, Buffers)>,
    tally: Option<Tally>,
}

impl Drop for Download {
    /// Also where the body was never wanted, or the client has left.
    fn drop(&mut self) {
        if let Some(tally) = self.tally.take() {
            let stats = &self.seat.group().stats;
            tally.end(stats, self.status, self.uploaded, self.passed_on);
        }
    }
}

impl Download {
    fn run(mut self, out: &mut BodyWriter<'_>) -> io::Result<()> {
        let Some((mut link, mut buffers)) = self.stream.take() else {
            return Ok(());
        };
        if let Err(error) = self.pass_on(&mut link, &mut buffers, out) {
            self.report(&error, out);
            return Err(error);
        }
        if !self.decoder.trailers().is_empty() {
            out.trailers(&trailers(self.decoder.trailers()));
        }
        give_back(
            self.seat.group(),
            self.seat.index,
            self.dialer,
            link,
            buffers,
            self.keep,
        );
        Ok(())
    }

    fn pass_on(
        &mut self,
        link: &mut Link,
        buffers: &mut Buffers,
        out: &mut BodyWriter<'_>,
    ) -> io::Result<()> {
        let mut piece = Vec::new();
        let input = &mut buffers.input;
        while !self.decoder.is_done() {
            let plain = usize::try_from(self.decoder.plain_bytes()).unwrap_or(usize::MAX);
            if !input.is_empty() {
                let count = plain.min(input.filled().len());
                if count > 0 {
                    out.write_all(&input.filled()[..count])?;
                    self.moved(count);
                    input.consume(count);
                    continue;
                }
                // Framing, and no room for data, which is taken from where it lies.
                let step = self
                    .decoder
                    .decode(input.filled(), &mut [], &Limits::DEFAULT);
                input.consume(step.map_err(broken)?.consumed);
                continue;
            }
            let read = if plain == 0 {
                fill(input, &mut link.stream, PIECE)
            } else {
                if piece.is_empty() {
                    piece = vec![0; PIECE.min(plain)];
                }
                let most = piece.len().min(plain);
                link.stream.read(&mut piece[..most])
            };
            match read {
                // Of a body that ends with the connection nobody can say whether this is all of it.
                Ok(0) if self.until_close => return Ok(()),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) if plain > 0 => {
                    out.write_all(&piece[..count])?;
                    self.moved(count);
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    out.flush()?;
                    self.wait(link, out)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn moved(&mut self, count: usize) {
        self.decoder.skip_plain(count as u64);
        self.passed_on += count as u64;
    }

    /// Waits for the server, and looks now and then whether the client still does.
    fn wait(&self, link: &mut Link, out: &mut BodyWriter<'_>) -> io::Result<()> {
        let idle = milliseconds(self.seat.group().settings.times.idle);
        let until = Deadline::after(self.dialer.now(), idle);
        loop {
            let soon = Deadline::at(self.dialer.now().saturating_add(TICK));
            match link.stream.wait(until.min(soon)) {
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    if until.has_passed(self.dialer.now()) {
                        return Err(error);
                    }
                    if out.client_is_gone() {
                        return Err(ErrorKind::ConnectionAborted.into());
                    }
                }
                other => return other,
            }
        }
    }

    /// Says in the log whose fault it is that an answer is not whole.
    fn report(&self, error: &io::Error, out: &mut BodyWriter<'_>) {
        let server = self.seat.server();
        if out.client_is_gone() {
            log::debug!(
                "{}: a client left while {} was answering",
                self.seat.group().settings.name,
                server.address
            );
            return;
        }
        log::warn!(
            "{}: {} broke its answer off while the body was read: {error}",
            self.seat.group().settings.name,
            server.address
        );
    }
}

/// The trailers that go on: what belongs to a connection does not.
fn trailers(sent: &Headers) -> Headers {
    let mut kept = sent.clone();
    for name in ["Proxy-Connection", "Forwarded", "Via"] {
        kept.remove(name);
    }
    kept
}

fn broken(rule: ParseError) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, rule)
}
