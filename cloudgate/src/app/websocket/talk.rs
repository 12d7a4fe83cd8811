//! What does a socket do whose function has it all of the time?

use super::error::{SocketError, SocketResult};
use super::session::Session;
use super::socket::WebSocket;
use super::upgrade::Opening;
use crate::message::{After, Protocol, Upgraded};
use crate::net::home;
use crate::proto::ws::violation::code;

pub(super) struct Talk<F> {
    opening: Opening,
    talk: Option<F>,
}

impl<F: FnOnce(WebSocket<'_>) -> SocketResult + Send> Talk<F> {
    pub(super) fn new(opening: Opening, talk: F) -> Talk<F> {
        Talk {
            opening,
            talk: Some(talk),
        }
    }
}

impl<F: FnOnce(WebSocket<'_>) -> SocketResult + Send> Protocol for Talk<F> {
    fn run(&mut self, connection: &mut Upgraded<'_>) -> After {
        let Some(talk) = self.talk.take() else {
            return After::Over;
        };
        let mut session = self.opening.session(connection.host);
        let socket = WebSocket::over(&mut session, connection);
        let outcome = home::catch_panic(|| talk(socket));
        finish(&mut session, connection, outcome.ok());
        After::Over
    }

    fn keeps_coroutine(&self) -> bool {
        true
    }
}

/// Ends a socket whose function has returned, or panicked.
pub(super) fn finish(
    session: &mut Session,
    connection: &mut Upgraded<'_>,
    outcome: Option<SocketResult>,
) {
    let (code, reason) = match outcome {
        Some(Ok(())) => (code::NORMAL, ""),
        Some(Err(error)) if error.is::<SocketError>() => {
            log::debug!("a WebSocket ended: {error}");
            (code::NORMAL, "")
        }
        Some(Err(error)) => {
            log::error!("a WebSocket's handler failed: {error}; its peer is told 1011");
            (code::INTERNAL, "the server has failed")
        }
        // The panic itself is in the log.
        None => (code::INTERNAL, "the server has failed"),
    };
    WebSocket::over(session, connection).finish(code, reason);
}
