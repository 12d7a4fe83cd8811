//! What do the tests of a whole server need?
//!
//! ```text
//!  server  a server on a free port          wire   a client that sends what it is told, byte for byte
//!  program the test binary as a program     wait   until something has happened, with a deadline
//!  client  a WebSocket of another make                 secure  a certificate, and a client of TLS of another make
//!  upstream a server of somebody else, which does what it is told
//!  guide   the examples of docs/guide, as documentation tests
//! ```

mod client;
#[cfg(any(test, doctest))]
mod guide;
mod program;
mod secure;
mod server;
mod upstream;
mod wait;
mod wire;

pub use client::{Client, client};
pub use program::{Ended, PROGRAM, Program};
pub use secure::{SelfSigned, TlsClient, open_tls, session, trusting};
pub use server::{start, start_with};
pub use upstream::{Asked, Talk, Upstream, response};
pub use wait::{LIMIT, wait_for};
pub use wire::{Answer, Wire, ask, get};
