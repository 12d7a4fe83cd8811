//! How is a response written?

use http::StatusCode;

use crate::message::{Headers, Version};

/// How the end of a response's body will be known to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseLength {
    /// The status allows no body, and no length is sent (1xx, 204, 304; RFC 9112 section 6.3).
    Bodiless,
    /// This many bytes.
    Sized(u64),
    /// Chunks.
    Chunked,
    /// The end of the connection, for HTTP/1.0 clients.
    UntilClose,
    /// Nothing: another protocol follows (RFC 9110 section 15.2.2).
    Upgrade,
}

/// What the connection adds to a response.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// The version of the request, whose client has to understand the answer.
    pub version: Version,
    /// Whether the connection stays open behind this response.
    pub keep_alive: bool,
    /// How the body's end will be known.
    pub length: ResponseLength,
    /// The value of Date (RFC 9110 section 6.6.1).
    pub date: &'a [u8],
}

/// Appends the status line and the header fields.
///
/// Fields that belong to the connection are the server's: what `headers` says of Connection,
/// Content-Length, Transfer-Encoding and Keep-Alive is left out. A Date that is there is that of another server,
/// whose answer this is, and stays.
pub fn head(out: &mut Vec<u8>, status: StatusCode, headers: &Headers, envelope: Envelope<'_>) {
    status_line(out, status);
    let (mut some, mut dated) = (false, false);
    for (name, _) in headers.fields() {
        some |= belongs_to_connection(name);
        dated |= name.len() == 4 && name.eq_ignore_ascii_case(b"date");
    }
    if some {
        for (name, value) in headers
            .fields()
            .filter(|(name, _)| !belongs_to_connection(name))
        {
            field(out, name, value);
        }
    } else {
        out.extend_from_slice(headers.wire());
    }
    match envelope.length {
        ResponseLength::Sized(length) => {
            out.extend_from_slice(b"Content-Length: ");
            decimal(out, length);
            out.extend_from_slice(b"\r\n");
        }
        ResponseLength::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        ResponseLength::Upgrade => out.extend_from_slice(b"Connection: Upgrade\r\n"),
        ResponseLength::Bodiless | ResponseLength::UntilClose => {}
    }
    if envelope.length == ResponseLength::Upgrade {
        // Nothing is kept alive, and nothing closed.
    } else if !envelope.keep_alive {
        out.extend_from_slice(b"Connection: close\r\n");
    } else if envelope.version == Version::Http10 {
        out.extend_from_slice(b"Connection: keep-alive\r\n");
    }
    if !dated {
        out.extend_from_slice(b"Date: ");
        out.extend_from_slice(envelope.date);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends an answer in front of the final one (RFC 9110 section 15.2).
pub fn interim(out: &mut Vec<u8>, status: StatusCode, headers: &Headers) {
    status_line(out, status);
    for (name, value) in headers.fields() {
        if !belongs_to_connection(name) {
            field(out, name, value);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends one field line.
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends `100 Continue` (RFC 9110 section 15.2.1).
pub fn continue_100(out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
}

/// Appends one chunk; empty data is left out, for it would end the body.
pub fn chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    chunk_start(out, data.len());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Appends the size line of a chunk of `length` bytes; the data and CRLF are to follow.
pub fn chunk_start(out: &mut Vec<u8>, length: usize) {
    let mut left = usize::BITS - length.leading_zeros();
    while left > 0 {
        left = left.next_multiple_of(4) - 4;
        out.push(b"0123456789abcdef"[length >> left & 0xf]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the last chunk and the trailer section (RFC 9112 section 7.1.2).
pub fn last_chunk(out: &mut Vec<u8>, trailers: &Headers) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers.fields() {
        field(out, name, value);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a request line (RFC 9112 section 3).
pub fn request_line(out: &mut Vec<u8>, method: &str, target: &[&str]) {
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    for part in target {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

fn status_line(out: &mut Vec<u8>, status: StatusCode) {
    if status == StatusCode::OK {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    // The space stays where there is no reason phrase (RFC 9112 section 4).
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn belongs_to_connection(name: &[u8]) -> bool {
    match name.len() {
        10 => name.eq_ignore_ascii_case(b"connection") || name.eq_ignore_ascii_case(b"keep-alive"),
        14 => name.eq_ignore_ascii_case(b"content-length"),
        17 => name.eq_ignore_ascii_case(b"transfer-encoding"),
        _ => false,
    }
}

/// Appends a number.
pub fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(
        status: StatusCode,
        headers: &Headers,
        version: Version,
        keep_alive: bool,
        length: ResponseLength,
    ) -> String {
        let mut out = Vec::new();
        head(
            &mut out,
            status,
            headers,
            Envelope {
                version,
                keep_alive,
                length,
                date: b"now",
            },
        );
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn heads() {
        let mut headers = Headers::new();
        headers.append("Content-Type", "text/html").unwrap();
        assert_eq!(
            encode(
                StatusCode::OK,
                &headers,
                Version::Http11,
                true,
                ResponseLength::Sized(12)
            ),
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 12\r\nDate: now\r\n\r\n"
        );
        assert_eq!(
            encode(
                StatusCode::NOT_FOUND,
                &headers,
                Version::Http10,
                true,
                ResponseLength::Sized(0)
            ),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: keep-alive\r\nDate: now\r\n\r\n"
        );
        assert_eq!(
            encode(
                StatusCode::NO_CONTENT,
                &Headers::new(),
                Version::Http11,
                false,
                ResponseLength::Bodiless
            ),
            "HTTP/1.1 204 No Content\r\nConnection: close\r\nDate: now\r\n\r\n"
        );
        assert_eq!(
            encode(
                StatusCode::from_u16(299).unwrap(),
                &Headers::new(),
                Version::Http11,
                true,
                ResponseLength::Chunked
            ),
            "HTTP/1.1 299 \r\nTransfer-Encoding: chunked\r\nDate: now\r\n\r\n"
        );
    }

    #[test]
    fn what_belongs_to_the_connection_is_not_the_handlers() {
        let mut headers = Headers::new();
        for (name, value) in [
            ("content-length", "99"),
            ("A", "b"),
            ("Transfer-Encoding", "x"),
            ("CONNECTION", "y"),
            ("date", "z"),
            ("Keep-Alive", "w"),
        ] {
            headers.append(name, value).unwrap();
        }
        assert_eq!(
            encode(
                StatusCode::OK,
                &headers,
                Version::Http11,
                true,
                ResponseLength::Sized(1)
            ),
            "HTTP/1.1 200 OK\r\nA: b\r\ndate: z\r\nContent-Length: 1\r\n\r\n"
        );
    }

    #[test]
    fn chunks_have_the_shortest_hex_size() {
        for (length, want) in [
            (1, "1"),
            (15, "f"),
            (16, "10"),
            (255, "ff"),
            (4096, "1000"),
            (0x12345, "12345"),
        ] {
            let mut out = Vec::new();
            chunk(&mut out, &vec![b'x'; length]);
            assert_eq!(&out[..want.len() + 2], format!("{want}\r\n").as_bytes());
            assert_eq!(out.len(), want.len() + 4 + length);
        }
        let mut out = Vec::new();
        chunk(&mut out, b"");
        let mut trailers = Headers::new();
        trailers.append("X-T", "1").unwrap();
        last_chunk(&mut out, &trailers);
        assert_eq!(out, b"0\r\nX-T: 1\r\n\r\n");
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 9, 10, 12_345, u64::MAX] {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }
}
