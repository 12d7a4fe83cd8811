//! How does cloudgate do what is measured, with callbacks and with a coroutine for each socket?

// Handlers take their arguments by value, and what they share is public.
#![allow(clippy::needless_pass_by_value, unreachable_pub)]

use std::thread;

use cloudgate::{
    App, Hub, Message, PerMessageDeflate, Response, Server, SocketHandler, SocketResult, State,
    WebSocket, WebSocketUpgrade, route,
};

use crate::harness::child::{self, Running};
use crate::harness::folder::Folder;

/// Each socket has a handler that is called; an idle one is parked.
pub(crate) const CALLBACK: &str = "callback";
/// Each socket has a function that reads from it.
pub(crate) const COROUTINE: &str = "coroutine";
/// As `CALLBACK`, but what is sent is gathered until there is nothing more to read.
pub(crate) const FEED: &str = "feed";

const DEFLATE: &str = "deflate";

/// What all in the room are subscribed to.
const TOPIC: &str = "all";

/// What a reader of the table has to know about these rows.
pub(crate) const NOTE: &str = "cloudgate: callbacks, an idle socket is parked; cloudgate-coroutine: a loop for each socket; both `send`, which writes each message at once. cloudgate-feed: callbacks that `feed`, which writes what has gathered when all that came is read. Compression is as it is by default, with threshold 0.";

pub(crate) fn start(style: &str, compressed: bool, folder: &Folder) -> Result<Running, String> {
    let mut arguments = vec![style.to_owned()];
    if compressed {
        arguments.push(DEFLATE.to_owned());
    }
    Running::start("app", &arguments, folder.path())
}

/// The child's side.
pub(crate) fn serve(arguments: &[String]) -> Result<(), String> {
    let is = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    let app = App::gather().state(Hub::new()).state(Terms {
        coroutines: is(COROUTINE),
        gathers: is(FEED),
        compression: is(DEFLATE).then(|| PerMessageDeflate::new().threshold(0)),
    });
    let running = Server::bind("127.0.0.1:0")
        .and_then(|server| server.serve(app))
        .map_err(|error| error.to_string())?;
    child::announce(running.addr().port())?;
    loop {
        thread::park();
    }
}

#[derive(Clone, Copy)]
pub struct Terms {
    coroutines: bool,
    gathers: bool,
    compression: Option<PerMessageDeflate>,
}

impl Terms {
    fn apply(&self, upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
        match self.compression {
            Some(how) => upgrade.compress(how),
            None => upgrade,
        }
    }
}

#[route("/echo")]
fn echo(upgrade: WebSocketUpgrade, terms: State<Terms>) -> Response {
    let upgrade = terms.apply(upgrade);
    if !terms.coroutines {
        return upgrade.serve(Echo {
            gathers: terms.gathers,
        });
    }
    upgrade.accept(|mut socket| {
        while let Some(message) = socket.recv()? {
            socket.send(message)?;
        }
        Ok(())
    })
}

#[route("/room")]
fn room(upgrade: WebSocketUpgrade, terms: State<Terms>, hub: State<Hub>) -> Response {
    let (upgrade, hub) = (terms.apply(upgrade), Hub::clone(&hub));
    if !terms.coroutines {
        return upgrade.serve(Listener(hub));
    }
    upgrade.accept(move |mut socket| {
        hub.subscribe(TOPIC, &socket.sender())?;
        while socket.recv()?.is_some() {}
        Ok(())
    })
}

#[route("/publish")]
fn publish(upgrade: WebSocketUpgrade, terms: State<Terms>, hub: State<Hub>) -> Response {
    let (upgrade, hub) = (terms.apply(upgrade), Hub::clone(&hub));
    if !terms.coroutines {
        return upgrade.serve(Publisher(hub));
    }
    upgrade.accept(move |mut socket| {
        while let Some(message) = socket.recv()? {
            hub.publish(TOPIC, message);
        }
        Ok(())
    })
}

struct Echo {
    gathers: bool,
}

impl SocketHandler for Echo {
    fn message(&mut self, socket: &mut WebSocket<'_>, message: Message) -> SocketResult {
        if self.gathers {
            socket.feed(message)?;
        } else {
            socket.send(message)?;
        }
        Ok(())
    }
}

/// Gets what is published, and says nothing.
struct Listener(Hub);

impl SocketHandler for Listener {
    fn open(&mut self, socket: &mut WebSocket<'_>) -> SocketResult {
        self.0.subscribe(TOPIC, &socket.sender())?;
        Ok(())
    }

    fn message(&mut self, _socket: &mut WebSocket<'_>, _message: Message) -> SocketResult {
        Ok(())
    }
}

struct Publisher(Hub);

impl SocketHandler for Publisher {
    fn message(&mut self, _socket: &mut WebSocket<'_>, message: Message) -> SocketResult {
        self.0.publish(TOPIC, message);
        Ok(())
    }
}
