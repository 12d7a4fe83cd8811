//! Does the layer keep to RFC 6455 and RFC 7692?

mod compressed;
mod frames;
mod messages;
mod opening;
mod properties;
mod text;

use std::borrow::Cow;

use super::Role;
use super::decode::{Decoder, Event, MessageLimits, Step};
use super::deflate::Coding;
use super::frame::{self, FrameHeader};
use super::violation::Violation;

pub(crate) const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// What comes over a wire: events, and the rule that is broken behind them.
pub(crate) type Outcome = (Vec<Event<'static>>, Option<Violation>);

pub(crate) fn text(text: &str) -> Event<'static> {
    Event::Text(Cow::Owned(text.to_owned()))
}

pub(crate) fn binary(bytes: &[u8]) -> Event<'static> {
    Event::Binary(Cow::Owned(bytes.to_vec()))
}

pub(crate) fn ping(bytes: &[u8]) -> Event<'static> {
    Event::Ping(Cow::Owned(bytes.to_vec()))
}

pub(crate) fn pong(bytes: &[u8]) -> Event<'static> {
    Event::Pong(Cow::Owned(bytes.to_vec()))
}

pub(crate) fn close(code: Option<u16>, reason: &str) -> Event<'static> {
    Event::Close {
        code,
        reason: Cow::Owned(reason.to_owned()),
    }
}

pub(crate) fn owned(event: Event<'_>) -> Event<'static> {
    match event {
        Event::Text(text) => Event::Text(Cow::Owned(text.into_owned())),
        Event::Binary(bytes) => Event::Binary(Cow::Owned(bytes.into_owned())),
        Event::Ping(bytes) => Event::Ping(Cow::Owned(bytes.into_owned())),
        Event::Pong(bytes) => Event::Pong(Cow::Owned(bytes.into_owned())),
        Event::Close { code, reason } => Event::Close {
            code,
            reason: Cow::Owned(reason.into_owned()),
        },
    }
}

/// Feeds `bytes` in pieces of these sizes, and the rest in one; adds the events to `events`.
pub(crate) fn feed(
    decoder: &mut Decoder,
    bytes: &[u8],
    sizes: &[usize],
    events: &mut Vec<Event<'static>>,
) -> Result<(), Violation> {
    let mut bytes = bytes.to_vec();
    let mut rest = &mut bytes[..];
    let mut sizes = sizes.iter();
    while !rest.is_empty() {
        let size = sizes
            .next()
            .map_or(rest.len(), |&size| size.clamp(1, rest.len()));
        let (mut piece, behind) = rest.split_at_mut(size);
        rest = behind;
        loop {
            let Step { consumed, event } = decoder.decode(piece)?;
            let Some(event) = event else {
                assert_eq!(consumed, piece.len(), "without an event all is consumed");
                break;
            };
            events.push(owned(event));
            piece = &mut piece[consumed..];
        }
    }
    Ok(())
}

/// What `bytes` mean to a new decoder.
pub(crate) fn outcome(mut decoder: Decoder, bytes: &[u8], sizes: &[usize]) -> Outcome {
    let mut events = Vec::new();
    let violation = feed(&mut decoder, bytes, sizes, &mut events).err();
    if violation.is_some() {
        assert_eq!(decoder.decode(&mut [0]).err(), violation, "an error stays");
        assert_eq!(decoder.buffered(), 0, "and holds nothing");
    }
    (events, violation)
}

/// Frames as they come to one side.
pub(crate) struct Wire {
    to: Role,
    pub(crate) bytes: Vec<u8>,
}

impl Wire {
    pub(crate) fn new(to: Role) -> Wire {
        Wire {
            to,
            bytes: Vec::new(),
        }
    }

    /// A frame of this first byte: FIN 0x80, RSV1 0x40, the opcode.
    pub(crate) fn frame(&mut self, first: u8, payload: &[u8]) -> &mut Wire {
        let mask = (self.to == Role::Server).then_some(KEY);
        let header = FrameHeader {
            last: true,
            compressed: false,
            opcode: frame::Opcode::Text,
            mask,
            length: payload.len() as u64,
        };
        let start = self.bytes.len();
        frame::format(&header, &mut self.bytes);
        self.bytes[start] = first;
        self.raw(payload)
    }

    /// Payload bytes without a header.
    pub(crate) fn raw(&mut self, payload: &[u8]) -> &mut Wire {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        if self.to == Role::Server {
            frame::mask(&mut self.bytes[start..], KEY, 0);
        }
        self
    }

    /// A header of these two bytes and this length as it stands, its MASK bit and key as they have to be.
    pub(crate) fn header(&mut self, first: u8, second: u8, length: &[u8]) -> &mut Wire {
        let mask = self.to == Role::Server;
        self.bytes
            .extend_from_slice(&[first, second | if mask { 0x80 } else { 0 }]);
        self.bytes.extend_from_slice(length);
        if mask {
            self.bytes.extend_from_slice(&KEY);
        }
        self
    }
}

/// Ways to cut: whole, byte by byte, and some in between.
pub(crate) fn cuts(length: usize) -> Vec<Vec<usize>> {
    let mut state = length as u64 | 1;
    let mut random = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % limit
    };
    let mut all = vec![vec![], vec![1; length.min(5000)]];
    for most in [2, 7, 200] {
        all.push((0..length.min(2000)).map(|_| 1 + random(most)).collect());
    }
    all
}

/// Holds what a wire means against what it has to mean: for either side, in whatever pieces it comes.
#[track_caller]
pub(crate) fn check_with(
    limits: MessageLimits,
    inflate: Option<Coding>,
    write: impl Fn(&mut Wire) -> &mut Wire,
    events: &[Event<'static>],
    violation: Option<Violation>,
) {
    for role in [Role::Server, Role::Client] {
        let mut wire = Wire::new(role);
        write(&mut wire);
        for sizes in cuts(wire.bytes.len()) {
            let (got, broken) = outcome(Decoder::new(role, limits, inflate), &wire.bytes, &sizes);
            assert_eq!(broken, violation, "{role:?} {sizes:?} {got:?}");
            assert!(got == events, "{role:?} {sizes:?}: {} events", got.len());
        }
    }
}

#[track_caller]
pub(crate) fn check(
    write: impl Fn(&mut Wire) -> &mut Wire,
    events: &[Event<'static>],
    violation: Option<Violation>,
) {
    check_with(MessageLimits::default(), None, write, events, violation);
}
