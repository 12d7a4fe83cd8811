//! How does the body of an answer go from the server to the client?
//!
//! As it comes: what is there is sent before more is waited for, and nothing is read while the client does not take it.

use std::io::{self, ErrorKind, Write};
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;

use super::exchange::{Answered, TICK};
use super::health::milliseconds;
use super::link::{Buffers, Link, fill};
use super::{Group, LongSeat, Seat};
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
) -> Body {
    let Answered {
        framing,
        link,
        mut buffers,
        complete,
        ..
    } = answered;
    let keep = framing.keep_alive && complete;
    let there = buffers.input.filled().len();
    match framing.body {
        ResponseEnd::None => {
            done(group, dialer, seat, link, buffers, keep);
            match framing.length {
                // What HEAD asks about.
                Some(length) if length > 0 => Body::Relay(Relay::new(Some(length), |_| Ok(()))),
                _ => Body::Empty,
            }
        }
        ResponseEnd::Sized(length) if length <= there as u64 => {
            let bytes = Bytes::copy_from_slice(&buffers.input.filled()[..length as usize]);
            buffers.input.consume(length as usize);
            done(group, dialer, seat, link, buffers, keep);
            Body::Bytes(bytes)
        }
        ResponseEnd::Chunked => {
            let small = (there > 0 && there <= SMALL)
                .then(|| whole(buffers.input.filled()))
                .flatten();
            if let Some((consumed, bytes)) = small {
                buffers.input.consume(consumed);
                done(group, dialer, seat, link, buffers, keep);
                return Body::Bytes(bytes);
            }
            let decoder = Decoder::new(BodyLength::Chunked);
            Download::new(group, dialer, seat, link, buffers, decoder).into_body(None, keep, false)
        }
        ResponseEnd::Sized(length) => {
            let decoder = Decoder::new(BodyLength::Sized(length));
            let download = Download::new(group, dialer, seat, link, buffers, decoder);
            download.into_body(Some(length), keep, false)
        }
        ResponseEnd::UntilClose => {
            let decoder = Decoder::new(BodyLength::Sized(u64::MAX));
            Download::new(group, dialer, seat, link, buffers, decoder).into_body(None, false, true)
        }
    }
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
fn done<G: Deref<Target = Group>>(
    group: &Group,
    dialer: &Dialer,
    seat: Seat<G>,
    link: Link,
    buffers: Buffers,
    keep: bool,
) {
    // Bytes behind the answer belong to nobody's request.
    let clean = buffers.input.is_empty();
    group.shelf.put(buffers);
    if keep && clean {
        group.servers[seat.index].pool.put(link, dialer.now());
    }
    drop(seat);
}

/// The body of an answer that is still to come, or a part of it.
struct Download {
    dialer: &'static Dialer,
    seat: LongSeat,
    link: Link,
    buffers: Buffers,
    decoder: Decoder,
}

impl Download {
    fn new(
        group: &Arc<Group>,
        dialer: &'static Dialer,
        seat: Seat<&Group>,
        link: Link,
        buffers: Buffers,
        decoder: Decoder,
    ) -> Download {
        Download {
            dialer,
            seat: seat.keep(group),
            link,
            buffers,
            decoder,
        }
    }

    fn into_body(self, length: Option<u64>, keep: bool, until_close: bool) -> Body {
        Body::Relay(Relay::new(length, move |out| {
            self.run(out, keep, until_close)
        }))
    }

    fn run(mut self, out: &mut BodyWriter<'_>, keep: bool, until_close: bool) -> io::Result<()> {
        match self.pass_on(out, until_close) {
            Ok(()) => {}
            Err(error) => {
                self.report(&error, out);
                return Err(error);
            }
        }
        if !self.decoder.trailers().is_empty() {
            out.trailers(&trailers(self.decoder.trailers()));
        }
        let seat = self.seat;
        let group = Arc::clone(seat.group());
        done(&group, self.dialer, seat, self.link, self.buffers, keep);
        Ok(())
    }

    fn pass_on(&mut self, out: &mut BodyWriter<'_>, until_close: bool) -> io::Result<()> {
        let mut piece = Vec::new();
        while !self.decoder.is_done() {
            let input = &mut self.buffers.input;
            if !input.is_empty() {
                let plain = usize::try_from(self.decoder.plain_bytes()).unwrap_or(usize::MAX);
                let count = plain.min(input.filled().len());
                if count > 0 {
                    out.write_all(&input.filled()[..count])?;
                    self.decoder.skip_plain(count as u64);
                    input.consume(count);
                    continue;
                }
                // Framing, and no room for data, which is taken from where it lies.
                let step = self
                    .decoder
                    .decode(input.filled(), &mut [], &Limits::DEFAULT);
                let step = step.map_err(broken)?;
                input.consume(step.consumed);
                continue;
            }
            let plain = usize::try_from(self.decoder.plain_bytes()).unwrap_or(usize::MAX);
            let read = if plain == 0 {
                fill(input, &mut self.link.stream, PIECE)
            } else {
                if piece.is_empty() {
                    piece = vec![0; PIECE.min(plain)];
                }
                let most = piece.len().min(plain);
                self.link.stream.read(&mut piece[..most])
            };
            match read {
                // Of a body that ends with the connection nobody can say whether this is all of it.
                Ok(0) if until_close => return Ok(()),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) if plain > 0 => {
                    out.write_all(&piece[..count])?;
                    self.decoder.skip_plain(count as u64);
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    out.flush()?;
                    self.wait(out)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits for the server, and looks now and then whether the client still does.
    fn wait(&mut self, out: &mut BodyWriter<'_>) -> io::Result<()> {
        let idle = milliseconds(self.seat.group().settings.times.idle);
        let until = Deadline::after(self.dialer.now(), idle);
        loop {
            let soon = Deadline::at(self.dialer.now().saturating_add(TICK));
            match self.link.stream.wait(until.min(soon)) {
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
