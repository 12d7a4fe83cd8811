//! Does a socket do what its peer, its handler and others make of it? Over a pipe whose clock the test moves.

mod lives;
mod outbox;
mod parked;
mod time;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::message::{Compresses, Load};
use super::outbox::{OVERHEAD, Outbox};
use super::{SlowReceiver, SocketHandler, SocketResult, SocketSender, WebSocket, WebSocketUpgrade};
use crate::app::extract::FromRequest;
use crate::message::{
    After, Body, Deadline, Duplex, Host, Pace, Protocol, Request, Response, Tie, Upgrade, Upgraded,
};
use crate::proto::pipe::{Pipe, PipeHandle};
use crate::proto::ws::Role;
use crate::proto::ws::decode::{Decoder, Event, MessageLimits};
use crate::proto::ws::deflate::Coding;
use crate::proto::ws::encode::{Compressing, Encoder};
use crate::proto::ws::tests::{KEY, owned};

/// How long a test waits for what is sure to come.
const LONG: Duration = Duration::from_secs(30);

/// A request to open a socket, with these fields more.
fn request(fields: &[(&str, &str)]) -> Request<'static> {
    let request = Request::get("/")
        .with_header("Connection", "Upgrade")
        .with_header("Upgrade", "websocket")
        .with_header("Sec-WebSocket-Version", "13")
        .with_header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    fields.iter().fold(request, |request, (name, value)| {
        request.with_header(name, value)
    })
}

fn upgrade() -> WebSocketUpgrade {
    WebSocketUpgrade::from_request(&mut request(&[])).unwrap()
}

fn compressed() -> WebSocketUpgrade {
    let field = ("Sec-WebSocket-Extensions", "permessage-deflate");
    WebSocketUpgrade::from_request(&mut request(&[field])).unwrap()
}

fn protocol(mut response: Response) -> Box<dyn Protocol> {
    assert_eq!(response.status(), 101, "{response:?}");
    match response.take_body() {
        Body::Upgrade(Upgrade(protocol)) => protocol,
        other => panic!("{other:?}"),
    }
}

/// What others reach the socket by: a coroutine that waits at a pipe, or none.
#[derive(Default)]
pub(in crate::app) struct FakeTie {
    waker: Mutex<Option<PipeHandle>>,
    /// How many bytes the next writes to a parked socket take; none where there is no more room.
    room: Mutex<VecDeque<usize>>,
    aside: Mutex<Vec<u8>>,
    parked: AtomicBool,
    roused: AtomicUsize,
    called: AtomicUsize,
}

impl FakeTie {
    fn wake_pipe(&self) {
        if let Some(waker) = &*self.waker.lock().unwrap() {
            waker.wake();
        }
    }

    fn is_parked(&self) -> bool {
        self.parked.load(Ordering::SeqCst)
    }
}

impl Tie for FakeTie {
    fn rouse(&self) {
        self.roused.fetch_add(1, Ordering::SeqCst);
        self.wake_pipe();
    }

    fn call(&self) {
        self.called.fetch_add(1, Ordering::SeqCst);
        self.wake_pipe();
    }

    fn write_aside(&self, bytes: &[u8]) -> Option<io::Result<usize>> {
        if !self.is_parked() {
            return None;
        }
        let room = self.room.lock().unwrap().pop_front();
        let Some(count) = room.map(|room| room.min(bytes.len())) else {
            return Some(Err(ErrorKind::WouldBlock.into()));
        };
        self.aside
            .lock()
            .unwrap()
            .extend_from_slice(&bytes[..count]);
        Some(Ok(count))
    }

    fn worker(&self) -> usize {
        0
    }
}

/// A socket that nobody takes from, and that `limit` bytes may wait for, with the overhead of all messages.
pub(in crate::app) fn sender(limit: usize, policy: SlowReceiver) -> (SocketSender, Arc<FakeTie>) {
    let tie = Arc::new(FakeTie::default());
    let outbox = Outbox::new(
        Arc::clone(&tie) as Arc<dyn Tie>,
        None,
        limit - OVERHEAD,
        policy,
    );
    (SocketSender(outbox), tie)
}

/// A socket with room for everything, which compresses without takeover and looks so far back.
pub(in crate::app) fn compressing(window_bits: u8) -> SocketSender {
    let coding = Coding {
        takeover: false,
        window_bits,
    };
    let how = Compressing {
        level: 1,
        threshold: 64,
    };
    let tie = Arc::new(FakeTie::default());
    let compresses = Some(Compresses { coding, how });
    SocketSender(Outbox::new(tie, compresses, 64 << 20, SlowReceiver::Close))
}

/// What waits for a socket, in short messages of text; it is taken out.
pub(in crate::app) fn texts(sender: &SocketSender) -> Vec<String> {
    let text = |load| match load {
        Load::Frame(frame) => String::from_utf8(frame[2..].to_vec()).unwrap(),
        Load::Message(message) => format!("{message:?}"),
    };
    taken_out(sender).into_iter().map(text).collect()
}

/// Takes out all that waits for a socket.
fn taken_out(sender: &SocketSender) -> Vec<Load> {
    let mut loads = Vec::new();
    loop {
        let taken = sender.0.take(usize::MAX);
        if taken.loads.is_empty() {
            return loads;
        }
        sender.0.sent(taken.cost);
        loads.extend(taken.loads);
    }
}

/// Ends a socket.
pub(in crate::app) fn end(sender: &SocketSender) {
    sender.0.end();
}

struct FakeHost {
    clock: PipeHandle,
    stopping: Arc<AtomicBool>,
    tie: Arc<dyn Tie>,
}

impl Host for FakeHost {
    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn pace(&self) -> Pace {
        Pace::new(10_000, 30_000, 240)
    }

    fn patience(&self) -> u64 {
        1_000
    }

    fn tie(&self) -> &Arc<dyn Tie> {
        &self.tie
    }
}

/// A pipe that counts how often it was waited at.
struct Counting(Pipe, Arc<AtomicUsize>);

impl Duplex for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn wait(&mut self, until: Deadline) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.wait(until)
    }

    fn yield_turn(&mut self) {}

    fn close_write(&mut self) -> io::Result<()> {
        self.0.close_write()
    }
}

/// The client's end of a socket whose server's end runs on a thread.
pub(super) struct Peer {
    pipe: Pipe,
    decoder: Decoder,
    encoder: Encoder,
    read: Vec<u8>,
    tie: Arc<FakeTie>,
    stopping: Arc<AtomicBool>,
    waits: Arc<AtomicUsize>,
    server: JoinHandle<(Box<dyn Protocol>, After)>,
}

impl Peer {
    /// A peer of a socket with so much room on its way.
    fn of(response: Response, capacity: usize) -> Peer {
        Peer::start(protocol(response), capacity, b"", Arc::default(), true)
    }

    /// As [`Peer::of`], of a socket that may have been parked and runs until it is to be parked again; these bytes came
    /// behind the request.
    fn with(
        protocol: Box<dyn Protocol>,
        capacity: usize,
        leftover: &[u8],
        tie: Arc<FakeTie>,
    ) -> Peer {
        Peer::start(protocol, capacity, leftover, tie, false)
    }

    fn start(
        mut protocol: Box<dyn Protocol>,
        capacity: usize,
        leftover: &[u8],
        tie: Arc<FakeTie>,
        again: bool,
    ) -> Peer {
        let (server, client) = Pipe::pair(capacity);
        let waits = Arc::new(AtomicUsize::new(0));
        let mut server = Counting(server, Arc::clone(&waits));
        *tie.waker.lock().unwrap() = Some(server.0.handle());
        tie.parked.store(false, Ordering::SeqCst);
        let stopping = Arc::new(AtomicBool::new(false));
        let host = FakeHost {
            clock: server.0.handle(),
            stopping: Arc::clone(&stopping),
            tie: Arc::clone(&tie) as Arc<dyn Tie>,
        };
        let mut leftover = leftover.to_vec();
        let running = std::thread::spawn(move || {
            loop {
                let after = protocol.run(&mut Upgraded {
                    io: &mut server,
                    leftover: &mut leftover,
                    host: &host,
                });
                match after {
                    // It is late, which it finds out by itself, or woken.
                    After::Idle(until) if again => drop(server.wait(until)),
                    after => return (protocol, after),
                }
            }
        });
        Peer {
            pipe: client,
            decoder: Decoder::new(Role::Client, MessageLimits::default(), None),
            encoder: Encoder::client(Box::new(|| KEY)),
            read: Vec::new(),
            tie,
            stopping,
            waits,
            server: running,
        }
    }

    fn inflating(mut self) -> Peer {
        let coding = Coding {
            takeover: false,
            window_bits: 15,
        };
        self.decoder = Decoder::new(Role::Client, MessageLimits::default(), Some(coding));
        self
    }

    /// Sends bytes, waiting for room.
    fn send_raw(&mut self, mut bytes: &[u8]) {
        let began = Instant::now();
        while !bytes.is_empty() {
            match self.pipe.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    assert!(began.elapsed() < LONG, "no room for {} bytes", bytes.len());
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn send(&mut self, write: impl FnOnce(&mut Encoder, &mut Vec<u8>)) {
        let mut bytes = Vec::new();
        write(&mut self.encoder, &mut bytes);
        self.send_raw(&bytes);
    }

    fn say(&mut self, text: &str) {
        self.send(|encoder, out| encoder.text(text, out));
    }

    fn close(&mut self, code: u16, reason: &str) {
        self.send(|encoder, out| encoder.close(Some(code), reason, out).unwrap());
    }

    /// What comes next; `None` at the end of the stream.
    fn next(&mut self) -> Option<Event<'static>> {
        let began = Instant::now();
        loop {
            let step = self.decoder.decode(&mut self.read).unwrap();
            let (consumed, event) = (step.consumed, step.event.map(owned));
            self.read.drain(..consumed);
            if event.is_some() {
                return event;
            }
            let mut buffer = vec![0; 4096];
            match self.pipe.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.read.extend_from_slice(&buffer[..count]),
                Err(_) => {
                    assert!(began.elapsed() < LONG, "nothing comes");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// The text that comes next.
    fn text(&mut self) -> String {
        match self.next() {
            Some(Event::Text(text)) => text.into_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// The close that comes next, and then nothing: this end does not answer it.
    fn closed(&mut self) -> (Option<u16>, String) {
        match self.next() {
            Some(Event::Close { code, reason }) => (code, reason.into_owned()),
            other => panic!("{other:?}"),
        }
    }

    fn advance(&self, milliseconds: u64) {
        self.pipe.advance(milliseconds);
    }

    /// How the server's end ended, once it has.
    fn after(self) -> (Box<dyn Protocol>, After) {
        self.server.join().unwrap()
    }

    /// Whether the server's end waits for something, and does not look again and again.
    fn is_quiet(&self) -> bool {
        self.settle();
        let before = self.waits.load(Ordering::SeqCst);
        self.settle();
        before == self.waits.load(Ordering::SeqCst)
    }

    /// Waits until the server's end waits for something.
    fn settle(&self) {
        // There is no other way to tell than by the effects; this is to make a race likely, not to avoid one.
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A socket that hands its sender to the test and echoes.
fn echo_with_sender(upgrade: WebSocketUpgrade) -> (Response, Receiver<SocketSender>) {
    let (send, receive) = mpsc::channel();
    let response = upgrade.accept(move |mut socket| {
        send.send(socket.sender())?;
        echo(&mut socket)
    });
    (response, receive)
}

fn echo(socket: &mut WebSocket<'_>) -> SocketResult {
    while let Some(message) = socket.recv()? {
        socket.send(message)?;
    }
    Ok(())
}

/// What callbacks were called.
struct Noting(Sender<String>);

impl SocketHandler for Noting {
    fn open(&mut self, _socket: &mut WebSocket<'_>) -> SocketResult {
        self.0.send("open".to_owned())?;
        Ok(())
    }

    fn message(&mut self, socket: &mut WebSocket<'_>, message: super::Message) -> SocketResult {
        self.0.send(format!("message {message:?}"))?;
        match message.as_text() {
            Some("fail") => Err("as was wished".into()),
            Some("panic") => panic!("as was wished"),
            _ => Ok(socket.send(message)?),
        }
    }

    fn close(&mut self, _socket: &SocketSender, frame: &super::CloseFrame) {
        // The test may have gone.
        let _ = self
            .0
            .send(format!("close {} {}", frame.code, frame.reason));
    }
}

pub(super) fn noting(upgrade: WebSocketUpgrade) -> (Response, Receiver<String>) {
    let (send, receive) = mpsc::channel();
    (upgrade.serve(Noting(send)), receive)
}
