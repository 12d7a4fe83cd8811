//! What does a test's WebSocket say and hear?

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

use super::fail;
use crate::proto::ws::Role;
use crate::proto::ws::close::Closing;
use crate::proto::ws::decode::{Decoder, Event, MessageLimits};
use crate::proto::ws::encode::Encoder;
use crate::proto::ws::handshake::Opened;

/// How much is read at once, in bytes.
const PIECE: usize = 16 << 10;

/// What comes over a [`Socket`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A message of text.
    Text(String),
    /// A message of bytes.
    Binary(Vec<u8>),
    /// An answer to [`Socket::ping`].
    Pong(Vec<u8>),
    /// The server closes, or answers our close.
    Closed {
        /// The code, if it gave one.
        code: Option<u16>,
        /// The reason, often empty.
        reason: String,
    },
    /// The connection has ended.
    Ended,
}

/// An open WebSocket of a test ([`Ask::websocket`](super::Ask::websocket)). Pings of the server are answered.
///
/// ```
/// use cloudgate::{App, FromRequest, Rejection, Request, Response, WebSocketUpgrade, test};
///
/// fn echo(request: &mut Request<'_>) -> Result<Response, Rejection> {
///     Ok(WebSocketUpgrade::from_request(request)?.accept(|mut socket| {
///         while let Some(message) = socket.recv()? {
///             socket.send(message)?;
///         }
///         Ok(())
///     }))
/// }
///
/// let client = test::serve(App::new().get("/echo", echo));
/// let mut socket = client.get("/echo").websocket();
/// socket.send("hello");
/// assert_eq!(socket.text(), "hello");
/// socket.close(1000, "done");
/// assert_eq!(socket.closed(), (Some(1000), "".into()));
/// ```
pub struct Socket {
    stream: TcpStream,
    /// What came and was not decoded yet.
    buffer: Vec<u8>,
    decoder: Decoder,
    encoder: Encoder,
    closing: Closing,
    protocol: Option<String>,
    shown: String,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, buffer: Vec<u8>, opened: Opened, shown: String) -> Socket {
        Socket {
            stream,
            buffer,
            decoder: Decoder::new(Role::Client, MessageLimits::default(), None),
            encoder: Encoder::client(Box::new(random)),
            closing: Closing::new(Role::Client),
            protocol: opened.protocol,
            shown,
        }
    }

    /// The subprotocol that the server has chosen.
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// Sends text. That the server has ended the connection meanwhile shows when something is received.
    pub fn send(&mut self, text: &str) {
        let mut frame = Vec::new();
        self.encoder.text(text, &mut frame);
        self.send_raw(&frame);
    }

    /// Sends bytes as a message; see [`Socket::send`].
    pub fn send_binary(&mut self, bytes: &[u8]) {
        let mut frame = Vec::new();
        self.encoder.binary(bytes, &mut frame);
        self.send_raw(&frame);
    }

    /// Sends a ping of at most 125 bytes; see [`Socket::send`].
    ///
    /// # Panics
    /// When it is longer.
    #[track_caller]
    pub fn ping(&mut self, bytes: &[u8]) {
        let mut frame = Vec::new();
        if let Err(error) = self.encoder.ping(bytes, &mut frame) {
            fail(format_args!("{}: {error}", self.shown));
        }
        self.send_raw(&frame);
    }

    /// Closes, or answers the server's close; see [`Socket::send`].
    ///
    /// # Panics
    /// When the code may not be sent, or the reason is longer than 123 bytes.
    #[track_caller]
    pub fn close(&mut self, code: u16, reason: &str) {
        let mut frame = Vec::new();
        if let Err(error) = self.encoder.close(Some(code), reason, &mut frame) {
            fail(format_args!("{}: {error}", self.shown));
        }
        if self.closing.send(Some(code)) {
            self.send_raw(&frame);
        }
    }

    /// Sends these bytes as they are: for what no client should send.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        // A server that has closed is heard of by what it has sent.
        let _ = self.stream.write_all(bytes);
    }

    /// What comes next.
    ///
    /// # Panics
    /// When nothing comes for 30 seconds, or what comes breaks the protocol.
    #[track_caller]
    pub fn event(&mut self) -> SocketEvent {
        match self.wait_for_next() {
            Some(event) => event,
            None => fail(format_args!("{}: nothing came in time", self.shown)),
        }
    }

    /// What comes next in this time; `None` where nothing does.
    ///
    /// # Panics
    /// When what comes breaks the protocol.
    #[track_caller]
    pub fn next_within(&mut self, limit: Duration) -> Option<SocketEvent> {
        let before = self.stream.read_timeout().ok().flatten();
        // Zero would be for ever.
        let limit = limit.max(Duration::from_millis(1));
        // A connection that fails says so when it is read from.
        let _ = self.stream.set_read_timeout(Some(limit));
        let event = self.wait_for_next();
        let _ = self.stream.set_read_timeout(before);
        event
    }

    /// The text of the message that comes next.
    ///
    /// # Panics
    /// As [`Socket::event`], and when something else comes.
    #[track_caller]
    pub fn text(&mut self) -> String {
        match self.event() {
            SocketEvent::Text(text) => text,
            other => fail(format_args!(
                "{}: text was expected, and came: {other:?}",
                self.shown
            )),
        }
    }

    /// The bytes of the message that comes next.
    ///
    /// # Panics
    /// As [`Socket::event`], and when something else comes.
    #[track_caller]
    pub fn binary(&mut self) -> Vec<u8> {
        match self.event() {
            SocketEvent::Binary(bytes) => bytes,
            other => fail(format_args!(
                "{}: bytes were expected, and came: {other:?}",
                self.shown
            )),
        }
    }

    /// With which code and reason the server closes next. A close that was not ours is answered, and the end of the
    /// connection awaited.
    ///
    /// # Panics
    /// As [`Socket::event`], and when something else comes.
    #[track_caller]
    pub fn closed(&mut self) -> (Option<u16>, String) {
        let (code, reason) = match self.event() {
            SocketEvent::Closed { code, reason } => (code, reason),
            other => fail(format_args!(
                "{}: a close was expected, and came: {other:?}",
                self.shown
            )),
        };
        self.close(code.unwrap_or(1000), "");
        match self.event() {
            SocketEvent::Ended => (code, reason),
            other => fail(format_args!(
                "{}: behind the close came: {other:?}",
                self.shown
            )),
        }
    }

    #[track_caller]
    fn wait_for_next(&mut self) -> Option<SocketEvent> {
        loop {
            let step = match self.decoder.decode(&mut self.buffer) {
                Ok(step) => step,
                Err(violation) => fail(format_args!(
                    "{}: the server broke the protocol: {violation}",
                    self.shown
                )),
            };
            let consumed = step.consumed;
            let event = match step.event {
                None => None,
                Some(Event::Text(text)) => Some(SocketEvent::Text(text.into_owned())),
                Some(Event::Binary(bytes)) => Some(SocketEvent::Binary(bytes.into_owned())),
                Some(Event::Pong(bytes)) => Some(SocketEvent::Pong(bytes.into_owned())),
                Some(Event::Close { code, reason }) => {
                    self.closing.receive(code);
                    Some(SocketEvent::Closed {
                        code,
                        reason: reason.into_owned(),
                    })
                }
                Some(Event::Ping(bytes)) => {
                    let mut frame = Vec::new();
                    // It was no longer than this when it came.
                    let _ = self.encoder.pong(&bytes, &mut frame);
                    if self.closing.may_talk() {
                        let _ = self.stream.write_all(&frame);
                    }
                    None
                }
            };
            self.buffer.drain(..consumed);
            if event.is_some() {
                return event;
            }
            if !self.buffer.is_empty() {
                continue;
            }
            self.buffer.resize(PIECE, 0);
            let read = self.stream.read(&mut self.buffer);
            self.buffer
                .truncate(read.as_ref().map_or(0, |&count| count));
            match read {
                Ok(0) => return Some(SocketEvent::Ended),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return None;
                }
                Err(_) => return Some(SocketEvent::Ended),
            }
        }
    }
}

/// Bytes that nobody foretells.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if SystemRandom::new().fill(&mut bytes).is_err() {
        fail(format_args!("the system gives no random bytes"));
    }
    bytes
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket")
            .field("of", &self.shown)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}
