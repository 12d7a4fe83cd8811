//! Who takes new connections, and who is turned away?

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use log::Level;
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};

use super::Shared;
use super::conn::{Close, Connection};
use crate::net::home::{self, Socket, Waker};
use crate::net::listener;
use crate::net::transport::Plain;

/// What a client gets that finds every seat taken.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 45\r\n\r\n\
    503 Service Unavailable: too many connections";

/// How long an acceptor rests when the system has no descriptor or memory for a connection.
const REST: Duration = Duration::from_millis(20);

/// How many connections are taken before others on the worker get a turn.
const ACCEPTS_A_TURN: u32 = 32;

/// How many more connections than the least busy one a worker may have before a new one goes there.
const TOLERANCE: usize = 8;

/// The places for connections: how many there are, and how many each worker holds.
pub(super) struct Seats {
    capacity: usize,
    taken: AtomicUsize,
    by_worker: Vec<AtomicUsize>,
}

impl Seats {
    pub(super) fn new(workers: usize, capacity: usize) -> Seats {
        let by_worker = (0..workers).map(|_| AtomicUsize::new(0)).collect();
        Seats {
            capacity,
            taken: AtomicUsize::new(0),
            by_worker,
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Takes a place on the worker that polls descriptor `fd` anyway, or on the least busy one if
    /// that has far fewer; `None` when all places are taken.
    fn take(&self, fd: usize) -> Option<usize> {
        if self.taken.fetch_add(1, Ordering::Relaxed) >= self.capacity {
            self.taken.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let load = |worker: &usize| self.by_worker[*worker].load(Ordering::Relaxed);
        let natural = fd % self.by_worker.len();
        let least = (0..self.by_worker.len())
            .min_by_key(load)
            .unwrap_or(natural);
        let worker = if load(&natural) > load(&least) + TOLERANCE {
            least
        } else {
            natural
        };
        self.by_worker[worker].fetch_add(1, Ordering::Relaxed);
        Some(worker)
    }

    fn leave(&self, worker: usize) {
        self.by_worker[worker].fetch_sub(1, Ordering::Relaxed);
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One taken place; dropping it frees it, however the connection ends.
struct Seat {
    shared: Arc<Shared>,
    worker: usize,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.seats.leave(self.worker);
    }
}

/// Starts the acceptor of one worker; the waker lets it look whether the server stops.
///
/// # Errors
/// When descriptors or memory are lacking.
pub(super) fn start(
    shared: &Arc<Shared>,
    listener: &TcpListener,
    worker: usize,
) -> io::Result<Waker> {
    let socket = Socket::at_home(worker, listener::for_worker(listener, worker)?)?;
    let waker = socket.waker();
    let mut acceptor = Acceptor {
        shared: Arc::clone(shared),
        socket,
        reserve: reserve(),
    };
    home::spawn(worker, "accept", move || acceptor.run())?;
    Ok(waker)
}

struct Acceptor {
    shared: Arc<Shared>,
    socket: Socket<TcpListener>,
    /// A descriptor to give up when there is no other, so that a waiting client can be turned away.
    reserve: Option<File>,
}

fn reserve() -> Option<File> {
    File::open("/dev/null").ok()
}

impl Acceptor {
    fn run(&mut self) {
        let mut in_turn = 0;
        while !self.shared.around.stopping.load(Ordering::Relaxed) {
            match accept(self.socket.get()) {
                Ok((connection, peer)) => {
                    admit(&self.shared, connection, peer);
                    in_turn += 1;
                    if in_turn == ACCEPTS_A_TURN {
                        in_turn = 0;
                        home::yield_now();
                    }
                }
                Err(Errno::AGAIN) => {
                    in_turn = 0;
                    self.socket.wait();
                }
                Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)) => {
                    self.relieve(error);
                }
                // The connection that was to be taken failed, or a signal came: on to the next.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                Err(error) => {
                    log::error!("a connection could not be accepted: {error}");
                    home::sleep(REST);
                }
            }
        }
    }

    /// Turns one client away with the reserve descriptor, for it would hang otherwise, and rests.
    fn relieve(&mut self, error: Errno) {
        log::error!(
            "no descriptor or memory for another connection ({error}); clients are turned away"
        );
        self.reserve = None;
        if let Ok((connection, _)) = accept(self.socket.get()) {
            turn_away(&TcpStream::from(connection));
        }
        self.reserve = reserve();
        home::sleep(REST);
    }
}

fn accept(listener: &TcpListener) -> Result<(OwnedFd, SocketAddr), Errno> {
    let (connection, peer) =
        acceptfrom_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
    let peer = peer
        .and_then(|peer| SocketAddr::try_from(peer).ok())
        .ok_or(Errno::CONNABORTED)?;
    Ok((connection, peer))
}

/// Gives the connection to a worker, or turns it away where there is no place for it.
fn admit(shared: &Arc<Shared>, connection: OwnedFd, peer: SocketAddr) {
    let Some(worker) = shared.seats.take(connection.as_raw_fd() as usize) else {
        return turn_away(&TcpStream::from(connection));
    };
    let seat = Seat {
        shared: Arc::clone(shared),
        worker,
    };
    let started = home::move_to(connection, worker, home::workers()).and_then(|connection| {
        let stream = TcpStream::from(connection);
        // Answers are gathered before they are written, so there is nothing to wait for.
        stream.set_nodelay(true)?;
        home::spawn(worker, "connection", move || run(&seat, stream, peer))
    });
    if let Err(error) = started {
        log::error!("the connection from {peer} could not be served: {error}");
    }
}

/// The life of a connection's coroutine.
fn run(seat: &Seat, stream: TcpStream, peer: SocketAddr) {
    let shared = &*seat.shared;
    let socket = match Socket::at_home(seat.worker, stream) {
        Ok(socket) => socket,
        Err(error) => {
            return log::error!("the connection from {peer} could not be polled: {error}");
        }
    };
    let registration = shared.list.register(socket.waker());
    let now = shared.around.clock.now();
    let mut connection = Connection::new(Plain::new(socket, registration), peer, now);
    let close = connection.serve(&shared.around);
    // A response that was cut short is ours to look into; all else is the peer's business.
    let level = if matches!(close, Close::BodyFailed(_)) {
        Level::Warn
    } else {
        Level::Debug
    };
    log::log!(level, "connection from {peer} closed: {close}");
}

/// Says that the server is full, as far as that goes without waiting.
fn turn_away(mut stream: &TcpStream) {
    // Whatever fails here, the client sees the end of the connection.
    let _ = stream.set_nonblocking(true);
    let _ = stream.write(FULL);
    let _ = stream.shutdown(Shutdown::Write);
    // Closing with unread bytes would destroy the answer on its way.
    let mut unread = vec![0; 4096];
    while matches!(stream.read(&mut unread), Ok(count) if count > 0) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_given_to_the_natural_worker_until_it_has_far_more() {
        let seats = Seats::new(2, 30);
        let workers: Vec<_> = (0..20).filter_map(|_| seats.take(4)).collect();
        assert_eq!(workers[..9], [0; 9]);
        assert!(workers[9..].contains(&1));
        let on_first = workers.iter().filter(|worker| **worker == 0).count();
        assert!(on_first <= 20 - on_first + TOLERANCE + 1);
    }

    #[test]
    fn the_last_seat_is_taken_and_none_past_it() {
        let seats = Seats::new(2, 2);
        let worker = seats.take(0).unwrap();
        assert!(seats.take(1).is_some());
        assert!(seats.take(2).is_none());
        seats.leave(worker);
        assert!(seats.take(3).is_some());
        assert!(seats.take(4).is_none());
    }

    #[test]
    fn the_answer_of_a_full_server_states_its_true_length() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
    }
}
