//! What is a library of TLS to us?
//!
//! It takes bytes and gives bytes. [`Session`](super::session::Session) reads and writes the socket between its calls, and
//! waits outside of them, so no library's frames are on a stack that is put aside.

use std::io::{self, IoSlice, Read, Write};

use crate::message::TlsSession;

/// The most that one call encrypts, in bytes: four records (RFC 8446 section 5.1), which go out by one call.
pub(crate) const AT_ONCE: usize = 64 << 10;

/// Begins sessions as a server.
pub(crate) trait Acceptor: Send + Sync {
    /// A session whose handshake is still to come.
    ///
    /// # Errors
    /// When the configuration cannot serve at all.
    fn begin(&self) -> io::Result<Box<dyn Engine>>;
}

/// One side of a session. Nothing here waits.
pub(crate) trait Engine: Send {
    /// Whether keys are still to be agreed on.
    fn is_handshaking(&self) -> bool;

    /// Reads once from the peer, and does what is to be done about it; 0 at the end.
    ///
    /// # Errors
    /// `InvalidData` when the peer breaks the protocol or nothing can be agreed on, and what reading says.
    fn receive(&mut self, from: &mut dyn Read) -> io::Result<usize>;

    /// Whether there is something for the peer.
    fn wants_write(&self) -> bool;

    /// Writes once what there is for the peer.
    ///
    /// # Errors
    /// What writing says.
    fn send(&mut self, to: &mut dyn Write) -> io::Result<usize>;

    /// Reads what the peer has sent of data; 0 where it has said that this is all.
    ///
    /// # Errors
    /// `WouldBlock` where there is nothing, `UnexpectedEof` where the connection ended without a word of that.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Encrypts data for the peer, no more than [`AT_ONCE`], and says how much. To be called when nothing is left to send.
    ///
    /// # Errors
    /// When the session is over.
    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Has it say that nothing more comes (RFC 8446 section 6.1).
    fn say_goodbye(&mut self);

    /// What the other side has shown of who it is, its own certificate first.
    #[cfg(feature = "cli")]
    fn peer_chain(&self) -> Vec<rustls::pki_types::CertificateDer<'static>> {
        Vec::new()
    }

    /// What was agreed on, once it was.
    fn agreed(&self) -> TlsSession;
}
