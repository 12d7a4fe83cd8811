//! What does a test's WebSocket say and hear?

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};

use super::fail;
use crate::proto::ws::Role;
use crate::proto::ws::close::{Closing, Next};
use crate::proto::ws::decode::{Decoder, Event, MessageLimits};
use crate::proto::ws::encode::{Compressing, Encoder};
use crate::proto::ws::handshake::Opened;
use crate::proto::ws::violation::Violation;

/// How long a wait takes where [`Socket::with_time_limit`] does not say otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The system takes zero for no limit at all.
const SHORTEST_READ: Duration = Duration::from_millis(1);

/// How much is read at once, in bytes.
const PIECE: usize = 16 << 10;

/// Even the shortest message goes compressed: a test is there to see whether the server takes that.
const COMPRESSING: Compressing = Compressing {
    level: 6,
    threshold: 0,
};

/// What comes over a [`Socket`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A message of text.
    Text(String),
    /// A message of bytes.
    Binary(Vec<u8>),
    /// A ping, of a socket that leaves them unanswered ([`Socket::without_pongs`]).
    Ping(Vec<u8>),
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

/// An open WebSocket of a test ([`Ask::websocket`](super::Ask::websocket)). Pings of the server are answered,
/// while something is awaited.
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
    compressed: bool,
    pongs: bool,
    message_limit: usize,
    time_limit: Duration,
    shown: String,
}

impl Socket {
    pub(super) fn new(
        stream: TcpStream,
        buffer: Vec<u8>,
        opened: Opened,
        message_limit: usize,
        shown: String,
    ) -> Socket {
        // Frames have no limit of their own: a server may send a message in one.
        let limits = MessageLimits {
            frame: message_limit,
            message: message_limit,
        };
        let inflate = opened.deflate.map(|agreed| agreed.receives(Role::Client));
        let mut encoder = Encoder::client(Box::new(random));
        if let Some(agreed) = &opened.deflate {
            encoder = encoder.compress(agreed.sends(Role::Client), COMPRESSING);
        }
        Socket {
            stream,
            buffer,
            decoder: Decoder::new(Role::Client, limits, inflate),
            encoder,
            closing: Closing::new(Role::Client),
            protocol: opened.protocol,
            compressed: opened.deflate.is_some(),
            pongs: true,
            message_limit,
            time_limit: TIME_LIMIT,
            shown,
        }
    }

    /// The same socket with another limit to how long a wait for what comes next takes, and a wait for room to send
    /// (default 30 seconds); past it the test fails.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Socket {
        self.time_limit = limit.max(SHORTEST_READ);
        self
    }

    /// The same socket, which leaves pings unanswered and gives them as [`SocketEvent::Ping`]: for what a server does about
    /// a client that is gone, or does not answer.
    ///
    /// ```
    /// use cloudgate::test::{self, SocketEvent};
    /// use cloudgate::{App, FromRequest, Rejection, Request, Response, WebSocketUpgrade};
    ///
    /// fn pings(request: &mut Request<'_>) -> Result<Response, Rejection> {
    ///     Ok(WebSocketUpgrade::from_request(request)?.accept(|mut socket| Ok(socket.ping(b"?")?)))
    /// }
    ///
    /// let client = test::serve(App::new().get("/pings", pings));
    /// let mut socket = client.get("/pings").websocket().without_pongs();
    /// assert_eq!(socket.event(), SocketEvent::Ping(b"?".to_vec()));
    /// ```
    #[must_use]
    pub fn without_pongs(mut self) -> Socket {
        self.pongs = false;
        self
    }

    /// Whether client and server agreed to compress messages ([`Ask::compressed`](super::Ask::compressed)).
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// The subprotocol that the server has chosen.
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// Sends text. That the server has ended the connection meanwhile shows when something is received.
    ///
    /// # Panics
    /// Behind [`Socket::close`], and when the server does not read: then there is no room to send, for as long as
    /// [`Socket::with_time_limit`] says.
    #[track_caller]
    pub fn send(&mut self, text: &str) {
        let mut frame = Vec::new();
        self.encoder.text(text, &mut frame);
        self.send_open(&frame);
    }

    /// Sends bytes as a message.
    ///
    /// # Panics
    /// As [`Socket::send`].
    #[track_caller]
    pub fn send_binary(&mut self, bytes: &[u8]) {
        let mut frame = Vec::new();
        self.encoder.binary(bytes, &mut frame);
        self.send_open(&frame);
    }

    /// Sends a ping of at most 125 bytes.
    ///
    /// # Panics
    /// When it is longer, and as [`Socket::send`].
    #[track_caller]
    pub fn ping(&mut self, bytes: &[u8]) {
        let mut frame = Vec::new();
        if let Err(error) = self.encoder.ping(bytes, &mut frame) {
            self.fail(format_args!("{error}"));
        }
        self.send_open(&frame);
    }

    /// Sends a pong of at most 125 bytes, which nobody has to have asked for.
    ///
    /// # Panics
    /// As [`Socket::ping`].
    #[track_caller]
    pub fn pong(&mut self, bytes: &[u8]) {
        let mut frame = Vec::new();
        if let Err(error) = self.encoder.pong(bytes, &mut frame) {
            self.fail(format_args!("{error}"));
        }
        self.send_open(&frame);
    }

    /// Closes, or answers the server's close.
    ///
    /// # Panics
    /// When the code may not be sent, or the reason is longer than 123 bytes; and as [`Socket::send_raw`].
    #[track_caller]
    pub fn close(&mut self, code: u16, reason: &str) {
        self.send_close(Some(code), reason);
    }

    /// Sends these bytes as they are: for what no client should send.
    ///
    /// # Panics
    /// When the server does not read; see [`Socket::send`].
    #[track_caller]
    pub fn send_raw(&mut self, bytes: &[u8]) {
        // A connection that fails says so when it is read from, behind what the server has sent.
        let _ = self.stream.set_write_timeout(Some(self.time_limit));
        let sent = self.stream.write_all(bytes);
        if sent.is_err_and(|error| is_late(error.kind())) {
            self.fail(format_args!(
                "there was no room to send for {:?}: the server does not read",
                self.time_limit
            ));
        }
    }

    /// What comes next.
    ///
    /// # Panics
    /// When nothing comes in the time that [`Socket::with_time_limit`] gives, when what comes breaks the protocol, and
    /// when a message is longer than [`Client::with_body_limit`](super::Client::with_body_limit) says.
    #[track_caller]
    pub fn event(&mut self) -> SocketEvent {
        self.expect("something")
    }

    /// What comes next in this time; `None` where nothing does. A ping that is answered is nothing.
    ///
    /// # Panics
    /// When what comes breaks the protocol or is too long, as for [`Socket::event`].
    #[track_caller]
    pub fn next_within(&mut self, limit: Duration) -> Option<SocketEvent> {
        self.wait_for_next(limit)
    }

    /// The text of the message that comes next.
    ///
    /// # Panics
    /// As [`Socket::event`], and when something else comes.
    #[track_caller]
    pub fn text(&mut self) -> String {
        match self.expect("text") {
            SocketEvent::Text(text) => text,
            other => self.fail(format_args!("text was expected, and came: {other:?}")),
        }
    }

    /// The bytes of the message that comes next.
    ///
    /// # Panics
    /// As [`Socket::event`], and when something else comes.
    #[track_caller]
    pub fn binary(&mut self) -> Vec<u8> {
        match self.expect("a message of bytes") {
            SocketEvent::Binary(bytes) => bytes,
            other => self.fail(format_args!(
                "a message of bytes was expected, and came: {other:?}"
            )),
        }
    }

    /// With which code and reason the server closes next. A close that was not ours is answered with its code, and the
    /// end of the connection awaited.
    ///
    /// # Panics
    /// As [`Socket::event`], and when something else comes.
    #[track_caller]
    pub fn closed(&mut self) -> (Option<u16>, String) {
        let (code, reason) = match self.expect("a close") {
            SocketEvent::Closed { code, reason } => (code, reason),
            other => self.fail(format_args!("a close was expected, and came: {other:?}")),
        };
        if let Next::Answer(code) = self.closing.next() {
            self.send_close(code, "");
        }
        match self.expect("the end of the connection behind its close") {
            SocketEvent::Ended => (code, reason),
            other => self.fail(format_args!("behind the close came: {other:?}")),
        }
    }

    /// Sends what may not follow our close (RFC 6455 section 5.5.1).
    #[track_caller]
    fn send_open(&mut self, frame: &[u8]) {
        if matches!(self.closing.next(), Next::AwaitClose | Next::AwaitEnd) {
            self.fail(format_args!(
                "nothing may be sent behind a close; `send_raw` does it all the same"
            ));
        }
        self.send_raw(frame);
    }

    #[track_caller]
    fn send_close(&mut self, code: Option<u16>, reason: &str) {
        let mut frame = Vec::new();
        if let Err(error) = self.encoder.close(code, reason, &mut frame) {
            self.fail(format_args!("{error}"));
        }
        if self.closing.send(code) {
            self.send_raw(&frame);
        }
    }

    #[track_caller]
    fn expect(&mut self, wanted: &str) -> SocketEvent {
        if let Some(event) = self.wait_for_next(self.time_limit) {
            return event;
        }
        let came = if self.decoder.is_idle() {
            "nothing came"
        } else {
            "only a part of a message came"
        };
        self.fail(format_args!(
            "{wanted} was expected, and {came} within {:?}",
            self.time_limit
        ))
    }

    #[track_caller]
    fn wait_for_next(&mut self, limit: Duration) -> Option<SocketEvent> {
        // A limit past the end of all time is none.
        let until = Instant::now().checked_add(limit);
        let mut looked = false;
        loop {
            let event = self.decode();
            if event.is_some() {
                return event;
            }
            if !self.buffer.is_empty() {
                continue;
            }
            // A peer that goes on and on, but never with what counts, may not make a wait longer than it is.
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if looked && left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            looked = true;
            let left = left.map(|left| left.max(SHORTEST_READ));
            // A connection that fails says so when it is read from.
            let _ = self.stream.set_read_timeout(left);
            self.buffer.resize(PIECE, 0);
            let read = self.stream.read(&mut self.buffer);
            self.buffer
                .truncate(read.as_ref().map_or(0, |&count| count));
            match read {
                Ok(0) => return Some(SocketEvent::Ended),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_late(error.kind()) => return None,
                Err(_) => return Some(SocketEvent::Ended),
            }
        }
    }

    /// Takes one event, or all there is, off the buffer.
    #[track_caller]
    fn decode(&mut self) -> Option<SocketEvent> {
        let step = match self.decoder.decode(&mut self.buffer) {
            Ok(step) => step,
            Err(Violation::FrameTooLarge | Violation::MessageTooLarge) => self.fail(format_args!(
                "a message is longer than the {} bytes that this client takes",
                self.message_limit
            )),
            Err(violation) => self.fail(format_args!("the server broke the protocol: {violation}")),
        };
        let mut pong = Vec::new();
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
            Some(Event::Ping(bytes)) if !self.pongs => Some(SocketEvent::Ping(bytes.into_owned())),
            Some(Event::Ping(bytes)) => {
                if self.closing.may_talk() {
                    // It was no longer than this when it came.
                    let _ = self.encoder.pong(&bytes, &mut pong);
                }
                None
            }
        };
        let consumed = step.consumed;
        self.buffer.drain(..consumed);
        if !pong.is_empty() {
            self.send_raw(&pong);
        }
        event
    }

    #[track_caller]
    fn fail(&self, what: fmt::Arguments<'_>) -> ! {
        fail(format_args!("{}: {what}", self.shown))
    }
}

/// Whether a time limit of the socket is what ended a call.
fn is_late(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
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
