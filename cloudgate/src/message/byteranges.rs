//! How do several ranges of one representation travel in one body?
//!
//! As `multipart/byteranges` (RFC 9110 section 14.6), whose length is known before a byte is read.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::hash::RandomState;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::{Body, FileRange};

/// Bodies of bytes up to this length are put together at once; longer ones are read from where they lie.
const TOGETHER: u64 = 64 << 10;

/// Makes a reader of a piece of a file. Reading may block, and what is to be done about that is for those
/// who know coroutines.
pub(crate) type OpenPiece = fn(FileRange) -> Box<dyn Read + Send>;

/// A piece of `whole`, which is in memory or in a file; `None` where it is neither.
pub(crate) fn slice(whole: &Body, range: &Range<u64>) -> Option<Body> {
    match whole {
        Body::Bytes(bytes) => {
            let (start, end) = (
                usize::try_from(range.start).ok()?,
                usize::try_from(range.end).ok()?,
            );
            Some(Body::Bytes(bytes.slice(start..end)))
        }
        Body::File(file) => {
            let mut piece = file.clone();
            piece.offset += range.start;
            piece.length = range.end - range.start;
            Some(Body::File(piece))
        }
        _ => None,
    }
}

/// The value of Content-Range for a range of `length` bytes.
pub(crate) fn content_range(range: &Range<u64>, length: u64) -> String {
    format!("bytes {}-{}/{length}", range.start, range.end - 1)
}

/// The media type with its boundary, and the body, of these ranges of `whole`; `None` where that is neither
/// in memory nor a file. Each part says that it is of the type `content_type`, if there is one.
pub(crate) fn body(
    whole: &Body,
    content_type: Option<&str>,
    ranges: &[Range<u64>],
    open: OpenPiece,
) -> Option<(String, Body)> {
    let complete = whole.length()?;
    let boundary = boundary();
    let content_type = content_type.map_or_else(String::new, |media_type| {
        format!("Content-Type: {media_type}\r\n")
    });
    let mut pieces = VecDeque::with_capacity(2 * ranges.len() + 1);
    // The line break in front of a boundary belongs to it (RFC 2046 section 5.1.1); the first has none.
    let mut line_break = "";
    for range in ranges {
        let position = content_range(range, complete);
        let head =
            format!("{line_break}--{boundary}\r\n{content_type}Content-Range: {position}\r\n\r\n");
        pieces.push_back(Body::from(head));
        pieces.push_back(slice(whole, range)?);
        line_break = "\r\n";
    }
    pieces.push_back(Body::from(format!("\r\n--{boundary}--\r\n")));
    let length = pieces.iter().filter_map(Body::length).sum();
    let mut reader = Pieces {
        pieces,
        open,
        reader: None,
    };
    let body = if length <= TOGETHER && matches!(whole, Body::Bytes(_)) {
        let mut all = Vec::with_capacity(length as usize);
        // Reading from memory does not fail.
        reader.read_to_end(&mut all).ok()?;
        Body::from(all)
    } else {
        Body::Reader {
            reader: Box::new(reader),
            length: Some(length),
        }
    };
    Some((format!("multipart/byteranges; boundary={boundary}"), body))
}

/// A text that is in no content but by a chance of one in 2^128: whoever wrote the content cannot know the
/// keys, and so the content need not be searched.
fn boundary() -> String {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let [one, other] = &*KEYS;
    format!("{:016x}{:016x}", one.hash_one(count), other.hash_one(count))
}

/// Reads bodies one after the other.
struct Pieces {
    pieces: VecDeque<Body>,
    open: OpenPiece,
    /// The piece of a file that is being read, and how much is left of it.
    reader: Option<(Box<dyn Read + Send>, u64)>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some((reader, left)) = &mut self.reader {
                let most = (buffer.len() as u64).min(*left) as usize;
                let count = reader.read(&mut buffer[..most])?;
                if count == 0 {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "a piece of the body is shorter than its length says",
                    ));
                }
                *left -= count as u64;
                if *left == 0 {
                    self.reader = None;
                }
                return Ok(count);
            }
            match self.pieces.front_mut() {
                None => return Ok(0),
                Some(Body::Bytes(bytes)) if !bytes.is_empty() => {
                    let count = bytes.len().min(buffer.len());
                    buffer[..count].copy_from_slice(&Bytes::split_to(bytes, count));
                    return Ok(count);
                }
                Some(_) => {
                    if let Some(Body::File(range)) = self.pieces.pop_front() {
                        let length = range.length;
                        self.reader = (length > 0).then(|| ((self.open)(range), length));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};
    use std::sync::Arc;

    use crate::message::Response;

    fn opened(range: FileRange) -> Box<dyn Read + Send> {
        let mut file = range.file.try_clone().unwrap();
        file.seek(SeekFrom::Start(range.offset)).unwrap();
        Box::new(file.take(range.length))
    }

    fn both(content: &[u8]) -> [Body; 2] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before").unwrap();
        file.write_all(content).unwrap();
        file.write_all(b"behind").unwrap();
        let file = FileRange::new(Arc::new(file), 6, content.len() as u64);
        [Body::from(content.to_vec()), Body::File(file)]
    }

    /// The body's text, with `B` in place of the boundary.
    #[track_caller]
    fn text(whole: &Body, content_type: Option<&str>, ranges: &[Range<u64>]) -> String {
        let (media_type, body) = body(whole, content_type, ranges, opened).unwrap();
        let boundary = media_type
            .strip_prefix("multipart/byteranges; boundary=")
            .unwrap();
        assert_eq!(boundary.len(), 32);
        let length = body.length().unwrap();
        let text = Response::default().with_body(body).text();
        assert_eq!(text.len() as u64, length);
        text.replace(boundary, "B")
    }

    #[test]
    fn each_part_says_what_it_is() {
        for whole in both(b"0123456789") {
            assert_eq!(
                text(&whole, Some("text/plain"), &[0..2, 9..10]),
                "--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
                 --B\r\nContent-Type: text/plain\r\nContent-Range: bytes 9-9/10\r\n\r\n9\r\n--B--\r\n"
            );
            assert_eq!(
                text(&whole, None, &[5..6, 0..1]),
                "--B\r\nContent-Range: bytes 5-5/10\r\n\r\n5\r\n\
                 --B\r\nContent-Range: bytes 0-0/10\r\n\r\n0\r\n--B--\r\n"
            );
        }
    }

    #[test]
    fn boundaries_differ() {
        assert_ne!(boundary(), boundary());
    }

    #[test]
    fn what_is_no_memory_and_no_file_has_no_pieces() {
        let stream = Body::Writer(Box::new(|_| Ok(())));
        assert!(slice(&stream, &(0..1)).is_none());
        let reader = Body::Reader {
            reader: Box::new(io::empty()),
            length: Some(3),
        };
        assert!(body(&reader, None, &[0..1, 2..3], opened).is_none());
    }

    #[test]
    fn a_file_that_became_shorter_fails_the_body() {
        let [_, whole] = both(&[b'x'; 1000]);
        let (_, body) = body(&whole, None, &[0..100, 900..1000], opened).unwrap();
        let (Body::File(range), Body::Reader { mut reader, .. }) = (whole, body) else {
            panic!("a file is read");
        };
        range.file.set_len(950).unwrap();
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    proptest::proptest! {
        #[test]
        fn the_parts_hold_the_bytes_that_they_name(
            content in proptest::collection::vec(proptest::num::u8::ANY, 300..90_000),
            starts in proptest::collection::vec((0..300_usize, 1..40_000_usize), 2..6),
            step in 1..5000_usize,
        ) {
            let ranges: Vec<Range<u64>> = starts.iter().map(|(start, count)| {
                *start as u64..(start + count).min(content.len()) as u64
            }).collect();
            for whole in both(&content) {
                let (media_type, body) = body(&whole, Some("a/b"), &ranges, opened).unwrap();
                let boundary = media_type.rsplit('=').next().unwrap();
                let length = body.length().unwrap();
                let mut got = Vec::new();
                match body {
                    Body::Bytes(bytes) => got.extend_from_slice(&bytes),
                    Body::Reader { mut reader, .. } => {
                        let mut piece = vec![0; step];
                        while let count @ 1.. = reader.read(&mut piece).unwrap() {
                            got.extend_from_slice(&piece[..count]);
                        }
                    }
                    other => panic!("{other:?}"),
                }
                proptest::prop_assert_eq!(got.len() as u64, length);
                let mut want = Vec::new();
                for (at, range) in ranges.iter().enumerate() {
                    let line_break = if at == 0 { "" } else { "\r\n" };
                    write!(
                        want,
                        "{line_break}--{boundary}\r\nContent-Type: a/b\r\nContent-Range: bytes {}-{}/{}\r\n\r\n",
                        range.start, range.end - 1, content.len(),
                    ).unwrap();
                    want.extend_from_slice(&content[range.start as usize..range.end as usize]);
                }
                write!(want, "\r\n--{boundary}--\r\n").unwrap();
                proptest::prop_assert!(got == want);
            }
        }
    }
}
