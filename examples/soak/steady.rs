//! Is each answer on a busy connection the one that was asked for?

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::Tally;

/// The size of the answer of `/large`.
pub(crate) const LARGE: usize = 300 << 10;

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(10);

/// Asks until the test ends, and reports what was lost.
pub(crate) fn run(address: SocketAddr, seed: u64, tally: &Tally) {
    let (mut client, mut round) = (None, seed << 32);
    while tally.goes_on() {
        round += 1;
        let outcome = match client.take() {
            Some(client) => Ok(client),
            None => Client::open(address),
        }
        .and_then(|mut client: Client| {
            let answers = client.turn(round)?;
            Ok((client, answers))
        });
        match outcome {
            Ok((kept, answers)) => {
                tally.answers.fetch_add(answers, Ordering::Relaxed);
                client = Some(kept);
                // Now and then the connection is ended by halves: the answer must come all the same.
                if round % 2048 == 0
                    && let Some(client) = client.take()
                    && let Err(error) = client.last_request(round)
                {
                    lost(tally, seed, &error);
                }
            }
            Err(error) => lost(tally, seed, &error),
        }
    }
}

fn lost(tally: &Tally, seed: u64, error: &io::Error) {
    tally.lost.fetch_add(1, Ordering::Relaxed);
    crate::say(&format!("steady client {seed}: {error}"));
    std::thread::sleep(Duration::from_millis(100));
}

/// One connection, and what was read of it and not used yet.
struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

impl Client {
    fn open(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Client {
            stream,
            buffer: vec![0; LARGE + 4096],
            filled: 0,
        })
    }

    /// One request, or eight in one write, or a body there and back; says how many were answered.
    fn turn(&mut self, round: u64) -> io::Result<u64> {
        match round % 64 {
            0 => {
                self.stream
                    .write_all(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")?;
                self.answer(|body| body.len() == LARGE && body.iter().all(|&byte| byte == b'x'))?;
                Ok(1)
            }
            1..8 => {
                let length = (round * 7919 % 20_000) as usize;
                let body: Vec<u8> = (0..length).map(|at| (at as u64 * round) as u8).collect();
                let head =
                    format!("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
                self.stream.write_all(head.as_bytes())?;
                self.stream.write_all(&body)?;
                self.answer(|answer| answer == body)?;
                Ok(1)
            }
            8..16 => {
                let all: String = (0..8).map(|place| get(round + place)).collect();
                self.stream.write_all(all.as_bytes())?;
                for place in 0..8 {
                    self.answer(|body| body == (round + place).to_string().as_bytes())?;
                }
                Ok(8)
            }
            _ => {
                self.stream.write_all(get(round).as_bytes())?;
                self.answer(|body| body == round.to_string().as_bytes())?;
                Ok(1)
            }
        }
    }

    fn last_request(mut self, round: u64) -> io::Result<()> {
        self.stream.write_all(get(round).as_bytes())?;
        self.stream.shutdown(Shutdown::Write)?;
        self.answer(|body| body == round.to_string().as_bytes())?;
        match self.stream.read(&mut self.buffer)? {
            0 => Ok(()),
            _ => Err(wrong("bytes behind the last answer")),
        }
    }

    /// Reads one answer, which must be 200 with a body that is `right`.
    fn answer(&mut self, right: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        let (start, length) = loop {
            if let Some(found) = head_of(&self.buffer[..self.filled])? {
                break found;
            }
            self.fill()?;
        };
        while self.filled < start + length {
            self.fill()?;
        }
        if !right(&self.buffer[start..start + length]) {
            return Err(wrong("another body than was asked for"));
        }
        self.buffer.copy_within(start + length..self.filled, 0);
        self.filled -= start + length;
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        match self.stream.read(&mut self.buffer[self.filled..])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.filled += count;
                Ok(())
            }
        }
    }
}

fn get(number: u64) -> String {
    format!("GET /number/{number} HTTP/1.1\r\nHost: h\r\n\r\n")
}

/// Where the body of an answer begins and how long it is; `None` where the head is not complete.
fn head_of(bytes: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&bytes[..end]);
    if !head.starts_with("HTTP/1.1 200 ") {
        return Err(wrong(head.lines().next().unwrap_or_default()));
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok())
        .ok_or_else(|| wrong("an answer without a length"))?;
    Ok(Some((end + 4, length)))
}

fn wrong(what: &str) -> io::Error {
    io::Error::other(format!("got {what}"))
}
