//! What goes over a WebSocket, and how does it look on the wire?

use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::net::home;
use crate::proto::ws::deflate::Coding;
use crate::proto::ws::encode::{Compressing, Encoder};

/// Up to how many bytes a message is compressed on the worker; a longer one would hold it up, and is compressed on a
/// thread for that.
pub(super) const COMPRESSED_HERE: usize = 64 << 10;

/// A message of text or of bytes (RFC 6455 section 5.6).
///
/// ```
/// use cloudgate::Message;
/// let message = Message::from("hello");
/// assert_eq!(message.as_text(), Some("hello"));
/// match message {
///     Message::Text(text) => assert_eq!(text, "hello"),
///     Message::Binary(bytes) => assert!(bytes.is_empty()),
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub enum Message {
    /// Text: what a page gets as a string.
    Text(String),
    /// Bytes: what a page gets as a `Blob` or an `ArrayBuffer`.
    Binary(Bytes),
}

impl Message {
    /// A message of text with `value` as JSON.
    ///
    /// # Errors
    /// When the value cannot be serialized.
    pub fn json(value: &impl serde::Serialize) -> Result<Message, serde_json::Error> {
        serde_json::to_string(value).map(Message::Text)
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Message::Text(text) => Some(text),
            Message::Binary(_) => None,
        }
    }

    /// The bytes, of text in UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Message::Text(text) => text.as_bytes(),
            Message::Binary(bytes) => bytes,
        }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends it as an encoder makes it.
    pub(super) fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) {
        match self {
            Message::Text(text) => encoder.text(text, out),
            Message::Binary(bytes) => encoder.binary(bytes, out),
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Message::Binary(bytes) => f.debug_tuple("Binary").field(bytes).finish(),
        }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Message {
        Message::Text(text.to_owned())
    }
}

impl From<String> for Message {
    fn from(text: String) -> Message {
        Message::Text(text)
    }
}

impl From<&[u8]> for Message {
    fn from(bytes: &[u8]) -> Message {
        Message::Binary(Bytes::copy_from_slice(bytes))
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Message {
        Message::Binary(bytes.into())
    }
}

impl From<Bytes> for Message {
    fn from(bytes: Bytes) -> Message {
        Message::Binary(bytes)
    }
}

/// How a socket compresses what it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::app) struct Compresses {
    pub(in crate::app) coding: Coding,
    pub(super) how: Compressing,
}

/// A message for many sockets, encoded and compressed once for all of them.
pub(in crate::app) struct Prepared {
    message: Arc<Message>,
    plain: OnceLock<Bytes>,
    /// For each way to compress that a receiver has: these are few, one for most applications.
    deflated: [OnceLock<(Compresses, Bytes)>; 4],
}

/// What a socket is to send.
#[derive(Clone, Debug)]
pub(super) enum Load {
    /// A frame.
    Frame(Bytes),
    /// What the socket's own encoder has to make a frame of.
    Message(Arc<Message>),
}

impl Load {
    /// The bytes that it holds.
    pub(super) fn len(&self) -> usize {
        match self {
            Load::Frame(frame) => frame.len(),
            Load::Message(message) => message.len(),
        }
    }
}

impl Prepared {
    pub(in crate::app) fn new(message: Message) -> Prepared {
        Prepared {
            message: Arc::new(message),
            plain: OnceLock::new(),
            deflated: [const { OnceLock::new() }; 4],
        }
    }

    /// Its length in bytes, before it is compressed.
    pub(in crate::app) fn len(&self) -> usize {
        self.message.len()
    }

    /// Makes now what receivers of these kinds will share. A long message is compressed on a thread for that, and
    /// waited for.
    pub(in crate::app) fn prepare(self: &Arc<Self>, kinds: Vec<Compresses>) {
        self.plain();
        let applies = |how: &Compresses| self.len() >= how.how.threshold && !how.coding.takeover;
        if !kinds.iter().any(applies) {
            return;
        }
        let prepared = Arc::clone(self);
        let compress = move || {
            for how in kinds {
                prepared.load(Some(how));
            }
        };
        if self.len() < COMPRESSED_HERE {
            compress();
        } else {
            home::computing(compress);
        }
    }

    /// What a socket sends that compresses like this, or not at all.
    pub(super) fn load(&self, compresses: Option<Compresses>) -> Load {
        match compresses {
            Some(how) if self.message.len() >= how.how.threshold => self.deflated(how),
            _ => Load::Frame(self.plain()),
        }
    }

    fn plain(&self) -> Bytes {
        let make = || frame(&self.message, &mut Encoder::server());
        self.plain.get_or_init(make).clone()
    }

    fn deflated(&self, how: Compresses) -> Load {
        // What may refer to the messages before it is another for each socket.
        if how.coding.takeover {
            return Load::Message(Arc::clone(&self.message));
        }
        for place in &self.deflated {
            let made = || {
                let mut encoder = Encoder::server().compress(how.coding, how.how);
                (how, frame(&self.message, &mut encoder))
            };
            match place.get_or_init(made) {
                (known, frame) if *known == how => return Load::Frame(frame.clone()),
                _ => {}
            }
        }
        Load::Message(Arc::clone(&self.message))
    }
}

/// A message as a frame.
pub(super) fn frame(message: &Message, encoder: &mut Encoder) -> Bytes {
    let mut out = Vec::new();
    message.encode(encoder, &mut out);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compresses(window_bits: u8, takeover: bool) -> Compresses {
        Compresses {
            coding: Coding {
                takeover,
                window_bits,
            },
            how: Compressing {
                level: 1,
                threshold: 64,
            },
        }
    }

    #[test]
    fn receivers_of_one_kind_share_one_frame() {
        let prepared = Prepared::new(Message::from("abc ".repeat(50)));
        let frame = |compresses| match prepared.load(compresses) {
            Load::Frame(frame) => frame,
            Load::Message(_) => Bytes::new(),
        };
        assert_eq!(frame(None).as_ptr(), frame(None).as_ptr());
        assert_eq!(frame(None).len(), 204);
        let (first, second) = (
            frame(Some(compresses(15, false))),
            frame(Some(compresses(15, false))),
        );
        assert_eq!(first.as_ptr(), second.as_ptr());
        assert!(first.len() < 30, "{}", first.len());
        assert_ne!(first.as_ptr(), frame(Some(compresses(10, false))).as_ptr());
        // With takeover each socket has its own.
        assert!(frame(Some(compresses(15, true))).is_empty());
    }

    #[test]
    fn a_short_message_goes_plain_and_a_fifth_kind_is_left_to_its_socket() {
        let short = Prepared::new(Message::from("a".repeat(63)));
        assert!(
            matches!(short.load(Some(compresses(15, false))), Load::Frame(frame) if frame.len() == 65)
        );
        let long = Prepared::new(Message::from("a".repeat(64)));
        for bits in 9..13 {
            assert!(
                matches!(long.load(Some(compresses(bits, false))), Load::Frame(frame) if frame.len() < 30)
            );
        }
        assert!(matches!(
            long.load(Some(compresses(13, false))),
            Load::Message(_)
        ));
        assert!(matches!(
            long.load(Some(compresses(9, false))),
            Load::Frame(_)
        ));
    }
}
