//! Does a socket live and end as RFC 6455 says?

use super::super::{CloseFrame, Message, PerMessageDeflate, SocketError};
use super::*;
use crate::proto::ws::tests::{binary, ping, pong, text};

const ROOM: usize = 1 << 20;

#[test]
fn messages_come_back_also_those_that_came_with_the_request() {
    let mut early = Vec::new();
    Encoder::client(Box::new(|| KEY)).text("early", &mut early);
    let (first, rest) = early.split_at(7);
    let (response, _sender) = echo_with_sender(upgrade());
    let mut peer = Peer::with(protocol(response), ROOM, first, Arc::default());
    peer.send_raw(rest);
    assert_eq!(peer.text(), "early");
    peer.send(|encoder, out| encoder.binary(&[0, 255], out));
    assert_eq!(peer.next(), Some(binary(&[0, 255])));
    peer.say("");
    assert_eq!(peer.text(), "");
    for count in [125, 126, 65_535, 65_536, 300_000] {
        let long = "x".repeat(count);
        peer.say(&long);
        assert_eq!(peer.text(), long);
    }
    peer.close(4001, "done");
    assert_eq!(peer.closed(), (Some(4001), String::new()));
    assert_eq!(peer.next(), None);
    assert_eq!(peer.after().1, After::Over);
}

#[test]
fn control_frames_between_fragments_are_answered_at_once() {
    let (response, _sender) = echo_with_sender(upgrade());
    let mut peer = Peer::of(response, ROOM);
    peer.encoder = Encoder::client(Box::new(|| KEY)).fragments(2);
    let mut bytes = Vec::new();
    peer.encoder.text("abc", &mut bytes);
    // The first fragment has a head of two bytes, a key and two bytes.
    peer.send_raw(&bytes[..8]);
    peer.send(|encoder, out| encoder.ping(b"?", out).unwrap());
    assert_eq!(peer.next(), Some(pong(b"?")));
    peer.send_raw(&bytes[8..]);
    assert_eq!(peer.text(), "abc");
}

#[test]
fn the_handler_sees_how_its_peer_has_closed() {
    let (send, seen) = mpsc::channel();
    let response = upgrade().accept(move |mut socket| {
        assert_eq!(socket.recv()?, None);
        send.send(socket.closed().cloned())?;
        assert!(matches!(socket.send("late"), Err(SocketError::Closed)));
        assert_eq!(socket.recv()?, None);
        Ok(())
    });
    let mut peer = Peer::of(response, ROOM);
    peer.close(3000, "bye");
    let frame = CloseFrame {
        code: 3000,
        reason: "bye".to_owned(),
    };
    assert_eq!(seen.recv_timeout(LONG).unwrap(), Some(frame));
    assert_eq!(peer.closed(), (Some(3000), String::new()));
    assert_eq!(peer.next(), None);
}

#[test]
fn a_close_without_a_code_is_1005_and_an_end_without_a_close_is_1006() {
    for close in [true, false] {
        let (response, noted) = noting(upgrade());
        let mut peer = Peer::of(response, ROOM);
        if close {
            peer.send(|encoder, out| encoder.close(None, "", out).unwrap());
            assert_eq!(peer.closed(), (None, String::new()));
        } else {
            peer.pipe.close_write().unwrap();
        }
        assert_eq!(peer.next(), None);
        assert_eq!(noted.recv_timeout(LONG).unwrap(), "open");
        let expected = if close { "close 1005 " } else { "close 1006 " };
        assert_eq!(noted.recv_timeout(LONG).unwrap(), expected);
    }
}

#[test]
fn a_function_that_returns_closes_and_one_that_fails_says_so() {
    type Ending = fn(WebSocket<'_>) -> SocketResult;
    let endings: [(Ending, u16); 5] = [
        (|_| Ok(()), 1000),
        (|_| Err("as was wished".into()), 1011),
        (|_| panic!("as was wished"), 1011),
        (|mut socket| Ok(socket.close(4000, "")?), 4000),
        // A code that may not be sent.
        (|mut socket| Ok(socket.close(1006, "")?), 1000),
    ];
    for (ending, code) in endings {
        let mut peer = Peer::of(upgrade().accept(ending), ROOM);
        assert_eq!(peer.closed().0, Some(code));
        peer.close(code, "");
        assert_eq!(peer.next(), None);
    }
}

#[test]
fn a_long_reason_is_cut_between_two_characters() {
    let response = upgrade().accept(|mut socket| Ok(socket.close(1000, &"ä".repeat(100))?));
    let mut peer = Peer::of(response, ROOM);
    assert_eq!(peer.closed(), (Some(1000), "ä".repeat(61)));
}

#[test]
fn what_the_peer_sent_before_its_close_is_received_after_ours() {
    let (send, seen) = mpsc::channel();
    let response = upgrade().accept(move |mut socket| {
        socket.close(1000, "enough")?;
        while let Some(message) = socket.recv()? {
            send.send(message)?;
        }
        Ok(())
    });
    let mut peer = Peer::of(response, ROOM);
    assert_eq!(peer.closed(), (Some(1000), "enough".to_owned()));
    peer.say("on its way");
    peer.send(|encoder, out| encoder.ping(b"?", out).unwrap());
    peer.close(1000, "");
    assert_eq!(
        seen.recv_timeout(LONG).unwrap(),
        Message::from("on its way")
    );
    // No pong behind a close.
    assert_eq!(peer.next(), None);
}

#[test]
fn a_broken_rule_is_told_and_the_handler_hears_of_it() {
    let cases: [(&[u8], u16); 4] = [
        (b"\x81\x01a", 1002),
        (b"\x83\x80\x37\xfa\x21\x3d", 1002),
        // 0xff under its mask.
        (b"\x81\x81\x37\xfa\x21\x3d\xc8", 1007),
        (
            b"\x82\xff\x00\x00\x00\x00\x00\x10\x00\x01\x37\xfa\x21\x3d",
            1009,
        ),
    ];
    for (bytes, code) in cases {
        let (send, seen) = mpsc::channel();
        let response = upgrade().accept(move |mut socket| {
            for _ in 0..2 {
                match socket.recv() {
                    Err(SocketError::Broken { code, .. }) => send.send(code)?,
                    other => panic!("{other:?}"),
                }
            }
            assert!(socket.send("late").is_err() && socket.close(1000, "").is_err());
            Ok(())
        });
        let mut peer = Peer::of(response, ROOM);
        peer.send_raw(bytes);
        assert_eq!(peer.closed().0, Some(code), "{bytes:?}");
        assert_eq!(seen.recv_timeout(LONG).unwrap(), code);
        assert_eq!(seen.recv_timeout(LONG).unwrap(), code);
        assert_eq!(peer.next(), None);
        peer.pipe.close_write().unwrap();
        assert_eq!(peer.after().1, After::Over);
    }
}

#[test]
fn limits_hold_at_their_last_byte() {
    for (size, fits) in [(100, true), (101, false)] {
        let (response, _sender) = echo_with_sender(upgrade().message_limit(100));
        let mut peer = Peer::of(response, ROOM);
        peer.encoder = Encoder::client(Box::new(|| KEY)).fragments(60);
        peer.say(&"x".repeat(size));
        if fits {
            assert_eq!(peer.text().len(), size);
        } else {
            assert_eq!(peer.closed().0, Some(1009));
        }

        let (response, _sender) = echo_with_sender(upgrade().frame_limit(100));
        let mut peer = Peer::of(response, ROOM);
        peer.say(&"x".repeat(size));
        if fits {
            assert_eq!(peer.text().len(), size);
        } else {
            assert_eq!(peer.closed().0, Some(1009));
        }
    }
}

#[test]
fn compression_is_used_from_its_threshold_on() {
    let how = PerMessageDeflate::new().threshold(100);
    let (response, _sender) = echo_with_sender(compressed().compress(how));
    assert_eq!(
        response.headers().get("sec-websocket-extensions"),
        Some("permessage-deflate; server_no_context_takeover; client_no_context_takeover")
    );
    let mut peer = Peer::of(response, ROOM).inflating();
    for (size, wire) in [(99, 101), (100, 30)] {
        let long = "x".repeat(size);
        peer.say(&long);
        let mut first = [0; 2];
        while peer.pipe.read(&mut first[..1]).is_err() {
            std::thread::yield_now();
        }
        peer.read.extend_from_slice(&first[..1]);
        // RSV1.
        assert_eq!(first[0] & 0x40 != 0, size >= 100);
        assert_eq!(peer.next(), Some(text(&long)));
        assert!(wire >= 30);
    }
}

#[test]
fn nothing_is_compressed_unless_a_handler_wants_it() {
    let (response, _sender) = echo_with_sender(compressed());
    assert_eq!(response.headers().get("sec-websocket-extensions"), None);
}

#[test]
fn a_peer_that_pings_and_never_reads_fills_no_memory() {
    let (response, _sender) = echo_with_sender(upgrade());
    let mut peer = Peer::of(response, 4096);
    let mut pings = Vec::new();
    for _ in 0..1000 {
        peer.encoder.ping(&[b'x'; 125], &mut pings).unwrap();
    }
    // It stops reading, so at some point nothing more can be sent: 64 KiB of pongs, and what is on the way.
    let mut sent = 0;
    let mut quiet = 0;
    while quiet < 100 && sent < 1 << 20 {
        match peer.pipe.write(&pings[sent % pings.len()..]) {
            Ok(count) => {
                sent += count;
                quiet = 0;
            }
            Err(_) => {
                quiet += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
    assert!(sent < 200 << 10, "{sent}");
    // Once it reads all goes on.
    for _ in 0..100 {
        assert_eq!(peer.next(), Some(pong(&[b'x'; 125])));
    }
}

#[test]
fn callbacks_are_called_in_their_order_and_failures_close() {
    for (message, code) in [("bye", 1000), ("fail", 1011), ("panic", 1011)] {
        let (response, noted) = noting(upgrade());
        let mut peer = Peer::of(response, ROOM);
        assert_eq!(noted.recv_timeout(LONG).unwrap(), "open");
        peer.say(message);
        assert_eq!(
            noted.recv_timeout(LONG).unwrap(),
            format!("message Text({message:?})")
        );
        if code == 1000 {
            assert_eq!(peer.text(), message);
            peer.close(1000, "");
        }
        assert_eq!(peer.closed().0, Some(code));
        if code != 1000 {
            peer.close(code, "");
        }
        assert!(
            noted
                .recv_timeout(LONG)
                .unwrap()
                .starts_with(&format!("close {code}"))
        );
        assert_eq!(peer.next(), None);
        assert_eq!(peer.after().1, After::Over);
        assert!(noted.recv().is_err(), "nothing is called behind the close");
    }
}

#[test]
fn fed_messages_go_out_together_and_pings_are_seen() {
    let response = upgrade().accept(|mut socket| {
        socket.feed("a")?;
        socket.feed("b")?;
        socket.ping(&[b'x'; 200])?;
        socket.recv()?;
        Ok(())
    });
    let mut peer = Peer::of(response, ROOM);
    assert_eq!(peer.text(), "a");
    assert_eq!(peer.text(), "b");
    assert_eq!(peer.next(), Some(ping(&[b'x'; 125])));
}
