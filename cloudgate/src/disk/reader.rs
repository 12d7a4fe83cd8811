//! How is a piece of a file read by those who want a reader, without holding a worker up?

use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;

use crate::message::FileRange;
use crate::net::home;

/// How much one visit to another thread reads, in bytes.
const PIECE: u64 = 64 << 10;

/// A reader of this piece of a file. It fails where the file has become another version, or too short,
/// before it gives the bytes that it has read since.
pub(crate) fn open(range: FileRange) -> Box<dyn Read + Send> {
    Box::new(FileReader {
        range,
        piece: Vec::new(),
        at: 0,
    })
}

struct FileReader {
    /// What was not read yet.
    range: FileRange,
    /// What was read, and given up to `at`.
    piece: Vec<u8>,
    at: usize,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            if self.range.length == 0 || buffer.is_empty() {
                return Ok(0);
            }
            let (range, mut piece) = (self.range.clone(), std::mem::take(&mut self.piece));
            self.at = 0;
            self.piece = home::blocking(move || {
                piece.resize(range.length.min(PIECE) as usize, 0);
                read_piece(&range, &mut piece).map(|()| piece)
            })?;
            self.range.offset += self.piece.len() as u64;
            self.range.length -= self.piece.len() as u64;
        }
        let rest = &self.piece[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Fills `piece` from the beginning of this range. May block.
///
/// # Errors
/// What the system says; `InvalidData` where the file is another version than the range names.
pub(crate) fn read_piece(range: &FileRange, piece: &mut [u8]) -> io::Result<()> {
    range.file.read_exact_at(piece, range.offset)?;
    // Behind the reading, so what is given is of the version whatever happens afterwards.
    if range.is_current()? {
        Ok(())
    } else {
        Err(io::Error::new(
            ErrorKind::InvalidData,
            "the file changed while it was sent",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::FileVersion;
    use std::fs::File;
    use std::io::Write;
    use std::sync::Arc;

    fn file(length: usize) -> (Arc<File>, Vec<u8>) {
        let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        (Arc::new(file), content)
    }

    #[test]
    fn pieces_of_every_size_are_read_whole() {
        let (file, content) = file(200_000);
        for (offset, length) in [(0, 0), (7, 1), (7, 65_536), (7, 65_537), (0, 200_000)] {
            let mut got = Vec::new();
            let range = FileRange::new(Arc::clone(&file), offset as u64, length as u64);
            open(range).read_to_end(&mut got).unwrap();
            assert!(got == content[offset..offset + length], "{offset} {length}");
        }
    }

    #[test]
    fn a_file_that_is_shorter_or_another_version_is_not_read_to_its_end() {
        let (file, _) = file(200_000);
        let version = FileVersion::of(&file.metadata().unwrap());
        let plain = FileRange::new(Arc::clone(&file), 0, 200_000);
        let mut short = open(plain.clone());
        let mut longer = open(plain.of_version(version));
        for reader in [&mut short, &mut longer] {
            assert_eq!(reader.read(&mut [0; 100]).unwrap(), 100);
        }
        file.set_len(200_001).unwrap();
        let mut rest = Vec::new();
        let error = longer.read_to_end(&mut rest).unwrap_err();
        assert_eq!((error.kind(), rest.len()), (ErrorKind::InvalidData, 65_436));
        file.set_len(199_999).unwrap();
        let error = short.read_to_end(&mut rest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }
}
