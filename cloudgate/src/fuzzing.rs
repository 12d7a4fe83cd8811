//! What do fuzzers and micro benchmarks reach inside the library?
//!
//! Plain functions over bytes, with results that can be compared. Not for people: it changes
//! without notice.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use http::Method;

use crate::app::multipart;
use crate::message::range::{self, Selection};
use crate::message::{Headers, RequestHead, Response, Version, query};
use crate::proto::error::ParseError;
use crate::proto::h1::encode::{self, Envelope, ResponseLength};
use crate::proto::h1::{
    BodyLength, Decoder, Framing, ResponseEnd, ResponseFraming, parse_request, parse_response,
};
use crate::proto::limits::Limits;
use crate::proto::proxy_protocol::{self, Source};
use crate::services::gateway;
use crate::services::gateway::stats::ServiceStats;

/// WebSockets without a socket.
pub mod ws {
    pub use crate::proto::ws::{
        Role, decode, deflate, encode, extension, frame, handshake, violation,
    };
}

/// Why something was refused: the rule's name and the status it is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule.
    pub rule: String,
    /// The status.
    pub status: u16,
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Refusal {
        Refusal {
            rule: format!("{error:?}"),
            status: error.status().as_u16(),
        }
    }
}

/// How a body's end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// There is no body.
    None,
    /// This many bytes.
    Sized(u64),
    /// Chunks.
    Chunked,
}

/// What the fields of a request say about its message and connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The body.
    pub length: Length,
    /// Whether the connection may live on.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue`.
    pub expects_continue: bool,
}

/// A request head, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many bytes it took, empty lines in front of it included.
    pub consumed: usize,
    /// The method.
    pub method: String,
    /// The minor version: 0 or 1.
    pub minor: u8,
    /// Path and query, normalised.
    pub target: String,
    /// Where the query begins in `target`.
    pub question: Option<usize>,
    /// The authority of an absolute or authority form.
    pub authority: Option<String>,
    /// The fields, in order.
    pub fields: Vec<(String, Vec<u8>)>,
    /// What the fields mean, or which rule they break.
    pub message: Result<Message, Refusal>,
}

/// Parses a request head and its framing; `None` where more bytes are needed.
///
/// # Errors
/// The rule that the head breaks.
pub fn head(input: &[u8], limits: &Limits) -> Result<Option<Head>, Refusal> {
    let mut head = RequestHead::default();
    let Some(consumed) = parse_request(input, limits, &mut head)? else {
        return Ok(None);
    };
    let message = Framing::of(&head).map(Message::from).map_err(Refusal::from);
    Ok(Some(Head {
        consumed,
        method: head.method.to_string(),
        minor: u8::from(head.version == Version::Http11),
        question: head.question,
        authority: head.authority.clone(),
        fields: head
            .headers
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        target: std::mem::take(&mut head.target),
        message,
    }))
}

impl From<Framing> for Message {
    fn from(framing: Framing) -> Message {
        Message {
            length: match framing.body {
                BodyLength::None => Length::None,
                BodyLength::Sized(length) => Length::Sized(length),
                BodyLength::Chunked => Length::Chunked,
            },
            keep_alive: framing.keep_alive,
            expects_continue: framing.expects_continue,
        }
    }
}

/// What a gateway sends to a server for the request head at the start of `input`; `None` where that is no whole head, or
/// is refused.
pub fn passed_on(input: &[u8]) -> Option<Vec<u8>> {
    let mut head = RequestHead::default();
    parse_request(input, &Limits::DEFAULT, &mut head).ok()??;
    let framing = Framing::of(&head).ok()?;
    Some(gateway::passed_on(head, framing.body))
}

/// The head of an answer, and what it says of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How many bytes it took.
    pub consumed: usize,
    /// The status.
    pub status: u16,
    /// The fields, in order.
    pub fields: Vec<(String, Vec<u8>)>,
    /// How the body ends (`UntilClose` is `None`), and whether the connection can be used again.
    pub message: Result<(Option<Length>, bool), Refusal>,
}

/// Parses the head of an answer and its framing; `None` where more bytes are needed.
///
/// # Errors
/// The rule that the head breaks.
pub fn answer(input: &[u8], to_head: bool, limits: &Limits) -> Result<Option<Answer>, Refusal> {
    let Some((consumed, head)) = parse_response(input, limits)? else {
        return Ok(None);
    };
    let method = if to_head { Method::HEAD } else { Method::GET };
    let message = ResponseFraming::of(&head, &method).map(|framing| {
        let end = match framing.body {
            ResponseEnd::None => Some(Length::None),
            ResponseEnd::Sized(length) => Some(Length::Sized(length)),
            ResponseEnd::Chunked => Some(Length::Chunked),
            ResponseEnd::UntilClose => None,
        };
        (end, framing.keep_alive)
    });
    let fields = head.headers.iter();
    Ok(Some(Answer {
        consumed,
        status: head.status.as_u16(),
        fields: fields
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        message: message.map_err(Refusal::from),
    }))
}

/// A body, as far as it was decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that were used up.
    pub consumed: usize,
    /// Bytes of the body.
    pub body: Vec<u8>,
    /// Whether the body has ended.
    pub done: bool,
    /// The rule that the body breaks; what the last call decoded in front of that is lost then.
    pub refusal: Option<Refusal>,
}

/// Decodes a body whose bytes arrive in pieces of these sizes, the last one again and again, into
/// buffers of `room` bytes. With no room, plain bytes are read past the decoder wherever it allows that.
pub fn decode(
    length: Length,
    input: &[u8],
    pieces: &[usize],
    room: usize,
    limits: &Limits,
) -> Decoded {
    let mut decoder = Decoder::new(match length {
        Length::None => BodyLength::None,
        Length::Sized(length) => BodyLength::Sized(length),
        Length::Chunked => BodyLength::Chunked,
    });
    let mut decoded = Decoded {
        consumed: 0,
        body: Vec::new(),
        done: decoder.is_done(),
        refusal: None,
    };
    let (mut arrived, mut buffer) = (0_usize, vec![0; room]);
    let mut sizes = pieces.iter().copied();
    let mut size = usize::MAX;
    while !decoded.done && arrived < input.len() {
        size = sizes.next().unwrap_or(size).max(1);
        arrived = arrived.saturating_add(size).min(input.len());
        while !decoded.done && decoded.consumed < arrived {
            let piece = &input[decoded.consumed..arrived];
            let plain = usize::try_from(decoder.plain_bytes()).unwrap_or(usize::MAX);
            if room == 0 && plain > 0 {
                let count = plain.min(piece.len());
                decoded.body.extend_from_slice(&piece[..count]);
                decoder.skip_plain(count as u64);
                decoded.consumed += count;
            } else {
                match decoder.decode(piece, &mut buffer, limits) {
                    Ok(done) => {
                        decoded.body.extend_from_slice(&buffer[..done.produced]);
                        decoded.consumed += done.consumed;
                    }
                    Err(error) => {
                        decoded.refusal = Some(error.into());
                        return decoded;
                    }
                }
            }
            decoded.done = decoder.is_done();
        }
    }
    decoded
}

/// A request target in its normal form, and where its query begins; `None` where it is refused.
pub fn target(text: &str) -> Option<(String, Option<usize>)> {
    let mut normal = String::new();
    let question = query::normalise_target(text, &mut normal).ok()?;
    Some((normal, question))
}

/// One segment of a path, decoded.
pub fn segment(text: &str) -> Option<String> {
    query::decode_segment(text).map(std::borrow::Cow::into_owned)
}

/// The names and values of a query or an urlencoded form.
pub fn pairs(text: &[u8]) -> Vec<(String, String)> {
    query::pairs(text)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

/// The bytes that a Range field selects of something of `length` bytes, none if it is unsatisfiable; `None`
/// where the field is to be ignored.
pub fn range(value: &[u8], length: u64) -> Option<Vec<Range<u64>>> {
    let mut headers = Headers::new();
    headers.append("Range", value).ok()?;
    match range::select(&headers, length) {
        Selection::Whole => None,
        Selection::One(range) => Some(vec![range]),
        Selection::Many(ranges) => Some(ranges),
        Selection::Unsatisfiable => Some(Vec::new()),
    }
}

/// The length of a PROXY protocol header and the client's address, if it names one; `None` where more
/// bytes are needed.
///
/// # Errors
/// The rule that the header breaks.
pub fn proxy(input: &[u8]) -> Result<Option<(usize, Option<SocketAddr>)>, String> {
    let parsed = proxy_protocol::parse(input).map_err(|error| format!("{error:?}"))?;
    Ok(parsed.map(|(length, source)| match source {
        Source::Address(address) => (length, Some(address)),
        Source::Proxy | Source::Unix => (length, None),
    }))
}

/// One part of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The field's name.
    pub name: String,
    /// The client's file name.
    pub filename: Option<String>,
    /// The media type.
    pub content_type: String,
    /// What the part holds.
    pub data: Vec<u8>,
}

/// The boundary that a Content-Type names.
pub fn boundary(content_type: &str) -> Option<String> {
    multipart::boundary_of(content_type)
}

/// The parts of a `multipart/form-data` body that arrives in pieces of these sizes, over and over; in
/// one piece if there are none.
///
/// # Errors
/// The rule that it breaks, and where.
pub fn multipart(body: &[u8], boundary: &str, pieces: &[usize]) -> Result<Vec<Part>, String> {
    let mut parser = multipart::parser(boundary);
    let mut pieces = pieces.iter().cycle();
    let mut parts: Vec<Part> = Vec::new();
    let (mut start, mut end) = (0, 0);
    loop {
        let step = parser
            .step(&body[start..end])
            .map_err(|error| format!("{error:?}"))?;
        match step.event {
            Some(multipart::Event::Head(head)) => parts.push(Part {
                name: head.name,
                filename: head.filename,
                content_type: head.content_type,
                data: Vec::new(),
            }),
            Some(multipart::Event::Data(range)) => {
                let part = parts.last_mut().ok_or("content before a head")?;
                part.data
                    .extend_from_slice(&body[start + range.start..start + range.end]);
            }
            Some(multipart::Event::PartEnd | multipart::Event::End) => {}
            None if end == body.len() => {
                let left = &body[start + step.consumed..];
                let end = parser.finish(left);
                return end.map(|()| parts).map_err(|error| format!("{error:?}"));
            }
            None => {
                end += pieces
                    .next()
                    .map_or(body.len(), |&size| size)
                    .min(body.len() - end);
            }
        }
        start += step.consumed;
    }
}

/// A head whose memory is used again, as a connection has it.
#[derive(Debug, Default)]
pub struct ReusedHead(RequestHead);

impl ReusedHead {
    /// Parses a head and finds its framing; says how long it is, if it is complete and valid.
    pub fn parse(&mut self, input: &[u8], limits: &Limits) -> Option<usize> {
        let length = parse_request(input, limits, &mut self.0).ok()??;
        Framing::of(&self.0).ok().map(|_| length)
    }
}

/// Appends the head of `response` for a kept-alive HTTP/1.1 connection and a body of `length` bytes.
pub fn encode_head(out: &mut Vec<u8>, response: &Response, length: u64) {
    let envelope = Envelope {
        version: Version::Http11,
        keep_alive: true,
        length: ResponseLength::Sized(length),
        date: b"Sun, 06 Nov 1994 08:49:37 GMT",
    };
    encode::head(out, response.status(), response.headers(), envelope);
}

/// The numbers of one service of a gateway.
#[derive(Debug)]
pub struct ServiceNumbers(Arc<ServiceStats>);

impl ServiceNumbers {
    /// None yet.
    pub fn new(name: &str) -> ServiceNumbers {
        ServiceNumbers(ServiceStats::new(name))
    }

    /// Counts a request from its beginning to its end.
    pub fn count(&self, status: u16, took: Duration, bytes_in: u64, bytes_out: u64) {
        let open = self.0.open();
        self.0.record(status, took, bytes_in, bytes_out);
        drop(open);
    }

    /// Counts the end of a request alone.
    pub fn record(&self, status: u16, took: Duration, bytes_in: u64, bytes_out: u64) {
        self.0.record(status, took, bytes_in, bytes_out);
    }
}
