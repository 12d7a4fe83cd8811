//! How is a message compressed, and inflated within a limit (RFC 7692 section 7.2)?

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::violation::Violation;

/// What a sync flush ends with, and what no message carries (RFC 7692 section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// The empty message: the first byte of an empty stored block, of which the tail is cut off (section 7.2.3.6).
const EMPTY: u8 = 0;

/// Bytes that are inflated before they are counted.
const PIECE: usize = 8 << 10;

/// The window bits that zlib has for a stream without a header. It makes 9 out of 8, which somebody who
/// agreed to 8 could not read.
const LEAST_WINDOW: u8 = 9;
const LARGEST_WINDOW: u8 = 15;

/// How one direction is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coding {
    /// Whether a message may refer to those before it, for which their last bytes are kept.
    pub takeover: bool,
    /// The base-2 logarithm of how far back it may refer, 8 to 15.
    pub window_bits: u8,
}

/// Compresses messages.
#[derive(Debug)]
pub struct Deflater {
    coding: Coding,
    level: u32,
    context: Option<Box<Compress>>,
    /// Whether the context remembers a message.
    used: bool,
}

impl Deflater {
    /// A compressor of a level from 1, the fastest, to 9, the smallest. Its context takes memory from the
    /// first message on.
    pub fn new(coding: Coding, level: u32) -> Deflater {
        Deflater {
            coding,
            level: level.clamp(1, 9),
            context: None,
            used: false,
        }
    }

    /// How this direction is compressed.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// Appends a compressed message to `out`; `false` where it cannot be compressed, and nothing was
    /// appended.
    #[must_use]
    pub fn compress(&mut self, message: &[u8], out: &mut Vec<u8>) -> bool {
        if message.is_empty() {
            out.push(EMPTY);
            return true;
        }
        let start = out.len();
        let done = self.deflate(message, out) && out[start..].ends_with(&TAIL);
        if done {
            out.truncate(out.len() - TAIL.len());
        } else {
            out.truncate(start);
            self.reset();
        }
        done
    }

    fn deflate(&mut self, message: &[u8], out: &mut Vec<u8>) -> bool {
        let window = self.coding.window_bits.clamp(LEAST_WINDOW, LARGEST_WINDOW);
        let level = Compression::new(self.level);
        let forget = self.used && !self.coding.takeover;
        let context = self
            .context
            .get_or_insert_with(|| Box::new(Compress::new_with_window_bits(level, false, window)));
        if forget {
            context.reset();
        }
        self.used = true;
        let begin = context.total_in();
        let mut room = 64 + message.len() / 2;
        loop {
            out.reserve(room);
            let read = (context.total_in() - begin) as usize;
            match context.compress_vec(&message[read..], out, FlushCompress::Sync) {
                // With room left all was written; without, the flush may be under way.
                Ok(Status::Ok | Status::BufError) if out.len() < out.capacity() => {
                    return (context.total_in() - begin) as usize == message.len();
                }
                Ok(Status::Ok | Status::BufError) => room = message.len() / 2 + PIECE,
                Ok(Status::StreamEnd) | Err(_) => return false,
            }
        }
    }

    /// Whether a context holds memory.
    pub fn holds_context(&self) -> bool {
        self.context.is_some()
    }

    /// Forgets the messages so far and frees the memory. The other end need not know: what is not referred to
    /// need not be remembered.
    pub fn reset(&mut self) {
        self.context = None;
        self.used = false;
    }
}

/// Inflates messages.
#[derive(Debug)]
pub struct Inflater {
    coding: Coding,
    context: Option<Box<Decompress>>,
    /// What was inflated last; empty between calls.
    piece: Vec<u8>,
    state: State,
    /// Whether a byte of this message has come.
    begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The context remembers nothing.
    Fresh,
    /// In a message, or behind one that the next may refer to.
    Open,
    /// Behind a block that said it was the last.
    Ended,
}

impl Inflater {
    /// An inflater. Its context takes memory from the first message on.
    pub fn new(coding: Coding) -> Inflater {
        Inflater {
            coding,
            context: None,
            piece: Vec::new(),
            state: State::Fresh,
            begun: false,
        }
    }

    /// Inflates a piece of a message and gives what comes out to `take`, in pieces of at most 8 KiB.
    ///
    /// # Errors
    /// [`Violation::InvalidDeflate`], and what `take` finds.
    pub fn push(
        &mut self,
        mut input: &[u8],
        take: &mut dyn FnMut(&[u8]) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let window = self.coding.window_bits.clamp(LEAST_WINDOW, LARGEST_WINDOW);
        self.begun |= !input.is_empty();
        while !input.is_empty() {
            let context = self
                .context
                .get_or_insert_with(|| Box::new(Decompress::new_with_window_bits(false, window)));
            if self.state == State::Ended {
                // A sender that ends its stream with a message begins another behind it (RFC 7692 section
                // 7.2.3.4 shows one), and zlib's senders remember nothing of what was before.
                context.reset(false);
            }
            self.state = State::Open;
            self.piece.reserve(PIECE);
            loop {
                let read = context.total_in();
                let done = context.decompress_vec(input, &mut self.piece, FlushDecompress::None);
                input = &input[(context.total_in() - read) as usize..];
                let full = self.piece.len() == self.piece.capacity();
                // What came out before an error counts first, so that the pieces do not decide which it is.
                take(&self.piece)?;
                self.piece.clear();
                match done {
                    Ok(Status::StreamEnd) => {
                        self.state = State::Ended;
                        break;
                    }
                    Ok(Status::Ok | Status::BufError) if full => {}
                    Ok(Status::Ok | Status::BufError) if input.is_empty() => break,
                    Ok(Status::Ok | Status::BufError) | Err(_) => {
                        return Err(Violation::InvalidDeflate);
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends a message.
    ///
    /// # Errors
    /// As [`Inflater::push`].
    pub fn finish(
        &mut self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        // The tail belongs to a block that the message has begun. Without one, behind a last block or in a message
        // of no byte, it would be read as the begin of another.
        if self.begun && self.state != State::Ended {
            self.push(&TAIL, take)?;
        }
        self.begun = false;
        if !self.coding.takeover && self.state != State::Fresh {
            // What comes next refers to nothing, so it begins like behind a stream's end.
            self.state = State::Ended;
        }
        Ok(())
    }

    /// Frees what is not needed between messages; with context takeover that is nothing of the context.
    pub fn shrink(&mut self) {
        self.piece = Vec::new();
        if self.state == State::Ended {
            self.reset();
        }
    }

    /// Whether [`Inflater::shrink`] would free the context.
    pub fn can_shrink(&self) -> bool {
        self.context.is_some() && self.state == State::Ended
    }

    /// Forgets the messages so far and frees the memory: only behind the last message, or without context
    /// takeover.
    pub fn reset(&mut self) {
        self.context = None;
        self.piece = Vec::new();
        self.state = State::Fresh;
    }

    /// Whether a context holds memory.
    pub fn holds_context(&self) -> bool {
        self.context.is_some()
    }
}
