//! What is the least work that any WebSocket server can do for a message?
//!
//! As many epoll loops as cores. The head of a request is looked through for its path and answered with the one answer that
//! fits the client's key; of a frame the length is read, the mask taken off, and nothing checked. What is published goes to
//! the other loops by a channel, and each writes the one frame to its own sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

use crate::cases::path;
use crate::frames;
use crate::harness::child;
use crate::socket::ACCEPT;

/// What a reader of the table has to know about these rows.
pub(crate) const NOTE: &str = "limit: bare epoll loops that unmask and repeat, and check nothing; a publish is one frame for all, written by all loops at once.";

/// The child's side.
pub(crate) fn serve(_arguments: &[String]) -> Result<(), String> {
    run().map_err(|error| format!("limit: {error}"))
}

fn run() -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(told)?;
    let mut mail = Vec::new();
    let mut boxes = Vec::new();
    for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
        let (send, receive) = mpsc::channel();
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| error.to_string())?;
        mail.push(Mail {
            send,
            bell: Arc::new(bell),
        });
        boxes.push(receive);
    }
    for (number, receive) in boxes.into_iter().enumerate() {
        let turning = Turning::new(number, mail.clone(), receive)?;
        thread::spawn(move || turning.turn_for_ever());
    }
    child::announce(listener.local_addr().map_err(told)?.port())?;
    for turn in 0.. {
        let stream = listener.accept().map_err(told)?.0;
        stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .map_err(told)?;
        mail[turn % mail.len()].send(Letter::Connection(stream));
    }
    Ok(())
}

enum Letter {
    Connection(TcpStream),
    /// A frame for all in the room.
    Published(Arc<[u8]>),
}

/// How a loop is told something.
#[derive(Clone)]
struct Mail {
    send: Sender<Letter>,
    bell: Arc<OwnedFd>,
}

impl Mail {
    fn send(&self, letter: Letter) {
        // A loop ends only with the process.
        let _ = self.send.send(letter);
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
    }
}

struct Turning {
    number: usize,
    mail: Vec<Mail>,
    letters: Receiver<Letter>,
    epoll: OwnedFd,
    connections: Vec<Option<Connection>>,
    /// Which of them are in the room.
    room: Vec<usize>,
}

const BELL: u64 = u64::MAX;

impl Turning {
    fn new(number: usize, mail: Vec<Mail>, letters: Receiver<Letter>) -> Result<Self, String> {
        let told = |error: rustix::io::Errno| error.to_string();
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(told)?;
        let data = EventData::new_u64(BELL);
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &*mail[number].bell, data, flags).map_err(told)?;
        Ok(Self {
            number,
            mail,
            letters,
            epoll,
            connections: Vec::new(),
            room: Vec::new(),
        })
    }

    fn turn_for_ever(mut self) {
        let mut events: Vec<Event> = Vec::with_capacity(256);
        let mut buffer = vec![0; 16 * 1024];
        let mut out = Vec::new();
        loop {
            // An interrupted wait has no events and is simply repeated.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), None);
            for event in events.drain(..) {
                match event.data.u64() {
                    BELL => self.read_letters(),
                    token => self.connection(token as usize, &mut buffer, &mut out),
                }
            }
        }
    }

    fn read_letters(&mut self) {
        // Edge-triggered: each ring is an event, so the count need not be read.
        while let Ok(letter) = self.letters.try_recv() {
            match letter {
                Letter::Connection(stream) => {
                    let data = EventData::new_u64(self.connections.len() as u64);
                    let flags = EventFlags::IN | EventFlags::ET;
                    let added = epoll::add(&self.epoll, &stream, data, flags);
                    self.connections
                        .push(added.ok().map(|()| Connection::new(stream)));
                }
                Letter::Published(frame) => self.deliver(&frame),
            }
        }
    }

    fn deliver(&mut self, frame: &[u8]) {
        for &place in &self.room {
            if let Some(connection) = &mut self.connections[place] {
                // So little is on the way that it fits, and who is gone is found out elsewhere.
                let _ = connection.stream.write(frame);
            }
        }
    }

    fn connection(&mut self, place: usize, buffer: &mut [u8], out: &mut Vec<u8>) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        out.clear();
        let before = connection.does;
        if !connection.turn(buffer, out) {
            self.connections[place] = None;
            self.room.retain(|&other| other != place);
            return;
        }
        match connection.does {
            Does::Publishes if before == Does::Publishes && !out.is_empty() => {
                let frame: Arc<[u8]> = Arc::from(&out[..]);
                for (number, mail) in self.mail.iter().enumerate() {
                    if number != self.number {
                        mail.send(Letter::Published(Arc::clone(&frame)));
                    }
                }
                self.deliver(&frame);
            }
            Does::Listens if before == Does::Opens => self.room.push(place),
            _ => {}
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Opens,
    Echoes,
    Listens,
    Publishes,
}

struct Connection {
    stream: TcpStream,
    does: Does,
    /// The start of a head or frame whose end has not come.
    rest: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            does: Does::Opens,
            rest: Vec::new(),
        }
    }

    /// Reads what there is and puts the frames that answer it into `out`; `false` means that the connection has ended.
    fn turn(&mut self, buffer: &mut [u8], out: &mut Vec<u8>) -> bool {
        loop {
            let count = match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            };
            if self.does == Does::Opens {
                self.rest.extend_from_slice(&buffer[..count]);
                if !self.open() {
                    return false;
                }
            } else if self.rest.is_empty() {
                let taken = unmask(&buffer[..count], out);
                self.rest.extend_from_slice(&buffer[taken..count]);
            } else {
                self.rest.extend_from_slice(&buffer[..count]);
                let taken = unmask(&self.rest, out);
                self.rest.drain(..taken);
            }
            if self.does == Does::Echoes && !out.is_empty() {
                if !matches!(self.stream.write(out), Ok(count) if count == out.len()) {
                    return false;
                }
                out.clear();
            }
            if count < buffer.len() {
                return true;
            }
        }
    }

    /// Answers the request if its end has come.
    fn open(&mut self) -> bool {
        if !self.rest.ends_with(b"\r\n\r\n") {
            return true;
        }
        let asks_for = |path: &str| {
            let line = format!("GET {path} ");
            self.rest.starts_with(line.as_bytes())
        };
        self.does = if asks_for(path::ROOM) {
            Does::Listens
        } else if asks_for(path::PUBLISH) {
            Does::Publishes
        } else {
            Does::Echoes
        };
        self.rest.clear();
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
        );
        matches!(self.stream.write(answer.as_bytes()), Ok(count) if count == answer.len())
    }
}

/// Puts the whole frames of `bytes` into `out` without their masks, and says how many bytes they were.
pub(crate) fn unmask(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    let mut taken = 0;
    while let [first, second, rest @ ..] = &bytes[taken..] {
        let (length, masked) = match (second & 0x7f, rest) {
            (126, [high, low, masked @ ..]) => {
                (usize::from(u16::from_be_bytes([*high, *low])), masked)
            }
            (126, _) => break,
            (length, masked) => (usize::from(length), masked),
        };
        let Some((mask, payload)) = masked.split_first_chunk::<4>() else {
            break;
        };
        let Some(payload) = payload.get(..length) else {
            break;
        };
        out.extend_from_slice(&frames::head(first & 0x0f, length, 0));
        let mask = u32::from_ne_bytes(*mask);
        let (words, tail) = payload.as_chunks::<4>();
        for word in words {
            out.extend_from_slice(&(u32::from_ne_bytes(*word) ^ mask).to_ne_bytes());
        }
        out.extend(
            tail.iter()
                .zip(mask.to_ne_bytes())
                .map(|(byte, mask)| byte ^ mask),
        );
        taken += 2 + (rest.len() - masked.len()) + 4 + length;
    }
    taken
}
