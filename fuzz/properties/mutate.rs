//! How is an input made out of others, the same way each time?

/// A xorshift generator: the same start gives the same inputs.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that begins at `start`.
    pub fn new(start: u64) -> Random {
        Random(start | 1)
    }

    /// A generator that begins at a hash of `bytes` (FNV-1a).
    pub fn from_bytes(bytes: &[u8]) -> Random {
        let hash = bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
        Random::new(hash)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}

/// What parsers look for: a random byte meets these too rarely.
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b";",
    b"=",
    b"%",
    b"%2F",
    b"%61",
    b"%22",
    b"?",
    b"#",
    b"/",
    b"*",
    b"\"",
    b"\\",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"7fffffffffffffff",
    b"--x",
    b"--x--",
    b"\xff",
    b"\xc3\xa9",
    b"http://h",
    b"HTTP/1.0",
    b"HTTP/1.2",
    b"Host: h\r\n",
    b"Content-Length: 3\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Expect: 100-continue\r\n",
    b"Connection: close\r\n",
];

/// The longest input that mutations make.
const LONGEST: usize = 4096;

/// One of the seeds, changed in one to eight places.
pub fn mutation(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(8) {
        let at = random.below(input.len() + 1);
        let length = random.below(16).min(input.len() - at);
        match random.below(7) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.below(256) as u8,
            2 => drop(input.drain(at..at + length)),
            3 => {
                let piece = input[at..at + length].repeat(1 + random.below(8));
                splice(&mut input, at, &piece);
            }
            4 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len() + 1);
                let count = random.below(64).min(other.len() - from);
                let piece = other[from..from + count].to_vec();
                splice(&mut input, at, &piece);
            }
            5 => input.truncate(at),
            _ => splice(&mut input, at, WORDS[random.below(WORDS.len())]),
        }
    }
    input.truncate(LONGEST);
    input
}

fn splice(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}
