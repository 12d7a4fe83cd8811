//! Does the client make and read frames rightly, and are the wrong answers of servers noticed?
//!
//! A program without the test harness cannot hold `#[test]`s; `cargo test --benches` runs this instead.

use std::time::Duration;

use crate::cases::{Case, ECHOED, PUBLISHED};
use crate::frames::{self, Frame, Inbox};
use crate::harness::folder::Folder;
use crate::harness::options::{Named, choose};
use crate::servers::Server;
use crate::{bare, check, echo, socket};

pub(crate) fn run() {
    assert_eq!((ECHOED.len(), PUBLISHED.len()), (64, 128));
    made();
    read();
    openings();
    times();
    choices();
    own_servers();
}

fn made() {
    // RFC 6455 section 5.7 has this one.
    assert_eq!(
        frames::masked(frames::TEXT, b"Hello"),
        [
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58
        ]
    );
    let mut out = Vec::new();
    for length in [0, 1, 4, 125, 126, 128, 65_535] {
        let payload: Vec<u8> = (0..length).map(|number| number as u8).collect();
        let frame = frames::masked(frames::TEXT, &payload);
        for end in 0..frame.len() {
            assert_eq!(bare::unmask(&frame[..end], &mut out), 0, "{end}");
        }
        assert_eq!(bare::unmask(&frame, &mut out), frame.len());
        let (whole, plain) = frames::parse(&out).expect("a frame").expect("a whole one");
        assert_eq!((whole, plain.payload), (out.len(), &payload[..]));
        out.clear();
        if length > 1000 {
            break;
        }
    }
}

fn read() {
    // Section 5.7 again: a whole text, and a pong.
    let bytes = *b"\x81\x05Hello\x8a\x05Hello\xc1\x01x";
    for cut in 0..=bytes.len() {
        let mut inbox = Inbox::default();
        let mut got = Vec::new();
        for part in [&bytes[..cut], &bytes[cut..]] {
            inbox
                .feed(part, |frame| {
                    got.push((frame.opcode, frame.compressed, frame.payload.to_vec()));
                    Ok(())
                })
                .expect("frames");
        }
        let hello = b"Hello".to_vec();
        assert_eq!(
            got,
            [
                (frames::TEXT, false, hello.clone()),
                (frames::PONG, false, hello),
                (frames::TEXT, true, b"x".to_vec()),
            ]
        );
    }
    // In pieces, with a mask, with a reserved bit, and of eight bytes' length.
    for wrong in [&b"\x01\x00"[..], b"\x81\x80", b"\xa1\x00", b"\x81\x7f"] {
        assert!(frames::parse(wrong).is_err(), "{wrong:02x?}");
    }
    assert_eq!(frames::parse(b"\x81"), Ok(None));
    assert_eq!(
        frames::parse(b"\x81\x00"),
        Ok(Some((
            2,
            Frame {
                opcode: frames::TEXT,
                compressed: false,
                payload: b""
            }
        )))
    );
}

fn openings() {
    let good = format!(
        "HTTP/1.1 101 Switching Protocols\r\nsec-websocket-accept: {}\r\nSec-WebSocket-Extensions: x\r\n\r\n",
        socket::ACCEPT
    );
    assert_eq!(
        socket::opening(good.as_bytes(), "/"),
        Ok(Some((good.len(), Some("x".to_owned()))))
    );
    assert_eq!(socket::opening(&good.as_bytes()[..40], "/"), Ok(None));
    for (right, wrong) in [(" 101 ", " 200 "), (socket::ACCEPT, socket::KEY)] {
        assert!(socket::opening(good.replace(right, wrong).as_bytes(), "/").is_err());
    }
}

fn times() {
    let mut counts = echo::Counts::none();
    for micros in 1..=100 {
        counts.add(Duration::from_micros(micros * 10), 2);
    }
    counts.add(Duration::from_secs(9), 1);
    assert_eq!(
        (counts.percentile(0.5), counts.percentile(0.99)),
        (0.51, 1.0)
    );
}

fn choices() {
    let (cases, servers) = choose::<Case, Server>(&["idle", "broadcast", "ws"]).expect("names");
    assert_eq!((cases.len(), servers.len()), (2, 1));
    for &case in Case::ALL {
        assert!(Server::Cloudgate.takes_part_in(case) && Server::Coroutine.takes_part_in(case));
    }
}

/// The servers that need no other program do what is measured; one that does something else is found out.
fn own_servers() {
    let folder = Folder::fresh().expect("a folder for logs");
    for &case in Case::ALL {
        for server in [
            Server::Cloudgate,
            Server::Coroutine,
            Server::Feed,
            Server::Tungstenite,
            Server::Limit,
        ] {
            let offered = server != Server::Tungstenite || !case.compressed();
            if server.takes_part_in(case) && offered {
                let started = server.start(case, &folder);
                assert!(started.is_ok(), "{server:?} {case:?}: {:?}", started.err());
            }
        }
    }
    let limit = Server::Limit
        .start(Case::Broadcast, &folder)
        .expect("limit");
    assert!(check::run(limit.port, Case::BroadcastDeflate).is_err());
}
