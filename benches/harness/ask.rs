//! What does a server answer to one plain request?

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Head and body as they came.
    pub(crate) raw: Vec<u8>,
    /// The body with chunked coding undone.
    pub(crate) body: Vec<u8>,
}

/// The request has the bytes of wrk's own, so that what is checked is what is measured.
pub(crate) fn get(port: u16, target: &str) -> Result<Answer, String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .map_err(|error| format!("does not accept a connection: {error}"))?;
    let wait = Some(Duration::from_secs(5));
    let request = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream
        .set_read_timeout(wait)
        .and_then(|()| stream.write_all(request.as_bytes()))
        .map_err(|error| format!("does not take a request: {error}"))?;

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

/// `None` means that more bytes are needed.
pub(crate) fn parse(raw: &[u8]) -> Result<Option<Answer>, String> {
    let Some(end) = find(raw, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&raw[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status = first
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| format!("answers with the line `{first}`, which is not HTTP"))?;
    let mut length = None;
    let mut chunked = false;
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<usize>().ok();
        }
        chunked |= name.eq_ignore_ascii_case("transfer-encoding")
            && value.trim().eq_ignore_ascii_case("chunked");
    }
    let sent = &raw[end + 4..];
    let body = match length {
        _ if chunked => unchunk(sent)?,
        Some(length) => (sent.len() >= length).then(|| sent[..length].to_vec()),
        None => {
            return Err(
                "answers with neither Content-Length nor chunks, so wrk could not tell its end"
                    .to_owned(),
            );
        }
    };
    Ok(body.map(|body| Answer {
        status,
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
