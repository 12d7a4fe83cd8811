//! How would tungstenite be served with a thread for each socket?
//!
//! A thread opens its socket and then reads from it for as long as it lives. Whoever is in the room has, besides, a writing
//! half behind a lock, and the thread that has a message to publish writes it to all of them. tungstenite flushes each
//! message that is sent, and offers no compression.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket, accept_hdr_with_config};

use crate::cases::path;
use crate::harness::child;

/// What a reader of the table has to know about these rows.
pub(crate) const NOTE: &str = "tungstenite: a thread a socket, with a stack of 128 KiB; a publish is written by the publisher's thread. With many sockets its read buffer is 4 KiB, as its documentation advises, else the 128 KiB that it has by itself.";

/// The argument for many sockets.
pub(crate) const MANY: &str = "many";

const STACK: usize = 128 * 1024;

/// The child's side.
pub(crate) fn serve(arguments: &[String]) -> Result<(), String> {
    let told = |error: io::Error| format!("tungstenite: {error}");
    let mut config = WebSocketConfig::default();
    if arguments.first().is_some_and(|argument| argument == MANY) {
        config = config.read_buffer_size(4 * 1024);
    }
    let listener = TcpListener::bind("127.0.0.1:0").map_err(told)?;
    child::announce(listener.local_addr().map_err(told)?.port())?;
    let room = Room::default();
    for stream in listener.incoming() {
        let stream = stream.map_err(told)?;
        stream.set_nodelay(true).map_err(told)?;
        let room = Arc::clone(&room);
        thread::Builder::new()
            .stack_size(STACK)
            // A client that goes away ends its thread with an error, which is as it should be.
            .spawn(move || drop(talk(stream, config, &room)))
            .map_err(told)?;
    }
    Ok(())
}

type Room = Arc<Mutex<Vec<Arc<Mutex<WebSocket<Shared>>>>>>;

fn talk(
    stream: TcpStream,
    config: WebSocketConfig,
    room: &Room,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = Shared(Arc::new(stream));
    let mut wanted = String::new();
    #[allow(clippy::result_large_err, reason = "the trait is tungstenite's")]
    let note = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        request.uri().path().clone_into(&mut wanted);
        Ok(response)
    };
    let mut socket = accept_hdr_with_config(stream.clone(), note, Some(config))
        .map_err(|error| error.to_string())?;
    match wanted.as_str() {
        path::ROOM => {
            let writer = WebSocket::from_raw_socket(stream, Role::Server, Some(config));
            let writer = Arc::new(Mutex::new(writer));
            lock(room).push(Arc::clone(&writer));
            let ended = loop {
                if let Err(error) = socket.read() {
                    break error;
                }
            };
            lock(room).retain(|other| !Arc::ptr_eq(other, &writer));
            Err(ended.into())
        }
        path::PUBLISH => loop {
            let message = socket.read()?;
            if message.is_text() || message.is_binary() {
                publish(room, &message);
            }
        },
        _ => loop {
            let message = socket.read()?;
            if message.is_text() || message.is_binary() {
                socket.send(message)?;
            }
        },
    }
}

/// The list is not locked while it is written to.
fn publish(room: &Room, message: &Message) {
    let writers = lock(room).clone();
    for writer in writers {
        // Whoever is gone is taken from the list by its own thread.
        let _ = lock(&writer).send(message.clone());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads and writes one descriptor, where a clone of the stream would take a second one.
#[derive(Clone)]
struct Shared(Arc<TcpStream>);

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
