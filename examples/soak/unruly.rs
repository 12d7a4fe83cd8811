//! What do clients do that no client should do?

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::Tally;

/// How many dripping connections one thread keeps open.
const DRIPPING: usize = 40;

/// Behaves badly until the test ends. That the server ends such a connection is as it should be.
pub(crate) fn run(address: SocketAddr, seed: u64, tally: &Tally) {
    let mut random = Random(seed * 0x9e37_79b9 + 1);
    let mut dripping: Vec<TcpStream> = Vec::new();
    while tally.goes_on() {
        tally.unruly.fetch_add(1, Ordering::Relaxed);
        let _ = misbehave(address, &mut random, &mut dripping);
        // Each gets one more byte now and then, until the server has had enough.
        dripping.retain_mut(|stream| random.below(8) > 0 || stream.write_all(b"a").is_ok());
        if dripping.len() > DRIPPING {
            dripping.swap_remove(random.below(DRIPPING));
        }
        std::thread::sleep(Duration::from_micros(random.below(3000) as u64));
    }
}

fn misbehave(
    address: SocketAddr,
    random: &mut Random,
    dripping: &mut Vec<TcpStream>,
) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let patience = Duration::from_millis(1 + random.below(30) as u64);
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let large = b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
    match random.below(9) {
        // Gone without a word.
        0 => Ok(()),
        // A reset in the middle of a head, of a body, of an answer.
        1 => {
            stream.write_all(&large[..random.below(large.len())])?;
            reset(&stream)
        }
        2 => {
            stream.write_all(b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 90000\r\n\r\n")?;
            stream.write_all(&vec![b'y'; random.below(60_000)])?;
            reset(&stream)
        }
        3 => {
            stream.write_all(&large.repeat(1 + random.below(8)))?;
            let _ = stream.read(&mut vec![0; 1 + random.below(50_000)])?;
            reset(&stream)
        }
        // Half a request, and then the end of this side only.
        4 => {
            stream.write_all(b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf")?;
            stream.shutdown(Shutdown::Write)?;
            stream.read(&mut [0; 512]).map(drop)
        }
        // Garbage: at once, behind a request, as chunks.
        5 => {
            let garbage: Vec<u8> = (0..random.below(4000))
                .map(|_| random.below(256) as u8)
                .collect();
            stream.write_all(&garbage)?;
            stream.read(&mut [0; 512]).map(drop)
        }
        6 => {
            stream.write_all(b"GET /number/1 HTTP/1.1\r\nHost: h\r\n\r\n\x16\x03\x01\0\0")?;
            stream.read(&mut [0; 512]).map(drop)
        }
        7 => {
            stream.write_all(
                b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX",
            )?;
            stream.read(&mut [0; 512]).map(drop)
        }
        // A head, a body, or an answer that goes on for as long as it is let.
        _ => {
            let start: &[u8] = match random.below(3) {
                0 => b"GET /number/1 HTTP/1.1\r\nHost: h\r\nA: ",
                1 => b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 90000\r\n\r\n",
                _ => &large.repeat(20),
            };
            stream.write_all(start)?;
            dripping.push(stream);
            Ok(())
        }
    }
}

/// Ends a connection so that the other side gets a reset and not an end.
fn reset(stream: &TcpStream) -> io::Result<()> {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
    Ok(())
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % limit
    }
}
