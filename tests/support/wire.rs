//! What does a client see that sends exactly these bytes?

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Instant;

use crate::wait::LIMIT;

/// A connection; every call that waits fails the test after [`LIMIT`].
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer as it came.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Status line and header fields, without the empty line.
    pub head: String,
    /// The body, its framing taken off.
    pub body: Vec<u8>,
}

/// The only answer to this request, on a connection of its own.
///
/// # Panics
/// When no complete answer comes.
#[track_caller]
pub fn ask(address: SocketAddr, request: impl AsRef<[u8]>) -> Answer {
    Wire::open(address).send(request).answer()
}

/// The answer to a GET request, on a connection of its own.
///
/// # Panics
/// When no complete answer comes.
#[track_caller]
pub fn get(address: SocketAddr, target: &str) -> Answer {
    ask(
        address,
        format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
    )
}

impl Wire {
    /// Connects.
    ///
    /// # Panics
    /// When the connection is refused.
    #[track_caller]
    pub fn open(address: SocketAddr) -> Wire {
        let stream = TcpStream::connect_timeout(&address, LIMIT).expect("a connection");
        stream.set_nodelay(true).expect("a connection");
        stream.set_write_timeout(Some(LIMIT)).expect("a connection");
        Wire {
            stream,
            buffer: Vec::new(),
        }
    }

    /// Sends these bytes. That the server has closed meanwhile shows when the answer is read.
    ///
    /// # Panics
    /// When they cannot be sent for other reasons.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Wire {
        match self.stream.write_all(bytes.as_ref()) {
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
                ) =>
            {
                panic_with(&format!("the bytes could not be sent: {error}"))
            }
            _ => self,
        }
    }

    /// Sends a GET request on a connection that is kept.
    ///
    /// # Panics
    /// As [`Wire::send`].
    #[track_caller]
    pub fn send_get(&mut self, target: &str) -> &mut Wire {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"))
    }

    /// Ends this side; answers can still be read.
    pub fn end_sending(&mut self) -> &mut Wire {
        // The server may have ended the connection already.
        let _ = self.stream.shutdown(Shutdown::Write);
        self
    }

    /// Reads the next answer, which is not one to HEAD.
    ///
    /// # Panics
    /// When no complete one comes.
    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        let mut answer = self.answer_to_head();
        if matches!(answer.status, 100..=199 | 204 | 304) {
            return answer;
        }
        if let Some(length) = answer.header("content-length") {
            let length = length.parse().expect("a number");
            answer.body = self.take(length);
        } else if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let line = self.take_until(b"\r\n");
                let line = String::from_utf8(line).expect("the size of a chunk");
                let size = usize::from_str_radix(line.trim_end(), 16).expect("the size of a chunk");
                let chunk = self.take(size + 2);
                assert!(chunk.ends_with(b"\r\n"), "the end of a chunk");
                answer.body.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        } else {
            answer.body = self.rest();
        }
        answer
    }

    /// Reads an answer that has no body whatever its head says.
    ///
    /// # Panics
    /// When no complete head comes.
    #[track_caller]
    pub fn answer_to_head(&mut self) -> Answer {
        let mut head = self.take_until(b"\r\n\r\n");
        head.truncate(head.len() - 4);
        let head = String::from_utf8(head).expect("a head of text");
        let status = head
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .expect("a status line");
        Answer {
            status,
            head,
            body: Vec::new(),
        }
    }

    /// Reads this many bytes.
    ///
    /// # Panics
    /// When the connection ends before.
    #[track_caller]
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            assert!(
                self.fill() > 0,
                "the connection ended after {} of {count} bytes",
                self.buffer.len()
            );
        }
        let rest = self.buffer.split_off(count);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Reads what comes next; nothing when the connection has ended.
    ///
    /// # Panics
    /// When neither happens.
    #[track_caller]
    pub fn take_some(&mut self) -> Vec<u8> {
        if self.buffer.is_empty() {
            self.fill();
        }
        std::mem::take(&mut self.buffer)
    }

    /// Reads everything until the server ends the connection.
    ///
    /// # Panics
    /// When it does not end it.
    #[track_caller]
    pub fn rest(&mut self) -> Vec<u8> {
        while self.fill() > 0 {}
        std::mem::take(&mut self.buffer)
    }

    /// Waits until the server has ended the connection without sending another byte.
    ///
    /// # Panics
    /// When it sends something, or stays.
    #[track_caller]
    pub fn ends(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "got {:?}", String::from_utf8_lossy(&rest));
    }

    #[track_caller]
    fn take_until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut looked_at = 0_usize;
        loop {
            let from = looked_at.saturating_sub(end.len());
            if let Some(at) = self.buffer[from..]
                .windows(end.len())
                .position(|window| window == end)
            {
                return self.take(from + at + end.len());
            }
            looked_at = self.buffer.len();
            assert!(
                self.fill() > 0,
                "the connection ended inside of an answer: {:?}",
                String::from_utf8_lossy(&self.buffer)
            );
        }
    }

    /// Reads what comes next; 0 when the connection has ended, in whatever way.
    #[track_caller]
    fn fill(&mut self) -> usize {
        let deadline = Instant::now() + LIMIT;
        let mut piece = vec![0; 64 << 10];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "nothing came for {LIMIT:?}");
            self.stream.set_read_timeout(Some(left)).expect("a timeout");
            match self.stream.read(&mut piece) {
                Ok(count) => {
                    self.buffer.extend_from_slice(&piece[..count]);
                    return count;
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(_) => return 0,
            }
        }
    }
}

impl Answer {
    /// The first value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }
}

#[track_caller]
#[allow(clippy::panic, reason = "this is how a test fails")]
fn panic_with(message: &str) -> ! {
    panic!("{message}")
}
