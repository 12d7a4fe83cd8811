//! How does a request become a WebSocket, and on which terms?

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::callbacks::{Callbacks, SocketHandler};
use super::delivery::SlowReceiver;
use super::error::SocketResult;
use super::session::Session;
use super::socket::WebSocket;
use super::talk::Talk;
use crate::app::extract::FromRequest;
use crate::app::rejection::Rejection;
use crate::message::upgrade::OriginAllowed;
use crate::message::{Host, Request, Response, Upgrade};
use crate::proto::ws::decode::MessageLimits;
use crate::proto::ws::encode::Compressing;
use crate::proto::ws::extension::{Agreed, Wanted};
use crate::proto::ws::handshake::{HandshakeError, Offer, Origins};

/// The most that may wait for a slow receiver, in bytes.
const OUTBOX: usize = 1 << 20;

/// How messages are compressed (permessage-deflate, RFC 7692), for clients that offer it: all browsers do.
///
/// ```
/// use cloudgate::{PerMessageDeflate, Response, WebSocketUpgrade, route};
///
/// #[route("/ws-feed")]
/// fn feed(upgrade: WebSocketUpgrade) -> Response {
///     upgrade.compress(PerMessageDeflate::new().threshold(256)).accept(|mut socket| {
///         while let Some(message) = socket.recv()? { socket.send(message)?; }
///         Ok(())
///     })
/// }
/// ```
///
/// Off unless a handler switches it on, for it takes some 300 KiB of memory for each socket while that is at it, and tens
/// of microseconds a message. What an attacker can choose should not be compressed in one message with
/// what it must not learn (BREACH).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerMessageDeflate {
    wanted: Wanted,
    how: Compressing,
}

impl Default for PerMessageDeflate {
    fn default() -> PerMessageDeflate {
        PerMessageDeflate::new()
    }
}

impl PerMessageDeflate {
    /// Level 3, from 1 KiB, without context takeover, with windows of 32 KiB.
    pub fn new() -> PerMessageDeflate {
        PerMessageDeflate {
            wanted: Wanted::default(),
            how: Compressing {
                level: 3,
                threshold: 1 << 10,
            },
        }
    }

    /// Sets how hard to try: 1, the fastest, to 9, the smallest. Lower counts as 1 and higher as 9.
    #[must_use]
    pub fn level(mut self, level: u32) -> PerMessageDeflate {
        self.how.level = level.clamp(1, 9);
        self
    }

    /// Sets the length in bytes from which a message is compressed; shorter ones are sent as they are.
    #[must_use]
    pub fn threshold(mut self, bytes: usize) -> PerMessageDeflate {
        self.how.threshold = bytes;
        self
    }

    /// Lets messages of the server refer to those before them. They get smaller, the more alike they are; but each socket
    /// keeps its 300 KiB for all of its life, and a message for many is compressed for each of them.
    #[must_use]
    pub fn server_context_takeover(mut self, on: bool) -> PerMessageDeflate {
        self.wanted.server.takeover = on;
        self
    }

    /// As [`PerMessageDeflate::server_context_takeover`] for messages of the client, whose context takes 50 KiB.
    #[must_use]
    pub fn client_context_takeover(mut self, on: bool) -> PerMessageDeflate {
        self.wanted.client.takeover = on;
        self
    }

    /// Sets how far back the server's compressor looks: 2 to the power of 9 to 15 bytes. Lower counts as 9 and higher as
    /// 15.
    #[must_use]
    pub fn server_max_window_bits(mut self, bits: u8) -> PerMessageDeflate {
        self.wanted.server.window_bits = bits.clamp(9, 15);
        self
    }

    /// As [`PerMessageDeflate::server_max_window_bits`] for the client's, if it lets itself be told.
    #[must_use]
    pub fn client_max_window_bits(mut self, bits: u8) -> PerMessageDeflate {
        self.wanted.client.window_bits = bits.clamp(9, 15);
        self
    }
}

/// The terms of a socket.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) limits: MessageLimits,
    /// Milliseconds without a byte until a ping, 0 for no pings.
    pub(super) heartbeat: u64,
    /// Milliseconds without a message until the socket is closed, 0 for never.
    pub(super) idle: u64,
    pub(super) outbox: usize,
    pub(super) slow_receiver: SlowReceiver,
    deflate: Option<PerMessageDeflate>,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            limits: MessageLimits::default(),
            heartbeat: 30_000,
            idle: 900_000,
            outbox: OUTBOX,
            slow_receiver: SlowReceiver::default(),
            deflate: None,
        }
    }
}

impl Rules {
    pub(super) fn compressing(&self) -> Compressing {
        self.deflate.unwrap_or_default().how
    }
}

/// What was agreed on when a socket was opened.
pub(super) struct Opening {
    pub(super) rules: Arc<Rules>,
    agreed: Option<Agreed>,
    protocol: Option<String>,
}

impl Opening {
    pub(super) fn session(&mut self, host: &dyn Host) -> Session {
        Session::new(host, &self.rules, self.agreed, self.protocol.take())
    }
}

/// A request to open a WebSocket, as the argument of a handler. It becomes a response by
/// [`accept`](WebSocketUpgrade::accept), with a function that talks over the socket, or
/// [`serve`](WebSocketUpgrade::serve), with something that is called for each message; any other response refuses it.
///
/// ```
/// use cloudgate::{App, Request, Response, Status, WebSocketUpgrade, route};
///
/// #[route("/ws-echo")]
/// fn echo(upgrade: WebSocketUpgrade) -> Response {
///     upgrade.accept(|mut socket| {
///         while let Some(message) = socket.recv()? {
///             socket.send(message)?;
///         }
///         Ok(())
///     })
/// }
/// // What asks for no WebSocket is told that this is one.
/// let answer = App::gather().call(&mut Request::get("/ws-echo"));
/// assert_eq!(answer.status(), Status::UPGRADE_REQUIRED);
/// ```
///
/// A browser sends its cookies along whatever page asks, so by default only pages of the same host may open a socket
/// ([`allow_origin`](WebSocketUpgrade::allow_origin), [`any_origin`](WebSocketUpgrade::any_origin)); pages that a
/// [`Cors`](crate::Cors) in front of the route allows may too. Others get 403. Programs other than browsers send no Origin, and are let in.
///
/// | limit | default | past it |
/// |---|---|---|
/// | bytes of a frame | 1 MiB | closed with 1009 |
/// | bytes of a message, inflated | 16 MiB | closed with 1009 |
/// | waiting to be sent | 1 MiB | as [`SlowReceiver`] says: closed with 1013 |
/// | silence | 30 s | a ping; after two without an answer the connection is given up |
/// | no message | 15 min | closed with 1001 |
/// | answer to a close | 5 s | the connection is ended |
#[must_use = "the socket is opened by the response that `accept` or `serve` makes"]
pub struct WebSocketUpgrade {
    offer: Offer,
    origins: Origins,
    rules: Rules,
    protocol: Option<String>,
    fields: Vec<(String, String)>,
}

impl FromRequest for WebSocketUpgrade {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<WebSocketUpgrade, Rejection> {
        let offer = Offer::of(request).map_err(Rejection::WebSocket)?;
        let allowed = request.extensions().get::<OriginAllowed>();
        Ok(WebSocketUpgrade {
            offer,
            origins: if allowed.is_some() {
                Origins::Any
            } else {
                Origins::Same
            },
            rules: Rules::default(),
            protocol: None,
            fields: Vec::new(),
        })
    }
}

impl WebSocketUpgrade {
    /// The page that asks, such as `https://app.example.com`, if a browser does.
    pub fn origin(&self) -> Option<&str> {
        self.offer.origin()
    }

    /// The subprotocols that the client speaks, the one it likes best first.
    pub fn offered_protocols(&self) -> &[String] {
        self.offer.protocols()
    }

    /// Chooses the first of these subprotocols that the client speaks; none, if it speaks none of them. A handler that
    /// cannot do without one refuses where [`WebSocketUpgrade::protocol`] is `None` then.
    pub fn protocols(mut self, ours: &[&str]) -> WebSocketUpgrade {
        let offered = self.offer.protocols();
        let chosen = ours
            .iter()
            .find(|own| offered.iter().any(|name| name == *own));
        self.protocol = chosen.map(|&name| name.to_owned());
        self
    }

    /// The subprotocol that was chosen.
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// Lets pages of this origin open the socket too, as a browser spells it: `https://app.example.com`.
    pub fn allow_origin(mut self, origin: &str) -> WebSocketUpgrade {
        match &mut self.origins {
            Origins::Any => {}
            Origins::Also(origins) => origins.push(origin.to_owned()),
            Origins::Same => self.origins = Origins::Also(vec![origin.to_owned()]),
        }
        self
    }

    /// Lets pages of every origin open the socket: for what is public anyway, or where no cookie says who the user is.
    pub fn any_origin(mut self) -> WebSocketUpgrade {
        self.origins = Origins::Any;
        self
    }

    /// Compresses messages where the client offers to.
    pub fn compress(mut self, how: PerMessageDeflate) -> WebSocketUpgrade {
        self.rules.deflate = Some(how);
        self
    }

    /// Sets the largest frame in bytes.
    pub fn frame_limit(mut self, bytes: usize) -> WebSocketUpgrade {
        self.rules.limits.frame = bytes;
        self
    }

    /// Sets the largest message in bytes, inflated; a message that comes in one frame has to fit
    /// [`WebSocketUpgrade::frame_limit`] too.
    pub fn message_limit(mut self, bytes: usize) -> WebSocketUpgrade {
        self.rules.limits.message = bytes;
        self
    }

    /// Sets how long nothing may come from the peer until it gets a ping; zero for no pings.
    pub fn heartbeat(mut self, every: Duration) -> WebSocketUpgrade {
        self.rules.heartbeat = millis(every);
        self
    }

    /// Sets how long a socket stays open without a message in either direction; zero for ever. Messages of
    /// [`SocketSender`](super::SocketSender)s are noticed when the time is up, so then it may be up to twice as long.
    pub fn idle_timeout(mut self, limit: Duration) -> WebSocketUpgrade {
        self.rules.idle = millis(limit);
        self
    }

    /// Sets how much may wait for a peer that reads too slowly, in bytes; each message counts 64 bytes more than
    /// it has. And what happens past that.
    pub fn outbox(mut self, bytes: usize, when_full: SlowReceiver) -> WebSocketUpgrade {
        self.rules.outbox = bytes;
        self.rules.slow_receiver = when_full;
        self
    }

    /// Adds a header field to the response that opens the socket, such as `Set-Cookie`.
    pub fn header(mut self, name: &str, value: &str) -> WebSocketUpgrade {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Opens the socket. `talk` has it until it returns, on a coroutine of its own; then it is closed.
    ///
    /// An error that is no [`SocketError`](super::SocketError), and a panic, close it with 1011.
    pub fn accept(
        self,
        talk: impl FnOnce(WebSocket<'_>) -> SocketResult + Send + 'static,
    ) -> Response {
        self.open(|opening| Upgrade(Box::new(Talk::new(opening, talk))))
    }

    /// Opens the socket. `handler` is called for what happens to it; while nothing does, the socket has no coroutine,
    /// and takes less memory.
    pub fn serve(self, handler: impl SocketHandler) -> Response {
        self.open(|opening| Upgrade(Box::new(Callbacks::new(opening, handler))))
    }

    fn open(self, upgrade: impl FnOnce(Opening) -> Upgrade) -> Response {
        let wanted = self.rules.deflate.map(|how| how.wanted);
        let agreed = match self.offer.open(&self.origins, wanted.as_ref()) {
            Ok(agreed) => agreed,
            Err(error) => return refuse(error),
        };
        let fields = agreed.answer(self.protocol.as_deref());
        let opening = Opening {
            rules: Arc::new(self.rules),
            agreed: agreed.deflate(),
            protocol: self.protocol,
        };
        let own = fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        // Connection is the server's.
        let own = own.filter(|(name, _)| name != "Connection");
        let mut response = Response::upgrade(upgrade(opening));
        for (name, value) in own.chain(self.fields) {
            if let Err(error) = response.headers_mut().append(&name, &value) {
                log::error!(
                    "the field {name:?} of a WebSocket's response cannot be sent: {error}; its value is {value:?}"
                );
                return Response::error(http::StatusCode::INTERNAL_SERVER_ERROR);
            }
        }
        response
    }
}

/// In milliseconds; what is more than a number holds is for ever.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The answer to a request that is no WebSocket, or may not be one.
pub(in crate::app) fn refuse(error: HandshakeError) -> Response {
    let response = Response::error_because(error.status(), error);
    error
        .fields()
        .iter()
        .filter(|(name, _)| *name != "Connection")
        .fold(response, |response, (name, value)| {
            response.header(name, value)
        })
}

impl fmt::Debug for WebSocketUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketUpgrade")
            .field("origin", &self.origin())
            .field("origins", &self.origins)
            .field("protocol", &self.protocol)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
