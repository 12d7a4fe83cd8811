//! What does somebody else's WebSocket client see?

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use tungstenite::protocol::CloseFrame;
use tungstenite::{Message, WebSocket};

use crate::wait::LIMIT;

/// An open socket of the crate `tungstenite`; every call that waits fails the test after [`LIMIT`].
#[derive(Debug)]
pub struct Client(WebSocket<TcpStream>);

/// Opens a socket.
///
/// # Panics
/// When the server does not agree.
#[track_caller]
pub fn client(address: SocketAddr, path: &str) -> Client {
    let stream = TcpStream::connect_timeout(&address, LIMIT).expect("a connection");
    stream.set_nodelay(true).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a connection");
    stream.set_write_timeout(Some(LIMIT)).expect("a connection");
    let (socket, _) =
        tungstenite::client(format!("ws://{address}{path}"), stream).expect("an open socket");
    Client(socket)
}

impl Client {
    /// Sends text.
    ///
    /// # Panics
    /// When it cannot be sent.
    #[track_caller]
    pub fn say(&mut self, text: &str) {
        self.0.send(Message::text(text)).expect("an open socket");
    }

    /// The text that comes next.
    ///
    /// # Panics
    /// When something else comes, or nothing.
    #[track_caller]
    pub fn text(&mut self) -> String {
        match self.next() {
            Message::Text(text) => text.to_string(),
            other => fail(&format!("{other:?} in place of text")),
        }
    }

    /// The text that comes next, or the code of a close, which is answered.
    ///
    /// # Panics
    /// When something else comes, or nothing.
    #[track_caller]
    pub fn text_or_close(&mut self) -> Result<String, u16> {
        match self.next() {
            Message::Text(text) => Ok(text.to_string()),
            Message::Close(Some(frame)) => {
                // Sends the answer and waits for the end.
                while self.0.read().is_ok() {}
                Err(frame.code.into())
            }
            other => fail(&format!("{other:?} in place of text")),
        }
    }

    /// The close that comes next; it is answered.
    ///
    /// # Panics
    /// When something else comes, or nothing.
    #[track_caller]
    pub fn closed(&mut self) -> (u16, String) {
        let closed = match self.next() {
            Message::Close(Some(frame)) => (frame.code.into(), frame.reason.to_string()),
            other => fail(&format!("{other:?} in place of a close")),
        };
        // Sends the answer and waits for the end.
        while self.0.read().is_ok() {}
        closed
    }

    /// Closes and says with which code the server did.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn close(&mut self, code: u16, reason: &str) -> u16 {
        let frame = CloseFrame {
            code: code.into(),
            reason: reason.to_owned().into(),
        };
        self.0.close(Some(frame)).expect("an open socket");
        self.closed().0
    }

    /// Sends these bytes and ends the connection, without a close.
    pub fn leave(mut self, bytes: &[u8]) {
        // The server may be gone already.
        let _ = self.0.get_mut().write_all(bytes);
    }

    #[track_caller]
    fn next(&mut self) -> Message {
        let began = Instant::now();
        loop {
            match self.0.read().expect("an open socket") {
                // They come for as long as the socket is open.
                Message::Ping(_) | Message::Pong(_) => {
                    assert!(began.elapsed() < LIMIT, "nothing but pings");
                }
                message => return message,
            }
        }
    }
}

#[track_caller]
#[allow(clippy::panic, reason = "this is how a test fails")]
fn fail(message: &str) -> ! {
    panic!("{message}")
}
