//! How does a body become a shorter one, however it comes?
//!
//! ```text
//!  bytes ─▶ bytes         in the coroutine, larger ones on a thread that computes
//!  file  ─▶ reader        read on a thread that may block, compressed on one that computes
//!  reader ─▶ reader       in the coroutine; what arrived by itself goes on by itself
//!  writer ─▶ writer       in the coroutine; a flush reaches the client
//! ```
//!
//! Bytes become gzip by libdeflate, streams by zlib-rs. Nothing here asks whether that is wise: that is
//! the business of who calls.

mod gzip;

use std::io::{self, ErrorKind, Read, Write};

use bytes::Bytes;
use flate2::write::GzEncoder;

use super::Coding;
use crate::disk::reader::read_piece;
use crate::message::{Body, BodySink, BodyWriter, FileRange, Headers};
use crate::net::home;

/// How much of a stream is compressed in one step, in bytes.
const PIECE: usize = 16 << 10;

/// After this many bytes of a stream the other coroutines of the worker get a turn.
const TURN: usize = 128 << 10;

/// How much of a file is read, and then compressed, by one visit to another thread, in bytes.
const FILE_TURN: usize = 128 << 10;

/// The window of brotli and zstd as a power of two: it bounds what a stream takes in memory, here
/// and at the client.
#[cfg(any(feature = "brotli", feature = "zstd"))]
const WINDOW: u32 = 18;

/// Compresses a body; `level` is 1, the fastest, to 9, the smallest.
///
/// # Errors
/// When the coder cannot be set up, or when bytes in memory cannot be coded. A stream fails as it is
/// sent, and its connection is cut.
pub(crate) fn encode(body: Body, coding: Coding, level: u32) -> io::Result<Body> {
    Ok(match body {
        body @ (Body::Empty | Body::Upgrade(_)) => body,
        Body::Bytes(bytes) if bytes.len() <= inline(coding, level) => {
            Body::Bytes(all(&bytes, coding, level)?)
        }
        // The coder is made in there too: what waits for its turn holds nothing but the bytes.
        Body::Bytes(bytes) => Body::Bytes(home::computing(move || all(&bytes, coding, level))?),
        Body::File(range) => unknown_length(FileReader::new(range, coding, level)),
        Body::Reader { reader, length } => unknown_length(EncodedReader {
            reader,
            left: length,
            piece: vec![0; PIECE],
            encoder: Some(Encoder::new(coding, level)?),
            ready: Ready::default(),
            in_turn: 0,
        }),
        body @ (Body::Writer(_) | Body::Relay(_)) => {
            let write = match body {
                Body::Writer(write) => write,
                Body::Relay(relay) => relay.into_write(),
                other => return Ok(other),
            };
            let encoder = Encoder::new(coding, level)?;
            Body::Writer(Box::new(move |out| {
                let mut sink = EncodingSink {
                    out,
                    encoder,
                    unflushed: false,
                    in_turn: 0,
                };
                write(&mut BodyWriter::new(&mut sink))?;
                sink.finish()
            }))
        }
    })
}

/// Up to how many bytes are compressed at once in the coroutine: what takes less than about 0.5 ms, for
/// so long the other coroutines of the worker wait.
fn inline(coding: Coding, level: u32) -> usize {
    match coding {
        // 0.1 ms at level 5.
        Coding::Zstd => 64 << 10,
        // 0.45 ms at level 5; at 9 as many bytes would take 1.7 ms.
        Coding::Brotli if level <= 6 => 64 << 10,
        Coding::Brotli => 16 << 10,
        Coding::Gzip => gzip::inline(level),
    }
}

/// Compresses all of `bytes`, on the calling thread.
fn all(bytes: &[u8], coding: Coding, level: u32) -> io::Result<Bytes> {
    if coding == Coding::Gzip {
        return gzip::all(bytes, level);
    }
    let mut encoder = Encoder::new(coding, level)?;
    encoder.write(bytes)?;
    Ok(encoder.finish()?.into())
}

fn unknown_length(reader: impl Read + Send + 'static) -> Body {
    Body::Reader {
        reader: Box::new(reader),
        length: None,
    }
}

/// A coder with what it has put out.
enum Encoder {
    #[cfg(feature = "zstd")]
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    #[cfg(feature = "brotli")]
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    fn new(coding: Coding, level: u32) -> io::Result<Encoder> {
        Ok(match coding {
            #[cfg(feature = "zstd")]
            Coding::Zstd => {
                // Its levels go to 22; at its own default, 3, it takes less time than gzip at 2.
                let level = i32::try_from(level / 2 + 1).unwrap_or(3);
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), level)?;
                encoder.window_log(WINDOW)?;
                Encoder::Zstd(encoder)
            }
            #[cfg(feature = "brotli")]
            Coding::Brotli => {
                // Its levels go to 11. At 3 it takes about as long as gzip at 5; a stream takes 1.2 MB
                // then, 2.7 MB at 5, and 35 MB at 9, where 64 KiB take 115 ms.
                let quality = level.div_ceil(2);
                let out = Vec::new();
                let encoder = brotli::CompressorWriter::new(out, PIECE, quality, WINDOW);
                Encoder::Brotli(Box::new(encoder))
            }
            Coding::Gzip => {
                Encoder::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(level)))
            }
            #[cfg(not(all(feature = "brotli", feature = "zstd")))]
            other => {
                return Err(io::Error::new(
                    ErrorKind::Unsupported,
                    format!("this build has no encoder for {}", other.name()),
                ));
            }
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            #[cfg(feature = "zstd")]
            Encoder::Zstd(encoder) => encoder.write_all(bytes),
            #[cfg(feature = "brotli")]
            Encoder::Brotli(encoder) => encoder.write_all(bytes),
            Encoder::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    /// Puts out everything that was written, so that the client can decode all of it.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            #[cfg(feature = "zstd")]
            Encoder::Zstd(encoder) => encoder.flush(),
            #[cfg(feature = "brotli")]
            Encoder::Brotli(encoder) => encoder.flush(),
            Encoder::Gzip(encoder) => encoder.flush(),
        }
    }

    /// What was put out and not taken yet.
    fn output(&mut self) -> &mut Vec<u8> {
        match self {
            #[cfg(feature = "zstd")]
            Encoder::Zstd(encoder) => encoder.get_mut(),
            #[cfg(feature = "brotli")]
            Encoder::Brotli(encoder) => encoder.get_mut(),
            Encoder::Gzip(encoder) => encoder.get_mut(),
        }
    }

    /// Ends the stream and gives the rest of it.
    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            #[cfg(feature = "zstd")]
            Encoder::Zstd(encoder) => encoder.finish(),
            #[cfg(feature = "brotli")]
            Encoder::Brotli(encoder) => Ok(encoder.into_inner()),
            Encoder::Gzip(encoder) => encoder.finish(),
        }
    }
}

/// What was put out and is to be read.
#[derive(Default)]
struct Ready {
    bytes: Vec<u8>,
    at: usize,
}

impl Ready {
    fn read(&mut self, buffer: &mut [u8]) -> usize {
        let rest = &self.bytes[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
        count
    }
}

fn became_shorter(what: &str) -> io::Error {
    io::Error::new(
        ErrorKind::UnexpectedEof,
        format!("the {what} is shorter than its length says"),
    )
}

/// A reader that compresses what another one gives.
struct EncodedReader {
    reader: Box<dyn Read + Send>,
    /// Bytes that the reader has promised and not given yet.
    left: Option<u64>,
    piece: Vec<u8>,
    /// `None` once the stream was ended.
    encoder: Option<Encoder>,
    ready: Ready,
    in_turn: usize,
}

impl EncodedReader {
    /// Compresses the next piece.
    fn step(&mut self, mut encoder: Encoder) -> io::Result<()> {
        let most = self
            .left
            .map_or(PIECE, |left| left.min(PIECE as u64) as usize);
        let count = if most == 0 {
            0
        } else {
            match self.reader.read(&mut self.piece[..most]) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    self.encoder = Some(encoder);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        };
        if count == 0 {
            if self.left.is_some_and(|left| left > 0) {
                return Err(became_shorter("body"));
            }
            self.ready.bytes = encoder.finish()?;
            return Ok(());
        }
        if let Some(left) = &mut self.left {
            *left -= count as u64;
        }
        encoder.write(&self.piece[..count])?;
        // A reader that gives less than it was asked for gives what has just arrived: somebody may
        // wait for it.
        if count < most {
            encoder.flush()?;
        }
        self.ready.bytes.append(encoder.output());
        self.encoder = Some(encoder);
        take_turns(&mut self.in_turn, count);
        Ok(())
    }
}

impl Read for EncodedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.ready.read(buffer);
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            match self.encoder.take() {
                Some(encoder) => self.step(encoder)?,
                None => return Ok(0),
            }
        }
    }
}

/// Lets others have a turn after enough bytes. What is sent counts as little here as it was compressed
/// well, so the server's own turns are no measure.
fn take_turns(in_turn: &mut usize, count: usize) {
    *in_turn += count;
    if *in_turn >= TURN {
        *in_turn = 0;
        home::yield_now();
    }
}

/// A reader that compresses a piece of a file on other threads.
struct FileReader {
    /// `None` once the stream was ended, or has failed.
    source: Option<Box<FileSource>>,
    ready: Ready,
}

struct FileSource {
    /// What was not read yet.
    range: FileRange,
    /// What was read and not compressed yet.
    piece: Vec<u8>,
    coding: Coding,
    level: u32,
    /// `None` until the first piece is compressed.
    encoder: Option<Encoder>,
}

impl FileReader {
    fn new(range: FileRange, coding: Coding, level: u32) -> FileReader {
        FileReader {
            source: Some(Box::new(FileSource {
                range,
                piece: Vec::new(),
                coding,
                level,
                encoder: None,
            })),
            ready: Ready::default(),
        }
    }
}

impl FileSource {
    /// Reads the next piece. A slow disk must not keep a thread from computing, so this is a step by itself.
    fn read(mut self: Box<Self>) -> io::Result<Box<FileSource>> {
        let most = self.range.length.min(FILE_TURN as u64) as usize;
        self.piece.resize(most, 0);
        read_piece(&self.range, &mut self.piece).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => became_shorter("file"),
            _ => error,
        })?;
        self.range.offset += most as u64;
        self.range.length -= most as u64;
        Ok(self)
    }

    /// Compresses the piece: what was put out, and the source unless that was the end.
    fn compress(mut self: Box<Self>) -> io::Result<(Vec<u8>, Option<Box<FileSource>>)> {
        let mut encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => Encoder::new(self.coding, self.level)?,
        };
        encoder.write(&self.piece)?;
        if self.range.length == 0 {
            return Ok((encoder.finish()?, None));
        }
        let coded = std::mem::take(encoder.output());
        self.encoder = Some(encoder);
        Ok((coded, Some(self)))
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.ready.read(buffer);
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(source) = self.source.take() else {
                return Ok(0);
            };
            let source = home::blocking(move || source.read())?;
            (self.ready.bytes, self.source) = home::computing(move || source.compress())?;
        }
    }
}

/// Where a closure body writes to: compressed, and on to where it would have gone.
struct EncodingSink<'s, 'conn> {
    out: &'s mut BodyWriter<'conn>,
    encoder: Encoder,
    /// Whether something was written since the last flush: each costs a few bytes.
    unflushed: bool,
    in_turn: usize,
}

impl EncodingSink<'_, '_> {
    fn pass_on(&mut self) -> io::Result<()> {
        let output = self.encoder.output();
        if !output.is_empty() {
            self.out.write_all(output)?;
            output.clear();
        }
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        self.out.write_all(&self.encoder.finish()?)
    }
}

impl BodySink for EncodingSink<'_, '_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(PIECE) {
            self.encoder.write(piece)?;
            self.unflushed = true;
            self.pass_on()?;
            take_turns(&mut self.in_turn, piece.len());
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.unflushed) {
            self.encoder.flush()?;
            self.pass_on()?;
        }
        self.out.flush()
    }

    fn is_stopping(&self) -> bool {
        self.out.is_stopping()
    }

    fn client_is_gone(&mut self) -> bool {
        self.out.client_is_gone()
    }

    fn trailers(&mut self, fields: &Headers) {
        self.out.trailers(fields);
    }
}

#[cfg(test)]
mod tests;
