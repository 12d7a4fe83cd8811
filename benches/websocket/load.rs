//! How does one thread serve many sockets of the client?

use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;

use crate::frames::Frame;
use crate::socket::{Drained, Socket};

/// As many threads share the sockets of the client as wrk is given by the other benches.
pub(crate) const THREADS: usize = 2;

/// How often a thread looks whether it is to stop, where nothing else wakes it.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Sockets and the epoll that tells which of them have something to read.
pub(crate) struct Group {
    epoll: OwnedFd,
    sockets: Vec<Socket>,
    ready: Vec<usize>,
    events: Vec<Event>,
    buffer: Vec<u8>,
}

impl Group {
    pub(crate) fn of(sockets: Vec<Socket>) -> Result<Self, String> {
        let told = |error: rustix::io::Errno| format!("epoll: {error}");
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(told)?;
        for (place, socket) in sockets.iter().enumerate() {
            socket.stop_blocking()?;
            let data = EventData::new_u64(place as u64);
            epoll::add(
                &epoll,
                socket.stream(),
                data,
                EventFlags::IN | EventFlags::ET,
            )
            .map_err(told)?;
        }
        Ok(Self {
            epoll,
            sockets,
            ready: Vec::with_capacity(512),
            events: Vec::with_capacity(512),
            buffer: vec![0; 16 * 1024],
        })
    }

    pub(crate) fn sockets(&self) -> &[Socket] {
        &self.sockets
    }

    /// Waits for events or a tick; how many sockets have something.
    pub(crate) fn wait(&mut self) -> Result<usize, String> {
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&TICK)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("epoll: {error}")),
        }
        self.ready.clear();
        let places = self.events.drain(..).map(|event| event.data.u64());
        self.ready
            .extend(places.filter_map(|place| usize::try_from(place).ok()));
        Ok(self.ready.len())
    }

    /// Which socket the event of this number is of.
    pub(crate) fn ready(&self, number: usize) -> usize {
        self.ready[number]
    }

    /// Reads all that a socket has.
    pub(crate) fn receive(
        &mut self,
        place: usize,
        mut each: impl FnMut(Frame<'_>) -> Result<(), String>,
    ) -> Result<&Socket, String> {
        let socket = &mut self.sockets[place];
        while socket.receive(&mut self.buffer, &mut each)? == Drained::NotYet {}
        Ok(socket)
    }
}

/// Opens sockets and deals them to the threads, each of which makes a group of its own.
pub(crate) fn open(
    port: u16,
    path: &str,
    count: usize,
    compressed: bool,
) -> Result<Vec<Vec<Socket>>, String> {
    let mut dealt: Vec<Vec<Socket>> = (0..THREADS).map(|_| Vec::new()).collect();
    for number in 0..count {
        let socket = Socket::open(port, path, compressed)
            .map_err(|reason| format!("socket {} of {count}: {reason}", number + 1))?;
        dealt[number % THREADS].push(socket);
    }
    Ok(dealt)
}

/// After how long without a message the server is taken to be stuck.
pub(crate) const STUCK: Duration = Duration::from_secs(20);
