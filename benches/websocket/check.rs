//! Does a server do what a case measures? A benchmark of wrong answers measures nothing.

use std::thread;
use std::time::Duration;

use flate2::{Decompress, FlushDecompress};

use crate::cases::{Case, ECHOED, Kind, PUBLISHED, path};
use crate::frames;
use crate::socket::{Message, Socket};

pub(crate) fn run(port: u16, case: Case) -> Result<(), String> {
    match case.kind() {
        Kind::Echo | Kind::Idle => echo(port),
        Kind::Broadcast => broadcast(port, case.compressed()),
    }
}

/// One message after the other, so that what is repeated is what came and not what came first.
fn echo(port: u16) -> Result<(), String> {
    let mut socket = Socket::open(port, path::ECHO, false)?;
    for text in [ECHOED, "another one", ""] {
        socket.send(&frames::masked(frames::TEXT, text.as_bytes()))?;
        expect(&socket.message()?, text)?;
    }
    Ok(())
}

/// Two get what a third sends, twice: the second message may refer to the first where it is compressed.
fn broadcast(port: u16, compressed: bool) -> Result<(), String> {
    let mut listeners = [
        Listener::join(port, compressed)?,
        Listener::join(port, compressed)?,
    ];
    let publisher = Socket::open(port, path::PUBLISH, compressed)?;
    // Nothing tells a client when it is in the room: a server may put it there after the answer.
    thread::sleep(Duration::from_millis(100));
    for _ in 0..2 {
        publisher.send(&frames::masked(frames::TEXT, PUBLISHED.as_bytes()))?;
        for listener in &mut listeners {
            listener.expect(PUBLISHED)?;
        }
    }
    Ok(())
}

/// A socket in the room, and what inflates its messages where they are compressed.
struct Listener {
    socket: Socket,
    inflate: Option<Decompress>,
    /// Whether a message may refer to those before it.
    takeover: bool,
}

impl Listener {
    fn join(port: u16, compressed: bool) -> Result<Self, String> {
        let socket = Socket::open(port, path::ROOM, compressed)?;
        let answer = socket.extensions.clone();
        if compressed != answer.is_some() {
            return Err(match answer {
                Some(answer) => format!("chose {answer}, which was not offered"),
                None => "does not take permessage-deflate".to_owned(),
            });
        }
        Ok(Self {
            socket,
            inflate: compressed.then(|| Decompress::new(false)),
            takeover: !answer.is_some_and(|answer| answer.contains("server_no_context_takeover")),
        })
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        let mut message = self.socket.message()?;
        if message.compressed != self.inflate.is_some() {
            return Err("did not compress what it should, or what it should not".to_owned());
        }
        if let Some(inflate) = &mut self.inflate {
            message.payload = inflated(inflate, message.payload)?;
            if !self.takeover {
                inflate.reset(false);
            }
        }
        expect(&message, text)
    }
}

/// RFC 7692 section 7.2.2.
fn inflated(inflate: &mut Decompress, mut payload: Vec<u8>) -> Result<Vec<u8>, String> {
    payload.extend_from_slice(&[0, 0, 0xff, 0xff]);
    let mut text = Vec::with_capacity(1024);
    inflate
        .decompress_vec(&payload, &mut text, FlushDecompress::Sync)
        .map_err(|error| format!("sent what cannot be inflated: {error}"))?;
    Ok(text)
}

fn expect(message: &Message, text: &str) -> Result<(), String> {
    if message.opcode == frames::TEXT && message.payload == text.as_bytes() {
        Ok(())
    } else {
        Err(format!(
            "sent `{}` where `{text}` was due",
            String::from_utf8_lossy(&message.payload)
        ))
    }
}
