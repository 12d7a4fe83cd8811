//! How does a body become a shorter one, however it comes?
//!
//! ```text
//!  bytes ─▶ bytes         in the coroutine, larger ones on a thread for blocking work
//!  file  ─▶ reader        read and compressed on such a thread, piece by piece
//!  reader ─▶ reader       in the coroutine; what arrived by itself goes on by itself
//!  writer ─▶ writer       in the coroutine; a flush reaches the client
//! ```
//!
//! Nothing here asks whether that is wise: that is the business of who calls.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use flate2::write::GzEncoder;

use super::Coding;
use crate::message::{Body, BodySink, BodyWriter, FileRange};
use crate::net::home;

/// Up to this many bytes are compressed at once in the coroutine. Of JSON they take 0.1 ms (zstd) to
/// 0.45 ms (brotli) at level 5, and up to 1.7 ms (brotli) at level 9.
const INLINE: usize = 64 << 10;

/// How much of a stream is compressed in one step, in bytes.
const PIECE: usize = 16 << 10;

/// After this many bytes of a stream the other coroutines of the worker get a turn.
const TURN: usize = 128 << 10;

/// How much of a file is compressed by one visit to another thread, in bytes.
const FILE_TURN: usize = 256 << 10;

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
    let encoder = Encoder::new(coding, level)?;
    Ok(match body {
        Body::Empty => Body::Empty,
        Body::Bytes(bytes) if bytes.len() <= INLINE => Body::Bytes(encoder.all(&bytes)?),
        Body::Bytes(bytes) => Body::Bytes(home::blocking(move || encoder.all(&bytes))?),
        Body::File(range) => unknown_length(FileReader::new(range, encoder)),
        Body::Reader { reader, length } => unknown_length(EncodedReader {
            reader,
            left: length,
            piece: vec![0; PIECE],
            encoder: Some(encoder),
            ready: Ready::default(),
            in_turn: 0,
        }),
        Body::Writer(write) => Body::Writer(Box::new(move |out| {
            let mut sink = EncodingSink {
                out,
                encoder,
                unflushed: false,
                in_turn: 0,
            };
            write(&mut BodyWriter::new(&mut sink))?;
            sink.finish()
        })),
    })
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

    fn all(mut self, bytes: &[u8]) -> io::Result<Bytes> {
        self.write(bytes)?;
        Ok(self.finish()?.into())
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
    file: Arc<File>,
    offset: u64,
    left: u64,
    piece: Vec<u8>,
    encoder: Encoder,
}

impl FileReader {
    fn new(range: FileRange, encoder: Encoder) -> FileReader {
        FileReader {
            source: Some(Box::new(FileSource {
                file: range.file,
                offset: range.offset,
                left: range.length,
                piece: vec![0; PIECE],
                encoder,
            })),
            ready: Ready::default(),
        }
    }
}

impl FileSource {
    /// Compresses the next pieces: what was put out, and the source unless that was the end.
    fn step(mut self: Box<Self>) -> io::Result<(Vec<u8>, Option<Box<FileSource>>)> {
        let mut in_turn = 0;
        while in_turn < FILE_TURN && self.left > 0 {
            let most = self.left.min(PIECE as u64) as usize;
            match self.file.read_at(&mut self.piece[..most], self.offset) {
                Ok(0) => return Err(became_shorter("file")),
                Ok(count) => {
                    self.encoder.write(&self.piece[..count])?;
                    self.offset += count as u64;
                    self.left -= count as u64;
                    in_turn += count;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.left == 0 {
            return Ok((self.encoder.finish()?, None));
        }
        Ok((std::mem::take(self.encoder.output()), Some(self)))
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
            (self.ready.bytes, self.source) = home::blocking(move || source.step())?;
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
}

#[cfg(test)]
mod tests;
