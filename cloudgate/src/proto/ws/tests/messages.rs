//! Do frames make the messages that RFC 6455 says they make?
//!
//! The rows are the cases that the Autobahn testsuite has in its groups 1 to 5, 7, 9 and 10, as facts.

use super::{Wire, binary, check, check_with, close, outcome, ping, pong, text};
use crate::proto::ws::Role;
use crate::proto::ws::decode::{Decoder, Event, MessageLimits};
use crate::proto::ws::encode::{ControlError, Encoder};
use crate::proto::ws::violation::Violation;

const FIN_TEXT: u8 = 0x81;
const FIN_BINARY: u8 = 0x82;
const FIN_MORE: u8 = 0x80;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const MORE: u8 = 0;
const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// Group 1.
#[test]
fn a_frame_is_a_message_of_any_length() {
    for length in [0, 1, 125, 126, 127, 128, 65_535, 65_536] {
        let payload = vec![b'*'; length];
        let shown = String::from_utf8(payload.clone()).unwrap();
        check(|wire| wire.frame(FIN_TEXT, &payload), &[text(&shown)], None);
        let payload = vec![0xfe; length];
        check(
            |wire| wire.frame(FIN_BINARY, &payload),
            &[binary(&payload)],
            None,
        );
    }
}

/// RFC 6455 section 5.7.
#[test]
fn the_examples_of_the_rfc() {
    for (role, bytes, want) in [
        (Role::Client, &b"\x81\x05Hello"[..], text("Hello")),
        (
            Role::Server,
            b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
            text("Hello"),
        ),
        (Role::Client, b"\x01\x03Hel\x80\x02lo", text("Hello")),
        (Role::Client, b"\x89\x05Hello", ping(b"Hello")),
        (
            Role::Server,
            b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
            pong(b"Hello"),
        ),
    ] {
        let decoder = Decoder::new(role, MessageLimits::default(), None);
        assert_eq!(outcome(decoder, bytes, &[]), (vec![want], None));
    }
}

/// Group 2.
#[test]
fn pings_and_pongs_hold_up_to_125_bytes() {
    for length in [0, 1, 124, 125] {
        let payload = vec![0xfe; length];
        check(|wire| wire.frame(PING, &payload), &[ping(&payload)], None);
        check(|wire| wire.frame(PONG, &payload), &[pong(&payload)], None);
    }
    for opcode in [PING, PONG, CLOSE] {
        check(
            |wire| wire.frame(opcode, &[0; 126]),
            &[],
            Some(Violation::LongControl),
        );
    }
    let rows: Vec<_> = (0..10_u8).map(|number| ping(&[number])).collect();
    check(
        |wire| (0..10_u8).fold(wire, |wire, number| wire.frame(PING, &[number])),
        &rows,
        None,
    );
}

/// Group 3, and the MASK bit of section 5.1.
#[test]
fn reserved_bits_and_wrong_masks_are_refused_behind_what_was_fine() {
    for rsv in [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70] {
        for opcode in [FIN_TEXT, FIN_BINARY, PING, PONG, CLOSE, MORE] {
            check(
                |wire| {
                    wire.frame(FIN_TEXT, b"fine")
                        .frame(opcode | rsv, b"x")
                        .frame(PING, b"")
                },
                &[text("fine")],
                Some(Violation::ReservedBit),
            );
        }
    }
    for (role, other, want) in [
        (Role::Server, Role::Client, Violation::Unmasked),
        (Role::Client, Role::Server, Violation::Masked),
    ] {
        let mut wire = Wire::new(other);
        wire.frame(FIN_TEXT, b"x");
        let decoder = Decoder::new(role, MessageLimits::default(), None);
        assert_eq!(outcome(decoder, &wire.bytes, &[]), (vec![], Some(want)));
    }
}

/// Group 4.
#[test]
fn reserved_opcodes_are_refused() {
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        for payload in [&b""[..], b"with a payload"] {
            check(
                |wire| wire.frame(FIN_TEXT, b"fine").frame(0x80 | opcode, payload),
                &[text("fine")],
                Some(Violation::ReservedOpcode),
            );
        }
    }
}

/// Group 5.
#[test]
fn fragments_make_a_message_and_control_frames_go_between() {
    type Write = fn(&mut Wire) -> &mut Wire;
    let rows: &[(Write, &[Event<'static>], Option<Violation>)] = &[
        (
            |w| w.frame(0x09, b"a").frame(PING, b"b"),
            &[],
            Some(Violation::FragmentedControl),
        ),
        (
            |w| w.frame(0x0a, b"a").frame(PONG, b"b"),
            &[],
            Some(Violation::FragmentedControl),
        ),
        (
            |w| w.frame(0x08, b""),
            &[],
            Some(Violation::FragmentedControl),
        ),
        (
            |w| w.frame(TEXT, b"one").frame(FIN_MORE, b"two"),
            &[text("onetwo")],
            None,
        ),
        (
            |w| {
                w.frame(TEXT, b"one")
                    .frame(PING, b"p")
                    .frame(FIN_MORE, b"two")
            },
            &[ping(b"p"), text("onetwo")],
            None,
        ),
        (
            |w| {
                w.frame(TEXT, b"1")
                    .frame(PING, b"p")
                    .frame(MORE, b"2")
                    .frame(PONG, b"q")
                    .frame(MORE, b"")
                    .frame(FIN_MORE, b"3")
            },
            &[ping(b"p"), pong(b"q"), text("123")],
            None,
        ),
        (
            |w| w.frame(FIN_MORE, b"none"),
            &[],
            Some(Violation::NothingToContinue),
        ),
        (
            |w| w.frame(MORE, b"none").frame(FIN_TEXT, b"x"),
            &[],
            Some(Violation::NothingToContinue),
        ),
        (
            |w| w.frame(FIN_TEXT, b"done").frame(FIN_MORE, b"none"),
            &[text("done")],
            Some(Violation::NothingToContinue),
        ),
        (
            |w| w.frame(TEXT, b"a").frame(FIN_TEXT, b"b"),
            &[],
            Some(Violation::UnfinishedMessage),
        ),
        (
            |w| w.frame(TEXT, b"a").frame(BINARY, b"b"),
            &[],
            Some(Violation::UnfinishedMessage),
        ),
        (
            |w| {
                w.frame(BINARY, b"a")
                    .frame(MORE, b"b")
                    .frame(FIN_MORE, b"c")
            },
            &[binary(b"abc")],
            None,
        ),
        (
            |w| w.frame(TEXT, b"").frame(MORE, b"").frame(FIN_MORE, b""),
            &[text("")],
            None,
        ),
        (
            |w| w.frame(TEXT, b"").frame(MORE, b"x").frame(FIN_MORE, b""),
            &[text("x")],
            None,
        ),
        (
            |w| {
                w.frame(BINARY, b"a")
                    .frame(CLOSE, b"")
                    .frame(FIN_MORE, b"b")
            },
            &[close(None, "")],
            None,
        ),
    ];
    for &(write, events, violation) in rows {
        check(write, events, violation);
    }
}

/// Group 7.
#[test]
fn closes_say_why_and_end_everything() {
    let longest = "x".repeat(123);
    let mut full = 1000_u16.to_be_bytes().to_vec();
    full.extend_from_slice(longest.as_bytes());
    check(
        |wire| wire.frame(CLOSE, &full),
        &[close(Some(1000), &longest)],
        None,
    );
    check(|wire| wire.frame(CLOSE, b""), &[close(None, "")], None);
    check(
        |wire| wire.frame(CLOSE, &[3]),
        &[],
        Some(Violation::HalfCloseCode),
    );
    check(
        |wire| wire.frame(CLOSE, b"\x03\xe8Hello\xce\xba\xed\xa0\x80"),
        &[],
        Some(Violation::InvalidUtf8),
    );
    for code in [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000,
        4999,
    ] {
        check(
            |wire| wire.frame(CLOSE, &u16::to_be_bytes(code)),
            &[close(Some(code), "")],
            None,
        );
    }
    for code in [
        0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535,
    ] {
        check(
            |wire| wire.frame(CLOSE, &u16::to_be_bytes(code)),
            &[],
            Some(Violation::InvalidCloseCode),
        );
    }
    // Behind a close even what breaks every rule is not looked at.
    check(
        |wire| {
            wire.frame(CLOSE, b"\x03\xe8bye")
                .frame(FIN_TEXT, b"late")
                .frame(0xff, b"\xff")
        },
        &[close(Some(1000), "bye")],
        None,
    );
}

const SMALL: MessageLimits = MessageLimits {
    frame: 1000,
    message: 2500,
};

/// Groups 9 and 10: sizes, and one past each.
#[test]
fn frames_and_messages_have_a_largest_size() {
    let full = [b'a'; 1001];
    let all = "a".repeat(2500);
    let check = |write: for<'a> fn(&'a mut Wire, &[u8]) -> &'a mut Wire,
                 events: &[Event<'static>],
                 violation| {
        check_with(SMALL, None, |wire| write(wire, &full), events, violation);
    };
    check(
        |wire, full| wire.frame(FIN_TEXT, &full[..1000]),
        &[text(&all[..1000])],
        None,
    );
    check(
        |wire, full| wire.frame(FIN_TEXT, full),
        &[],
        Some(Violation::FrameTooLarge),
    );
    check(
        |wire, full| {
            wire.frame(TEXT, &full[..1000])
                .frame(MORE, &full[..1000])
                .frame(FIN_MORE, &full[..500])
        },
        &[text(&all)],
        None,
    );
    check(
        |wire, full| {
            wire.frame(TEXT, &full[..1000])
                .frame(MORE, &full[..1000])
                .frame(FIN_MORE, &full[..501])
        },
        &[],
        Some(Violation::MessageTooLarge),
    );
    // Control frames are not held against them.
    check_with(
        MessageLimits {
            frame: 10,
            message: 10,
        },
        None,
        |wire| wire.frame(PING, &[1; 125]),
        &[ping(&[1; 125])],
        None,
    );
}

#[test]
fn the_default_limits_are_a_megabyte_a_frame_and_sixteen_a_message() {
    let mebibyte = vec![7; 1 << 20];
    let decoder = || Decoder::new(Role::Client, MessageLimits::default(), None);
    for (frames, violation) in [(16, None), (17, Some(Violation::MessageTooLarge))] {
        let mut wire = Wire::new(Role::Client);
        for number in 0..frames {
            let first = if number == 0 { BINARY } else { MORE };
            wire.frame(first, &mebibyte);
        }
        if violation.is_none() {
            wire.frame(FIN_MORE, b"");
        }
        let (events, broken) = outcome(decoder(), &wire.bytes, &vec![60_000; 400]);
        assert_eq!(
            (events.len(), broken),
            (usize::from(violation.is_none()), violation)
        );
    }
    let mut wire = Wire::new(Role::Client);
    wire.header(FIN_BINARY, 127, &u64::to_be_bytes((1 << 20) + 1));
    assert_eq!(
        outcome(decoder(), &wire.bytes, &[]).1,
        Some(Violation::FrameTooLarge)
    );
}

#[test]
fn a_header_that_announces_a_gigabyte_costs_nothing() {
    let limits = MessageLimits {
        frame: 1 << 40,
        message: 1 << 40,
    };
    let mut decoder = Decoder::new(Role::Client, limits, None);
    let mut events = Vec::new();
    let mut wire = Wire::new(Role::Client);
    wire.header(FIN_TEXT, 127, &u64::to_be_bytes(1 << 30));
    super::feed(&mut decoder, &wire.bytes, &[], &mut events).unwrap();
    assert_eq!(decoder.buffered(), 0);
    assert!(!decoder.is_idle());
    for count in 1..=1000 {
        super::feed(&mut decoder, b"0123456789", &[], &mut events).unwrap();
        assert!(
            decoder.buffered() <= 20 * count,
            "{count}: {}",
            decoder.buffered()
        );
    }
}

#[test]
fn nothing_is_held_between_messages() {
    let mut decoder = Decoder::new(Role::Client, MessageLimits::default(), None);
    let mut events = Vec::new();
    assert!(decoder.is_idle());
    let mut wire = Wire::new(Role::Client);
    wire.frame(TEXT, &vec![b'a'; 5000])
        .frame(PING, &[1; 100])
        .frame(FIN_MORE, &vec![b'a'; 5000]);
    super::feed(
        &mut decoder,
        &wire.bytes,
        &vec![1; wire.bytes.len()],
        &mut events,
    )
    .unwrap();
    assert_eq!(events.len(), 2);
    assert!(decoder.is_idle());
    assert_eq!(decoder.buffered(), 0);
    // Half a header is something.
    super::feed(&mut decoder, &[0x81], &[], &mut events).unwrap();
    assert!(!decoder.is_idle());
}

#[test]
fn a_message_in_one_frame_is_lent_and_not_copied() {
    let mut decoder = Decoder::new(Role::Server, MessageLimits::default(), None);
    let mut wire = Wire::new(Role::Server);
    wire.frame(FIN_TEXT, b"lent").frame(PING, b"lent too");
    let step = decoder.decode(&mut wire.bytes).unwrap();
    assert!(matches!(
        step.event,
        Some(Event::Text(std::borrow::Cow::Borrowed("lent")))
    ));
    let consumed = step.consumed;
    let step = decoder.decode(&mut wire.bytes[consumed..]).unwrap();
    assert!(matches!(
        step.event,
        Some(Event::Ping(std::borrow::Cow::Borrowed(_)))
    ));
}

#[test]
fn what_may_not_be_sent_is_not_written() {
    let mut encoder = Encoder::server();
    let mut out = Vec::new();
    assert_eq!(
        encoder.ping(&[0; 126], &mut out),
        Err(ControlError::TooLong)
    );
    assert_eq!(
        encoder.pong(&[0; 126], &mut out),
        Err(ControlError::TooLong)
    );
    let longest = "x".repeat(123);
    assert_eq!(
        encoder.close(Some(1000), &format!("{longest}x"), &mut out),
        Err(ControlError::TooLong)
    );
    for code in [0, 999, 1004, 1005, 1006, 1015, 2999, 5000] {
        assert_eq!(
            encoder.close(Some(code), "", &mut out),
            Err(ControlError::InvalidCode(code))
        );
    }
    assert_eq!(out, b"");
    encoder.ping(&[0; 125], &mut out).unwrap();
    encoder.close(Some(1000), &longest, &mut out).unwrap();
    assert_eq!(out.len(), 127 + 127);
}

#[test]
fn fragments_are_written_with_one_begin_and_one_end() {
    let mut out = Vec::new();
    Encoder::server().fragments(3).text("abcdefg", &mut out);
    assert_eq!(out, b"\x01\x03abc\x00\x03def\x80\x01g");
    out.clear();
    Encoder::server().fragments(3).binary(b"abc", &mut out);
    Encoder::server().fragments(0).text("", &mut out);
    assert_eq!(out, b"\x82\x03abc\x81\x00");
}
