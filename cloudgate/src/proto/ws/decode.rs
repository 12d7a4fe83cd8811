//! Which messages do the bytes of the other end make?

use std::borrow::Cow;

use super::Role;
use super::deflate::{Coding, Inflater};
use super::frame::{self, FrameHeader, LONGEST_HEADER, Opcode};
use super::utf8::Text;
use super::violation::{Violation, code};

/// What has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole message of text.
    Text(Cow<'a, str>),
    /// A whole message of bytes.
    Binary(Cow<'a, [u8]>),
    /// To be answered by a pong with the same bytes, at most 125.
    Ping(Cow<'a, [u8]>),
    /// An answer to a ping, or a sign of life.
    Pong(Cow<'a, [u8]>),
    /// The other end has closed; nothing more is decoded.
    Close {
        /// Why, if it said so.
        code: Option<u16>,
        /// Why, in words.
        reason: Cow<'a, str>,
    },
}

/// What [`Decoder::decode`] has done.
#[derive(Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Bytes of the input that were used up; all of them where there is no event.
    pub consumed: usize,
    /// What they made.
    pub event: Option<Event<'a>>,
}

/// How much the other end may send in one go. Past it the socket is closed with 1009.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLimits {
    /// Bytes of a frame's payload (default 1 MiB).
    pub frame: usize,
    /// Bytes of a message, inflated (default 16 MiB).
    pub message: usize,
}

impl Default for MessageLimits {
    fn default() -> MessageLimits {
        MessageLimits {
            frame: 1 << 20,
            message: 16 << 20,
        }
    }
}

/// Turns bytes, in whatever pieces they come, into messages.
///
/// It keeps no buffer between messages. A message that lies in one piece of the input in one frame is
/// unmasked there and lent, without a copy; any other is put together in memory that grows with what has come, not
/// with what was announced, and is given away with the event.
#[derive(Debug)]
pub struct Decoder {
    role: Role,
    limits: MessageLimits,
    inflater: Option<Box<Inflater>>,
    /// The begin of a header.
    header: [u8; LONGEST_HEADER],
    header_length: usize,
    /// The frame whose payload comes next.
    frame: Option<OpenFrame>,
    /// The message that has begun.
    message: Option<Message>,
    /// The payload of a control frame that came in pieces.
    control: Vec<u8>,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug)]
struct OpenFrame {
    header: FrameHeader,
    /// Bytes of the payload that are there, and that are wanting.
    done: usize,
    left: usize,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Closed,
    Failed(Violation),
}

#[derive(Debug)]
struct Message {
    compressed: bool,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text(Text),
    Binary(Vec<u8>),
}

impl Decoder {
    /// The decoder of this side; `inflate` where compressed messages were agreed on.
    pub fn new(role: Role, limits: MessageLimits, inflate: Option<Coding>) -> Decoder {
        Decoder {
            role,
            limits,
            inflater: inflate.map(|coding| Box::new(Inflater::new(coding))),
            header: [0; LONGEST_HEADER],
            header_length: 0,
            frame: None,
            message: None,
            control: Vec::new(),
            end: None,
        }
    }

    /// Decodes up to one event; `input` is unmasked in place. To be called again with what was not consumed until
    /// there is no event; then with what comes next.
    ///
    /// # Errors
    /// The rule that the other end broke, then and ever after.
    pub fn decode<'a>(&mut self, input: &'a mut [u8]) -> Result<Step<'a>, Violation> {
        match self.end {
            // Section 5.5.1: what comes behind a close is not looked at.
            Some(End::Closed) => {
                return Ok(Step {
                    consumed: input.len(),
                    event: None,
                });
            }
            Some(End::Failed(violation)) => return Err(violation),
            None => {}
        }
        let done = self.advance(input);
        match &done {
            Ok(Step {
                event: Some(Event::Close { .. }),
                ..
            }) => self.finish(End::Closed),
            Ok(_) => {}
            Err(violation) => self.finish(End::Failed(*violation)),
        }
        done
    }

    /// Whether nothing has begun: no frame and no message.
    pub fn is_idle(&self) -> bool {
        self.header_length == 0 && self.frame.is_none() && self.message.is_none()
    }

    /// Frees what is not needed between messages: an inflater, unless it has to remember them. For a socket
    /// that is about to wait.
    pub fn shrink(&mut self) {
        if self.message.is_none()
            && let Some(inflater) = &mut self.inflater
        {
            inflater.shrink();
        }
    }

    /// Bytes of memory that messages and frames hold, contexts left out.
    pub fn buffered(&self) -> usize {
        let message = match &self.message {
            Some(message) => match &message.content {
                Content::Text(text) => text.capacity(),
                Content::Binary(bytes) => bytes.capacity(),
            },
            None => 0,
        };
        message + self.control.capacity()
    }

    /// Whether [`Decoder::shrink`] would free an inflater's context.
    pub fn can_shrink(&self) -> bool {
        self.message.is_none()
            && self
                .inflater
                .as_ref()
                .is_some_and(|inflater| inflater.can_shrink())
    }

    /// Whether an inflater holds its context.
    pub fn holds_context(&self) -> bool {
        self.inflater
            .as_ref()
            .is_some_and(|inflater| inflater.holds_context())
    }

    fn finish(&mut self, end: End) {
        self.end = Some(end);
        self.frame = None;
        self.message = None;
        self.inflater = None;
        self.control = Vec::new();
    }

    fn advance<'a>(&mut self, input: &'a mut [u8]) -> Result<Step<'a>, Violation> {
        let whole = input.len();
        let mut rest = input;
        loop {
            let frame = match self.frame {
                Some(frame) => frame,
                None => match self.begin(&mut rest)? {
                    Some(frame) => frame,
                    None => break,
                },
            };
            let count = frame.left.min(rest.len());
            let (piece, behind) = std::mem::take(&mut rest).split_at_mut(count);
            rest = behind;
            if let Some(key) = frame.header.mask {
                frame::mask(piece, key, frame.done);
            }
            let left = frame.left - piece.len();
            let whole_frame = frame.done == 0 && left == 0;
            let came = frame.done + piece.len();
            self.frame = (left > 0).then_some(OpenFrame {
                done: came,
                left,
                ..frame
            });
            let event = if frame.header.opcode.is_control() {
                self.control(frame.header.opcode, piece, left)?
            } else if whole_frame
                && frame.header.last
                && !frame.header.compressed
                && self.message.is_none()
            {
                Some(whole_message(frame.header.opcode, piece)?)
            } else {
                self.data(&frame, piece, left)?
            };
            if event.is_some() {
                return Ok(Step {
                    consumed: whole - rest.len(),
                    event,
                });
            }
            if left > 0 {
                break;
            }
        }
        Ok(Step {
            consumed: whole,
            event: None,
        })
    }

    /// Takes a header off `rest`, or as much of one as is there, and checks what it announces.
    fn begin(&mut self, rest: &mut &mut [u8]) -> Result<Option<OpenFrame>, Violation> {
        let deflate = self.inflater.is_some();
        let found = if self.header_length == 0 {
            frame::parse(rest, self.role, deflate)?.inspect(|&(length, _)| drop_front(rest, length))
        } else {
            None
        };
        let mut header = found.map(|(_, header)| header);
        // A header in pieces: what there is is less than the longest one, or it would be whole.
        while header.is_none() && !rest.is_empty() && self.header_length < LONGEST_HEADER {
            self.header[self.header_length] = rest[0];
            self.header_length += 1;
            drop_front(rest, 1);
            let so_far = &self.header[..self.header_length];
            header = frame::parse(so_far, self.role, deflate)?.map(|(_, header)| header);
        }
        let Some(header) = header else {
            return Ok(None);
        };
        self.header_length = 0;
        self.check(&header)?;
        Ok(Some(OpenFrame {
            header,
            done: 0,
            left: usize::try_from(header.length).map_err(|_| Violation::FrameTooLarge)?,
        }))
    }

    /// Whether the frame may come now, and is not too large: before anything of it is kept.
    fn check(&self, header: &FrameHeader) -> Result<(), Violation> {
        let begun = self.message.as_ref();
        match header.opcode {
            Opcode::Text | Opcode::Binary if begun.is_some() => {
                return Err(Violation::UnfinishedMessage);
            }
            Opcode::Continuation if begun.is_none() => return Err(Violation::NothingToContinue),
            Opcode::Close | Opcode::Ping | Opcode::Pong => return Ok(()),
            Opcode::Text | Opcode::Binary | Opcode::Continuation => {}
        }
        if header.length > self.limits.frame as u64 {
            return Err(Violation::FrameTooLarge);
        }
        // Of a compressed message nothing is kept but what it inflates to, and that is counted as it does.
        let compressed = begun.map_or(header.compressed, |message| message.compressed);
        let so_far = begun.map_or(0, Message::len);
        if !compressed
            && header.length > (self.limits.message - so_far.min(self.limits.message)) as u64
        {
            return Err(Violation::MessageTooLarge);
        }
        Ok(())
    }

    fn control<'a>(
        &mut self,
        opcode: Opcode,
        piece: &'a mut [u8],
        left: usize,
    ) -> Result<Option<Event<'a>>, Violation> {
        if left > 0 || !self.control.is_empty() {
            self.control.extend_from_slice(piece);
        }
        if left > 0 {
            return Ok(None);
        }
        let payload = match std::mem::take(&mut self.control) {
            kept if kept.is_empty() => Cow::Borrowed(&*piece),
            kept => Cow::Owned(kept),
        };
        Ok(Some(match opcode {
            Opcode::Ping => Event::Ping(payload),
            Opcode::Pong => Event::Pong(payload),
            _ => close(payload)?,
        }))
    }

    /// Adds to the message.
    fn data<'a>(
        &mut self,
        frame: &OpenFrame,
        piece: &[u8],
        left: usize,
    ) -> Result<Option<Event<'a>>, Violation> {
        let most = self.limits.message;
        let message = self.message.get_or_insert_with(|| Message {
            compressed: frame.header.compressed,
            content: match frame.header.opcode {
                Opcode::Text => Content::Text(Text::default()),
                _ => Content::Binary(Vec::new()),
            },
        });
        let last = frame.header.last && left == 0;
        match &mut self.inflater {
            Some(inflater) if message.compressed => {
                let mut take = |inflated: &[u8]| message.push(inflated, most);
                inflater.push(piece, &mut take)?;
                if last {
                    inflater.finish(&mut take)?;
                }
            }
            _ => message.push(piece, most)?,
        }
        if !last {
            return Ok(None);
        }
        match self.message.take().map(|message| message.content) {
            Some(Content::Text(text)) => Ok(Some(Event::Text(Cow::Owned(text.finish()?)))),
            Some(Content::Binary(bytes)) => Ok(Some(Event::Binary(Cow::Owned(bytes)))),
            None => Ok(None),
        }
    }
}

impl Message {
    fn len(&self) -> usize {
        match &self.content {
            Content::Text(text) => text.len(),
            Content::Binary(bytes) => bytes.len(),
        }
    }

    /// Adds a piece, up to `most` bytes in all.
    fn push(&mut self, piece: &[u8], most: usize) -> Result<(), Violation> {
        let room = most - self.len().min(most);
        // What fits is looked at first, so that the pieces do not decide what is wrong.
        let fits = &piece[..piece.len().min(room)];
        match &mut self.content {
            Content::Text(text) => text.push(fits)?,
            Content::Binary(bytes) => bytes.extend_from_slice(fits),
        }
        if fits.len() < piece.len() {
            return Err(Violation::MessageTooLarge);
        }
        Ok(())
    }
}

fn drop_front(bytes: &mut &mut [u8], count: usize) {
    *bytes = &mut std::mem::take(bytes)[count..];
}

/// A message that lies in the input.
fn whole_message(opcode: Opcode, payload: &[u8]) -> Result<Event<'_>, Violation> {
    Ok(match opcode {
        Opcode::Text => {
            let text = std::str::from_utf8(payload).map_err(|_| Violation::InvalidUtf8)?;
            Event::Text(Cow::Borrowed(text))
        }
        _ => Event::Binary(Cow::Borrowed(payload)),
    })
}

/// What a close frame says (RFC 6455 section 5.5.1).
fn close(payload: Cow<'_, [u8]>) -> Result<Event<'_>, Violation> {
    let code = match payload[..] {
        [] => {
            return Ok(Event::Close {
                code: None,
                reason: Cow::Borrowed(""),
            });
        }
        [_] => return Err(Violation::HalfCloseCode),
        [high, low, ..] => u16::from_be_bytes([high, low]),
    };
    if !code::may_be_sent(code) {
        return Err(Violation::InvalidCloseCode);
    }
    let reason = match payload {
        Cow::Borrowed(bytes) => std::str::from_utf8(&bytes[2..]).map(Cow::Borrowed),
        Cow::Owned(bytes) => {
            std::str::from_utf8(&bytes[2..]).map(|text| Cow::Owned(text.to_owned()))
        }
    };
    Ok(Event::Close {
        code: Some(code),
        reason: reason.map_err(|_| Violation::InvalidUtf8)?,
    })
}
