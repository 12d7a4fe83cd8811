//! How do the bytes of a file become fewer, as few as a browser can still decode?

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};

use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;

/// A coding that a sibling of a file can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Brotli,
    Zstd,
    Gzip,
}

impl Coding {
    pub(super) const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// What a sibling's name ends with.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zst",
            Coding::Gzip => "gz",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "brotli",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// Its own level for one from 1, the fastest, to 9, the smallest.
    fn level(self, level: u32) -> u32 {
        let at = level.clamp(1, 9) as usize - 1;
        match self {
            Coding::Brotli => [1, 2, 3, 4, 5, 6, 7, 9, 11][at],
            Coding::Zstd => [1, 3, 5, 7, 9, 11, 13, 16, 19][at],
            Coding::Gzip => level.clamp(1, 9),
        }
    }

    /// The window as a power of two for this many bytes: no larger than they are, for both sides have
    /// memory for all of it, and no larger than every browser has.
    fn window(self, length: u64) -> u32 {
        let most = match self {
            // RFC 7932 section 9.1; what is beyond, the large window extension, browsers do not take.
            Coding::Brotli => 24,
            // 8 MiB: RFC 9659 section 3.
            Coding::Zstd => 23,
            Coding::Gzip => 15,
        };
        // Brotli reaches 16 bytes less far than its window.
        let fits = (length.min(1 << most) + 16).next_power_of_two();
        fits.trailing_zeros().clamp(10, most)
    }
}

/// Compresses `length` bytes of `source` into `target`; `level` is 1, the fastest, to 9, the smallest.
///
/// # Errors
/// Of reading and writing. What stands in `target` is of no use then.
pub(super) fn encode(
    coding: Coding,
    level: u32,
    source: &mut impl Read,
    length: u64,
    target: &File,
) -> io::Result<()> {
    let own = coding.level(level);
    let window = coding.window(length);
    let mut target = BufWriter::with_capacity(64 << 10, target);
    match coding {
        Coding::Brotli => {
            let params = BrotliEncoderParams {
                quality: own as i32,
                lgwin: window as i32,
                size_hint: usize::try_from(length).unwrap_or(usize::MAX),
                ..BrotliEncoderParams::default()
            };
            // Not by its writer, which keeps the errors of its last write to itself.
            brotli::BrotliCompress(source, &mut target, &params)?;
        }
        Coding::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(&mut target, own as i32)?;
            encoder.window_log(window)?;
            // Makes its tables as large as the file needs them, and the head say how long it is.
            encoder.set_pledged_src_size(Some(length))?;
            io::copy(source, &mut encoder)?;
            encoder.finish()?;
        }
        Coding::Gzip => {
            // No name and no time in its head: the same file gives the same bytes.
            let mut encoder = GzEncoder::new(&mut target, flate2::Compression::new(own));
            io::copy(source, &mut encoder)?;
            encoder.finish()?;
        }
    }
    target.flush()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What a client makes of a sibling.
    pub(in super::super) fn decode(coding: Coding, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        match coding {
            Coding::Brotli => brotli::Decompressor::new(bytes, 4096)
                .read_to_end(&mut plain)
                .unwrap(),
            Coding::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::new(bytes).unwrap();
                // A browser refuses a larger window.
                decoder.window_log_max(23).unwrap();
                decoder.read_to_end(&mut plain).unwrap()
            }
            Coding::Gzip => flate2::read::GzDecoder::new(bytes)
                .read_to_end(&mut plain)
                .unwrap(),
        };
        plain
    }

    fn encoded(coding: Coding, level: u32, mut plain: &[u8]) -> io::Result<Vec<u8>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let length = plain.len() as u64;
        encode(coding, level, &mut plain, length, file.as_file())?;
        Ok(std::fs::read(file.path()).unwrap())
    }

    fn text(length: usize) -> Vec<u8> {
        (0..)
            .flat_map(|n: u32| {
                format!("line {} of {}\n", n, n.wrapping_mul(2_654_435_761)).into_bytes()
            })
            .take(length)
            .collect()
    }

    #[test]
    fn every_coding_at_every_level_decodes_to_what_it_was() {
        for coding in Coding::ALL {
            for level in 1..=9 {
                let plain = text(70_000);
                let bytes = encoded(coding, level, &plain).unwrap();
                assert!(bytes.len() < plain.len(), "{coding:?} {level}");
                assert_eq!(decode(coding, &bytes), plain, "{coding:?} {level}");
            }
            for length in [0, 1, 1000, 1008, 1009] {
                let plain = text(length);
                let bytes = encoded(coding, 9, &plain).unwrap();
                assert_eq!(decode(coding, &bytes), plain, "{coding:?} {length}");
            }
        }
    }

    #[test]
    fn the_window_is_one_that_browsers_have() {
        for (coding, length, want) in [
            (Coding::Brotli, 0, 10),
            (Coding::Brotli, 1008, 10),
            (Coding::Brotli, 1009, 11),
            (Coding::Brotli, (1 << 24) - 16, 24),
            (Coding::Brotli, u64::MAX - 16, 24),
            (Coding::Zstd, 1 << 22, 23),
            (Coding::Zstd, 1 << 30, 23),
        ] {
            assert_eq!(coding.window(length), want, "{coding:?} {length}");
        }
        // One byte more than the window of zstd, for a decoder that takes no larger one.
        let plain = vec![b'x'; (8 << 20) + 1];
        let bytes = encoded(Coding::Zstd, 1, &plain).unwrap();
        assert_eq!(decode(Coding::Zstd, &bytes).len(), plain.len());
    }

    #[test]
    fn a_source_that_fails_and_a_target_that_is_full_are_errors() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let full = File::options().write(true).open("/dev/full").unwrap();
        for coding in Coding::ALL {
            let file = tempfile::tempfile().unwrap();
            let error = encode(coding, 9, &mut Broken, 10, &file).unwrap_err();
            assert_eq!(error.to_string(), "broken", "{coding:?}");
            let plain = text(2000);
            let error = encode(coding, 9, &mut &plain[..], 2000, &full).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{coding:?}");
        }
    }
}
