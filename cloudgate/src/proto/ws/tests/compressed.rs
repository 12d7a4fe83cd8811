//! Are compressed messages what RFC 7692 section 7.2 says?
//!
//! The larger rows are what the Autobahn testsuite has in its groups 12 and 13, as facts.

use super::{Wire, binary, check_with, feed, ping, text};
use crate::proto::ws::Role;
use crate::proto::ws::decode::{Decoder, Event, MessageLimits};
use crate::proto::ws::deflate::{Coding, Deflater, Inflater};
use crate::proto::ws::encode::{Compressing, Encoder};
use crate::proto::ws::violation::Violation;

const FORGETS: Coding = Coding {
    takeover: false,
    window_bits: 15,
};
const REMEMBERS: Coding = Coding {
    takeover: true,
    window_bits: 15,
};
const EACH: Compressing = Compressing {
    level: 6,
    threshold: 0,
};

#[track_caller]
fn check(
    coding: Coding,
    write: impl Fn(&mut Wire) -> &mut Wire,
    events: &[Event<'static>],
    violation: Option<Violation>,
) {
    check_with(
        MessageLimits::default(),
        Some(coding),
        write,
        events,
        violation,
    );
}

/// "Hello" as RFC 7692 section 7.2.3.1 has it.
const HELLO: &[u8] = b"\xf2\x48\xcd\xc9\xc9\x07\x00";

#[test]
fn the_examples_of_the_rfc() {
    let hello = || text("Hello");
    for coding in [FORGETS, REMEMBERS] {
        check(coding, |w| w.frame(0xc1, HELLO), &[hello()], None);
        // 7.2.3.1: in two frames.
        check(
            coding,
            |w| w.frame(0x41, &HELLO[..3]).frame(0x80, &HELLO[3..]),
            &[hello()],
            None,
        );
        // 7.2.3.3: a block without compression.
        check(
            coding,
            |w| w.frame(0xc1, b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"),
            &[hello()],
            None,
        );
        // 7.2.3.4: a block that says that it is the last one.
        let last = b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00";
        check(coding, |w| w.frame(0xc1, last), &[hello()], None);
        check(
            coding,
            |w| w.frame(0xc1, last).frame(0xc1, last).frame(0xc1, HELLO),
            &[hello(), hello(), hello()],
            None,
        );
        // 7.2.3.5: two blocks.
        check(
            coding,
            |w| {
                w.frame(
                    0xc1,
                    b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
                )
            },
            &[hello()],
            None,
        );
        // 7.2.3.6: nothing, compressed.
        check(coding, |w| w.frame(0xc1, b"\x00"), &[text("")], None);
        check(
            coding,
            |w| w.frame(0xc2, b"\x00").frame(0xc1, HELLO),
            &[binary(b""), hello()],
            None,
        );
    }
    // 7.2.3.2: the second message refers to the first.
    let again = b"\xf2\x00\x11\x00\x00";
    check(
        REMEMBERS,
        |w| w.frame(0xc1, HELLO).frame(0xc1, again),
        &[hello(), hello()],
        None,
    );
    check(
        FORGETS,
        |w| w.frame(0xc1, HELLO).frame(0xc1, again),
        &[hello()],
        Some(Violation::InvalidDeflate),
    );
}

#[test]
fn what_other_senders_do_is_taken() {
    for coding in [FORGETS, REMEMBERS] {
        // A last block without the byte that should follow, as zlib ends a stream.
        let ended = b"\xf3\x48\xcd\xc9\xc9\x07\x00";
        check(
            coding,
            |w| w.frame(0xc1, ended).frame(0xc1, ended).frame(0xc1, HELLO),
            &[text("Hello"), text("Hello"), text("Hello")],
            None,
        );
        // Compressed, and no byte at all.
        check(
            coding,
            |w| {
                w.frame(0xc1, b"")
                    .frame(0xc1, HELLO)
                    .frame(0x41, b"")
                    .frame(0x80, b"")
            },
            &[text(""), text("Hello"), text("")],
            None,
        );
        // A tail that was not cut off.
        check(
            coding,
            |w| {
                w.frame(0xc1, b"\xf2\x48\xcd\xc9\xc9\x07\x00\x00\x00\xff\xff\x00")
                    .frame(0xc1, HELLO)
            },
            &[text("Hello"), text("Hello")],
            None,
        );
        // Plain messages among compressed ones, and a control frame inside one.
        check(
            coding,
            |w| {
                w.frame(0x81, b"plain")
                    .frame(0x41, &HELLO[..2])
                    .frame(0x89, b"p")
                    .frame(0x80, &HELLO[2..])
                    .frame(0x82, b"plain")
            },
            &[text("plain"), ping(b"p"), text("Hello"), binary(b"plain")],
            None,
        );
    }
}

#[test]
fn what_does_not_inflate_to_the_message_is_refused() {
    for (payload, violation) in [
        // A block of the reserved type.
        (&b"\x07"[..], Violation::InvalidDeflate),
        // A stored block whose lengths do not agree.
        (b"\x00\x05\x00\xfa\xfeHello\x00", Violation::InvalidDeflate),
        // Further back than there is anything.
        (b"\xf2\x00\x11\x00\x00", Violation::InvalidDeflate),
        // Bytes that are no text, in a message of text.
        (b"\x00\x02\x00\xfd\xff\xc3\x28\x00", Violation::InvalidUtf8),
        (b"\x00\x01\x00\xfe\xff\xc3\x00", Violation::InvalidUtf8),
    ] {
        for coding in [FORGETS, REMEMBERS] {
            check(coding, |w| w.frame(0xc1, payload), &[], Some(violation));
        }
    }
    for first in [0xc0, 0xc8, 0xc9, 0xca, 0x40] {
        check(
            FORGETS,
            |w| w.frame(first, HELLO),
            &[],
            Some(Violation::ReservedBit),
        );
    }
    check(
        FORGETS,
        |w| w.frame(0x41, HELLO).frame(0xc0, HELLO),
        &[],
        Some(Violation::ReservedBit),
    );
}

/// Something like what programs send: 150 bytes each, with much in common.
fn json(number: usize) -> String {
    format!(
        r#"{{"id":{number},"name":"sensor {}","kind":"temperature","value":{},"unit":"C","tags":["cellar","north","{}"],"time":"2026-01-01T00:00:{:02}Z"}}"#,
        number % 7,
        number * 37 % 1000,
        number % 3,
        number % 60
    )
}

fn compressed(payload: &[u8], coding: Coding) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(Deflater::new(coding, 6).compress(payload, &mut out));
    out
}

#[test]
fn a_bomb_is_refused_at_the_limit_and_costs_no_more() {
    let limits = MessageLimits {
        frame: 1 << 20,
        message: 100_000,
    };
    let zeros = |length: usize| compressed(&vec![0; length], FORGETS);
    assert!(zeros(100_000).len() < 200);
    let full = [binary(&vec![0; 100_000])];
    check_with(
        limits,
        Some(FORGETS),
        |w| w.frame(0xc2, &zeros(100_000)),
        &full,
        None,
    );
    check_with(
        limits,
        Some(FORGETS),
        |w| w.frame(0xc2, &zeros(100_001)),
        &[],
        Some(Violation::MessageTooLarge),
    );
    // By default 16 MiB: 60 KB that would be 64 MiB.
    let bomb = zeros(64 << 20);
    assert!(bomb.len() < 70_000);
    let mut wire = Wire::new(Role::Client);
    wire.frame(0xc2, &bomb);
    let mut decoder = Decoder::new(Role::Client, MessageLimits::default(), Some(FORGETS));
    let mut most = 0;
    let mut broken = None;
    for piece in wire.bytes.chunks_mut(500) {
        match decoder.decode(piece) {
            Ok(step) => assert_eq!(step.event, None),
            Err(violation) => {
                broken = Some(violation);
                break;
            }
        }
        most = most.max(decoder.buffered());
    }
    assert_eq!(broken, Some(Violation::MessageTooLarge));
    assert!(most <= 32 << 20, "{most}");
    assert_eq!(decoder.buffered(), 0);
    assert!(!decoder.holds_context());
}

/// Groups 12 and 13: every window, with and without context takeover, and messages of many sizes.
#[test]
fn messages_come_back_through_every_window() {
    let sizes = [
        0, 1, 16, 64, 256, 1024, 4096, 8192, 16_384, 32_768, 65_536, 131_072,
    ];
    let long: String = (0..1000).map(json).collect();
    for takeover in [false, true] {
        for window_bits in 9..=15 {
            for level in [1, 6, 9] {
                let coding = Coding {
                    takeover,
                    window_bits,
                };
                let how = Compressing {
                    level,
                    threshold: 0,
                };
                let mut encoder = Encoder::server().compress(coding, how).fragments(5000);
                let mut decoder =
                    Decoder::new(Role::Client, MessageLimits::default(), Some(coding));
                let mut events = Vec::new();
                for &size in &sizes {
                    let mut out = Vec::new();
                    encoder.text(&long[..size], &mut out);
                    feed(&mut decoder, &out, &vec![1000; 200], &mut events).unwrap();
                    assert!(events == [text(&long[..size])], "{coding:?} {level} {size}");
                    events.clear();
                }
            }
        }
    }
}

/// Nothing may be referred to that lies further back than was agreed (RFC 7692 section 7.1.2). An inflater
/// with a window of just that size finds it, where it writes into small buffers.
#[test]
fn a_compressor_keeps_to_its_window() {
    // Repeats at every distance up to 2000.
    let mut text = Vec::new();
    for distance in (1..2000_usize).step_by(37) {
        let piece: Vec<u8> = (0..distance)
            .map(|at| (at * distance % 251) as u8)
            .collect();
        text.extend_from_slice(&piece);
        text.extend_from_slice(&piece[..piece.len().min(40)]);
    }
    for window_bits in 9..=11 {
        for level in 1..=9 {
            let coding = Coding {
                takeover: true,
                window_bits,
            };
            let mut bytes = compressed(&text, coding);
            bytes.extend_from_slice(&[0, 0, 0xff, 0xff]);
            let mut inflater = flate2::Decompress::new_with_window_bits(false, window_bits);
            let (mut read, mut found) = (0, Vec::new());
            let mut buffer = [0; 16];
            while found.len() < text.len() {
                let (before, at) = (inflater.total_in(), inflater.total_out());
                inflater
                    .decompress(&bytes[read..], &mut buffer, flate2::FlushDecompress::None)
                    .unwrap_or_else(|error| panic!("{window_bits} {level}: {error}"));
                read += (inflater.total_in() - before) as usize;
                found.extend_from_slice(&buffer[..(inflater.total_out() - at) as usize]);
            }
            assert!(found == text, "{window_bits} {level}");
        }
    }
}

#[test]
fn short_messages_go_plain_and_so_does_what_does_not_shrink() {
    let how = Compressing {
        level: 6,
        threshold: 100,
    };
    let mut encoder = Encoder::server().compress(FORGETS, how);
    let mut out = Vec::new();
    encoder.text(&"a".repeat(99), &mut out);
    assert_eq!(out[0], 0x81);
    out.clear();
    encoder.text(&"a".repeat(100), &mut out);
    assert_eq!(out[0], 0xc1);
    assert!(out.len() < 20);

    // A hash of each number: nothing to be found in it.
    let noise: Vec<u8> = (0..50_u8)
        .flat_map(|number| {
            let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &[number]);
            digest.as_ref().to_vec()
        })
        .collect();
    out.clear();
    encoder.binary(&noise, &mut out);
    assert_eq!(out[0], 0x82);
    // The compressor will refer to it, so the other end has to get it.
    out.clear();
    Encoder::server()
        .compress(REMEMBERS, how)
        .binary(&noise, &mut out);
    assert_eq!(out[0], 0xc2);
    // A window of 256 bytes: zlib would take 512.
    let tiny = Coding {
        takeover: false,
        window_bits: 8,
    };
    out.clear();
    Encoder::server()
        .compress(tiny, EACH)
        .text(&"a".repeat(1000), &mut out);
    assert_eq!(out[0], 0x81);
}

#[test]
fn the_bit_is_on_the_first_frame_alone() {
    let mut out = Vec::new();
    let long: String = (0..100).map(json).collect();
    let mut encoder = Encoder::server().compress(FORGETS, EACH).fragments(100);
    encoder.text(&long, &mut out);
    let mut at = 0;
    let mut firsts = Vec::new();
    while at < out.len() {
        firsts.push(out[at]);
        at += 2 + usize::from(out[at + 1]);
    }
    assert!(firsts.len() > 3);
    assert_eq!((firsts[0], firsts[firsts.len() - 1]), (0x41, 0x80));
    assert!(firsts[1..firsts.len() - 1].iter().all(|&first| first == 0));
}

#[test]
fn a_context_makes_like_messages_small_and_may_be_dropped_at_any_time() {
    let mut deflater = Deflater::new(REMEMBERS, 6);
    let mut inflater = Inflater::new(REMEMBERS);
    let mut sizes = Vec::new();
    for number in 0..20 {
        let message = json(number);
        let (mut out, mut found) = (Vec::new(), Vec::new());
        assert!(deflater.compress(message.as_bytes(), &mut out));
        let mut take = |piece: &[u8]| {
            found.extend_from_slice(piece);
            Ok(())
        };
        inflater.push(&out, &mut take).unwrap();
        inflater.finish(&mut take).unwrap();
        assert_eq!(found, message.as_bytes());
        sizes.push(out.len());
        if number == 10 {
            deflater.reset();
        }
        // Between messages nothing goes that is needed.
        inflater.shrink();
        assert!(inflater.holds_context());
    }
    assert!(sizes[10] * 2 < sizes[0], "{sizes:?}");
    assert!(sizes[11] > sizes[10] * 2, "{sizes:?}");

    let mut decoder = Decoder::new(Role::Client, MessageLimits::default(), Some(FORGETS));
    let mut wire = Wire::new(Role::Client);
    wire.frame(0xc1, HELLO);
    assert!(!decoder.holds_context());
    for _ in 0..3 {
        let mut events = Vec::new();
        feed(&mut decoder, &wire.bytes, &[], &mut events).unwrap();
        assert_eq!(events, [text("Hello")]);
        assert!(decoder.holds_context());
        decoder.shrink();
        assert!(!decoder.holds_context());
    }
    // Not inside a message.
    feed(&mut decoder, b"\x41\x01\xf2", &[], &mut Vec::new()).unwrap();
    decoder.shrink();
    assert!(decoder.holds_context());
}
