//! What is the least work that any gateway can do for a request?
//!
//! As many epoll loops as cores, each of which passes bytes on between a client's connection and one to the server behind
//! that it opens beside it. It does not look at the bytes: what is left is two reads and two writes a request, which no
//! gateway can save.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::harness::child;

/// What a reader of the table has to know about these rows.
pub(crate) const NOTE: &str = "limit: bare epoll loops that pass bytes on between a client's connection and one of its own to the server behind, and do not look at them.";

/// The child's side. The argument is the address of the server behind.
pub(crate) fn serve(arguments: &[String]) -> Result<(), String> {
    let behind: SocketAddr = match arguments {
        [address] => address
            .parse()
            .map_err(|_| format!("bare: `{address}` is no address"))?,
        _ => return Err("bare: one address, please".to_owned()),
    };
    run(behind).map_err(|error| format!("bare: {error}"))
}

fn run(behind: SocketAddr) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(told)?;
    let mut loops = Vec::new();
    for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
        let epoll =
            Arc::new(epoll::create(CreateFlags::CLOEXEC).map_err(|error| error.to_string())?);
        let (deal, dealt) = mpsc::channel();
        let its_epoll = Arc::clone(&epoll);
        thread::spawn(move || turn_for_ever(&its_epoll, &dealt));
        loops.push((epoll, deal, 0_u64));
    }
    child::announce(listener.local_addr().map_err(told)?.port())?;
    for turn in 0.. {
        let client = listener.accept().map_err(told)?.0;
        let server = TcpStream::connect(behind).map_err(told)?;
        for stream in [&client, &server] {
            stream
                .set_nonblocking(true)
                .and_then(|()| stream.set_nodelay(true))
                .map_err(told)?;
        }
        let ends = [Arc::new(client), Arc::new(server)];
        let count = loops.len();
        let (epoll, deal, token) = &mut loops[turn % count];
        // First the streams, then their events: the loop finds them waiting when the first event comes.
        deal.send(ends.clone())
            .map_err(|_| "a loop has ended".to_owned())?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        for (end, stream) in ends.iter().enumerate() {
            let data = EventData::new_u64(*token * 2 + end as u64);
            epoll::add(&**epoll, &**stream, data, flags).map_err(|error| error.to_string())?;
        }
        *token += 1;
    }
    Ok(())
}

fn turn_for_ever(epoll: &OwnedFd, dealt: &Receiver<[Arc<TcpStream>; 2]>) {
    let mut pairs: Vec<Option<Pair>> = Vec::new();
    let mut events: Vec<Event> = Vec::with_capacity(256);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // An interrupted wait has no events and is simply repeated.
        let _ = epoll::wait(epoll, spare_capacity(&mut events), None);
        for event in events.drain(..) {
            let token = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            let (number, end) = (token / 2, token % 2);
            if number >= pairs.len() {
                pairs.extend(dealt.try_iter().map(|ends| {
                    Some(Pair {
                        ends,
                        owed: [Vec::new(), Vec::new()],
                    })
                }));
            }
            let Some(place) = pairs.get_mut(number) else {
                continue;
            };
            let Some(pair) = place else { continue };
            let flags = event.flags;
            let readable = flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP);
            // An end is not a new event where bytes came with it, so it is looked for twice.
            // What is owed to this end may go on, and then the other has to be read again.
            let freed = flags.contains(EventFlags::OUT) && !pair.owed[end].is_empty();
            let open = (!freed || (pair.flush(end) && pair.pass(1 - end, &mut buffer)))
                && (!readable || pair.pass(end, &mut buffer))
                && (!flags.intersects(EventFlags::RDHUP | EventFlags::HUP)
                    || pair.pass(end, &mut buffer));
            if !open {
                pair.close();
                *place = None;
            }
        }
    }
}

/// A client's connection and the one to the server behind.
struct Pair {
    ends: [Arc<TcpStream>; 2],
    /// What was read and could not be written to this end yet. Until it is, the other end is not read.
    owed: [Vec<u8>; 2],
}

impl Pair {
    /// Reads from one end what is there and writes it to the other; `false` means that a connection has ended.
    fn pass(&mut self, from: usize, buffer: &mut [u8]) -> bool {
        let to = 1 - from;
        while self.owed[to].is_empty() {
            match (&*self.ends[from]).read(buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    if !self.write(to, &buffer[..count]) {
                        return false;
                    }
                    // Edge-triggered: a short read has emptied the socket, and more bytes are a new event.
                    if count < buffer.len() {
                        return true;
                    }
                }
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn write(&mut self, to: usize, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match (&*self.ends[to]).write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.owed[to].extend_from_slice(bytes);
                    return true;
                }
                Err(_) => return false,
            }
        }
        true
    }

    fn flush(&mut self, to: usize) -> bool {
        let owed = std::mem::take(&mut self.owed[to]);
        self.write(to, &owed)
    }

    fn close(&self) {
        for end in &self.ends {
            // It may have ended already.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}
