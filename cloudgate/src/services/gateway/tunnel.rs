//! How do bytes go both ways once client and server speak another protocol?
//!
//! One coroutine moves them. It waits for the client; a small one beside it waits for the server and rouses it. Either side
//! may end while the other still speaks.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::LongSeat;
use super::exchange::Answered;
use super::health::milliseconds;
use super::stats::Open;
use crate::message::{After, Deadline, Duplex, Protocol, Upgraded};
use crate::net::home;
use crate::net::stream::Stream;
use crate::net::watched::Watched;

/// How much is read at once of either side, in bytes.
const PIECE: usize = 16 << 10;

/// After how many bytes without a wait others have a turn.
const TURN: usize = 256 << 10;

/// What a connection speaks once the server has switched protocols.
pub(super) struct Tunnel {
    stream: Option<Stream>,
    to_client: Half,
    to_server: Half,
    seat: LongSeat,
    _counted: Open,
}

impl Tunnel {
    pub(super) fn new(answered: Answered, seat: LongSeat) -> Tunnel {
        let mut to_client = Half::default();
        // What the server said at once.
        to_client
            .buffer
            .extend_from_slice(answered.buffers.input.filled());
        Tunnel {
            stream: Some(answered.link.stream),
            to_client,
            to_server: Half::default(),
            _counted: seat.group().stats.upgraded(),
            seat,
        }
    }

    fn talk(&mut self, connection: &mut Upgraded<'_>) -> io::Result<()> {
        let Some(stream) = self.stream.take() else {
            return Ok(());
        };
        let tie = Arc::clone(connection.host.tie());
        let mut server = Watched::new(stream, move || tie.rouse())?;
        self.to_server.buffer.append(connection.leftover);
        let idle = milliseconds(self.seat.group().settings.times.tunnel);
        let mut until = Deadline::after(connection.host.now(), idle);
        let mut in_turn = 0;
        loop {
            let mut moved = self.to_server.pump(connection.io, &mut server)?;
            moved += self.to_client.pump(&mut server, connection.io)?;
            if self.to_server.shut && self.to_client.shut {
                return Ok(());
            }
            if connection.host.is_stopping() {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            if moved > 0 {
                until = Deadline::after(connection.host.now(), idle);
                in_turn += moved;
                if in_turn < TURN {
                    continue;
                }
                home::yield_now();
                in_turn = 0;
                continue;
            }
            in_turn = 0;
            connection.io.wait(until)?;
        }
    }
}

impl Protocol for Tunnel {
    fn run(&mut self, connection: &mut Upgraded<'_>) -> After {
        if let Err(error) = self.talk(connection) {
            log::debug!(
                "{}: a tunnel to {} ended: {error}",
                self.seat.group().settings.name,
                self.seat.server().address
            );
        }
        After::Over
    }

    fn keeps_coroutine(&self) -> bool {
        true
    }
}

/// One way.
#[derive(Default)]
struct Half {
    /// What was read and not written yet, from `written` on.
    buffer: Vec<u8>,
    written: usize,
    ended: bool,
    /// Whether the receiver knows that.
    shut: bool,
}

impl Half {
    /// Moves what can be moved now; says how many bytes.
    fn pump<R, W>(&mut self, from: &mut R, to: &mut W) -> io::Result<usize>
    where
        R: Duplex + ?Sized,
        W: Duplex + ?Sized,
    {
        let mut moved = 0;
        if self.buffer.is_empty() && !self.ended {
            self.buffer.resize(PIECE, 0);
            let read = from.read(&mut self.buffer);
            self.buffer.truncate(*read.as_ref().unwrap_or(&0));
            match read {
                Ok(count) => {
                    self.ended = count == 0;
                    moved = count;
                }
                Err(error) if would_block(&error) => {}
                Err(error) => return Err(error),
            }
        }
        while self.written < self.buffer.len() {
            match to.write(&self.buffer[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    moved += count;
                }
                Err(error) if would_block(&error) => return Ok(moved),
                Err(error) => return Err(error),
            }
        }
        self.buffer.clear();
        self.written = 0;
        if self.ended && !self.shut {
            self.shut = true;
            // Where it is gone already there is nobody to tell.
            let _ = to.close_write();
        }
        Ok(moved)
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
