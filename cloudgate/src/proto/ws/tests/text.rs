//! Is text that is not UTF-8 refused, and as soon as can be known?
//!
//! The rows are those of the Autobahn testsuite's group 6, as facts (the Unicode Standard, table 3-7).

use super::{Wire, check, feed, text};
use crate::proto::ws::Role;
use crate::proto::ws::decode::{Decoder, MessageLimits};
use crate::proto::ws::utf8::Text;
use crate::proto::ws::violation::Violation;

const VALID: &[&str] = &[
    "",
    "Hello-\u{b5}@\u{df}\u{f6}\u{e4}\u{fc}\u{e0}\u{e1}-UTF-8!!",
    "\u{3ba}\u{1f79}\u{3c3}\u{3bc}\u{3b5}",
    "\0",
    "\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}",
    "\u{d7ff}\u{e000}\u{fffd}",
    "\u{fffe}\u{1fffe}\u{10fffe}",
];

/// Each is refused with its last byte, and no sooner.
const INVALID: &[&[u8]] = &[
    b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0",
    b"a\x80",
    b"\xbf",
    b"\xc0",
    b"\xc1",
    b"\xe0\x9f",
    b"\xe0\x80",
    b"\xed\xa0",
    b"\xed\xbf",
    b"\xf0\x8f",
    b"\xf4\x90",
    b"\xf5",
    b"\xf8",
    b"\xfc",
    b"\xfe",
    b"\xff",
    b"\xc3(",
    b"\xe2\x82(",
    b"\xf0\x9f\x98(",
    b"\xf0\x9f(",
    b"\xc3\xc3",
];

#[test]
fn utf8_is_taken_however_it_is_cut() {
    for &valid in VALID {
        check(
            |wire| wire.frame(0x81, valid.as_bytes()),
            &[text(valid)],
            None,
        );
        // A frame for each byte.
        check(
            |wire| {
                wire.frame(0x01, b"");
                for byte in valid.bytes() {
                    wire.frame(0x00, &[byte]);
                }
                wire.frame(0x80, b"")
            },
            &[text(valid)],
            None,
        );
    }
}

#[test]
fn what_is_no_utf8_is_refused_with_the_byte_that_makes_it_so() {
    for &invalid in INVALID {
        let name = invalid.escape_ascii().to_string();
        check(
            |wire| wire.frame(0x81, invalid),
            &[],
            Some(Violation::InvalidUtf8),
        );
        let mut piece = Text::default();
        for (at, byte) in invalid.iter().enumerate() {
            let last = at + 1 == invalid.len();
            assert_eq!(piece.push(&[*byte]).is_err(), last, "{name} at {at}");
        }
        assert!(Text::default().push(invalid).is_err(), "{name}");
        // The frame announces more, and the message too.
        let mut wire = Wire::new(Role::Server);
        wire.header(0x01, 126, &[0x10, 0]).raw(invalid);
        let mut decoder = Decoder::new(Role::Server, MessageLimits::default(), None);
        let before = wire.bytes.len() - 1;
        let mut events = Vec::new();
        assert_eq!(
            feed(&mut decoder, &wire.bytes[..before], &[], &mut events),
            Ok(()),
            "{name}"
        );
        assert_eq!(
            feed(&mut decoder, &wire.bytes[before..], &[], &mut events),
            Err(Violation::InvalidUtf8),
            "{name}"
        );
    }
}

#[test]
fn a_text_does_not_end_in_the_middle_of_a_character() {
    for cut in [&b"\xc3"[..], b"\xe2\x82", b"a\xf0\x9f\x98", b"\xf0"] {
        check(
            |wire| wire.frame(0x81, cut),
            &[],
            Some(Violation::InvalidUtf8),
        );
        check(
            |wire| wire.frame(0x01, cut).frame(0x80, b""),
            &[],
            Some(Violation::InvalidUtf8),
        );
    }
}
