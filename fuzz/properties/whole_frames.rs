//! Which frames lie in these bytes, read plainly, all at once and without care for rules?

/// A frame, unmasked.
#[derive(Debug)]
pub struct Frame {
    /// The first byte: FIN, the reserved bits and the opcode.
    pub first: u8,
    /// Whether it was masked.
    pub masked: bool,
    /// Whether its length took no more bytes than it needs.
    pub minimal: bool,
    /// What it holds.
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn is_last(&self) -> bool {
        self.first & 0x80 != 0
    }

    pub fn is_compressed(&self) -> bool {
        self.first & 0x40 != 0
    }

    pub fn opcode(&self) -> u8 {
        self.first & 0x0f
    }
}

/// The whole frames at the begin of `input`, and how many bytes they take.
pub fn read(input: &[u8]) -> (Vec<Frame>, usize) {
    let (mut frames, mut at) = (Vec::new(), 0);
    while let Some((frame, length)) = one(&input[at..]) {
        frames.push(frame);
        at += length;
    }
    (frames, at)
}

fn one(input: &[u8]) -> Option<(Frame, usize)> {
    let (&first, &second) = (input.first()?, input.get(1)?);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let (length, minimal, mut at) = match second & 0x7f {
        126 => (number(input.get(2..4)?), number(&input[2..4]) > 125, 4),
        127 => (number(input.get(2..10)?), number(&input[2..10]) > 65535, 10),
        short => (u64::from(short), true, 2),
    };
    let masked = second & 0x80 != 0;
    let key = if masked {
        input.get(at..at + 4)?
    } else {
        &[0; 4]
    };
    at += if masked { 4 } else { 0 };
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    let payload = input.get(at..end)?.iter().zip(key.iter().cycle());
    let frame = Frame {
        first,
        masked,
        minimal,
        payload: payload.map(|(byte, key)| byte ^ key).collect(),
    };
    Some((frame, end))
}

/// A message, or a control frame, as its opcode and what it holds.
pub type Message = (u8, Vec<u8>);

/// The messages that plain frames make, up to a close.
pub fn messages(frames: &[Frame]) -> Vec<Message> {
    let (mut found, mut open): (Vec<Message>, Option<Message>) = (Vec::new(), None);
    for frame in frames {
        if frame.opcode() >= 8 {
            found.push((frame.opcode(), frame.payload.clone()));
            if frame.opcode() == 8 {
                break;
            }
            continue;
        }
        let message = open.get_or_insert_with(|| (frame.opcode(), Vec::new()));
        message.1.extend_from_slice(&frame.payload);
        if frame.is_last() {
            found.extend(open.take());
        }
    }
    found
}
