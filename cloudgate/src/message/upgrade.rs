//! What can be done with a connection's bytes, whatever carries them?

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

use super::deadline::Deadline;

/// A two-way stream of bytes that never blocks by itself: plain socket, TLS session or memory pipe.
///
/// Reads and writes give [`io::ErrorKind::WouldBlock`] where nothing can be done now, and only
/// [`Duplex::wait`] waits. So no library code ever runs on a stack that is put aside.
pub trait Duplex {
    /// Reads what is there; 0 is the end of the stream.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there, others when the connection failed.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes what there is room for.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room, others when the connection failed.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Writes from several pieces what there is room for.
    ///
    /// # Errors
    /// As [`Duplex::write`].
    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        pieces
            .iter()
            .find(|piece| !piece.is_empty())
            .map_or(Ok(0), |piece| self.write(piece))
    }

    /// As [`Duplex::write`], with the word that more follows at once.
    ///
    /// # Errors
    /// As [`Duplex::write`].
    fn write_more(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    /// Sends up to `length` bytes of `file` from `offset` on; 0 means that the file has no more.
    ///
    /// # Errors
    /// As [`Duplex::write`], and what reading the file gives.
    fn send_file(&mut self, file: &File, offset: u64, length: u64) -> io::Result<usize> {
        let mut piece = vec![0; length.min(32 << 10) as usize];
        let count = file.read_at(&mut piece, offset)?;
        if count == 0 {
            Ok(0)
        } else {
            self.write(&piece[..count])
        }
    }

    /// Waits until the connection may be readable or writable again, or somebody else wakes it.
    /// It may come back early: try again what would have blocked, then wait again. Where the time of
    /// a handler is up it unwinds, with the stream as it is after any other wait.
    ///
    /// # Errors
    /// `TimedOut` once `until` has passed, `ConnectionAborted` when the server cuts the connection.
    fn wait(&mut self, until: Deadline) -> io::Result<()>;

    /// Lets other connections have a turn.
    fn yield_turn(&mut self);

    /// Tells the peer that nothing more will be sent.
    ///
    /// # Errors
    /// When the connection is gone already.
    fn close_write(&mut self) -> io::Result<()>;
}
