//! Does a socket that is served by callbacks go without a coroutine, and still get and send everything?

use super::super::outbox::Outbox;
use super::super::{Delivery, SlowReceiver};
use super::*;
use crate::message::Deadline;
use crate::proto::ws::tests::ping;

const ROOM: usize = 1 << 20;

/// A socket that hands its sender out when it opens, and says nothing.
struct Quiet(Sender<SocketSender>);

impl SocketHandler for Quiet {
    fn open(&mut self, socket: &mut WebSocket<'_>) -> SocketResult {
        Ok(self.0.send(socket.sender())?)
    }

    fn message(
        &mut self,
        socket: &mut WebSocket<'_>,
        message: super::super::Message,
    ) -> SocketResult {
        Ok(socket.send(message)?)
    }
}

#[test]
fn a_socket_rests_at_once_when_it_opens_and_a_second_after_a_message() {
    let (send, sender) = mpsc::channel();
    let peer = Peer::with(
        protocol(upgrade().serve(Quiet(send))),
        ROOM,
        b"",
        Arc::default(),
    );
    let tie = Arc::clone(&peer.tie);
    let (protocol, after) = peer.after();
    assert_eq!(after, After::Idle(Deadline::at(30_000)));
    assert!(!protocol.keeps_coroutine() && !protocol.has_work());
    drop(sender.recv_timeout(LONG).unwrap());

    // It is woken by a message that is there: without one it would rest again at once.
    let mut hello = Vec::new();
    Encoder::client(Box::new(|| KEY)).text("hello", &mut hello);
    let mut peer = Peer::with(protocol, ROOM, &hello, tie);
    assert_eq!(peer.text(), "hello");
    peer.settle();
    peer.advance(999);
    peer.settle();
    assert!(!peer.server.is_finished());
    peer.advance(1);
    // What came last came before the clock moved.
    assert_eq!(peer.after().1, After::Idle(Deadline::at(30_000)));
}

#[test]
fn a_socket_that_was_late_sends_its_ping_and_rests_again() {
    let (send, _sender) = mpsc::channel();
    let peer = Peer::with(
        protocol(upgrade().serve(Quiet(send))),
        ROOM,
        b"",
        Arc::default(),
    );
    let tie = Arc::clone(&peer.tie);
    let (protocol, _) = peer.after();
    // Its next life begins where the clock stands at 30 seconds.
    let (mut server, client) = Pipe::pair(ROOM);
    client.advance(30_000);
    let host = FakeHost {
        clock: server.handle(),
        stopping: Arc::default(),
        tie: Arc::clone(&tie) as Arc<dyn Tie>,
    };
    let mut protocol = protocol;
    let after = protocol.run(&mut Upgraded {
        io: &mut server,
        leftover: &mut Vec::new(),
        host: &host,
    });
    assert_eq!(after, After::Idle(Deadline::at(60_000)));
    let mut frame = vec![0; 8];
    let mut client = client;
    assert_eq!(client.read(&mut frame).unwrap(), 2);
    let mut decoder = Decoder::new(Role::Client, MessageLimits::default(), None);
    assert_eq!(
        decoder.decode(&mut frame[..2]).unwrap().event.map(owned),
        Some(ping(b""))
    );
}

#[test]
fn a_message_for_a_socket_without_a_coroutine_is_written_at_once() {
    let (send, sender) = mpsc::channel();
    let peer = Peer::with(
        protocol(upgrade().serve(Quiet(send))),
        ROOM,
        b"",
        Arc::default(),
    );
    let tie = Arc::clone(&peer.tie);
    let (protocol, _) = peer.after();
    let sender = sender.recv_timeout(LONG).unwrap();
    tie.parked.store(true, Ordering::SeqCst);
    tie.room.lock().unwrap().extend([100, 3]);
    assert_eq!(sender.send("whole"), Delivery::Sent);
    assert!(!protocol.has_work());
    assert_eq!(*tie.aside.lock().unwrap(), b"\x81\x05whole");
    // No room for all of the next one: the rest is sent by the socket's coroutine, and others behind it.
    assert_eq!(sender.send("parts"), Delivery::Queued);
    assert_eq!(sender.send("behind"), Delivery::Queued);
    assert!(protocol.has_work());
    assert_eq!(tie.roused.load(Ordering::SeqCst), 1);
    let mut begun = tie.aside.lock().unwrap().split_off(7);
    let mut peer = Peer::with(protocol, ROOM, b"", tie);
    peer.read.append(&mut begun);
    assert_eq!(peer.text(), "parts");
    assert_eq!(peer.text(), "behind");
    peer.after();
    assert_eq!(sender.waiting(), 0);
}

#[test]
fn the_line_writes_to_parked_sockets_and_leaves_the_rest_to_their_coroutines() {
    let tie = Arc::new(FakeTie::default());
    tie.parked.store(true, Ordering::SeqCst);
    let outbox = Outbox::new(
        Arc::clone(&tie) as Arc<dyn Tie>,
        None,
        1 << 20,
        SlowReceiver::Close,
    );
    assert!(outbox.rest());
    let sender = SocketSender(outbox);
    let put = |text: &str| {
        let prepared = super::super::Prepared::new(text.into());
        sender.publish(&prepared, 1).0
    };
    // The line of a worker is served by a coroutine.
    crate::net::home::start_for_tests();
    tie.room.lock().unwrap().extend([100, 100, 4]);
    for text in ["one", "two", "three"] {
        assert_eq!(put(text), Delivery::Queued);
    }
    let began = Instant::now();
    while tie.roused.load(Ordering::SeqCst) == 0 {
        assert!(began.elapsed() < LONG);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(
        *tie.aside.lock().unwrap(),
        b"\x81\x03one\x81\x03two\x81\x05th"
    );
    assert!(sender.0.has_work());
    let taken = sender.0.take(usize::MAX);
    assert_eq!((taken.loads.len(), taken.skip), (1, 4));
}
