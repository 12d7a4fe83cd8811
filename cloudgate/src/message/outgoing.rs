//! How do bodies of responses go out?
//!
//! As bytes, a piece of a file, whatever a reader gives, or whatever a closure writes.

use std::fmt;
use std::io::{self, Read, Write};

use bytes::Bytes;

use super::file_range::FileRange;
use super::headers::Headers;
use super::upgrade::Upgrade;

/// Where a closure body ([`Body::Writer`]) puts its bytes; the server implements it.
pub trait BodySink {
    /// Sends `bytes`, or keeps them until there are enough to be worth sending.
    ///
    /// # Errors
    /// When the client is gone or reads too slowly.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Sends everything that was kept.
    ///
    /// # Errors
    /// As [`BodySink::write_all`].
    fn flush(&mut self) -> io::Result<()>;

    /// Whether the server is about to stop, and waits for this body no longer than its grace.
    fn is_stopping(&self) -> bool {
        false
    }

    /// Whether the client has ended its side of the connection, or the connection has failed.
    fn client_is_gone(&mut self) -> bool {
        false
    }

    /// Fields that are to go out behind the body, where the framing has a place for them (RFC 9110 section 6.5).
    fn trailers(&mut self, fields: &Headers) {
        let _ = fields;
    }
}

/// What a closure body writes to: a [`Write`] whose `flush` reaches the client.
pub struct BodyWriter<'conn>(&'conn mut dyn BodySink);

impl<'conn> BodyWriter<'conn> {
    /// A writer over `sink`.
    pub fn new(sink: &'conn mut dyn BodySink) -> BodyWriter<'conn> {
        BodyWriter(sink)
    }

    /// Whether the server is about to stop: a body that would go on for ever ends itself then, or is
    /// cut when the grace of the stop is over.
    pub fn is_stopping(&self) -> bool {
        self.0.is_stopping()
    }

    /// Whether the client has ended its side of the connection: a body that waits for somebody else looks now and then.
    pub(crate) fn client_is_gone(&mut self) -> bool {
        self.0.client_is_gone()
    }

    /// Has these fields go out behind the body, where there is a place for them.
    pub(crate) fn trailers(&mut self, fields: &Headers) {
        self.0.trailers(fields);
    }
}

impl Write for BodyWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl fmt::Debug for BodyWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyWriter")
    }
}

/// What a closure body is: called once, after the head was sent.
pub type WriteBody = Box<dyn FnOnce(&mut BodyWriter<'_>) -> io::Result<()> + Send>;

/// The body of a response.
#[derive(Default)]
#[non_exhaustive]
pub enum Body {
    /// Nothing.
    #[default]
    Empty,
    /// Bytes in memory; cheap to share.
    Bytes(Bytes),
    /// A piece of a file.
    File(FileRange),
    /// Whatever the reader gives, of `length` bytes if that is known.
    Reader {
        /// Read until it ends, or until `length` bytes.
        reader: Box<dyn Read + Send>,
        /// Its length in bytes, if known: it becomes Content-Length.
        length: Option<u64>,
    },
    /// Whatever the closure writes.
    Writer(WriteBody),
    /// What another server answers, as it comes.
    Relay(Relay),
    /// No body: behind a response of status 101 the connection speaks another protocol
    /// ([`Response::switching_protocols`](super::Response::switching_protocols)).
    Upgrade(Upgrade),
}

impl Body {
    /// The length in bytes, if it is known before sending.
    pub fn length(&self) -> Option<u64> {
        match self {
            Body::Empty | Body::Upgrade(_) => Some(0),
            Body::Bytes(bytes) => Some(bytes.len() as u64),
            Body::File(range) => Some(range.length),
            Body::Reader { length, .. } => *length,
            Body::Relay(relay) => relay.length(),
            Body::Writer(_) => None,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Body::Empty => "Empty",
            Body::Bytes(_) => "Bytes",
            Body::File(_) => "File",
            Body::Reader { .. } => "Reader",
            Body::Writer(_) => "Writer",
            Body::Relay(_) => "Relay",
            Body::Upgrade(_) => "Upgrade",
        };
        f.debug_tuple(kind).field(&self.length()).finish()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Body {
        Body::Bytes(bytes.into())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Body {
        Body::Bytes(text.into())
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Body {
        Body::Bytes(Bytes::from_static(text.as_bytes()))
    }
}

/// A body that a closure writes, of a length that may be known before: what comes from another server.
pub struct Relay {
    write: WriteBody,
    length: Option<u64>,
}

impl Relay {
    /// Whatever `write` writes, which is `length` bytes if that is known.
    pub(crate) fn new(
        length: Option<u64>,
        write: impl FnOnce(&mut BodyWriter<'_>) -> io::Result<()> + Send + 'static,
    ) -> Relay {
        Relay {
            write: Box::new(write),
            length,
        }
    }

    /// The length in bytes, if it is known before sending.
    pub(crate) fn length(&self) -> Option<u64> {
        self.length
    }

    /// What writes it.
    pub(crate) fn into_write(self) -> WriteBody {
        self.write
    }

    /// The same body, written by what `wrap` makes of the closure.
    pub(crate) fn wrapped(self, wrap: impl FnOnce(WriteBody) -> WriteBody) -> Relay {
        Relay {
            write: wrap(self.write),
            length: self.length,
        }
    }
}
