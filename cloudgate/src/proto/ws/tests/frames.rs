//! Are headers and masks what RFC 6455 section 5.2 says?

use std::io::Cursor;

use proptest::prelude::*;
use tungstenite::protocol::frame as other;

use crate::proto::ws::Role;
use crate::proto::ws::frame::{FrameHeader, LONGEST_HEADER, Opcode, format, mask, parse};
use crate::proto::ws::violation::{Violation, code};

/// What a client makes of the header.
#[track_caller]
fn refused(input: &[u8], want: Violation) {
    assert_eq!(parse(input, Role::Client, true), Err(want));
    // No byte that comes later makes it right, and none less would have been refused.
    for end in 0..input.len() {
        let early = parse(&input[..end], Role::Client, true);
        assert!(matches!(early, Ok(None)), "{end}: {early:?}");
    }
}

#[test]
fn what_no_header_may_hold_is_refused_with_the_byte_that_makes_it_so() {
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        refused(&[0x80 | opcode], Violation::ReservedOpcode);
        refused(&[opcode], Violation::ReservedOpcode);
    }
    for rsv in [0x10, 0x20, 0x30, 0x50, 0x60, 0x70] {
        for opcode in [0, 1, 2, 8, 9, 10] {
            refused(&[0x80 | rsv | opcode], Violation::ReservedBit);
        }
    }
    for opcode in [8, 9, 10] {
        refused(&[opcode], Violation::FragmentedControl);
        refused(&[0x80 | opcode, 126], Violation::LongControl);
        refused(&[0x80 | opcode, 127], Violation::LongControl);
        // RFC 7692 section 6.1: control frames are not compressed.
        refused(&[0xc0 | opcode], Violation::ReservedBit);
    }
    refused(&[0xc0], Violation::ReservedBit);
    refused(&[0x82, 126, 0, 125], Violation::LengthNotMinimal);
    refused(&[0x82, 126, 0, 0], Violation::LengthNotMinimal);
    refused(
        &[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
        Violation::LengthNotMinimal,
    );
    refused(
        &[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0],
        Violation::LengthTooLarge,
    );
    refused(&[0x82, 0x80], Violation::Masked);
    assert_eq!(
        parse(&[0x82, 0], Role::Server, true),
        Err(Violation::Unmasked)
    );
    assert_eq!(
        parse(&[0xc1], Role::Client, false),
        Err(Violation::ReservedBit)
    );
}

#[test]
fn each_broken_rule_has_its_close_code() {
    for violation in [
        Violation::ReservedBit,
        Violation::ReservedOpcode,
        Violation::FragmentedControl,
        Violation::LongControl,
        Violation::Unmasked,
        Violation::Masked,
        Violation::LengthNotMinimal,
        Violation::LengthTooLarge,
        Violation::NothingToContinue,
        Violation::UnfinishedMessage,
        Violation::HalfCloseCode,
        Violation::InvalidCloseCode,
    ] {
        assert_eq!(violation.close_code(), 1002, "{violation}");
    }
    assert_eq!(Violation::InvalidUtf8.close_code(), 1007);
    assert_eq!(Violation::InvalidDeflate.close_code(), 1007);
    assert_eq!(Violation::FrameTooLarge.close_code(), 1009);
    assert_eq!(Violation::MessageTooLarge.close_code(), 1009);
}

#[test]
fn codes_that_stand_for_something_are_not_sent() {
    for (codes, may) in [
        (0..=999, false),
        (1000..=1003, true),
        (1004..=1006, false),
        (1007..=1014, true),
        (1015..=2999, false),
        (3000..=4999, true),
        (5000..=u16::MAX, false),
    ] {
        for code in codes {
            assert_eq!(code::may_be_sent(code), may, "{code}");
        }
    }
}

#[test]
fn lengths_take_as_many_bytes_as_they_need() {
    for (length, bytes) in [
        (0_u64, 2),
        (125, 2),
        (126, 4),
        (127, 4),
        (65_535, 4),
        (65_536, 10),
        (u64::MAX >> 1, 10),
    ] {
        let header = FrameHeader {
            last: true,
            compressed: false,
            opcode: Opcode::Binary,
            mask: None,
            length,
        };
        let mut out = Vec::new();
        format(&header, &mut out);
        assert_eq!(out.len(), bytes, "{length}");
        assert_eq!(parse(&out, Role::Client, false), Ok(Some((bytes, header))));
    }
}

fn plain_mask(bytes: &mut [u8], key: [u8; 4], offset: usize) {
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte ^= key[(offset + at) & 3];
    }
}

#[test]
fn the_fast_mask_is_the_plain_one_at_every_length_offset_and_place() {
    let bytes: Vec<u8> = (0..=255).collect();
    for start in 0..9 {
        for length in 0..100 {
            for offset in 0..9 {
                let mut fast = bytes.clone();
                let mut plain = bytes.clone();
                mask(&mut fast[start..start + length], [1, 20, 90, 200], offset);
                plain_mask(&mut plain[start..start + length], [1, 20, 90, 200], offset);
                assert!(fast == plain, "{start} {length} {offset}");
            }
        }
    }
    // The masked "Hello" of RFC 6455 section 5.7.
    let mut hello = [0x7f, 0x9f, 0x4d, 0x51, 0x58];
    mask(&mut hello, super::KEY, 0);
    assert_eq!(&hello, b"Hello");
}

fn headers() -> impl Strategy<Value = FrameHeader> {
    let opcodes = prop::sample::select(vec![
        Opcode::Continuation,
        Opcode::Text,
        Opcode::Binary,
        Opcode::Close,
        Opcode::Ping,
        Opcode::Pong,
    ]);
    let lengths = prop_oneof![0_u64..200, 65_000_u64..66_000, 0_u64..1 << 63];
    (
        any::<bool>(),
        any::<bool>(),
        opcodes,
        any::<Option<[u8; 4]>>(),
        lengths,
    )
        .prop_map(|(last, compressed, opcode, mask, length)| FrameHeader {
            last: last || opcode.is_control(),
            compressed: compressed && matches!(opcode, Opcode::Text | Opcode::Binary),
            opcode,
            mask,
            length: if opcode.is_control() {
                length % 126
            } else {
                length
            },
        })
}

proptest! {
    /// tungstenite writes the same bytes for a header, and reads the same out of them.
    #[test]
    fn headers_are_those_of_tungstenite(header in headers()) {
        let mut bytes = Vec::new();
        format(&header, &mut bytes);
        prop_assert!(bytes.len() <= LONGEST_HEADER);

        let mut cursor = Cursor::new(&bytes);
        let (read, length) = other::FrameHeader::parse(&mut cursor).unwrap().unwrap();
        prop_assert_eq!(length, header.length);
        prop_assert_eq!(cursor.position(), bytes.len() as u64);
        prop_assert_eq!(read.rsv1, header.compressed);
        prop_assert_eq!(read.is_final, header.last);
        prop_assert_eq!(read.mask, header.mask);

        let mut written = Vec::new();
        read.format(length, &mut written).unwrap();
        prop_assert_eq!(&written, &bytes);

        let role = if header.mask.is_some() { Role::Server } else { Role::Client };
        prop_assert_eq!(parse(&bytes, role, true), Ok(Some((bytes.len(), header))));
        for end in 0..bytes.len() {
            prop_assert_eq!(parse(&bytes[..end], role, true), Ok(None));
        }
    }

    /// Of any bytes this parser takes no header that tungstenite refuses or reads otherwise.
    #[test]
    fn no_header_is_taken_that_tungstenite_reads_otherwise(bytes in prop::collection::vec(any::<u8>(), 0..16)) {
        let theirs = other::FrameHeader::parse(&mut Cursor::new(&bytes));
        for role in [Role::Server, Role::Client] {
            match parse(&bytes, role, true) {
                Ok(Some((size, header))) => {
                    let (read, length) = theirs.as_ref().unwrap().as_ref().unwrap();
                    prop_assert_eq!(*length, header.length);
                    prop_assert_eq!(read.len(*length), size);
                    prop_assert_eq!(read.mask, header.mask);
                }
                Ok(None) => prop_assert!(matches!(theirs, Ok(None))),
                Err(_) => {}
            }
        }
    }
}
