//! What are the bytes of a body, once its framing is taken off?

use crate::message::Headers;
use crate::message::headers::is_tchar;
use crate::proto::error::ParseError;
use crate::proto::h1::framing::BodyLength;
use crate::proto::limits::Limits;

/// Takes the framing off a body, piece by piece (RFC 9112 sections 6.2 and 7.1).
#[derive(Debug)]
pub struct Decoder {
    state: State,
    extension_bytes: usize,
    /// The trailer section as it comes in.
    trailer_text: Vec<u8>,
    trailers: Headers,
}

/// Fields that may not come behind a body, for what they say had to be known before it
/// (RFC 9110 section 6.5.1): left out, whoever asks.
const NOT_IN_TRAILERS: &[&str] = &[
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "max-forwards",
    "proxy-authorization",
    "range",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sized(u64),
    /// In the hex digits of a chunk's size.
    Size {
        value: u64,
        digits: u8,
    },
    /// In the extensions behind the size.
    Extension(u64, Extension),
    /// Behind the CR of the size line.
    SizeEnd(u64),
    Data(u64),
    DataCr,
    DataLf,
    /// In the trailer section; the lines gather in `trailer_text`.
    Trailers,
    Done,
}

/// Where in a chunk extension (RFC 9112 section 7.1.1). None means anything to us; but where a line
/// is malformed, two implementations may see its end in two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// Behind a semicolon, in front of a name.
    NameStart,
    Name,
    /// In the white space behind a name.
    NameEnd,
    /// Behind an equals sign.
    ValueStart,
    Value,
    Quoted,
    /// Behind a backslash in a quoted value.
    Escaped,
    /// Behind the closing quote.
    QuotedEnd,
    /// In the white space behind a value.
    ValueEnd,
}

impl Extension {
    /// Where `byte` leads; `None` where it may not stand here.
    fn step(self, byte: u8) -> Option<Extension> {
        use Extension::*;
        Some(match (self, byte) {
            (Quoted, b'"') => QuotedEnd,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, b'\t' | 0x20..=0x7e | 0x80..) => Quoted,
            (Name | NameEnd | Value | QuotedEnd | ValueEnd, b';') => NameStart,
            (Name | NameEnd, b'=') => ValueStart,
            (NameStart | ValueStart | NameEnd | ValueEnd, b' ' | b'\t') => self,
            (Name, b' ' | b'\t') => NameEnd,
            (Value | QuotedEnd, b' ' | b'\t') => ValueEnd,
            (ValueStart, b'"') => Quoted,
            (NameStart | Name, _) if is_tchar(byte) => Name,
            (ValueStart | Value, _) if is_tchar(byte) => Value,
            _ => return None,
        })
    }

    /// Whether a line may end here.
    fn may_end(self) -> bool {
        matches!(
            self,
            Extension::Name | Extension::Value | Extension::QuotedEnd
        )
    }
}

/// What one call of [`Decoder::decode`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that are used up.
    pub consumed: usize,
    /// Bytes of the body that were put into the output.
    pub produced: usize,
}

impl Decoder {
    /// A decoder for a body of this length.
    pub fn new(length: BodyLength) -> Decoder {
        let state = match length {
            BodyLength::None => State::Done,
            BodyLength::Sized(length) => State::Sized(length),
            BodyLength::Chunked => State::Size {
                value: 0,
                digits: 0,
            },
        };
        Decoder {
            state,
            extension_bytes: 0,
            trailer_text: Vec::new(),
            trailers: Headers::new(),
        }
    }

    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done | State::Sized(0))
    }

    /// The fields that came behind the body, once it has ended; without those that may not.
    pub fn trailers(&self) -> &Headers {
        &self.trailers
    }

    /// How many bytes of the body are certain to come still.
    pub fn at_least(&self) -> u64 {
        match self.state {
            State::Sized(left) | State::Data(left) => left,
            State::Extension(value, _) | State::SizeEnd(value) => value,
            _ => 0,
        }
    }

    /// How many bytes can be read past the decoder, straight into the reader's buffer.
    pub fn plain_bytes(&self) -> u64 {
        match self.state {
            State::Sized(left) | State::Data(left) => left,
            _ => 0,
        }
    }

    /// Notes that `count` of the [`Decoder::plain_bytes`] were read past the decoder.
    pub fn skip_plain(&mut self, count: u64) {
        match &mut self.state {
            State::Sized(left) => *left -= count,
            State::Data(left) => {
                *left -= count;
                if *left == 0 {
                    self.state = State::DataCr;
                }
            }
            _ => debug_assert_eq!(count, 0),
        }
    }

    /// Decodes from `input` into `output` until one of them ends, the body ends, or a chunk's size
    /// has become known ([`Decoder::at_least`]) without a byte of it at hand.
    ///
    /// # Errors
    /// [`ParseError`] naming the rule that the framing broke.
    pub fn decode(
        &mut self,
        input: &[u8],
        output: &mut [u8],
        limits: &Limits,
    ) -> Result<Decoded, ParseError> {
        let (mut consumed, mut produced) = (0, 0);
        while consumed < input.len() {
            match self.state {
                State::Done | State::Sized(0) => break,
                State::Sized(left) | State::Data(left) => {
                    let room = (input.len() - consumed).min(output.len() - produced);
                    let count = room.min(usize::try_from(left).unwrap_or(usize::MAX));
                    if count == 0 {
                        break;
                    }
                    output[produced..][..count].copy_from_slice(&input[consumed..][..count]);
                    consumed += count;
                    produced += count;
                    self.skip_plain(count as u64);
                }
                _ => {
                    self.state = self.step(input[consumed], limits)?;
                    consumed += 1;
                }
            }
        }
        Ok(Decoded { consumed, produced })
    }

    fn step(&mut self, byte: u8, limits: &Limits) -> Result<State, ParseError> {
        match self.state {
            State::Size { value, digits } => match (byte, (byte as char).to_digit(16)) {
                (_, Some(_)) if digits == 16 => Err(ParseError::InvalidChunk),
                (_, Some(digit)) => {
                    let value = value << 4 | u64::from(digit);
                    // A size no body can have is an overflow in somebody's arithmetic, here or behind.
                    if value > i64::MAX as u64 {
                        Err(ParseError::InvalidChunk)
                    } else {
                        Ok(State::Size {
                            value,
                            digits: digits + 1,
                        })
                    }
                }
                (b';', _) if digits > 0 => Ok(State::Extension(value, Extension::NameStart)),
                (b'\r', _) if digits > 0 => Ok(State::SizeEnd(value)),
                _ => Err(ParseError::InvalidChunk),
            },
            State::Extension(value, place) if byte == b'\r' && place.may_end() => {
                Ok(State::SizeEnd(value))
            }
            State::Extension(value, place) => {
                self.extension_bytes += 1;
                if self.extension_bytes > limits.chunk_extensions {
                    return Err(ParseError::ChunkExtensionsTooLarge);
                }
                let next = place.step(byte).ok_or(ParseError::InvalidChunk)?;
                Ok(State::Extension(value, next))
            }
            State::SizeEnd(value) => match (byte, value) {
                (b'\n', 0) => Ok(State::Trailers),
                (b'\n', _) => Ok(State::Data(value)),
                _ => Err(ParseError::InvalidChunk),
            },
            State::DataCr if byte == b'\r' => Ok(State::DataLf),
            State::DataLf if byte == b'\n' => Ok(State::Size {
                value: 0,
                digits: 0,
            }),
            State::Trailers => self.trailer_byte(byte, limits),
            _ => Err(ParseError::InvalidChunk),
        }
    }

    fn trailer_byte(&mut self, byte: u8, limits: &Limits) -> Result<State, ParseError> {
        self.trailer_text.push(byte);
        if self.trailer_text.len() > limits.trailers {
            return Err(ParseError::TrailersTooLarge);
        }
        if byte != b'\n' {
            return Ok(State::Trailers);
        }
        if !self.trailer_text.ends_with(b"\r\n") {
            return Err(ParseError::InvalidTrailer);
        }
        if self.trailer_text == b"\r\n" {
            return Ok(State::Done);
        }
        if !self.trailer_text.ends_with(b"\r\n\r\n") {
            return Ok(State::Trailers);
        }
        let mut table = vec![httparse::EMPTY_HEADER; limits.fields];
        match httparse::parse_headers(&self.trailer_text, &mut table) {
            Ok(httparse::Status::Complete((_, fields))) => {
                for field in fields.iter().filter(|field| {
                    !NOT_IN_TRAILERS
                        .iter()
                        .any(|name| field.name.eq_ignore_ascii_case(name))
                }) {
                    self.trailers
                        .append(field.name, field.value)
                        .map_err(|_| ParseError::InvalidTrailer)?;
                }
                Ok(State::Done)
            }
            Err(httparse::Error::TooManyHeaders) => Err(ParseError::TrailersTooLarge),
            _ => Err(ParseError::InvalidTrailer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ParseError::*;

    /// Decodes with input pieces of `step` bytes and an output buffer of `room` bytes.
    fn decode(
        length: BodyLength,
        input: &[u8],
        step: usize,
        room: usize,
    ) -> Result<(Vec<u8>, bool, usize), ParseError> {
        let mut decoder = Decoder::new(length);
        let (mut body, mut at) = (Vec::new(), 0);
        let mut buffer = vec![0; room];
        while at < input.len() && !decoder.is_done() {
            let end = (at + step).min(input.len());
            let done = decoder.decode(&input[at..end], &mut buffer, &Limits::DEFAULT)?;
            body.extend_from_slice(&buffer[..done.produced]);
            at += done.consumed;
        }
        Ok((body, decoder.is_done(), at))
    }

    #[track_caller]
    fn check(input: &[u8], want: Result<&[u8], ParseError>) {
        for (step, room) in [
            (usize::MAX >> 1, 4096),
            (1, 4096),
            (2, 1),
            (3, 7),
            (usize::MAX >> 1, 1),
        ] {
            let got = decode(BodyLength::Chunked, input, step, room);
            match want {
                Ok(body) => assert_eq!(
                    got,
                    Ok((body.to_vec(), true, input.len())),
                    "{}",
                    input.escape_ascii()
                ),
                Err(error) => assert_eq!(got, Err(error), "{}", input.escape_ascii()),
            }
        }
    }

    #[test]
    fn chunked_bodies() {
        check(b"0\r\n\r\n", Ok(b""));
        check(
            b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
            Ok(b"hello world"),
        );
        check(
            b"000A\r\n0123456789\r\n0b\r\nabcdefghijk\r\n000\r\n\r\n",
            Ok(b"0123456789abcdefghijk"),
        );
        check(b"5;a=b;c\r\nhello\r\n0;x\r\n\r\n", Ok(b"hello"));
        check(b"5;a=\"x y;z\"\r\nhello\r\n0\r\n\r\n", Ok(b"hello"));
        check(
            b"5; a = b ;\tc;d=\"e \\\" ; \\\\\" ; f\r\nhello\r\n0\r\n\r\n",
            Ok(b"hello"),
        );
        check(b"5\r\nhello\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n", Ok(b"hello"));
        check(
            b"5\r\nhello\r\n0\r\nContent-Length: 50\r\nHost: evil\r\n\r\n",
            Ok(b"hello"),
        );
    }

    #[test]
    fn malformed_chunks() {
        for size in [
            "0x5",
            "-5",
            "+5",
            "5_0",
            "G",
            "",
            "5 5",
            " 5",
            "5 ",
            "5\t",
            "5.",
            "5,",
            "\u{ff15}",
            "5\0",
            "10000000000000005",
            "FFFFFFFFFFFFFFFFF",
            "FFFFFFFFFFFFFFFF",
            "8000000000000000",
        ] {
            check(
                format!("{size}\r\nhello\r\n0\r\n\r\n").as_bytes(),
                Err(InvalidChunk),
            );
        }
        for extension in [
            "",
            " ",
            "=b",
            "a=",
            "a= ",
            "a[",
            "a=b,c",
            "a b",
            "a=b c",
            "a;",
            "a;;b",
            "a ",
            "a=b ",
            "a=\"b",
            "a=\"b\\\"",
            "a=\"b\"c",
            "a=b\"c\"",
            "\"a\"",
            "a==b",
            "a=\"\u{1}\"",
        ] {
            check(
                format!("5;{extension}\r\nhello\r\n0\r\n\r\n").as_bytes(),
                Err(InvalidChunk),
            );
        }
        check(b"3\r\nhello\r\n0\r\n\r\n", Err(InvalidChunk));
        check(b"5\r\nhello\n0\r\n\r\n", Err(InvalidChunk));
        check(b"5\nhello\r\n0\r\n\r\n", Err(InvalidChunk));
        check(b"5\r\nhello\rX0\r\n\r\n", Err(InvalidChunk));
        check(b"5;\nhello\r\n0\r\n\r\n", Err(InvalidChunk));
        check(b"5;a\rb\r\nhello\r\n0\r\n\r\n", Err(InvalidChunk));
        check(b"5;a\0\r\nhello\r\n0\r\n\r\n", Err(InvalidChunk));
        check(b"5;\r\nhello\r\n0\r\n\r\n", Err(InvalidChunk));
        check(b"5; =\r\nhello\r\n0\r\n\r\n", Err(InvalidChunk));
        check(b"0\r\nbad trailer line\r\n\r\n", Err(InvalidTrailer));
        check(b"0\r\nA: b\n\r\n", Err(InvalidTrailer));
        check(b"0\r\nGET / HTTP/1.1\r\n\r\n", Err(InvalidTrailer));
    }

    #[test]
    fn limits_hold_at_the_limit_and_one_past_it() {
        let extension = |length: usize| format!("0;{}\r\n\r\n", "a".repeat(length));
        check(extension(16 << 10).as_bytes(), Ok(b""));
        check(
            extension((16 << 10) + 1).as_bytes(),
            Err(ChunkExtensionsTooLarge),
        );
        let trailer = |length: usize| format!("0\r\nA: {}\r\n\r\n", "a".repeat(length - 7));
        check(trailer(16 << 10).as_bytes(), Ok(b""));
        check(trailer((16 << 10) + 1).as_bytes(), Err(TrailersTooLarge));
        let many = |count: usize| format!("0\r\n{}\r\n", "A: b\r\n".repeat(count));
        check(many(100).as_bytes(), Ok(b""));
        check(many(101).as_bytes(), Err(TrailersTooLarge));
    }

    #[test]
    fn trailers_are_kept_but_for_those_that_may_not_be() {
        let mut decoder = Decoder::new(BodyLength::Chunked);
        let input = b"0\r\nX-Sum: 7\r\nContent-Length: 5\r\nHOST: evil\r\nx-sum: 8\r\n\r\n";
        decoder
            .decode(input, &mut [0; 4], &Limits::DEFAULT)
            .unwrap();
        assert!(decoder.is_done());
        assert_eq!(
            decoder.trailers().get_all("x-sum").collect::<Vec<_>>(),
            [b"7", b"8"]
        );
        assert_eq!(decoder.trailers().len(), 2);
    }

    #[test]
    fn sized_bodies_end_at_their_length() {
        assert_eq!(
            decode(BodyLength::Sized(5), b"hello world", 3, 2),
            Ok((b"hello".to_vec(), true, 5))
        );
        assert_eq!(
            decode(BodyLength::Sized(5), b"hel", 3, 2),
            Ok((b"hel".to_vec(), false, 3))
        );
        assert_eq!(
            decode(BodyLength::None, b"hello", 3, 2),
            Ok((Vec::new(), true, 0))
        );
    }

    #[test]
    fn what_is_certain_to_come_is_known_from_the_size_line() {
        let mut decoder = Decoder::new(BodyLength::Chunked);
        decoder
            .decode(b"ffff\r\n", &mut [0; 4], &Limits::DEFAULT)
            .unwrap();
        assert_eq!(
            (decoder.at_least(), decoder.plain_bytes()),
            (0xffff, 0xffff)
        );
        decoder.skip_plain(0xffff);
        assert_eq!(
            decoder
                .decode(b"\r\n0\r\n\r\n", &mut [0; 4], &Limits::DEFAULT)
                .unwrap()
                .consumed,
            7
        );
        assert!(decoder.is_done());
    }
}
