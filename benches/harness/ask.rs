//! What does a server answer to one plain request?

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The fields of the head, in their order.
    pub(crate) fields: Vec<(String, String)>,
    /// Head and body as they came.
    pub(crate) raw: Vec<u8>,
    /// The body with chunked coding undone.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// Asks with these lines of headers. The request has the bytes of wrk's own, so that what is checked is what is measured.
pub(crate) fn get(port: u16, target: &str, headers: &[String]) -> Result<Answer, String> {
    get_over(&mut connect(port)?, port, target, headers)
}

/// As [`get`], on a connection that is there.
pub(crate) fn get_over(
    stream: &mut (impl Read + Write),
    port: u16,
    target: &str,
    headers: &[String],
) -> Result<Answer, String> {
    send(stream, port, target, headers)?;
    let mut raw = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        if let Some(answer) = parse(&raw)? {
            return Ok(answer);
        }
        match stream.read(&mut piece) {
            Ok(0) => {
                return Err(format!(
                    "closed in the middle of its answer to {target}, after {} bytes",
                    raw.len()
                ));
            }
            Ok(count) => raw.extend_from_slice(&piece[..count]),
            Err(error) => return Err(format!("did not finish its answer to {target}: {error}")),
        }
    }
}

/// Asks for what is too large to be kept, and hands `check` the body in pieces; gives back how long head and body were.
pub(crate) fn get_in_pieces(
    port: u16,
    target: &str,
    mut check: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<usize, String> {
    let mut stream = connect(port)?;
    send(&mut stream, port, target, &[])?;
    let mut read = |buffer: &mut [u8]| match stream.read(buffer) {
        Ok(0) => Err(format!("closed in the middle of its answer to {target}")),
        Ok(count) => Ok(count),
        Err(error) => Err(format!("did not finish its answer to {target}: {error}")),
    };
    let mut piece = vec![0; 256 * 1024];
    let mut raw = Vec::new();
    let (end, head) = loop {
        let count = read(&mut piece)?;
        raw.extend_from_slice(&piece[..count]);
        if let Some(found) = head(&raw)? {
            break found;
        }
    };
    let length = match head.framing {
        Framing::Sized(length) if head.status == 200 => length,
        _ => {
            return Err(format!(
                "answers {target} with status {} and not with 200 and Content-Length",
                head.status
            ));
        }
    };
    check(&raw[end..])?;
    let mut got = raw.len() - end;
    while got < length {
        let count = read(&mut piece)?;
        check(&piece[..count])?;
        got += count;
    }
    Ok(end + got)
}

/// A connection whose reads end after some seconds.
pub(crate) fn connect(port: u16) -> Result<TcpStream, String> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .and_then(|stream| {
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            Ok(stream)
        })
        .map_err(|error| format!("does not accept a connection: {error}"))
}

fn send(
    stream: &mut impl Write,
    port: u16,
    target: &str,
    headers: &[String],
) -> Result<(), String> {
    let mut request = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    for header in headers {
        request.push_str(header);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    stream
        .write_all(request.as_bytes())
        .map_err(|error| format!("does not take a request: {error}"))
}

struct Head {
    status: u16,
    fields: Vec<(String, String)>,
    framing: Framing,
}

enum Framing {
    Sized(usize),
    Chunked,
}

/// The head, and where it ends.
fn head(raw: &[u8]) -> Result<Option<(usize, Head)>, String> {
    let Some(end) = find(raw, b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&raw[..end]);
    let mut lines = text.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status = first
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| format!("answers with the line `{first}`, which is not HTTP"))?;
    let fields: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let field = |wanted: &str| {
        fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value.as_str())
    };
    let chunked =
        field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
    let length = field("content-length").and_then(|value| value.parse().ok());
    let framing = match length {
        _ if chunked => Framing::Chunked,
        // Whatever it says of a length is another answer's (RFC 9110 section 15.4.5).
        _ if status == 304 => Framing::Sized(0),
        Some(length) => Framing::Sized(length),
        None => {
            return Err(
                "answers with neither Content-Length nor chunks, so wrk could not tell its end"
                    .to_owned(),
            );
        }
    };
    Ok(Some((
        end + 4,
        Head {
            status,
            fields,
            framing,
        },
    )))
}

/// `None` means that more bytes are needed.
pub(crate) fn parse(raw: &[u8]) -> Result<Option<Answer>, String> {
    let Some((end, head)) = head(raw)? else {
        return Ok(None);
    };
    let sent = &raw[end..];
    let body = match head.framing {
        Framing::Chunked => unchunk(sent)?,
        Framing::Sized(length) => (sent.len() >= length).then(|| sent[..length].to_vec()),
    };
    Ok(body.map(|body| Answer {
        status: head.status,
        fields: head.fields,
        raw: raw.to_vec(),
        body,
    }))
}

fn unchunk(mut sent: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let mut body = Vec::new();
    loop {
        let Some(end) = find(sent, b"\r\n") else {
            return Ok(None);
        };
        let line = String::from_utf8_lossy(&sent[..end]).into_owned();
        let size = usize::from_str_radix(&line, 16)
            .map_err(|_| format!("sends a chunk of size `{line}`"))?;
        let data = &sent[end + 2..];
        if data.len() < size + 2 {
            return Ok(None);
        }
        if size == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(&data[..size]);
        sent = &data[size + 2..];
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
