//! How do messages go over the wire?

use std::fmt;

use super::deflate::{Coding, Deflater};
use super::frame::{self, FrameHeader, LONGEST_CONTROL, Opcode};
use super::violation::code;

/// Makes the keys that a client masks its frames with: unpredictable, one for each frame (RFC 6455 section 5.3).
pub type Keys = Box<dyn FnMut() -> [u8; 4] + Send>;

/// Turns messages into frames.
pub struct Encoder {
    keys: Option<Keys>,
    /// The longest frame of a message.
    fragment: usize,
    deflate: Option<Box<Deflate>>,
}

struct Deflate {
    deflater: Deflater,
    /// Shorter messages go plain.
    threshold: usize,
    compressed: Vec<u8>,
}

/// How messages are compressed where that was agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressing {
    /// 1, the fastest, to 9, the smallest.
    pub level: u32,
    /// Messages of fewer bytes are sent as they are.
    pub threshold: usize,
}

/// Why a control frame was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlError {
    /// It would hold more than 125 bytes (RFC 6455 section 5.5), for a close with the two of its code.
    TooLong,
    /// No close frame may hold this code (RFC 6455 section 7.4).
    InvalidCode(u16),
}

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::TooLong => f.write_str(
                "a ping or pong holds at most 125 bytes, and the reason of a close at most 123",
            ),
            ControlError::InvalidCode(code) => write!(
                f,
                "{code} is no code to close with; take 1000, 1001 or one from 3000 to 4999"
            ),
        }
    }
}

impl std::error::Error for ControlError {}

impl Encoder {
    /// The encoder of a server.
    pub fn server() -> Encoder {
        Encoder {
            keys: None,
            fragment: usize::MAX,
            deflate: None,
        }
    }

    /// The encoder of a client.
    pub fn client(keys: Keys) -> Encoder {
        Encoder {
            keys: Some(keys),
            ..Encoder::server()
        }
    }

    /// Splits messages into frames of at most `length` bytes, at least one.
    pub fn fragments(mut self, length: usize) -> Encoder {
        self.fragment = length.max(1);
        self
    }

    /// Compresses messages as was agreed on.
    pub fn compress(mut self, coding: Coding, how: Compressing) -> Encoder {
        self.deflate = Some(Box::new(Deflate {
            deflater: Deflater::new(coding, how.level),
            threshold: how.threshold,
            compressed: Vec::new(),
        }));
        self
    }

    /// Appends a message of text.
    pub fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.message(Opcode::Text, text.as_bytes(), out);
    }

    /// Appends a message of bytes.
    pub fn binary(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.message(Opcode::Binary, bytes, out);
    }

    /// Appends a ping.
    ///
    /// # Errors
    /// [`ControlError::TooLong`]; nothing was appended then.
    pub fn ping(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ControlError> {
        self.control(Opcode::Ping, bytes, out)
    }

    /// Appends a pong.
    ///
    /// # Errors
    /// As [`Encoder::ping`].
    pub fn pong(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ControlError> {
        self.control(Opcode::Pong, bytes, out)
    }

    /// Appends a close frame, the last frame there is; without a code it is empty, and so is `reason`.
    ///
    /// # Errors
    /// [`ControlError`]; nothing was appended then.
    pub fn close(
        &mut self,
        code: Option<u16>,
        reason: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), ControlError> {
        let Some(code) = code else {
            return self.control(Opcode::Close, b"", out);
        };
        if !code::may_be_sent(code) {
            return Err(ControlError::InvalidCode(code));
        }
        if reason.len() > LONGEST_CONTROL - 2 {
            return Err(ControlError::TooLong);
        }
        let mut payload = Vec::with_capacity(LONGEST_CONTROL);
        payload.extend_from_slice(&code.to_be_bytes());
        payload.extend_from_slice(reason.as_bytes());
        self.control(Opcode::Close, &payload, out)
    }

    /// Frees what is not needed between messages: a compressor, unless `Coding::takeover`.
    pub fn shrink(&mut self) {
        if let Some(deflate) = &mut self.deflate {
            deflate.compressed = Vec::new();
            if !deflate.deflater.coding().takeover {
                deflate.deflater.reset();
            }
        }
    }

    /// Whether [`Encoder::shrink`] would free a compressor's memory.
    pub fn can_shrink(&self) -> bool {
        self.deflate.as_ref().is_some_and(|deflate| {
            deflate.deflater.holds_context() && !deflate.deflater.coding().takeover
        })
    }

    /// Whether a message of this length is compressed.
    pub fn compresses(&self, length: usize) -> bool {
        self.deflate
            .as_ref()
            .is_some_and(|deflate| length >= deflate.threshold)
    }

    /// Frees a compressor's memory also where it remembers messages; those to come compress less well.
    pub fn reset(&mut self) {
        if let Some(deflate) = &mut self.deflate {
            deflate.compressed = Vec::new();
            deflate.deflater.reset();
        }
    }

    fn message(&mut self, opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
        if let Some(mut deflate) = self.deflate.take() {
            deflate.compressed.clear();
            let compressed = deflate.compress(payload);
            if compressed {
                self.frames(opcode, true, &deflate.compressed, out);
            }
            if deflate.compressed.capacity() > LARGEST_KEPT {
                deflate.compressed = Vec::new();
            }
            self.deflate = Some(deflate);
            if compressed {
                return;
            }
        }
        self.frames(opcode, false, payload, out);
    }

    fn frames(&mut self, opcode: Opcode, compressed: bool, payload: &[u8], out: &mut Vec<u8>) {
        let (mut opcode, mut compressed, mut rest) = (opcode, compressed, payload);
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(self.fragment));
            let last = behind.is_empty();
            self.frame(opcode, last, compressed, piece, out);
            if last {
                return;
            }
            // RSV1 on the first frame alone (RFC 7692 section 6).
            (opcode, compressed, rest) = (Opcode::Continuation, false, behind);
        }
    }

    fn control(
        &mut self,
        opcode: Opcode,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ControlError> {
        if payload.len() > LONGEST_CONTROL {
            return Err(ControlError::TooLong);
        }
        self.frame(opcode, true, false, payload, out);
        Ok(())
    }

    fn frame(
        &mut self,
        opcode: Opcode,
        last: bool,
        compressed: bool,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) {
        let header = FrameHeader {
            last,
            compressed,
            opcode,
            mask: self.keys.as_mut().map(|key| key()),
            length: payload.len() as u64,
        };
        out.reserve(frame::LONGEST_HEADER + payload.len());
        frame::format(&header, out);
        let start = out.len();
        out.extend_from_slice(payload);
        if let Some(key) = header.mask {
            frame::mask(&mut out[start..], key, 0);
        }
    }
}

/// The largest compressed message, in bytes, whose memory the next one uses again.
const LARGEST_KEPT: usize = 16 << 10;

impl Deflate {
    /// Compresses a message into its buffer; `false` where it had better go plain.
    fn compress(&mut self, payload: &[u8]) -> bool {
        let coding = self.deflater.coding();
        // A window of 256 bytes: see `deflate`. Any message may go plain (RFC 7692 section 6).
        if payload.len() < self.threshold || coding.window_bits < 9 {
            return false;
        }
        if !self.deflater.compress(payload, &mut self.compressed) {
            return false;
        }
        // With context takeover the compressor will refer to this message, so it has to go out as it is.
        coding.takeover || self.compressed.len() < payload.len()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("masks", &self.keys.is_some())
            .field("fragment", &self.fragment)
            .field("compresses", &self.deflate.is_some())
            .finish()
    }
}
