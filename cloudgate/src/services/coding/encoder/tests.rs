//! Does every kind of body come out again, in every coding?

use std::fs::File;
use std::io::{Cursor, Seek};
use std::sync::Arc;
use std::sync::Mutex;

use super::*;
use crate::message::FileVersion;
use crate::message::Response;

/// Text that compresses, of this many bytes.
fn text(length: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(length + 32);
    for number in 0_u64.. {
        if text.len() >= length {
            break;
        }
        let line = format!("line {number} is {}\n", number * 7 % 101);
        text.extend_from_slice(line.as_bytes());
    }
    text.truncate(length);
    text
}

/// What a client makes of these bytes: also of the beginning of a stream, as far as it goes.
fn decode(coding: Coding, bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut reader: Box<dyn Read + '_> = match coding {
        #[cfg(feature = "zstd")]
        Coding::Zstd => Box::new(zstd::stream::read::Decoder::new(bytes).unwrap()),
        #[cfg(feature = "brotli")]
        Coding::Brotli => Box::new(brotli::Decompressor::new(bytes, 4096)),
        Coding::Gzip => Box::new(flate2::read::GzDecoder::new(bytes)),
        #[cfg(not(all(feature = "brotli", feature = "zstd")))]
        other => panic!("{} is not encoded here", other.name()),
    };
    let mut piece = vec![0; 4096];
    while let Ok(count) = reader.read(&mut piece) {
        if count == 0 {
            break;
        }
        plain.extend_from_slice(&piece[..count]);
    }
    plain
}

fn file(text: &[u8]) -> Arc<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text).unwrap();
    // A position that nobody may rely on.
    file.seek(io::SeekFrom::Start(3)).unwrap();
    Arc::new(file)
}

fn collect(body: Body) -> Bytes {
    Response::default().with_body(body).bytes()
}

#[test]
fn every_kind_of_body_comes_out_again() {
    const INLINE: usize = 64 << 10;
    for length in [
        1,
        1000,
        INLINE,
        INLINE + 1,
        FILE_TURN,
        FILE_TURN + PIECE + 1,
    ] {
        let plain = text(length);
        let kinds: [fn(&[u8]) -> Body; 5] = [
            |text| Body::Bytes(Bytes::copy_from_slice(text)),
            |text| {
                let mut padded = b"before".to_vec();
                padded.extend_from_slice(text);
                padded.extend_from_slice(b"behind");
                Body::File(FileRange::new(file(&padded), 6, text.len() as u64))
            },
            |text| Body::Reader {
                reader: Box::new(Cursor::new(text.to_vec())),
                length: None,
            },
            |text| Body::Reader {
                reader: Box::new(Cursor::new([text, b"behind"].concat())),
                length: Some(text.len() as u64),
            },
            |text| {
                let text = text.to_vec();
                Body::Writer(Box::new(move |out| {
                    let (first, second) = text.split_at(text.len() / 3);
                    out.write_all(first)?;
                    out.flush()?;
                    out.flush()?;
                    out.write_all(second)
                }))
            },
        ];
        for &coding in Coding::ENCODABLE {
            for (index, kind) in kinds.iter().enumerate() {
                for level in [1, 6] {
                    let encoded = collect(encode(kind(&plain), coding, level).unwrap());
                    assert!(length < 1000 || encoded.len() < length * 2 / 3);
                    assert!(
                        decode(coding, &encoded) == plain,
                        "{coding:?} {length} kind {index}"
                    );
                }
            }
        }
    }
}

/// Keeps what is written up to each flush.
#[derive(Default)]
struct Flushes {
    written: Vec<u8>,
    seen: Vec<usize>,
}

impl BodySink for Flushes {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written.extend_from_slice(bytes);
        Ok(())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.seen.push(self.written.len());
        Ok(())
    }
}

#[test]
fn what_was_flushed_can_be_decoded_at_once() {
    for &coding in Coding::ENCODABLE {
        let body = Body::Writer(Box::new(|out| {
            for event in ["data: 1\n\n", "data: 2\n\n"] {
                out.write_all(event.as_bytes())?;
                out.flush()?;
            }
            Ok(())
        }));
        let Body::Writer(write) = encode(body, coding, 5).unwrap() else {
            unreachable!("a closure stays one")
        };
        let mut sink = Flushes::default();
        write(&mut BodyWriter::new(&mut sink)).unwrap();
        let [first, second] = sink.seen[..] else {
            unreachable!("two flushes")
        };
        assert_eq!(decode(coding, &sink.written[..first]), b"data: 1\n\n");
        assert_eq!(
            decode(coding, &sink.written[..second]),
            b"data: 1\n\ndata: 2\n\n"
        );
    }
}

#[test]
fn what_a_reader_gives_by_itself_goes_on_by_itself() {
    struct Drips(Arc<Mutex<usize>>);
    impl Read for Drips {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let mut reads = self.0.lock().unwrap();
            *reads += 1;
            buffer[..4].copy_from_slice(b"drip");
            Ok(if *reads > 3 { 0 } else { 4 })
        }
    }
    for &coding in Coding::ENCODABLE {
        let reads = Arc::new(Mutex::new(0));
        let body = Body::Reader {
            reader: Box::new(Drips(Arc::clone(&reads))),
            length: None,
        };
        let Body::Reader { mut reader, length } = encode(body, coding, 5).unwrap() else {
            unreachable!("a reader stays one")
        };
        assert_eq!(length, None);
        let mut received = Vec::new();
        let mut piece = vec![0; 1024];
        for drips in 1..=3 {
            let count = reader.read(&mut piece).unwrap();
            received.extend_from_slice(&piece[..count]);
            assert_eq!(*reads.lock().unwrap(), drips);
            assert_eq!(decode(coding, &received), b"drip".repeat(drips));
        }
    }
}

#[test]
fn a_file_that_changes_is_not_compressed_to_its_end() {
    let file = file(&text(500_000));
    let version = FileVersion::of(&file.metadata().unwrap());
    let range = FileRange::new(Arc::clone(&file), 0, 500_000).of_version(version);
    let Body::Reader { mut reader, .. } = encode(Body::File(range), Coding::Gzip, 5).unwrap()
    else {
        unreachable!("a file becomes a reader")
    };
    assert!(reader.read(&mut [0; 10]).unwrap() > 0);
    file.set_len(500_001).unwrap();
    let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
}

#[test]
fn a_source_that_breaks_off_is_an_error() {
    let short = text(5000);
    for body in [
        Body::File(FileRange::new(file(&short), 1, 5000)),
        Body::Reader {
            reader: Box::new(Cursor::new(short)),
            length: Some(5001),
        },
    ] {
        let Body::Reader { mut reader, .. } = encode(body, Coding::Gzip, 5).unwrap() else {
            unreachable!("both become readers")
        };
        let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }
    let body = Body::Writer(Box::new(|out| {
        out.write_all(b"half")?;
        Err(io::Error::other("gone"))
    }));
    let Body::Writer(write) = encode(body, Coding::Gzip, 5).unwrap() else {
        unreachable!("a closure stays one")
    };
    let mut sink = Flushes::default();
    assert!(write(&mut BodyWriter::new(&mut sink)).is_err());
    assert!(
        flate2::read::GzDecoder::new(&sink.written[..])
            .read_to_end(&mut Vec::new())
            .is_err(),
        "the end is missing"
    );
}
