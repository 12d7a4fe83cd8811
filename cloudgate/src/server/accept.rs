//! How does a new connection get its coroutine, give it up when it has nothing to do, and get one again?

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use log::Level;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::Shared;
use super::conn::{Close, Connection};
use super::line::Line;
use super::proxied;
use super::seats::{Seat, Work};
use super::upgraded::{self, Held, Left, Talk};
use crate::message::{ApplicationProtocol, Deadline};
use crate::net::home::{self, Socket, Waker};
use crate::net::listener::{Listener, Source};
use crate::net::park::Parked;
use crate::net::stream::{Secure, Stream};
use crate::net::tls::live::Live;
use crate::net::tls::session::NoSession;
use crate::net::transport::Plain;

/// What a client gets that finds every seat taken.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 45\r\n\r\n\
    503 Service Unavailable: too many connections";

/// What a client gets that speaks plain HTTP where TLS is spoken.
const WANTS_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 70\r\n\r\n\
    400 Bad Request: this port speaks TLS: the address begins with https:\n";

/// How long an acceptor rests when the system has no descriptor or memory for a connection.
const REST: Duration = Duration::from_millis(20);

/// How many connections are taken before others on the worker get a turn.
const ACCEPTS_A_TURN: u32 = 32;

/// A connection without a coroutine: new, or idle for a while.
pub(super) struct Guest {
    pub(super) line: Line,
    /// The client, once a proxy has said who that is.
    peer: SocketAddr,
    introduction: Introduction,
    /// When it came, on the server's clock.
    opened: u64,
    /// How many requests it has had answers to.
    served: u64,
    seat: Seat,
    /// What it speaks where that is not HTTP any more.
    pub(super) talk: Option<Box<Talk>>,
}

/// Whether a trusted proxy still has to say for whom the connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Introduction {
    Awaited,
    Done,
}

impl AsFd for Guest {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl Parked for Guest {
    fn minds_its_end(&self) -> bool {
        self.talk.is_some()
    }
}

/// Starts a listener's acceptor on one worker; the waker lets it look whether the server stops.
///
/// # Errors
/// When descriptors or memory are lacking.
pub(super) fn start(
    shared: &Arc<Shared>,
    listener: &Listener,
    tls: Option<&Arc<Live>>,
    worker: usize,
) -> io::Result<Waker> {
    let socket = Socket::at_home(worker, listener.for_worker(worker)?)?;
    let waker = socket.waker();
    shared.acceptors.fetch_add(1, Ordering::SeqCst);
    let mut acceptor = Acceptor {
        socket,
        reserve: reserve(),
        tls: tls.cloned(),
        accepting: Accepting(Arc::clone(shared)),
    };
    home::spawn(worker, "accept", move || acceptor.run())?;
    Ok(waker)
}

struct Acceptor {
    socket: Socket<Source>,
    /// A descriptor to give up when there is no other, so that a waiting client can be turned away.
    reserve: Option<File>,
    /// Who it is, where TLS is spoken.
    tls: Option<Arc<Live>>,
    /// Dropped last, when the descriptor above is closed.
    accepting: Accepting,
}

/// One acceptor in the count of those that still listen.
struct Accepting(Arc<Shared>);

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.acceptors.fetch_sub(1, Ordering::SeqCst);
    }
}

fn reserve() -> Option<File> {
    File::open("/dev/null").ok()
}

impl Acceptor {
    fn run(&mut self) {
        let mut in_turn = 0;
        let shared = Arc::clone(&self.accepting.0);
        while !shared.around.stopping.load(Ordering::SeqCst)
            && !shared.closed.load(Ordering::SeqCst)
        {
            match self.socket.get().accept() {
                // The other acceptor took the descriptor that was meant for turning clients away. It
                // comes first, or those who wait would hang once the descriptors are used up.
                Ok((connection, _)) if !self.has_reserve() => {
                    turn_away(&connection);
                    drop(connection);
                    self.reserve = reserve();
                }
                Ok((connection, peer)) => {
                    admit(&shared, connection, peer, self.tls.as_ref());
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

    fn has_reserve(&mut self) -> bool {
        if self.reserve.is_none() {
            self.reserve = reserve();
        }
        self.reserve.is_some()
    }

    /// Turns one client away with the reserve descriptor, for it would hang otherwise, and rests.
    fn relieve(&mut self, error: Errno) {
        log::error!(
            "no descriptor or memory for another connection ({error}); clients are turned away"
        );
        self.reserve = None;
        if let Ok((connection, _)) = self.socket.get().accept() {
            turn_away(&connection);
        }
        self.reserve = reserve();
        home::sleep(REST);
    }
}

/// Gives a new connection a seat and a worker, or turns it away where there is no seat for it.
fn admit(shared: &Arc<Shared>, connection: OwnedFd, peer: SocketAddr, tls: Option<&Arc<Live>>) {
    let Some(seat) = Seat::take(shared, peer.ip()) else {
        return turn_away(&connection);
    };
    let worker = shared.seats.worker_for(connection.as_raw_fd() as usize);
    // Where it cannot go to that worker soon, the one that its number says serves it as well.
    let socket = home::try_move_to(connection, worker, home::workers())
        .unwrap_or_else(|connection| connection);
    let proxies = shared.proxies.as_ref();
    let introduction = if proxies.is_some_and(|proxies| proxies.trusts(peer.ip())) {
        Introduction::Awaited
    } else {
        Introduction::Done
    };
    // The clock stands still while there is no connection.
    let opened = shared.around.clock.tick();
    let guest = Guest {
        line: Line::new(
            Held::Alone(socket),
            tls.map_or(Secure::Plain, |live| Secure::Awaited(live.current())),
        ),
        peer,
        introduction,
        opened,
        served: 0,
        seat,
        talk: None,
    };
    if let Err(guest) = give_coroutine(guest) {
        // It waits for its turn as an idle one does, no longer than for its first request.
        let until = Deadline::after(opened, shared.around.rules.head);
        park(shared, guest, until);
    }
}

/// Starts a coroutine for a connection that has something to do; gives it back when there is no
/// room for another coroutine.
pub(super) fn give_coroutine(guest: Guest) -> Result<(), Guest> {
    let shared = &guest.seat.shared;
    if !shared.seats.has_room_for_work() {
        return Err(guest);
    }
    let worker = guest.as_fd().as_raw_fd() as usize % home::workers();
    let mut work = Work::on(shared, worker);
    let slot = Arc::new(Mutex::new(Some(guest)));
    let theirs = Arc::clone(&slot);
    let take =
        |slot: &Mutex<Option<Guest>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    let spawned = home::spawn(worker, "connection", move || {
        work.begin();
        if let Some(guest) = take(&theirs) {
            run(&work, guest);
        }
    });
    match spawned {
        Ok(()) => Ok(()),
        // It was not moved into the coroutine, for there is none.
        Err(_) => take(&slot).map_or(Ok(()), Err),
    }
}

/// The life of a connection's coroutine.
fn run(work: &Work, guest: Guest) {
    let mut guest = Some(guest);
    // Who cannot be parked goes on at once.
    while let Some(next) = guest {
        guest = turn(work, next);
    }
}

/// What a connection does until it is over, parked, or has something else to do, for which it is given back.
fn turn(work: &Work, guest: Guest) -> Option<Guest> {
    let Guest {
        line,
        mut peer,
        introduction,
        opened,
        served,
        mut seat,
        talk,
    } = guest;
    let shared = Arc::clone(&seat.shared);
    let (socket, secure) = line.into_parts()?;
    let not_polled = |error| {
        log::error!("the connection from {peer} could not be polled: {error}");
    };
    let guest = |socket, secure, peer, served, seat, talk| Guest {
        line: Line::new(socket, secure),
        peer,
        introduction: Introduction::Done,
        opened,
        served,
        seat,
        talk,
    };
    let socket = match (talk, socket) {
        (Some(talk), held) => {
            let socket = match held {
                Held::Alone(socket) => Arc::new(socket),
                Held::WithTie(socket) => socket,
            };
            let socket = Socket::at_home(work.worker, socket)
                .map_err(not_polled)
                .ok()?;
            return match talk.run(socket, secure, &shared) {
                Left::Over => None,
                Left::Idle(talk, (socket, secure), until) => {
                    let socket = Held::WithTie(socket);
                    let guest = guest(socket, secure, peer, served, seat, Some(talk));
                    upgraded::park(&shared, guest, until)
                }
            };
        }
        (None, Held::Alone(socket)) => socket,
        // Nobody else has the descriptor of a connection that speaks HTTP.
        (None, Held::WithTie(_)) => return None,
    };
    let socket = Socket::at_home(work.worker, socket)
        .map_err(not_polled)
        .ok()?;
    let registration = shared.list.register(socket.waker());
    let mut io = Plain::new(socket, registration);
    if introduction == Introduction::Awaited {
        match proxied::client(&mut io, peer, opened, &shared.around) {
            Ok(client) if seat.count_for(client.ip()) => peer = client,
            Ok(_) => {
                turn_away(&io.into_socket());
                return None;
            }
            Err(error) => {
                error.log(peer);
                return None;
            }
        }
    }
    let until = Deadline::after(opened, shared.around.rules.head);
    let io = match Stream::open(io, secure, until, &shared.lanes[work.worker]) {
        Ok(io) => io,
        Err((io, NoSession::PlainHttp)) => {
            log::debug!("no TLS with {peer}: it speaks plain HTTP");
            answer(&io.into_socket(), WANTS_TLS);
            return None;
        }
        Err((io, NoSession::Failed(error))) => {
            log::debug!("no TLS with {peer}: {error}");
            close_gently(&io.into_socket());
            return None;
        }
    };
    let tls = io.agreed().cloned();
    let mut connection = match tls
        .as_ref()
        .map(|tls| tls.application())
        .unwrap_or_default()
    {
        ApplicationProtocol::Http1 => Connection::resume(io, peer, tls, opened, served),
    };
    let close = connection.serve(&shared.around);
    let served = connection.served();
    match close {
        Close::Quiet(until) => {
            let (socket, secure) = connection.into_io().into_parts();
            let guest = guest(Held::Alone(socket), secure, peer, served, seat, None);
            park(&shared, guest, until);
            None
        }
        Close::Upgraded(upgrade, leftover) => {
            let (socket, secure) = connection.into_io().into_parts();
            let talk = Talk::begin(&shared, work.worker, upgrade, leftover, &secure);
            // On a stack of its own: what the handler has touched of this one would stay resident for as long as
            // the protocol is spoken.
            let socket = Held::Alone(socket);
            give_coroutine(guest(socket, secure, peer, served, seat, Some(talk))).err()
        }
        close => {
            // A response that was cut short is ours to look into; all else is the peer's business.
            let level = if matches!(close, Close::BodyFailed(_)) {
                Level::Warn
            } else {
                Level::Debug
            };
            log::log!(level, "connection from {peer} closed: {close}");
            let mut io = connection.into_io();
            io.say_goodbye();
            if io.ends_by_alert() {
                close_gently(&io.into_parts().0);
            }
            None
        }
    }
}

/// Puts a connection aside until it has something to do. Where that fails it is closed, as an idle
/// connection may be at any time (RFC 9112 section 9.5).
fn park(shared: &Shared, guest: Guest, until: Deadline) {
    drop(shared.lot.park(guest, until));
}

/// Says that the server is full, as far as that goes without waiting.
fn turn_away(connection: &OwnedFd) {
    answer(connection, FULL);
}

/// Sends an answer that is the last one, as far as that goes without waiting.
fn answer(connection: &OwnedFd, bytes: &[u8]) {
    // Whatever fails here, the client sees the end of the connection.
    let _ = send(connection, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    close_gently(connection);
}

/// Ends our side, and takes what the peer has sent already.
fn close_gently(connection: &OwnedFd) {
    // Whatever fails here, the peer sees the end of the connection.
    let _ = shutdown(connection, Shutdown::Write);
    // Closing with unread bytes would destroy what is on its way to the peer; who sends without end has no
    // claim to it.
    let mut unread = vec![0; 4096];
    for _ in 0..16 {
        match recv(connection, &mut *unread, RecvFlags::DONTWAIT) {
            Ok((_, count)) if count > 0 => {}
            _ => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_without_a_request_state_their_true_length() {
        for answer in [FULL, WANTS_TLS] {
            let text = std::str::from_utf8(answer).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(
                head.ends_with(&format!("Content-Length: {}", body.len())),
                "{text}"
            );
        }
    }
}
