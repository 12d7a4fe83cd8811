//! How do frames look on the wire (RFC 6455 section 5.2)?
//!
//! Own code and not tungstenite's codec: that writes a trace line for each byte pair it reads, sees neither lengths
//! that are not minimal nor control frames that are too long, refuses an opcode only behind the whole
//! header, and keeps its mask to itself. It is the oracle of the tests.

use super::Role;
use super::violation::Violation;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// More of the message that has begun.
    Continuation,
    /// A message of text, or its begin.
    Text,
    /// A message of bytes, or its begin.
    Binary,
    /// The sender is done.
    Close,
    /// To be answered by a pong.
    Ping,
    /// The answer, or a sign of life that nobody asked for.
    Pong,
}

impl Opcode {
    fn of(bits: u8) -> Option<Opcode> {
        Some(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    /// Whether such a frame stands for itself, also between the fragments of a message.
    pub fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// Everything in front of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Whether this is the last frame of its message.
    pub last: bool,
    /// RSV1: whether the message is compressed (RFC 7692 section 6).
    pub compressed: bool,
    /// What it is.
    pub opcode: Opcode,
    /// The key that its payload is masked with.
    pub mask: Option<[u8; 4]>,
    /// Bytes of the payload.
    pub length: u64,
}

/// The longest header, in bytes.
pub const LONGEST_HEADER: usize = 14;

/// The longest payload of a control frame, in bytes (RFC 6455 section 5.5).
pub const LONGEST_CONTROL: usize = 125;

const LAST: u8 = 0x80;
const RSV1: u8 = 0x40;
const RSV2_AND_3: u8 = 0x30;
const MASKED: u8 = 0x80;
const TWO_BYTES: u8 = 126;
const EIGHT_BYTES: u8 = 127;

/// Parses the header at the begin of `input` as `role` takes it: its length and what it says; `None` where
/// more bytes are needed. `deflate` says whether compressed messages were agreed on.
///
/// # Errors
/// The rule that is broken by what is there, so the same one in whatever pieces it comes.
pub fn parse(
    input: &[u8],
    role: Role,
    deflate: bool,
) -> Result<Option<(usize, FrameHeader)>, Violation> {
    let Some(&first) = input.first() else {
        return Ok(None);
    };
    let opcode = Opcode::of(first & 0x0f).ok_or(Violation::ReservedOpcode)?;
    let (last, compressed) = (first & LAST != 0, first & RSV1 != 0);
    // RFC 7692 section 6: only the first frame of a message says that it is compressed.
    let compressible = deflate && matches!(opcode, Opcode::Text | Opcode::Binary);
    if first & RSV2_AND_3 != 0 || (compressed && !compressible) {
        return Err(Violation::ReservedBit);
    }
    if opcode.is_control() && !last {
        return Err(Violation::FragmentedControl);
    }
    let Some(&second) = input.get(1) else {
        return Ok(None);
    };
    let masked = second & MASKED != 0;
    match role {
        Role::Server if !masked => return Err(Violation::Unmasked),
        Role::Client if masked => return Err(Violation::Masked),
        Role::Server | Role::Client => {}
    }
    let short = second & !MASKED;
    if opcode.is_control() && short >= TWO_BYTES {
        return Err(Violation::LongControl);
    }
    let (length, end) = match short {
        TWO_BYTES => {
            let Some(bytes) = input[2..].first_chunk() else {
                return Ok(None);
            };
            let length = u64::from(u16::from_be_bytes(*bytes));
            if length < u64::from(TWO_BYTES) {
                return Err(Violation::LengthNotMinimal);
            }
            (length, 4)
        }
        EIGHT_BYTES => {
            let Some(bytes) = input[2..].first_chunk() else {
                return Ok(None);
            };
            let length = u64::from_be_bytes(*bytes);
            if length > u64::MAX >> 1 {
                return Err(Violation::LengthTooLarge);
            }
            if length <= u64::from(u16::MAX) {
                return Err(Violation::LengthNotMinimal);
            }
            (length, 10)
        }
        short => (u64::from(short), 2),
    };
    let (mask, end) = match input[end..].first_chunk() {
        _ if !masked => (None, end),
        Some(key) => (Some(*key), end + 4),
        None => return Ok(None),
    };
    let header = FrameHeader {
        last,
        compressed,
        opcode,
        mask,
        length,
    };
    Ok(Some((end, header)))
}

/// Appends `header` to `out`.
pub fn format(header: &FrameHeader, out: &mut Vec<u8>) {
    let last = if header.last { LAST } else { 0 };
    let compressed = if header.compressed { RSV1 } else { 0 };
    let masked = if header.mask.is_some() { MASKED } else { 0 };
    let first = last | compressed | header.opcode.bits();
    if header.length < u64::from(TWO_BYTES) {
        out.extend_from_slice(&[first, masked | header.length as u8]);
    } else if let Ok(length) = u16::try_from(header.length) {
        out.extend_from_slice(&[first, masked | TWO_BYTES]);
        out.extend_from_slice(&length.to_be_bytes());
    } else {
        out.extend_from_slice(&[first, masked | EIGHT_BYTES]);
        out.extend_from_slice(&header.length.to_be_bytes());
    }
    if let Some(key) = header.mask {
        out.extend_from_slice(&key);
    }
}

/// Masks or unmasks a piece of a payload that `offset` bytes stand in front of (RFC 6455 section 5.3).
pub fn mask(bytes: &mut [u8], key: [u8; 4], offset: usize) {
    let mut key = key;
    key.rotate_left(offset & 3);
    let [a, b, c, d] = key;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    // Words of a fixed size are what the compiler makes vectors of.
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}
