//! Do others reach a socket, and what becomes of messages that its peer does not read?

use super::super::outbox::OVERHEAD;
use super::super::{Delivery, Dropped, Losses, Message, Prepared, SlowReceiver};
use super::*;
use crate::proto::ws::tests::{pong, text};

/// A message that costs this much.
fn costing(cost: usize, mark: char) -> Message {
    let frame = cost - OVERHEAD;
    let head = if frame <= 127 { 2 } else { 4 };
    let text: String = std::iter::repeat_n(mark, frame - head).collect();
    Message::from(text)
}

/// What waits.
fn waiting(sender: &SocketSender) -> String {
    let first = |load: &super::super::message::Load| match load {
        super::super::message::Load::Frame(frame) => char::from(frame[2]),
        super::super::message::Load::Message(_) => '?',
    };
    taken_out(sender).iter().map(first).collect()
}

#[test]
fn each_policy_keeps_what_it_says() {
    use SlowReceiver::{Close, Coalesce, DropNewest, DropOldest};
    let slow = Delivery::Dropped(Dropped::Slow);
    for (policy, delivery, kept, losses) in [
        (
            DropNewest,
            slow,
            "abc",
            Losses {
                newest: 1,
                ..Losses::default()
            },
        ),
        (
            DropOldest,
            Delivery::Queued,
            "bcd",
            Losses {
                oldest: 1,
                ..Losses::default()
            },
        ),
        (
            Coalesce,
            Delivery::Queued,
            "d",
            Losses {
                coalesced: 3,
                ..Losses::default()
            },
        ),
        (
            Close,
            slow,
            "",
            Losses {
                closed_slow: 4,
                ..Losses::default()
            },
        ),
    ] {
        let (sender, tie) = sender(300, policy);
        for mark in ['a', 'b', 'c'] {
            assert_eq!(
                sender.send(costing(100, mark)),
                Delivery::Queued,
                "{policy:?}"
            );
        }
        // The limit itself is reached, and nothing lost.
        assert_eq!((sender.waiting(), sender.losses().total()), (300, 0));
        assert_eq!(sender.send(costing(100, 'd')), delivery, "{policy:?}");
        assert_eq!(sender.losses(), losses, "{policy:?}");
        assert_eq!(sender.is_open(), policy != Close);
        assert_eq!(
            tie.called.load(Ordering::SeqCst),
            usize::from(policy == Close)
        );
        assert_eq!(waiting(&sender), kept, "{policy:?}");
    }
}

#[test]
fn what_is_on_its_way_leaves_room_for_the_newest() {
    // The socket's coroutine takes half of what may wait, and its peer does not read.
    for (policy, kept) in [
        (SlowReceiver::DropOldest, "hi"),
        (SlowReceiver::Coalesce, "i"),
        (SlowReceiver::DropNewest, "cd"),
    ] {
        let (sender, _tie) = sender(400, policy);
        for mark in ['a', 'b', 'c', 'd'] {
            assert_eq!(sender.send(costing(100, mark)), Delivery::Queued);
        }
        let taken = sender.0.take(usize::MAX);
        assert_eq!((taken.loads.len(), taken.cost), (2, 200), "{policy:?}");
        for mark in ['e', 'f', 'g', 'h', 'i'] {
            let _ = sender.send(costing(100, mark));
        }
        assert!(sender.waiting() <= 400);
        assert_eq!(waiting(&sender), kept, "{policy:?}");
    }
}

#[test]
fn nothing_is_dropped_for_a_message_that_has_no_room_even_so() {
    for policy in [SlowReceiver::DropOldest, SlowReceiver::Coalesce] {
        let (sender, _tie) = sender(400, policy);
        for mark in ['a', 'b', 'c'] {
            assert_eq!(sender.send(costing(100, mark)), Delivery::Queued);
        }
        assert_eq!(sender.0.take(1).loads.len(), 1);
        // With what is on its way it is one too many, whatever is dropped.
        assert_eq!(
            sender.send(costing(301, 'd')),
            Delivery::Dropped(Dropped::Slow)
        );
        let losses = sender.losses();
        assert_eq!((losses.newest, losses.total()), (1, 1), "{policy:?}");
        assert_eq!(sender.send(costing(300, 'e')), Delivery::Queued);
        assert_eq!((sender.waiting(), sender.losses().total()), (400, 3));
    }
}

#[test]
fn only_messages_of_the_same_topic_replace_each_other() {
    let (sender, _tie) = sender(300, SlowReceiver::Coalesce);
    let publish = |mark, topic| {
        let prepared = Prepared::new(costing(100, mark));
        sender.publish(&prepared, topic).0
    };
    assert_eq!(publish('a', 1), Delivery::Queued);
    assert_eq!(publish('b', 2), Delivery::Queued);
    assert_eq!(publish('c', 1), Delivery::Queued);
    assert_eq!(publish('d', 1), Delivery::Queued);
    assert_eq!(publish('e', 3), Delivery::Queued);
    assert_eq!(publish('f', 4), Delivery::Dropped(Dropped::Slow));
    assert_eq!((sender.losses().coalesced, sender.losses().newest), (2, 1));
    assert_eq!(waiting(&sender), "bde");
}

#[test]
fn what_is_larger_than_all_that_may_wait_is_never_taken() {
    for policy in [SlowReceiver::Close, SlowReceiver::DropOldest] {
        let (sender, _tie) = sender(300, policy);
        assert_eq!(sender.send(costing(300, 'a')), Delivery::Queued);
        let (sender, _tie) = super::sender(300, policy);
        assert_eq!(
            sender.send(costing(301, 'a')),
            Delivery::Dropped(Dropped::TooLarge)
        );
        assert_eq!(sender.losses().too_large, 1);
        assert!(sender.is_open());
    }
}

#[test]
fn a_closed_socket_takes_nothing() {
    let (sender, _tie) = sender(300, SlowReceiver::Close);
    sender.close(1000, "");
    assert_eq!(sender.send("late"), Delivery::Dropped(Dropped::Closed));
    assert!(!sender.is_open());
    assert_eq!(sender.losses().closed, 1);
}

#[test]
fn what_is_called_at_the_end_is_called_once() {
    let (sender, _tie) = sender(300, SlowReceiver::Close);
    let count = Arc::new(AtomicUsize::new(0));
    let call = || {
        let count = Arc::clone(&count);
        move || {
            count.fetch_add(1, Ordering::SeqCst);
        }
    };
    sender.at_end(call());
    sender.0.end();
    sender.0.end();
    assert_eq!(count.load(Ordering::SeqCst), 1);
    sender.at_end(call());
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[test]
fn messages_of_others_come_in_their_order_among_echoes() {
    let (response, sender) = echo_with_sender(upgrade());
    let mut peer = Peer::of(response, 4096);
    let sender = sender.recv_timeout(LONG).unwrap();
    let theirs = sender.clone();
    let publishing = std::thread::spawn(move || {
        for number in 0..500 {
            assert_eq!(theirs.send(format!("theirs {number}")), Delivery::Queued);
        }
        theirs.close(4002, "that is all");
    });
    let (mut next, mut echoes) = (0, 0);
    peer.say("mine");
    while next < 500 {
        match peer.text().strip_prefix("theirs ") {
            Some(number) => {
                assert_eq!(number, next.to_string());
                next += 1;
            }
            None => {
                echoes += 1;
                if echoes < 50 {
                    peer.say("mine");
                }
            }
        }
    }
    publishing.join().unwrap();
    // An echo may come in front of it.
    let last = loop {
        match peer.next() {
            Some(Event::Text(text)) => assert_eq!(text, "mine"),
            other => break other,
        }
    };
    assert_eq!(
        last,
        Some(crate::proto::ws::tests::close(Some(4002), "that is all"))
    );
    assert!(!sender.is_open());
}

#[test]
fn more_than_is_taken_at_once_is_sent_without_further_events() {
    let (response, sender) = echo_with_sender(upgrade());
    let mut peer = Peer::of(response, 4096);
    let sender = sender.recv_timeout(LONG).unwrap();
    for number in 0..500 {
        assert_eq!(sender.send(format!("{number:0>1000}")), Delivery::Queued);
    }
    for number in 0..500 {
        assert_eq!(peer.text(), format!("{number:0>1000}"));
    }
}

#[test]
fn a_close_comes_behind_what_was_put_in_and_nothing_keeps_it_off() {
    let (send, senders) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let response = upgrade().accept(move |socket| {
        send.send(socket.sender())?;
        // The test has put something in.
        gone.recv()?;
        Ok(())
    });
    let mut peer = Peer::of(response, 1000);
    let sender = senders.recv_timeout(LONG).unwrap();
    for _ in 0..5 {
        assert_eq!(sender.send("x".repeat(500)), Delivery::Queued);
    }
    go.send(()).unwrap();
    // Whoever goes on sending does not hold the close up.
    while sender.is_open() {
        std::thread::yield_now();
    }
    assert_eq!(sender.send("late"), Delivery::Dropped(Dropped::Closed));
    for _ in 0..5 {
        assert_eq!(peer.text().len(), 500);
    }
    assert_eq!(peer.closed().0, Some(1000));
}

#[test]
fn nothing_comes_between_the_parts_of_a_large_frame() {
    let (response, sender) = echo_with_sender(upgrade());
    let mut peer = Peer::of(response, 1000);
    let sender = sender.recv_timeout(LONG).unwrap();
    let large = "L".repeat(200_000);
    for _ in 0..3 {
        let _ = sender.send(large.as_str());
        let _ = sender.send("small");
    }
    peer.send(|encoder, out| encoder.ping(b"?", out).unwrap());
    peer.say("mine");
    let (mut texts, mut pongs) = (Vec::new(), 0);
    while texts.len() < 7 || pongs < 1 {
        match peer.next() {
            Some(Event::Text(text)) => texts.push(text.into_owned()),
            other => {
                assert_eq!(other, Some(pong(b"?")));
                pongs += 1;
            }
        }
    }
    texts.retain(|text| text != "mine");
    assert_eq!(texts, [&large, "small", &large, "small", &large, "small"]);
}

#[test]
fn a_slow_peer_is_closed_behind_what_was_begun() {
    let (response, sender) = echo_with_sender(upgrade().outbox(10_000, SlowReceiver::Close));
    let mut peer = Peer::of(response, 1000);
    let sender = sender.recv_timeout(LONG).unwrap();
    let mut dropped = 0;
    for _ in 0..20 {
        dropped += u32::from(matches!(
            sender.send("x".repeat(1000)),
            Delivery::Dropped(_)
        ));
    }
    assert!(dropped > 0 && !sender.is_open());
    let mut whole = 0;
    let code = loop {
        match peer.next() {
            Some(Event::Text(text)) => {
                assert_eq!(text.len(), 1000);
                whole += 1;
            }
            Some(Event::Close { code, .. }) => break code,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(code, Some(1013));
    assert!(whole < 10);
    // The connection's own end counts what was dropped.
    peer.close(1013, "");
    assert_eq!(peer.next(), None);
    assert_eq!(sender.losses().total(), 20 - whole);
}

#[test]
fn compressed_messages_of_others_are_made_by_the_socket() {
    let how = super::super::PerMessageDeflate::new().threshold(10);
    let (response, sender) = echo_with_sender(compressed().compress(how));
    let mut peer = Peer::of(response, 1 << 20).inflating();
    let sender = sender.recv_timeout(LONG).unwrap();
    // What is published is sent by the line of a worker.
    crate::net::home::start_for_tests();
    let long = "compress me ".repeat(100);
    let _ = sender.send(long.as_str());
    let _ = sender.publish(&Prepared::new(long.as_str().into()), 1);
    let _ = sender.send("short");
    assert_eq!(peer.next(), Some(text(&long)));
    assert_eq!(peer.next(), Some(text(&long)));
    assert_eq!(peer.next(), Some(text("short")));
}
