//! How does a WebSocket work, apart from any socket (RFC 6455, RFC 7692)?
//!
//! ```text
//!   request ── handshake ── answer        extension: what both sides agree to compress
//!
//!   bytes ── frame ── decode ── Event     message bytes go through utf8, and through deflate if compressed
//!   bytes ── frame ── encode ── message
//!
//!   close: who has closed, what may still be sent, who ends the connection
//! ```
//!
//! Either side is a value that takes and gives bytes; [`Role`] says which side it is.

pub mod close;
pub mod decode;
pub mod deflate;
pub mod encode;
pub mod extension;
pub mod frame;
pub mod handshake;
#[cfg(test)]
pub(crate) mod tests;
pub mod utf8;
pub mod violation;

/// A side of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes masked frames and sends plain ones.
    Server,
    /// Sends masked frames and takes plain ones (RFC 6455 section 5.3).
    Client,
}
