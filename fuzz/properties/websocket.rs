//! Does a WebSocket's decoder take one meaning from the bytes, and no more memory than it may?
//!
//! The first four bytes of an input say what is agreed on, how much may come, how the rest is cut and how it is
//! written again; the rest is what comes.

use std::borrow::Cow;

use cloudgate::__fuzz::ws::Role;
use cloudgate::__fuzz::ws::decode::{Decoder, Event, MessageLimits};
use cloudgate::__fuzz::ws::deflate::Coding;
use cloudgate::__fuzz::ws::encode::{Compressing, Encoder};
use cloudgate::__fuzz::ws::violation::Violation;

use super::mutate::Random;
use super::whole_frames::{self, Frame, Message};

/// Limits in bytes that inputs can reach, and two that few can.
const LIMITS: [usize; 8] = [0, 1, 16, 125, 126, 1000, 4096, 65536];

/// Frames that messages are written in again.
const FRAGMENTS: [usize; 8] = [usize::MAX, 1, 2, 7, 125, 126, 1000, 65535];

/// The most that a byte of DEFLATE becomes: 258 bytes for two bits.
const MOST_INFLATED: usize = 1032;

/// What a vector takes at once for its first bytes, and twice what a control frame holds.
const SMALL: usize = 64 + 2 * 125;

/// What is said in front of the bytes.
struct Setup {
    role: Role,
    coding: Option<Coding>,
    limits: MessageLimits,
    /// Frees what is not needed whenever nothing is to be decoded.
    shrinks: bool,
    fragment: usize,
    how: Compressing,
    cuts: u8,
}

impl Setup {
    fn of([agreed, limits, cuts, again]: [u8; 4]) -> Setup {
        Setup {
            role: if agreed & 1 == 0 {
                Role::Server
            } else {
                Role::Client
            },
            coding: (agreed & 2 != 0).then_some(Coding {
                takeover: agreed & 4 != 0,
                window_bits: 8 + (agreed >> 3 & 7),
            }),
            limits: MessageLimits {
                frame: LIMITS[usize::from(limits & 7)],
                message: LIMITS[usize::from(limits >> 3 & 7)],
            },
            shrinks: agreed & 0x40 != 0,
            fragment: FRAGMENTS[usize::from(again & 7)],
            how: Compressing {
                level: u32::from(again >> 3 & 7) + 1,
                threshold: usize::from(again >> 6) * 16,
            },
            cuts,
        }
    }

    /// Ways for the bytes to come.
    fn cuts(&self, bytes: &[u8]) -> Vec<Vec<usize>> {
        let mut random = Random::new(u64::from(self.cuts) << 8);
        let mut all = super::cuts(bytes);
        all.push(vec![usize::from(self.cuts).max(1)]);
        all.push((0..40).map(|_| 1 + random.below(20)).collect());
        all
    }
}

/// What was decoded, and the rule that was broken then.
type Outcome = (Vec<Event<'static>>, Option<Violation>);

/// Pieces, and frees between them, decide neither about messages nor about the rule that is broken, which is told
/// ever after; memory and messages keep to the limits; a plain reading finds the same; written again by either side,
/// messages are the same.
pub fn websocket(input: &[u8]) {
    let Some((&first, bytes)) = input.split_first_chunk() else {
        return;
    };
    let setup = Setup::of(first);
    let (events, violation) = decode(&setup, bytes, &[]);
    for pieces in setup.cuts(bytes) {
        let cut = decode(&setup, bytes, &pieces);
        assert_eq!(cut.1, violation, "in pieces of {pieces:?}");
        assert!(cut.0 == events, "in pieces of {pieces:?}");
    }
    events.iter().for_each(|event| fits(event, &setup.limits));
    if setup.coding.is_none() {
        as_read_plainly(&events, violation, bytes);
    }
    if !events.is_empty() {
        for role in [Role::Server, Role::Client] {
            written_again(&setup, role, None, &events);
            written_again(&setup, role, setup.coding, &events);
        }
    }
}

fn owned(event: Event<'_>) -> Event<'static> {
    let bytes = |bytes: Cow<'_, [u8]>| Cow::Owned(bytes.into_owned());
    match event {
        Event::Text(text) => Event::Text(Cow::Owned(text.into_owned())),
        Event::Binary(content) => Event::Binary(bytes(content)),
        Event::Ping(content) => Event::Ping(bytes(content)),
        Event::Pong(content) => Event::Pong(bytes(content)),
        Event::Close { code, reason } => Event::Close {
            code,
            reason: Cow::Owned(reason.into_owned()),
        },
    }
}

/// Decodes bytes that come in pieces of these sizes, over and over; in one if there are none.
fn decode(setup: &Setup, bytes: &[u8], pieces: &[usize]) -> Outcome {
    let mut decoder = Decoder::new(setup.role, setup.limits, setup.coding);
    let (mut events, mut closed, mut came) = (Vec::new(), false, 0);
    let mut sizes = pieces.iter().cycle();
    while came < bytes.len() {
        let size = sizes.next().map_or(bytes.len(), |&size| size);
        let size = size.min(bytes.len() - came);
        let mut piece = bytes[came..came + size].to_vec();
        came += size;
        let mut rest = piece.as_mut_slice();
        loop {
            let length = rest.len();
            let step = match decoder.decode(rest) {
                Ok(step) => step,
                Err(violation) => {
                    is_over(&mut decoder, violation);
                    return (events, Some(violation));
                }
            };
            let (consumed, event) = (step.consumed, step.event.map(owned));
            assert!(consumed <= length);
            if let Some(event) = event {
                assert!(!closed, "nothing comes behind a close");
                closed = matches!(event, Event::Close { .. });
                events.push(event);
                rest = &mut rest[consumed..];
            } else {
                assert_eq!(consumed, length);
                break;
            }
        }
        let most = if setup.coding.is_some() {
            came.saturating_mul(MOST_INFLATED)
        } else {
            came
        };
        // Twice, for memory that grows as it is filled doubles.
        let most = 2 * most.min(setup.limits.message) + SMALL;
        assert!(decoder.buffered() <= most, "{} bytes", decoder.buffered());
        if setup.shrinks {
            decoder.shrink();
        }
    }
    if closed {
        assert!(decoder.buffered() == 0 && !decoder.holds_context());
    }
    (events, None)
}

/// The same is told whatever comes, and nothing is held.
fn is_over(decoder: &mut Decoder, violation: Violation) {
    for more in [&mut [][..], &mut [0x81, 0x80, 0, 0, 0, 0], &mut [0x81, 0]] {
        assert_eq!(decoder.decode(more).err(), Some(violation));
    }
    assert!(decoder.buffered() == 0 && !decoder.holds_context());
    assert!(matches!(violation.close_code(), 1002 | 1007 | 1009));
    assert!(violation.reason().len() <= 123);
}

fn fits(event: &Event<'_>, limits: &MessageLimits) {
    match event {
        Event::Text(text) => assert!(text.len() <= limits.message),
        Event::Binary(bytes) => assert!(bytes.len() <= limits.message),
        Event::Ping(bytes) | Event::Pong(bytes) => assert!(bytes.len() <= 125),
        Event::Close { code: None, reason } => assert!(reason.is_empty()),
        Event::Close {
            code: Some(code),
            reason,
        } => {
            let own = (3000..5000).contains(code);
            let known = (1000..1015).contains(code) && !(1004..1007).contains(code);
            assert!((own || known) && reason.len() <= 123);
        }
    }
}

fn message(event: &Event<'_>) -> Message {
    match event {
        Event::Text(text) => (1, text.as_bytes().to_vec()),
        Event::Binary(bytes) => (2, bytes.to_vec()),
        Event::Ping(bytes) => (9, bytes.to_vec()),
        Event::Pong(bytes) => (10, bytes.to_vec()),
        Event::Close { code, reason } => {
            let mut payload = code.map_or(Vec::new(), |code| code.to_be_bytes().to_vec());
            payload.extend_from_slice(reason.as_bytes());
            (8, payload)
        }
    }
}

fn as_read_plainly(events: &[Event<'_>], violation: Option<Violation>, bytes: &[u8]) {
    let found: Vec<Message> = events.iter().map(message).collect();
    let plain = whole_frames::messages(&whole_frames::read(bytes).0);
    assert!(plain.starts_with(&found), "a plain reading finds others");
    assert!(violation.is_some() || plain.len() == found.len());
}

fn written_again(setup: &Setup, role: Role, coding: Option<Coding>, events: &[Event<'static>]) {
    let mut number = u32::from(setup.cuts);
    let encoder = match role {
        Role::Server => Encoder::server(),
        Role::Client => Encoder::client(Box::new(move || {
            number = number.wrapping_mul(0x9e37_79b1).wrapping_add(1);
            number.to_be_bytes()
        })),
    };
    let mut encoder = encoder.fragments(setup.fragment);
    if let Some(coding) = coding {
        encoder = encoder.compress(coding, setup.how);
    }
    let mut out = Vec::new();
    for event in events {
        let done = match event {
            Event::Text(text) => {
                encoder.text(text, &mut out);
                Ok(())
            }
            Event::Binary(bytes) => {
                encoder.binary(bytes, &mut out);
                Ok(())
            }
            Event::Ping(bytes) => encoder.ping(bytes, &mut out),
            Event::Pong(bytes) => encoder.pong(bytes, &mut out),
            Event::Close { code, reason } => encoder.close(*code, reason, &mut out),
        };
        assert_eq!(done, Ok(()));
        if setup.shrinks {
            encoder.shrink();
        }
    }
    let (frames, length) = whole_frames::read(&out);
    assert_eq!(length, out.len(), "whole frames are written");
    keeps_the_rules(&frames, setup.fragment, role, coding.is_some());
    let reader = Setup {
        role: match role {
            Role::Server => Role::Client,
            Role::Client => Role::Server,
        },
        coding,
        limits: MessageLimits::default(),
        ..*setup
    };
    let (again, violation) = decode(&reader, &out, &[]);
    assert_eq!(violation, None);
    assert!(again == events, "written again, messages are others");
}

fn keeps_the_rules(frames: &[Frame], fragment: usize, role: Role, compresses: bool) {
    let mut inside = false;
    for frame in frames {
        assert!(frame.minimal && frame.masked == (role == Role::Client));
        assert!(frame.first & 0x30 == 0);
        let opcode = frame.opcode();
        if opcode >= 8 {
            assert!(matches!(opcode, 8..=10) && frame.is_last() && !frame.is_compressed());
            assert!(frame.payload.len() <= 125);
            continue;
        }
        assert!(frame.payload.len() <= fragment);
        assert!(if inside {
            opcode == 0
        } else {
            matches!(opcode, 1 | 2)
        });
        assert!(!frame.is_compressed() || (compresses && !inside));
        inside = !frame.is_last();
    }
    assert!(!inside, "the last message has an end");
}
