//! What does a server of somebody else do, behind a gateway?

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::wait::LIMIT;

/// A server on a free port that does on each connection what its script says, and remembers what it was asked.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    /// Connections that are open, by their number, to be ended with the server.
    open: Mutex<HashMap<usize, TcpStream>>,
    accepted: AtomicUsize,
    stopped: AtomicBool,
}

/// A request as it came over the wire.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The request line and the fields, without the blank line.
    pub head: String,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// The fields behind a chunked body.
    pub trailers: String,
    /// The number of the connection, from 0 on.
    pub connection: usize,
}

impl Asked {
    /// The method.
    pub fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// The target.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Every value of a field.
    pub fn fields(&self, name: &str) -> Vec<&str> {
        let lines = self.head.split("\r\n").skip(1);
        lines
            .filter_map(|line| line.split_once(':'))
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
            .collect()
    }

    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields(name).first().copied()
    }
}

/// One connection, as a script sees it.
pub struct Talk {
    stream: TcpStream,
    input: Vec<u8>,
    shared: Arc<Shared>,
    number: usize,
}

impl Talk {
    /// The number of the connection, from 0 on.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Reads up to the blank line behind the next head; `None` where the client ends the connection instead.
    pub fn head(&mut self) -> Option<Asked> {
        let end = loop {
            if let Some(at) = find(&self.input, b"\r\n\r\n") {
                break at;
            }
            if !self.more() {
                return None;
            }
        };
        let head = String::from_utf8_lossy(&self.input[..end]).into_owned();
        self.input.drain(..end + 4);
        Some(Asked {
            head,
            body: Vec::new(),
            trailers: String::new(),
            connection: self.number,
        })
    }

    /// Reads the next request, body and all, and remembers it.
    pub fn request(&mut self) -> Option<Asked> {
        let mut asked = self.head()?;
        if asked.field("transfer-encoding").is_some() {
            loop {
                let line = self.line()?;
                let size = usize::from_str_radix(line.split(';').next()?, 16).ok()?;
                if size == 0 {
                    break;
                }
                asked.body.extend(self.bytes(size)?);
                self.bytes(2)?;
            }
            loop {
                let line = self.line()?;
                if line.is_empty() {
                    break;
                }
                asked.trailers.push_str(&line);
                asked.trailers.push('\n');
            }
        } else if let Some(length) = asked.field("content-length") {
            asked.body = self.bytes(length.parse().ok()?)?;
        }
        self.remember(&asked);
        Some(asked)
    }

    /// Notes a request that was not read by [`Talk::request`].
    pub fn remember(&self, asked: &Asked) {
        lock(&self.shared.asked).push(asked.clone());
    }

    /// Reads so many bytes; `None` where the client ends the connection before.
    pub fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.input.len() < count {
            if !self.more() {
                return None;
            }
        }
        Some(self.input.drain(..count).collect())
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(at) = find(&self.input, b"\r\n") {
                let line = String::from_utf8_lossy(&self.input[..at]).into_owned();
                self.input.drain(..at + 2);
                return Some(line);
            }
            if !self.more() {
                return None;
            }
        }
    }

    fn more(&mut self) -> bool {
        let mut piece = vec![0; 64 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return false,
                Ok(count) => {
                    self.input.extend_from_slice(&piece[..count]);
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Sends bytes; says whether that went.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// Sends 200 with a body of known length.
    pub fn ok(&mut self, body: impl AsRef<[u8]>) -> bool {
        self.send(response("200 OK", "", body))
    }

    /// Says that nothing more is sent, and still reads.
    pub fn end(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Ends the connection by a reset.
    pub fn reset(self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    /// Waits until the client has ended the connection, however; says whether it did within the time that tests have.
    pub fn is_left(&mut self) -> bool {
        let mut piece = vec![0; 64 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return false,
                    _ => return true,
                },
            }
        }
    }
}

/// A response of known length; `fields` are whole lines.
pub fn response(status: &str, fields: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{fields}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

impl Upstream {
    /// One that answers each request by what the closure makes of it.
    pub fn answering(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Upstream {
        Upstream::start(move |talk| {
            while let Some(asked) = talk.request() {
                if !talk.send(answer(&asked)) {
                    return;
                }
            }
        })
    }

    /// One that runs `script` on a thread for each connection, which is closed when it returns.
    pub fn start(script: impl Fn(&mut Talk) + Send + Sync + 'static) -> Upstream {
        Upstream::taking(move |mut talk| script(&mut talk))
    }

    /// As [`Upstream::start`], with a script that has the connection for itself.
    pub fn taking(script: impl Fn(Talk) + Send + Sync + 'static) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Upstream::on(listener, script)
    }

    /// As [`Upstream::taking`], on a port that is there already.
    pub fn on(listener: TcpListener, script: impl Fn(Talk) + Send + Sync + 'static) -> Upstream {
        let address = listener.local_addr().expect("the port's number");
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let script = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if theirs.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let _ = stream.set_nodelay(true);
                let _ = stream.set_read_timeout(Some(LIMIT));
                let number = theirs.accepted.fetch_add(1, Ordering::SeqCst);
                if let Ok(other) = stream.try_clone() {
                    lock(&theirs.open).insert(number, other);
                }
                let talk = Talk {
                    stream,
                    input: Vec::new(),
                    number,
                    shared: Arc::clone(&theirs),
                };
                let (script, theirs) = (Arc::clone(&script), Arc::clone(&theirs));
                thread::spawn(move || {
                    script(talk);
                    // The last that is left of it: closed here, and reset where the script wanted that.
                    lock(&theirs.open).remove(&number);
                });
            }
        });
        Upstream { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.asked).clone()
    }

    /// How many connections it has taken.
    pub fn connections(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Ends all connections that are open.
    pub fn hang_up(&self) {
        for (_, stream) in lock(&self.shared.open).drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        self.hang_up();
        // So that the thread that accepts looks.
        let _ = TcpStream::connect(self.address);
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
