//! How is a server asked over a real connection?
//!
//! Plain blocking sockets: a test runs on a thread of its own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use http::Method;

use super::{Answer, Collected, Question, Then};
use crate::message::{Headers, Version};
use crate::proto::h1::response_head::ResponseHead;
use crate::proto::h1::{BodyLength, Decoder, parse_response};
use crate::proto::limits::Limits;

/// How long nothing may come.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much is read at once, in bytes.
const PIECE: usize = 16 << 10;

/// How much of an answer's head is accepted: more than a server may ever need.
const LIMITS: Limits = Limits {
    head: 1 << 20,
    fields: 1000,
    ..Limits::DEFAULT
};

/// A connection that is kept for the next request.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Where the body of an answer ends.
enum End {
    Here,
    Decoded(BodyLength),
    WithConnection,
}

/// Sends the question on the kept connection, or on a new one, and takes the answer.
///
/// # Errors
/// What went wrong where no whole answer came.
pub(super) fn exchange(
    address: SocketAddr,
    kept: &mut Option<Connection>,
    question: &Question,
    collected: Collected,
) -> Result<Answer, String> {
    // One that the server has closed meanwhile is of no use; then nothing was sent on it either.
    let usable = kept.take().filter(Connection::is_open);
    let mut connection = match usable {
        Some(connection) => connection,
        None => Connection::open(address)
            .map_err(|error| format!("no connection to {address}: {error}"))?,
    };
    let (answer, keeps) = connection.ask(question, collected)?;
    if keeps {
        *kept = Some(connection);
    }
    Ok(answer)
}

/// Sends the question on a new connection, and leaves that to whoever asked.
///
/// # Errors
/// As [`exchange`].
pub(super) fn open(
    address: SocketAddr,
    question: &Question,
    collected: Collected,
) -> Result<(Answer, TcpStream, Vec<u8>), String> {
    let mut connection = Connection::open(address)
        .map_err(|error| format!("no connection to {address}: {error}"))?;
    let (answer, _) = connection.ask(question, collected)?;
    Ok((answer, connection.stream, connection.buffer))
}

impl Connection {
    fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection {
            stream,
            buffer: Vec::new(),
        })
    }

    fn is_open(&self) -> bool {
        let look = || {
            self.stream.set_nonblocking(true)?;
            let seen = self.stream.peek(&mut [0]);
            self.stream.set_nonblocking(false)?;
            seen
        };
        // A byte that nobody asked for would be taken for the next answer.
        self.buffer.is_empty() && look().is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// The answer, and whether the connection can be used on.
    fn ask(
        &mut self,
        question: &Question,
        mut collected: Collected,
    ) -> Result<(Answer, bool), String> {
        let Question {
            method,
            target,
            headers,
            body,
        } = question;
        let mut bytes = format!("{method} {} HTTP/1.1\r\n", target.path_and_query).into_bytes();
        bytes.extend_from_slice(headers.wire());
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        // A server that refuses a body may end the connection before it was sent: its answer is there.
        let sent = self.stream.write_all(&bytes);
        let head = self.read_head().map_err(|reason| match &sent {
            Ok(()) => reason,
            Err(error) => format!("the request could not be sent: {error}; {reason}"),
        })?;
        let end = end_of_body(&head, method)?;
        // Behind a 101 it speaks something else.
        let stays = head.version == Version::Http11
            && head.status != 101
            && !head.headers.has_token("connection", "close")
            && !matches!(end, End::WithConnection)
            && sent.is_ok();
        let complete = self.read_body(end, &mut collected)?;
        let answer = Answer {
            status: head.status,
            headers: head.headers,
            body: collected.bytes,
            note: None,
        };
        Ok((answer, stays && complete == Then::GoOn))
    }

    /// The next head that is not an interim one (RFC 9110 section 15.2).
    fn read_head(&mut self) -> Result<ResponseHead, String> {
        loop {
            let parsed = parse_response(&self.buffer, &LIMITS)
                .map_err(|error| format!("the head of the answer is malformed: {error}"))?;
            match parsed {
                Some((length, head)) => {
                    self.buffer.drain(..length);
                    if !head.status.is_informational() || head.status == 101 {
                        return Ok(head);
                    }
                }
                None if self.fill()? == 0 => {
                    return Err(match self.buffer.len() {
                        0 => "the connection was closed".to_owned(),
                        count => format!("the connection was closed {count} bytes into the head"),
                    });
                }
                None => {}
            }
        }
    }

    fn read_body(&mut self, end: End, into: &mut Collected) -> Result<Then, String> {
        let mut decoder = match end {
            End::Here => return Ok(Then::GoOn),
            End::WithConnection => loop {
                if into.push(&std::mem::take(&mut self.buffer))? == Then::Leave {
                    return Ok(Then::Leave);
                }
                if self.fill()? == 0 {
                    return Ok(Then::GoOn);
                }
            },
            End::Decoded(length) => Decoder::new(length),
        };
        let mut piece = vec![0; PIECE];
        while !decoder.is_done() {
            if self.buffer.is_empty() && self.fill()? == 0 {
                return Err(format!(
                    "the connection was closed after {} bytes of the body, before its end",
                    into.bytes.len()
                ));
            }
            let decoded = decoder
                .decode(&self.buffer, &mut piece, &LIMITS)
                .map_err(|error| format!("the body of the answer is malformed: {error}"))?;
            self.buffer.drain(..decoded.consumed);
            if into.push(&piece[..decoded.produced])? == Then::Leave {
                return Ok(Then::Leave);
            }
        }
        Ok(Then::GoOn)
    }

    /// Reads what comes next; 0 when the connection has ended.
    fn fill(&mut self) -> Result<usize, String> {
        let before = self.buffer.len();
        self.buffer.resize(before + PIECE, 0);
        let read = loop {
            match self.stream.read(&mut self.buffer[before..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer
            .truncate(before + read.as_ref().map_or(0, |&count| count));
        match read {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(0),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(format!("nothing came for {} seconds", PATIENCE.as_secs()))
            }
            read => read.map_err(|error| format!("the connection failed: {error}")),
        }
    }
}

/// RFC 9112 section 6.3.
fn end_of_body(head: &ResponseHead, method: &Method) -> Result<End, String> {
    let headers: &Headers = &head.headers;
    if *method == Method::HEAD || matches!(head.status.as_u16(), 101 | 204 | 304) {
        return Ok(End::Here);
    }
    if let Some(coding) = headers.get("transfer-encoding") {
        return if coding.eq_ignore_ascii_case("chunked") {
            Ok(End::Decoded(BodyLength::Chunked))
        } else {
            Err(format!("the answer has the transfer coding {coding:?}"))
        };
    }
    match headers.get("content-length") {
        None => Ok(End::WithConnection),
        Some(text) => text
            .parse()
            .map(|length| End::Decoded(BodyLength::Sized(length)))
            .map_err(|_| format!("the answer has the Content-Length {text:?}")),
    }
}
