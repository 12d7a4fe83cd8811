//! How much memory does a server keep for a socket that says nothing?

use crate::cases::{ECHOED, path};
use crate::frames;
use crate::harness::child::Running;
use crate::memory;
use crate::socket::Socket;

#[derive(Clone, Copy)]
pub(crate) struct Sample {
    /// Resident memory at rest: after one socket that was opened and closed, with all open, and after a message on each.
    pub(crate) ground: f64,
    pub(crate) open: f64,
    pub(crate) used: f64,
    pub(crate) peak_bytes: f64,
    pub(crate) sockets: f64,
}

pub(crate) fn measure(running: &Running, count: usize) -> Result<Sample, String> {
    // The one that the server was checked by.
    let ground = memory::at_rest(running.tree);
    let mut sockets = (0..count)
        .map(|_| Socket::open(running.port, path::ECHO, false))
        .collect::<Result<Vec<Socket>, String>>()?;
    let open = memory::at_rest(running.tree);
    let frame = frames::masked(frames::TEXT, ECHOED.as_bytes());
    for socket in &mut sockets {
        socket.send(&frame)?;
        if socket.message()?.payload != ECHOED.as_bytes() {
            return Err("sent back something else than it was sent".to_owned());
        }
    }
    let used = memory::at_rest(running.tree);
    Ok(Sample {
        ground: ground as f64,
        open: open as f64,
        used: used as f64,
        peak_bytes: running.tree.peak_memory() as f64,
        sockets: count as f64,
    })
}
