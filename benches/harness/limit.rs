//! What is the least work that any server of this kind can do for a request?
//!
//! As many epoll loops as cores, each of which reads, finds the blank lines and writes one fixed answer for each. It looks at
//! nothing else of the request. Connections are dealt to the loops in turn. The loops are not tied to cores: that cost more
//! here, 3.8 against 3.3 µs a request with the load on the same two cores.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::{fs, thread};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use super::child;

/// What a reader of the table has to know about these rows.
pub(crate) const NOTE: &str = "limit: bare epoll loops that look for the blank line and repeat cloudgate's own answer, byte for byte (another's where cloudgate gave none).";

/// The child's side. The argument is a file that holds the answer, head and body.
pub(crate) fn serve(arguments: &[String]) -> Result<(), String> {
    let [file] = arguments else {
        return Err("limit: one file with the answer, please".to_owned());
    };
    let answer = fs::read(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    if answer.is_empty() {
        return Err(format!("{file} is empty, but an answer has bytes"));
    }
    let answers = Arc::new(Answers::repeat(&answer));
    run(&answers).map_err(|error| format!("limit: {error}"))
}

fn run(answers: &Arc<Answers>) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(told)?;
    let mut loops = Vec::new();
    for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
        let epoll =
            Arc::new(epoll::create(CreateFlags::CLOEXEC).map_err(|error| error.to_string())?);
        let (deal, dealt) = mpsc::channel();
        let (its_epoll, its_answers) = (Arc::clone(&epoll), Arc::clone(answers));
        thread::spawn(move || turn_for_ever(&its_epoll, &dealt, &its_answers));
        loops.push((epoll, deal, 0_u64));
    }
    child::announce(listener.local_addr().map_err(told)?.port())?;
    for turn in 0.. {
        let stream = Arc::new(listener.accept().map_err(told)?.0);
        stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .map_err(told)?;
        let count = loops.len();
        let (epoll, deal, token) = &mut loops[turn % count];
        // First the stream, then its events: the loop finds it waiting when the first event comes.
        deal.send(Arc::clone(&stream))
            .map_err(|_| "a loop has ended".to_owned())?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(&**epoll, &*stream, EventData::new_u64(*token), flags)
            .map_err(|error| error.to_string())?;
        *token += 1;
    }
    Ok(())
}

fn turn_for_ever(epoll: &OwnedFd, dealt: &Receiver<Arc<TcpStream>>, answers: &Answers) {
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events: Vec<Event> = Vec::with_capacity(256);
    let mut buffer = vec![0; 16 * 1024];
    loop {
        // An interrupted wait has no events and is simply repeated.
        let _ = epoll::wait(epoll, spare_capacity(&mut events), None);
        for event in events.drain(..) {
            let token = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            if token >= connections.len() {
                connections.extend(dealt.try_iter().map(|stream| Some(Connection::new(stream))));
            }
            if let Some(place) = connections.get_mut(token)
                && let Some(connection) = place
                && !connection.turn(&mut buffer, answers)
            {
                *place = None;
            }
        }
    }
}

struct Connection {
    stream: Arc<TcpStream>,
    /// How many bytes of a blank line were the last ones read.
    matched: usize,
    /// Bytes of answers that are still to be written.
    owed: usize,
    /// Where in the answer the next byte to be written is.
    offset: usize,
}

impl Connection {
    fn new(stream: Arc<TcpStream>) -> Self {
        Self {
            stream,
            matched: 0,
            owed: 0,
            offset: 0,
        }
    }

    /// Does what can be done now; `false` means that the connection has ended.
    fn turn(&mut self, buffer: &mut [u8], answers: &Answers) -> bool {
        loop {
            if let Some(open) = self.write(answers) {
                return open;
            }
            match (&*self.stream).read(buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    self.owed += self.blank_lines(&buffer[..count]) * answers.one;
                    // Edge-triggered: a short read has emptied the socket, and more bytes are a new event.
                    if count < buffer.len() {
                        return self.write(answers).unwrap_or(true);
                    }
                }
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }

    /// `None` when nothing is owed any more, else whether the connection is still open.
    fn write(&mut self, answers: &Answers) -> Option<bool> {
        while self.owed > 0 {
            let end = answers.bytes.len().min(self.offset + self.owed);
            match (&*self.stream).write(&answers.bytes[self.offset..end]) {
                Ok(count) => {
                    self.owed -= count;
                    self.offset = (self.offset + count) % answers.one;
                }
                Err(error) => return Some(error.kind() == ErrorKind::WouldBlock),
            }
        }
        None
    }

    fn blank_lines(&mut self, bytes: &[u8]) -> usize {
        const BLANK: &[u8] = b"\r\n\r\n";
        // The usual case: one whole request and nothing else.
        if self.matched == 0
            && bytes.ends_with(BLANK)
            && !bytes[..bytes.len() - 1]
                .windows(4)
                .any(|window| window == BLANK)
        {
            return 1;
        }
        let mut count = 0;
        for &byte in bytes {
            self.matched = match byte {
                _ if byte == BLANK[self.matched] => self.matched + 1,
                b'\r' => 1,
                _ => 0,
            };
            if self.matched == BLANK.len() {
                self.matched = 0;
                count += 1;
            }
        }
        count
    }
}

/// The answer, many times over, so that pipelined requests are answered by one write.
struct Answers {
    one: usize,
    bytes: Vec<u8>,
}

impl Answers {
    fn repeat(answer: &[u8]) -> Self {
        let times = (256 * 1024 / answer.len()).clamp(1, 64) + 1;
        Self {
            one: answer.len(),
            bytes: answer.repeat(times),
        }
    }
}
