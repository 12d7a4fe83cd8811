//! How do bytes and waiting work on this machine?
//!
//! ```text
//!  home      workers, coroutines that stay on theirs, sleep, wake-ups, threads for blocking work
//!  transport a socket of a worker as a Duplex
//!  tls       sessions over one, and who the server is         stream  either
//!  deadline  the clock, the watch list, the sweeper that wakes what is late
//!  listener  where connections come from, with one descriptor a worker
//!  unix_socket  the file of a Unix socket: taken over, replaced, removed
//!  dial      connections to other servers        resolve  the addresses of their names
//!  watched   a socket that is waited for while waiting for another one
//!  park      connections with nothing to do, without a coroutine
//!  page_cache  whether a piece of a file is in memory, and how it gets there
//!  buffer    the bytes that were read and not used yet
//! ```
//!
//! Nothing here knows HTTP.

pub mod buffer;
pub mod deadline;
pub(crate) mod dial;
pub mod home;
pub mod listener;
pub mod page_cache;
pub mod park;
pub(crate) mod resolve;
pub mod stream;
pub mod tls;
pub mod transport;
pub mod unix_socket;
pub(crate) mod watched;
