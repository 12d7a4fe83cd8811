//! Is a socket that says nothing asked, and given up in time?

use super::super::{Received, SocketError};
use super::*;
use crate::proto::ws::tests::ping;

const ROOM: usize = 1 << 20;

/// A socket whose receiving ends with what is sent to the test.
fn receiving(
    upgrade: WebSocketUpgrade,
) -> (
    Response,
    Receiver<Result<Option<super::super::Message>, SocketError>>,
) {
    let (send, receive) = mpsc::channel();
    let response = upgrade.accept(move |mut socket| {
        loop {
            let outcome = socket.recv();
            let over = !matches!(outcome, Ok(Some(_)));
            send.send(outcome)?;
            if over {
                return Ok(());
            }
        }
    });
    (response, receive)
}

#[test]
fn a_silent_peer_is_asked_twice_and_then_given_up() {
    let (response, ended) = receiving(upgrade());
    let mut peer = Peer::of(response, ROOM);
    peer.settle();
    peer.advance(29_999);
    peer.settle();
    assert!(
        peer.pipe.read(&mut [0; 8]).is_err(),
        "no ping before its time"
    );
    peer.advance(1);
    assert_eq!(peer.next(), Some(ping(b"")));
    peer.advance(30_000);
    assert_eq!(peer.next(), Some(ping(b"")));
    assert!(ended.try_recv().is_err());
    peer.advance(30_000);
    assert!(matches!(
        ended.recv_timeout(LONG).unwrap(),
        Err(SocketError::Unresponsive)
    ));
    assert_eq!(peer.next(), None);
}

#[test]
fn an_answer_begins_the_count_again() {
    let (response, ended) = receiving(upgrade());
    let mut peer = Peer::of(response, ROOM);
    for _ in 0..5 {
        peer.settle();
        peer.advance(30_000);
        assert_eq!(peer.next(), Some(ping(b"")));
        peer.settle();
        peer.advance(30_000);
        assert_eq!(peer.next(), Some(ping(b"")));
        peer.send(|encoder, out| encoder.pong(b"", out).unwrap());
    }
    peer.say("still here");
    assert!(matches!(ended.recv_timeout(LONG).unwrap(), Ok(Some(_))));
}

#[test]
fn a_socket_without_messages_is_closed_although_pongs_come() {
    let (response, ended) = receiving(upgrade().heartbeat(Duration::ZERO));
    let mut peer = Peer::of(response, ROOM);
    peer.settle();
    peer.advance(899_999);
    peer.send(|encoder, out| encoder.pong(b"", out).unwrap());
    peer.settle();
    assert!(ended.try_recv().is_err());
    peer.advance(1);
    assert_eq!(
        peer.closed(),
        (Some(1001), "no message for too long".to_owned())
    );
    peer.close(1001, "");
    assert!(matches!(ended.recv_timeout(LONG).unwrap(), Ok(None)));
}

#[test]
fn a_message_of_others_keeps_a_socket_open() {
    let never = Duration::ZERO;
    let upgrade = upgrade()
        .heartbeat(never)
        .idle_timeout(Duration::from_secs(10));
    let (response, sender) = echo_with_sender(upgrade);
    let mut peer = Peer::of(response, ROOM);
    let sender = sender.recv_timeout(LONG).unwrap();
    for _ in 0..3 {
        peer.settle();
        peer.advance(9_000);
        let _ = sender.send("news");
        assert_eq!(peer.text(), "news");
    }
    // That there were any is noticed when the time is up.
    for _ in 0..2 {
        peer.settle();
        peer.advance(10_000);
    }
    assert_eq!(peer.closed().0, Some(1001));
}

#[test]
fn zero_turns_pings_and_the_idle_limit_off() {
    let upgrade = upgrade()
        .heartbeat(Duration::ZERO)
        .idle_timeout(Duration::ZERO);
    let (response, _sender) = echo_with_sender(upgrade);
    let mut peer = Peer::of(response, ROOM);
    peer.settle();
    peer.advance(1 << 40);
    peer.say("after a long time");
    assert_eq!(peer.text(), "after a long time");
}

#[test]
fn a_close_that_is_not_answered_ends_the_connection() {
    let mut peer = Peer::of(upgrade().accept(|_| Ok(())), ROOM);
    assert_eq!(peer.closed().0, Some(1000));
    peer.settle();
    peer.advance(4_999);
    peer.settle();
    assert!(peer.pipe.read(&mut [0; 8]).is_err(), "it still waits");
    peer.advance(1);
    assert_eq!(peer.next(), None);
}

#[test]
fn a_server_that_stops_says_so() {
    let (response, ended) = receiving(upgrade());
    let mut peer = Peer::of(response, ROOM);
    peer.settle();
    peer.stopping.store(true, Ordering::SeqCst);
    peer.tie.wake_pipe();
    assert_eq!(peer.closed(), (Some(1001), "the server stops".to_owned()));
    peer.close(1001, "");
    assert!(matches!(ended.recv_timeout(LONG).unwrap(), Ok(None)));
    assert_eq!(peer.next(), None);
}

#[test]
fn a_peer_that_never_reads_is_given_up() {
    let (send, ended) = mpsc::channel();
    let response = upgrade().accept(move |mut socket| {
        let outcome = socket.send(vec![0_u8; 100_000]);
        send.send(outcome)?;
        Ok(())
    });
    let peer = Peer::of(response, 1000);
    peer.settle();
    peer.advance(9_000);
    peer.settle();
    assert!(ended.try_recv().is_err());
    // Ten seconds of grace, and what a kilobyte is worth at 240 bytes a second.
    peer.advance(10_000);
    assert!(matches!(
        ended.recv_timeout(LONG).unwrap(),
        Err(SocketError::TooSlow)
    ));
}

#[test]
fn nobody_looks_again_and_again_at_what_is_due_and_cannot_be_done() {
    // A ping is due while the close is awaited.
    let response = upgrade().accept(|mut socket| {
        socket.recv_timeout(Duration::from_secs(29))?;
        Ok(())
    });
    let mut peer = Peer::of(response, ROOM);
    peer.settle();
    peer.advance(29_000);
    assert_eq!(peer.closed().0, Some(1000));
    assert!(peer.is_quiet());
    peer.advance(2_000);
    assert!(peer.is_quiet());
    peer.advance(3_000);
    assert_eq!(peer.next(), None);

    // And while a message cannot be sent.
    let quick = upgrade().heartbeat(Duration::from_secs(2));
    let response = quick.accept(|mut socket| Ok(socket.send(vec![0_u8; 100_000])?));
    let peer = Peer::of(response, 1000);
    peer.settle();
    peer.advance(7_000);
    assert!(peer.is_quiet());
}

#[test]
fn the_longest_times_there_are_are_no_mistake() {
    let upgrade = upgrade()
        .heartbeat(Duration::MAX)
        .idle_timeout(Duration::MAX);
    let response = upgrade.accept(|mut socket| {
        while socket.recv_timeout(Duration::MAX)? != Received::Closed {
            socket.send("heard")?;
        }
        Ok(())
    });
    let mut peer = Peer::of(response, ROOM);
    peer.say("hello");
    assert_eq!(peer.text(), "heard");
    assert!(peer.is_quiet());
}

#[test]
fn waiting_has_a_limit_where_it_is_wanted() {
    let (send, seen) = mpsc::channel();
    let response = upgrade().accept(move |mut socket| {
        for _ in 0..3 {
            send.send(socket.recv_timeout(Duration::from_secs(2))?)?;
        }
        Ok(())
    });
    let mut peer = Peer::of(response, ROOM);
    peer.settle();
    peer.advance(1_999);
    peer.settle();
    assert!(seen.try_recv().is_err());
    peer.advance(1);
    assert_eq!(seen.recv_timeout(LONG).unwrap(), Received::Nothing);
    peer.say("in time");
    assert_eq!(
        seen.recv_timeout(LONG).unwrap(),
        Received::Message("in time".into())
    );
    peer.close(1000, "");
    assert_eq!(seen.recv_timeout(LONG).unwrap(), Received::Closed);
}
