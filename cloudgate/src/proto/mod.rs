//! How do the protocols work, apart from any socket?
//!
//! Bytes in, values and bytes out: nothing here reads, writes, waits, logs or asks the time, so
//! every rule is testable byte by byte.

pub mod error;
pub mod h1;
pub mod limits;
#[cfg(test)]
pub mod pipe;
pub mod proxy_protocol;
pub mod ws;
