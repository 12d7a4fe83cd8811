//! For which client does a trusted proxy open a connection?
//!
//! Its header is looked at in the socket and then taken out of it, no byte more: what follows, a
//! request or a TLS handshake, is there for whoever reads next.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use super::conn::Surroundings;
use crate::message::{Deadline, Duplex};
use crate::net::listener::NO_ADDRESS;
use crate::net::transport::Plain;
use crate::proto::proxy_protocol::{LONGEST, ProxyError, Source, parse};

/// Why a connection from a trusted proxy is closed without an answer.
#[derive(Debug)]
pub(super) enum NoClient {
    /// The proxy broke a rule, or is none.
    Refused(ProxyError),
    /// The proxy closed a connection that it had sent nothing on, or the server stops.
    Unused,
    /// The proxy closed it inside the header.
    Truncated,
    /// The header did not come within the time for a request head.
    Late,
    /// Reading or waiting failed.
    Failed(io::Error),
}

impl NoClient {
    /// Says it where it helps: a proxy that is set up wrongly fails for every client, and nobody
    /// else gets to see why.
    pub(super) fn log(&self, proxy: SocketAddr) {
        let level = match self {
            NoClient::Refused(_) | NoClient::Late => log::Level::Warn,
            _ => log::Level::Debug,
        };
        log::log!(
            level,
            "connection from the trusted proxy {proxy} closed: {self}"
        );
    }
}

impl fmt::Display for NoClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoClient::Refused(error) => error.fmt(f),
            NoClient::Unused => f.write_str("it was not used"),
            NoClient::Truncated => f.write_str("it ended inside the PROXY protocol header"),
            NoClient::Late => f.write_str("no PROXY protocol header came in time"),
            NoClient::Failed(error) => write!(f, "it failed: {error}"),
        }
    }
}

impl From<io::Error> for NoClient {
    fn from(error: io::Error) -> NoClient {
        match error.kind() {
            ErrorKind::TimedOut => NoClient::Late,
            _ => NoClient::Failed(error),
        }
    }
}

/// Reads the PROXY protocol header of a connection that came at `opened`, and says who the client
/// is: the proxy itself where the header names nobody.
///
/// # Errors
/// When there is no valid header, or it does not come in the time that a request head has.
pub(super) fn client(
    io: &mut Plain,
    proxy: SocketAddr,
    opened: u64,
    around: &Surroundings,
) -> Result<SocketAddr, NoClient> {
    let deadline = Deadline::after(opened, around.rules.head);
    let mut bytes = vec![0; LONGEST];
    let mut looked_at = 0;
    loop {
        match io.peek(&mut bytes) {
            Ok(0) => return Err(NoClient::Unused),
            Ok(count) => {
                if count > looked_at
                    && let Some((length, source)) =
                        parse(&bytes[..count]).map_err(NoClient::Refused)?
                {
                    take(io, &mut bytes[..length])?;
                    return Ok(match source {
                        Source::Proxy => proxy,
                        Source::Address(address) => address,
                        Source::Unix => NO_ADDRESS,
                    });
                }
                // The end was seen before these bytes were, so they are the last.
                if io.has_ended() {
                    return Err(NoClient::Truncated);
                }
                looked_at = count;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if around.stopping.load(Ordering::Relaxed) {
                    return Err(NoClient::Unused);
                }
            }
            Err(error) => return Err(error.into()),
        }
        io.wait(deadline)?;
    }
}

/// Takes out bytes that were seen, so that they are there.
fn take(io: &mut Plain, mut header: &mut [u8]) -> Result<(), NoClient> {
    while !header.is_empty() {
        match io.read(header) {
            Ok(0) => return Err(NoClient::Truncated),
            Ok(count) => header = &mut header[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
