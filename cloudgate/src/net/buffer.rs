//! Which bytes were read and not used yet?

use std::io;

/// Bytes read from a connection, growing up to a limit and given back when it is quiet.
#[derive(Debug, Default)]
pub struct ReadBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// What a connection reads into at first, in bytes.
const FIRST_SIZE: usize = 16 << 10;

impl ReadBuffer {
    /// An empty buffer that holds no memory.
    pub const fn new() -> ReadBuffer {
        ReadBuffer {
            bytes: Vec::new(),
            start: 0,
            end: 0,
        }
    }

    /// The bytes that are there.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Whether no byte is there.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Drops the first `count` bytes.
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Reads once into the free space, making some where there is none; a full buffer grows up to
    /// `limit` bytes and then gives 0 as at the end of a stream would.
    ///
    /// # Errors
    /// Whatever `read` gives.
    pub fn fill(
        &mut self,
        limit: usize,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        if self.bytes.is_empty() {
            self.bytes = vec![0; FIRST_SIZE.min(limit)];
        } else if self.end == self.bytes.len() {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                let larger = (2 * self.bytes.len()).min(limit).max(self.bytes.len());
                self.bytes.resize(larger, 0);
            }
        }
        let count = read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count)
    }

    /// Forgets the bytes, and gives memory back that one large request made it take.
    pub fn empty(&mut self) {
        (self.start, self.end) = (0, 0);
        if self.bytes.len() > FIRST_SIZE {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(buffer: &mut ReadBuffer, bytes: &[u8], limit: usize) -> usize {
        buffer
            .fill(limit, |space| {
                let count = bytes.len().min(space.len());
                space[..count].copy_from_slice(&bytes[..count]);
                Ok(count)
            })
            .unwrap()
    }

    #[test]
    fn grows_to_its_limit_and_no_further() {
        let mut buffer = ReadBuffer::new();
        let data = vec![7; 100 << 10];
        let mut total = 0;
        loop {
            match put(&mut buffer, &data, 40 << 10) {
                0 => break,
                count => total += count,
            }
        }
        assert_eq!((total, buffer.filled().len()), (40 << 10, 40 << 10));
        buffer.consume(1);
        assert_eq!(put(&mut buffer, b"x", 40 << 10), 1);
        assert_eq!(buffer.filled().last(), Some(&b'x'));
    }

    #[test]
    fn consumed_bytes_make_room() {
        let mut buffer = ReadBuffer::new();
        put(&mut buffer, b"hello", 1024);
        buffer.consume(3);
        assert_eq!(buffer.filled(), b"lo");
        buffer.empty();
        assert!(buffer.is_empty());
    }
}
