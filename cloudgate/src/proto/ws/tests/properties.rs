//! Does what was sent come out, and does nothing that comes in do harm?

use std::io::{Cursor, Read, Write};

use proptest::prelude::*;
use tungstenite::protocol::{Role as OtherRole, WebSocket};
use tungstenite::{Error as OtherError, Message};

use super::{Outcome, binary, close, outcome, ping, pong, text};
use crate::proto::ws::Role;
use crate::proto::ws::decode::{Decoder, Event, MessageLimits};
use crate::proto::ws::deflate::Coding;
use crate::proto::ws::encode::{Compressing, Encoder};

/// Short ones, and such as take longer lengths or compress.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,20}",
        ("[a-d\u{e4}\u{1f600}]{1,8}", 0_usize..400).prop_map(|(piece, count)| piece.repeat(count)),
    ]
}

fn events() -> impl Strategy<Value = Event<'static>> {
    let bytes = |most| prop::collection::vec(any::<u8>(), 0..most);
    prop_oneof![
        texts().prop_map(|content| text(&content)),
        bytes(300).prop_map(|content| binary(&content)),
        (bytes(20), 0_usize..4000).prop_map(|(piece, count)| binary(&piece.repeat(count))),
        bytes(126).prop_map(|content| ping(&content)),
        bytes(126).prop_map(|content| pong(&content)),
    ]
}

fn codings() -> impl Strategy<Value = Option<Coding>> {
    prop::option::of(
        (any::<bool>(), 9_u8..=15).prop_map(|(takeover, window_bits)| Coding {
            takeover,
            window_bits,
        }),
    )
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![]),
        prop::collection::vec(1_usize..10, 0..500),
        prop::collection::vec(1_usize..3000, 0..200),
    ]
}

fn encoder(role: Role) -> Encoder {
    match role {
        Role::Server => Encoder::server(),
        Role::Client => {
            let mut number = 7_u32;
            Encoder::client(Box::new(move || {
                number = number.wrapping_mul(0x9e37_79b1);
                number.to_be_bytes()
            }))
        }
    }
}

fn write(encoder: &mut Encoder, event: &Event<'_>, out: &mut Vec<u8>) {
    match event {
        Event::Text(content) => encoder.text(content, out),
        Event::Binary(content) => encoder.binary(content, out),
        Event::Ping(content) => encoder.ping(content, out).unwrap(),
        Event::Pong(content) => encoder.pong(content, out).unwrap(),
        Event::Close { code, reason } => encoder.close(*code, reason, out).unwrap(),
    }
}

fn other(role: Role) -> Role {
    match role {
        Role::Server => Role::Client,
        Role::Client => Role::Server,
    }
}

fn decoder(role: Role, inflate: Option<Coding>) -> Decoder {
    Decoder::new(role, MessageLimits::default(), inflate)
}

/// A stream that has read all there is.
struct Stream {
    from: Cursor<Vec<u8>>,
    to: Vec<u8>,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.from.read(buffer) {
            Ok(0) => Err(std::io::ErrorKind::WouldBlock.into()),
            done => done,
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn tungstenite(role: Role, input: Vec<u8>) -> WebSocket<Stream> {
    let role = match role {
        Role::Server => OtherRole::Server,
        Role::Client => OtherRole::Client,
    };
    let stream = Stream {
        from: Cursor::new(input),
        to: Vec::new(),
    };
    WebSocket::from_raw_socket(stream, role, None)
}

/// What tungstenite reads, and whether it finds something wrong at the end.
fn read_by_tungstenite(role: Role, input: &[u8]) -> (Vec<Event<'static>>, bool) {
    let mut socket = tungstenite(role, input.to_vec());
    let mut events = Vec::new();
    loop {
        match socket.read() {
            Ok(Message::Text(content)) => events.push(text(&content)),
            Ok(Message::Binary(content)) => events.push(binary(&content)),
            Ok(Message::Ping(content)) => events.push(ping(&content)),
            Ok(Message::Pong(content)) => events.push(pong(&content)),
            Ok(Message::Close(None)) => events.push(close(None, "")),
            Ok(Message::Close(Some(frame))) => {
                events.push(close(Some(frame.code.into()), &frame.reason));
            }
            Ok(Message::Frame(_)) => {}
            Err(OtherError::Io(_) | OtherError::ConnectionClosed | OtherError::AlreadyClosed) => {
                return (events, false);
            }
            Err(_) => return (events, true),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Also where it was compressed, fragmented and cut.
    #[test]
    fn what_is_sent_comes_out(
        from_client in any::<bool>(),
        sent in prop::collection::vec(events(), 0..8),
        closes in prop::option::of(Just(close(Some(4000), "bye"))),
        fragment in prop_oneof![Just(usize::MAX), 1_usize..500],
        coding in codings(),
        level in 1_u32..=9,
        threshold in prop_oneof![Just(0), Just(64)],
        shrinks in any::<bool>(),
        sizes in sizes(),
    ) {
        let role = if from_client { Role::Client } else { Role::Server };
        let mut encoder = encoder(role).fragments(fragment);
        if let Some(coding) = coding {
            encoder = encoder.compress(coding, Compressing { level, threshold });
        }
        let (mut bytes, mut want) = (Vec::new(), sent);
        want.extend(closes);
        for event in &want {
            write(&mut encoder, event, &mut bytes);
            if shrinks {
                encoder.shrink();
            }
        }
        let (got, violation) = outcome(decoder(other(role), coding), &bytes, &sizes);
        prop_assert_eq!(violation, None);
        prop_assert!(got == want);
    }

    /// tungstenite reads what this encoder writes, and this decoder what tungstenite writes.
    #[test]
    fn tungstenite_is_understood_and_understands(
        from_client in any::<bool>(),
        mut sent in prop::collection::vec(events(), 1..6),
        fragment in prop_oneof![Just(usize::MAX), 1_usize..500],
        sizes in sizes(),
    ) {
        sent.push(close(Some(1000), "bye"));
        let role = if from_client { Role::Client } else { Role::Server };
        let mut bytes = Vec::new();
        let mut encoder = encoder(role).fragments(fragment);
        sent.iter().for_each(|event| write(&mut encoder, event, &mut bytes));
        let (read, wrong) = read_by_tungstenite(other(role), &bytes);
        prop_assert!(!wrong && read == sent);

        let mut socket = tungstenite(role, Vec::new());
        for event in &sent {
            let message = match event {
                Event::Text(content) => Message::text(content.to_string()),
                Event::Binary(content) => Message::binary(content.to_vec()),
                Event::Ping(content) => Message::Ping(content.to_vec().into()),
                Event::Pong(content) => Message::Pong(content.to_vec().into()),
                Event::Close { .. } => Message::Close(Some(tungstenite::protocol::CloseFrame {
                    code: 1000.into(),
                    reason: "bye".into(),
                })),
            };
            socket.send(message).unwrap();
        }
        let bytes = &socket.get_ref().to;
        let (got, violation) = outcome(decoder(other(role), None), bytes, &sizes);
        prop_assert_eq!(violation, None);
        prop_assert!(got == sent);
    }

    /// Bytes that were changed mean one thing in whatever pieces they come, and what tungstenite refuses is
    /// refused.
    #[test]
    fn changed_bytes_do_no_harm(
        from_client in any::<bool>(),
        sent in prop::collection::vec(events(), 0..5),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        coding in codings(),
        sizes in sizes(),
    ) {
        let role = if from_client { Role::Client } else { Role::Server };
        let mut encoder = encoder(role).fragments(100);
        if let Some(coding) = coding {
            encoder = encoder.compress(coding, Compressing { level: 6, threshold: 16 });
        }
        let mut bytes = Vec::new();
        sent.iter().for_each(|event| write(&mut encoder, event, &mut bytes));
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        let whole: Outcome = outcome(decoder(other(role), coding), &bytes, &[]);
        let pieces = outcome(decoder(other(role), coding), &bytes, &sizes);
        prop_assert!(whole == pieces, "{:?} {:?}", whole.1, pieces.1);
        if coding.is_none() && whole.1.is_none() {
            let (read, wrong) = read_by_tungstenite(other(role), &bytes);
            prop_assert!(!wrong && read == whole.0);
        }
    }

    /// Nor do random bytes; and no memory grows beyond what came.
    #[test]
    fn random_bytes_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        start in prop::sample::select(vec![&b""[..], b"\x81", b"\x01\x7e", b"\xc1\x20", b"\x82\x7f\0\0\0\0", b"\x88"]),
        coding in codings(),
        sizes in sizes(),
    ) {
        let bytes = [start, &bytes].concat();
        for role in [Role::Server, Role::Client] {
            let whole = outcome(decoder(role, coding), &bytes, &[]);
            prop_assert!(whole == outcome(decoder(role, coding), &bytes, &sizes));
            let mut plain = decoder(role, None);
            let mut copy = bytes.clone();
            for (at, byte) in copy.chunks_mut(1).enumerate() {
                if plain.decode(byte).is_err() {
                    break;
                }
                prop_assert!(plain.buffered() <= 2 * at + 64);
            }
        }
    }
}
