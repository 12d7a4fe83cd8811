//! What does a client get, if it gets it whole?

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection that may end at any time.
pub struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

/// A complete answer.
pub struct Reply {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn field(&self, name: &str) -> Option<&str> {
        let of_name = self.fields.iter().find(|(known, _)| known == name);
        of_name.map(|(_, value)| &**value)
    }
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        Client {
            address,
            stream: None,
            buffer: Vec::new(),
        }
    }

    /// The answer, or `None` where the connection ended before it was complete.
    pub fn ask(&mut self, method: &str, target: &str, fields: &str) -> Option<Reply> {
        let reply = self.try_ask(method, target, fields);
        if reply.is_none() {
            self.stream = None;
            self.buffer.clear();
        }
        reply
    }

    fn try_ask(&mut self, method: &str, target: &str, fields: &str) -> Option<Reply> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).ok()?;
            stream
                .set_read_timeout(Some(Duration::from_secs(30)))
                .ok()?;
            stream.set_nodelay(true).ok()?;
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut()?;
        let request = format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let head = loop {
            let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let rest = self.buffer.split_off(end + 4);
                break String::from_utf8(std::mem::replace(&mut self.buffer, rest)).ok()?;
            }
            fill(stream, &mut self.buffer)?;
        };
        let mut lines = head.lines();
        let status = lines.next()?.get(9..12)?.parse().ok()?;
        let fields: Vec<_> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut reply = Reply {
            status,
            fields,
            body: Vec::new(),
        };
        if method == "HEAD" || status == 304 {
            return Some(reply);
        }
        let length: usize = reply.field("content-length")?.parse().ok()?;
        while self.buffer.len() < length {
            fill(stream, &mut self.buffer)?;
        }
        let rest = self.buffer.split_off(length);
        reply.body = std::mem::replace(&mut self.buffer, rest);
        Some(reply)
    }
}

fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let before = buffer.len();
    buffer.resize(before + (64 << 10), 0);
    let count = stream.read(&mut buffer[before..]).unwrap_or_default();
    buffer.truncate(before + count);
    (count > 0).then_some(())
}
