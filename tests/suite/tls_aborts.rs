//! Is anything left of clients that break off in the middle of a handshake?
//!
//! `TORTURE_HANDSHAKES=10000 cargo test --release --test suite tls_aborts -- --nocapture` does it with more of them and prints
//! what it has counted.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use cloudgate::{App, Server};
use cloudgate_suite::{LIMIT, SelfSigned, session, trusting, wait_for};
use rustix::net::sockopt::set_socket_linger;
use rustls::{ClientConfig, ClientConnection};

/// How a client behaves.
const WAYS: usize = 8;

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn throw(&mut self, sides: usize) -> usize {
        // Of xorshift64: Marsaglia 2003.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, LIMIT).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a connection");
    stream
}

/// What a client says first.
fn hello(session: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    session.write_tls(&mut bytes).expect("a ClientHello");
    bytes
}

/// Agrees on keys, and asks once: the answer's status.
fn whole(session: ClientConnection, stream: TcpStream) -> std::io::Result<String> {
    let mut tls = rustls::StreamOwned::new(session, stream);
    tls.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    tls.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Behaves in one of the ways; true where an answer was to come and came.
fn behave(address: SocketAddr, config: &Arc<ClientConfig>, dice: &mut Dice) -> bool {
    let mut session = session(config);
    let mut stream = open(address);
    let way = dice.throw(WAYS);
    match way {
        // To its end.
        0 => {
            let answer = whole(session, stream).expect("an answer");
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            return true;
        }
        // After its first word, or a part of that.
        1 | 2 => {
            let hello = hello(&mut session);
            let length = if way == 1 {
                hello.len()
            } else {
                dice.throw(hello.len())
            };
            stream.write_all(&hello[..length]).expect("a connection");
        }
        // After what the server said to that, with an end of our side.
        3 => {
            let hello = hello(&mut session);
            stream.write_all(&hello).expect("a connection");
            let _ = stream.read(&mut [0; 700]).expect("an answer");
            stream.shutdown(Shutdown::Write).expect("a connection");
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        }
        // Rubbish, at the beginning or in the middle.
        4 | 5 => {
            let mut bytes = if way == 4 {
                Vec::new()
            } else {
                hello(&mut session)
            };
            bytes.extend((0..dice.throw(3000)).map(|_| dice.throw(256) as u8));
            // It may end while this is sent.
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(Shutdown::Write);
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        }
        // A reset in the middle.
        6 => {
            let hello = hello(&mut session);
            stream.write_all(&hello).expect("a connection");
            set_socket_linger(&stream, Some(Duration::ZERO)).expect("a socket");
        }
        // Without TLS.
        _ => {
            stream
                .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .expect("a connection");
            let mut answer = String::new();
            match stream.read_to_string(&mut answer) {
                Err(error) if error.kind() != ErrorKind::ConnectionReset => {
                    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
                }
                _ => assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}"),
            }
        }
    }
    false
}

/// How many descriptors this process has; `None` where that cannot be seen.
fn descriptors() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

/// How many bytes of this process are resident.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|text| text.parse().ok());
    pages.unwrap_or(0) * 4096
}

#[test]
#[allow(clippy::print_stdout, reason = "a long run is counted")]
fn nothing_is_left_of_handshakes_that_were_broken_off() {
    let count = std::env::var("TORTURE_HANDSHAKES").ok();
    let count: usize = count.and_then(|text| text.parse().ok()).unwrap_or(400);
    let made = SelfSigned::new();
    let server = Server::bind_tls("127.0.0.1:0", made.identity())
        .expect("a port")
        .serve(App::new().get("/", || "hello"))
        .expect("a server");
    let (config, address) = (Arc::new(trusting([made.der])), server.addr());
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut answers = 0;
    for round in 0..4 {
        for _ in 0..count / 4 {
            answers += usize::from(behave(address, &config, &mut dice));
        }
        wait_for("all of them to be gone", || server.connections() == 0);
        println!(
            "round {round}: {answers} answers, {:?} descriptors, {} kB resident",
            descriptors(),
            resident() / 1024
        );
    }
    assert!(answers > 0);
}
