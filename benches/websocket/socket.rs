//! How does the client open a socket and read from it?

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::frames::{self, Frame, Inbox};

/// The key and its answer are those of RFC 6455 section 1.3: a benchmark needs no randomness.
pub(crate) const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub(crate) const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// How long a server may take for a step of the preparations.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What browsers offer.
const OFFER: &str = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";

/// A client's socket. It is blocking until [`Socket::stop_blocking`].
pub(crate) struct Socket {
    stream: TcpStream,
    inbox: Inbox,
    /// The answer to the offer of compression.
    pub(crate) extensions: Option<String>,
}

impl Socket {
    pub(crate) fn open(port: u16, path: &str, compressed: bool) -> Result<Self, String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| format!("does not accept a connection: {error}"))?;
        let offer = if compressed { OFFER } else { "" };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n{offer}\r\n"
        );
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_nodelay(true))
            .and_then(|()| stream.write_all(request.as_bytes()))
            .map_err(|error| format!("does not take a request: {error}"))?;
        let mut raw = Vec::new();
        let mut piece = [0; 1024];
        let (end, extensions) = loop {
            if let Some(opened) = opening(&raw, path)? {
                break opened;
            }
            match stream.read(&mut piece) {
                Ok(0) => return Err(format!("closed instead of opening {path}")),
                Ok(count) => raw.extend_from_slice(&piece[..count]),
                Err(error) => return Err(format!("did not open {path}: {error}")),
            }
        };
        let mut inbox = Inbox::default();
        inbox.feed(&raw[end..], |frame| {
            Err(format!("sent {frame:?} before it was asked for anything"))
        })?;
        Ok(Self {
            stream,
            inbox,
            extensions,
        })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn stop_blocking(&self) -> Result<(), String> {
        self.stream
            .set_nonblocking(true)
            .map_err(|error| error.to_string())
    }

    /// Sends whole frames. So little is on the way at any time that it fits into the kernel's buffers.
    pub(crate) fn send(&self, frames: &[u8]) -> Result<(), String> {
        match (&self.stream).write(frames) {
            Ok(count) if count == frames.len() => Ok(()),
            Ok(_) => Err("does not read what it is sent".to_owned()),
            Err(error) => Err(format!("does not take a frame: {error}")),
        }
    }

    /// Reads what there is, once, and hands out the data frames; pings are answered.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        mut each: impl FnMut(Frame<'_>) -> Result<(), String>,
    ) -> Result<Drained, String> {
        let count = match self.stream.read(buffer) {
            Ok(0) => return Err("closed the connection".to_owned()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Drained::Yes),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Drained::NotYet),
            Err(error) => return Err(format!("did not answer: {error}")),
        };
        let stream = &self.stream;
        self.inbox
            .feed(&buffer[..count], |frame| match frame.opcode {
                frames::CLOSE => Err(closed(frame.payload)),
                frames::PING => pong(stream, frame.payload).map_err(|error| error.to_string()),
                frames::PONG => Ok(()),
                _ => each(frame),
            })?;
        Ok(if count < buffer.len() {
            Drained::Yes
        } else {
            Drained::NotYet
        })
    }

    /// The next message, of a blocking socket.
    pub(crate) fn message(&mut self) -> Result<Message, String> {
        let mut buffer = [0; 1024];
        let mut got = None;
        while got.is_none() {
            self.receive(&mut buffer, |frame| {
                let message = Message {
                    opcode: frame.opcode,
                    compressed: frame.compressed,
                    payload: frame.payload.to_vec(),
                };
                match got.replace(message) {
                    Some(_) => Err("sent more messages than it was asked for".to_owned()),
                    None => Ok(()),
                }
            })?;
        }
        got.ok_or_else(|| "sent nothing".to_owned())
    }
}

/// Whether a read has emptied the socket: with edge-triggered events a short one has, and more bytes are a new event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drained {
    Yes,
    NotYet,
}

pub(crate) struct Message {
    pub(crate) opcode: u8,
    pub(crate) compressed: bool,
    pub(crate) payload: Vec<u8>,
}

fn pong(mut stream: &TcpStream, payload: &[u8]) -> io::Result<()> {
    stream.write_all(&frames::masked(frames::PONG, payload))
}

fn closed(payload: &[u8]) -> String {
    match payload {
        [high, low, reason @ ..] => format!(
            "closed with {} {}",
            u16::from_be_bytes([*high, *low]),
            String::from_utf8_lossy(reason)
        ),
        _ => "closed without a code".to_owned(),
    }
}

/// Where the head of the answer ends and what it says of extensions; `None` means that more bytes are needed.
pub(crate) fn opening(raw: &[u8], path: &str) -> Result<Option<(usize, Option<String>)>, String> {
    let Some(end) = raw.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&raw[..end]);
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    if !first.starts_with("HTTP/1.1 101 ") {
        return Err(format!("answers {path} with `{first}`, not with 101"));
    }
    let field = |wanted: &str| {
        lines
            .clone()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.trim().to_owned())
    };
    if field("sec-websocket-accept").as_deref() != Some(ACCEPT) {
        return Err(format!(
            "answers {path} without the right Sec-WebSocket-Accept"
        ));
    }
    Ok(Some((end + 4, field("sec-websocket-extensions"))))
}
