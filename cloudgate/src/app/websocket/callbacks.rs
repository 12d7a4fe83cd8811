//! What does a socket do that is served by callbacks?

use super::error::SocketResult;
use super::message::Message;
use super::outbox::SocketSender;
use super::session::Session;
use super::socket::{CloseFrame, Received, WebSocket};
use super::talk::finish;
use super::upgrade::Opening;
use crate::message::{After, Deadline, Protocol, Upgraded};
use crate::net::home;

/// What is called for the things that happen to one socket ([`WebSocketUpgrade::serve`](super::WebSocketUpgrade::serve)).
/// Each socket has a value of its own, so its fields are what the socket remembers.
///
/// ```
/// use cloudgate::{Message, Response, SocketHandler, SocketResult, WebSocket, WebSocketUpgrade, route};
///
/// struct Counter(u64);
///
/// impl SocketHandler for Counter {
///     fn message(&mut self, socket: &mut WebSocket<'_>, message: Message) -> SocketResult {
///         self.0 += 1;
///         socket.send(format!("{}: {} bytes", self.0, message.len()))?;
///         Ok(())
///     }
/// }
///
/// #[route("/ws-count")]
/// fn count(upgrade: WebSocketUpgrade) -> Response { upgrade.serve(Counter(0)) }
/// ```
///
/// The calls of one socket come one after the other, on its worker; they may wait as a handler may. An error that is no
/// [`SocketError`](super::SocketError), and a panic, close the socket with 1011.
pub trait SocketHandler: Send + 'static {
    /// The socket is open.
    ///
    /// # Errors
    /// Any: the socket is closed.
    fn open(&mut self, socket: &mut WebSocket<'_>) -> SocketResult {
        let _ = socket;
        Ok(())
    }

    /// A message has come.
    ///
    /// # Errors
    /// Any: the socket is closed.
    fn message(&mut self, socket: &mut WebSocket<'_>, message: Message) -> SocketResult;

    /// The socket is closed, however that came about; it is called once for each socket that was opened, and by then the
    /// socket has left all topics of a [`Hub`](crate::Hub).
    fn close(&mut self, socket: &SocketSender, frame: &CloseFrame) {
        let _ = (socket, frame);
    }
}

pub(super) struct Callbacks<H> {
    opening: Opening,
    handler: H,
    session: Option<Session>,
}

impl<H: SocketHandler> Callbacks<H> {
    pub(super) fn new(opening: Opening, handler: H) -> Callbacks<H> {
        Callbacks {
            opening,
            handler,
            session: None,
        }
    }
}

/// How a turn has ended.
enum Turn {
    /// There is nothing to do until this point.
    Rest(Deadline),
    /// The socket is to be closed, or is.
    Over(SocketResult),
}

impl<H: SocketHandler> Protocol for Callbacks<H> {
    fn run(&mut self, connection: &mut Upgraded<'_>) -> After {
        let first = self.session.is_none();
        let session = match &mut self.session {
            Some(session) => session,
            None => self.session.insert(self.opening.session(connection.host)),
        };
        session.outbox.resume();
        let handler = &mut self.handler;
        let outcome = home::catch_panic(|| {
            let mut socket = WebSocket::over(session, connection);
            if first && let Err(error) = handler.open(&mut socket) {
                return Turn::Over(Err(error));
            }
            serve(handler, &mut socket)
        });
        let outcome = match outcome {
            Ok(Turn::Rest(until)) => return After::Idle(until),
            Ok(Turn::Over(outcome)) => Some(outcome),
            Err(_) => None,
        };
        finish(session, connection, outcome);
        // It is in no topic any more when it hears of that, so it can tell those who are.
        session.outbox.end();
        let (sender, frame) = (session.sender(), session.close_frame());
        // A panic is in the log, and there is nobody left to be told.
        let _ = home::catch_panic(|| handler.close(&sender, &frame));
        After::Over
    }

    fn keeps_coroutine(&self) -> bool {
        false
    }

    fn has_work(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.outbox.has_work())
    }
}

/// Hands messages on until nothing comes for a while.
fn serve(handler: &mut impl SocketHandler, socket: &mut WebSocket<'_>) -> Turn {
    let host = socket.host();
    // Who was woken without a message, by a pong or to send a ping, rests again at once.
    let mut until = Deadline::at(host.now());
    loop {
        match socket.next(until) {
            Ok(Received::Message(message)) => {
                if let Err(error) = handler.message(socket, message) {
                    return Turn::Over(Err(error));
                }
                until = Deadline::after(host.now(), host.patience());
            }
            Ok(Received::Nothing) => {
                let session = socket.session();
                session.shrink();
                if session.rest() {
                    return Turn::Rest(session.due());
                }
                // What is to be sent waits for the peer.
                until = Deadline::NEVER.min(session.due());
            }
            Ok(Received::Closed) => return Turn::Over(Ok(())),
            Err(error) => return Turn::Over(Err(error.into())),
        }
    }
}
