//! What is in the files?

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// The bytes from `offset` on of a file that is nowhere like itself: each eight bytes name their own place.
pub(crate) fn pattern(offset: u64, length: usize) -> Vec<u8> {
    let first = offset / 8;
    let skipped = (offset % 8) as usize;
    let words = (skipped + length).div_ceil(8) as u64;
    let mut bytes: Vec<u8> = (first..first + words)
        .flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect();
    bytes.drain(..skipped);
    bytes.truncate(length);
    bytes
}

/// Writes a file of this pattern and waits until it is on the disk: what is written later would be measured with the servers.
pub(crate) fn write_pattern(path: &Path, length: u64) -> io::Result<()> {
    const PIECE: u64 = 1 << 20;
    let mut file = File::create(path)?;
    let mut offset = 0;
    while offset < length {
        let piece = PIECE.min(length - offset);
        file.write_all(&pattern(offset, piece as usize))?;
        offset += piece;
    }
    file.sync_all()
}

/// Text of this length, with `name` in it.
pub(crate) fn page(name: &str, length: usize) -> Vec<u8> {
    let mut text = format!("<!doctype html>\n<title>{name}</title>\n");
    let mut line = 0;
    while text.len() < length {
        let _ = writeln!(
            text,
            "<p>Line {line} of the page {name}, which is as long as it has to be."
        );
        line += 1;
    }
    text.truncate(length);
    text.into_bytes()
}

/// JSON of about 100 kB, as a list of records would be: names repeat, values do not.
pub(crate) fn json() -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "amber", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "inlet", "juniper",
        "kelp", "larch", "moss", "north", "oak", "pine",
    ];
    let mut words = Random(7);
    let mut next = || WORDS[words.below(16)];
    let mut text = "[".to_owned();
    let mut random = Random(8);
    let mut id = 0;
    while text.len() < 100_000 {
        let comma = if id == 0 { "" } else { "," };
        let (first, last) = (next(), next());
        let _ = write!(
            text,
            r#"{comma}{{"id":{id},"name":"{first} {last}","email":"{first}.{last}@example.com","score":{}.{:02},"active":{},"note":"{} and {}"}}"#,
            random.below(1000),
            random.below(100),
            random.below(2) == 0,
            next(),
            next(),
        );
        id += 1;
    }
    text.push(']');
    text.into_bytes()
}

/// The same numbers in every run (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end) as usize
    }
}
