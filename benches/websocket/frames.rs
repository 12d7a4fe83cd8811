//! What does a client put on the wire, and what comes back (RFC 6455 section 5)?

/// Opcodes of section 5.2.
pub(crate) const TEXT: u8 = 1;
pub(crate) const CLOSE: u8 = 8;
pub(crate) const PING: u8 = 9;
pub(crate) const PONG: u8 = 10;

/// Any key does, and a fixed one lets a frame be made once and sent for ever.
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A client's whole frame, of a payload below 64 KiB.
pub(crate) fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = head(opcode, payload.len(), 0x80);
    frame.extend_from_slice(&MASK);
    frame.extend(
        payload
            .iter()
            .zip(MASK.iter().cycle())
            .map(|(byte, mask)| byte ^ mask),
    );
    frame
}

/// The first bytes of a final frame of less than 64 KiB.
pub(crate) fn head(opcode: u8, length: usize, mask_bit: u8) -> Vec<u8> {
    let [high, low] = (length as u16).to_be_bytes();
    match length {
        0..126 => vec![0x80 | opcode, mask_bit | low],
        _ => vec![0x80 | opcode, mask_bit | 126, high, low],
    }
}

/// A server's frame. Every message here is small enough that a server which cut it up would be a wonder, so that is a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) opcode: u8,
    /// RSV1 (RFC 7692 section 6).
    pub(crate) compressed: bool,
    pub(crate) payload: &'a [u8],
}

/// The frame at the start and how long it is; `None` means that more bytes are needed.
pub(crate) fn parse(input: &[u8]) -> Result<Option<(usize, Frame<'_>)>, String> {
    let [first, second, rest @ ..] = input else {
        return Ok(None);
    };
    if first & 0xb0 != 0x80 || second & 0x80 != 0 {
        return Err(format!(
            "sent a frame that starts with {first:02x} {second:02x}: masked, in pieces or with reserved bits"
        ));
    }
    let (start, length) = match (second, rest) {
        (0..126, _) => (2, usize::from(*second)),
        (126, [high, low, ..]) => (4, usize::from(u16::from_be_bytes([*high, *low]))),
        (126, _) => return Ok(None),
        _ => return Err("sent a frame of 64 KiB or more".to_owned()),
    };
    let end = start + length;
    Ok(input.get(start..end).map(|payload| {
        let frame = Frame {
            opcode: first & 0x0f,
            compressed: first & 0x40 != 0,
            payload,
        };
        (end, frame)
    }))
}

/// Takes bytes as they come and hands out whole frames.
#[derive(Default)]
pub(crate) struct Inbox {
    /// The start of a frame whose end has not come.
    rest: Vec<u8>,
}

impl Inbox {
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        each: impl FnMut(Frame<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        // The usual case: whole frames and nothing else, which are not copied.
        if self.rest.is_empty() {
            let taken = split(bytes, each)?;
            self.rest.extend_from_slice(&bytes[taken..]);
        } else {
            self.rest.extend_from_slice(bytes);
            let taken = split(&self.rest, each)?;
            self.rest.drain(..taken);
        }
        Ok(())
    }
}

fn split(
    bytes: &[u8],
    mut each: impl FnMut(Frame<'_>) -> Result<(), String>,
) -> Result<usize, String> {
    let mut taken = 0;
    while let Some((length, frame)) = parse(&bytes[taken..])? {
        taken += length;
        each(frame)?;
    }
    Ok(taken)
}
