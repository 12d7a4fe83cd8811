//! How can a protocol be driven without a socket?
//!
//! A [`Pipe`] is one end of a two-way stream in memory, with the semantics of a nonblocking
//! socket. Its clock stands still until a test moves it, so a deadline passes when the test says so.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::message::{Deadline, Duplex};

/// One end of a stream in memory; dropping it ends the stream for the other end.
#[derive(Debug)]
pub struct Pipe {
    shared: Arc<Shared>,
    side: usize,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// What side 0 and side 1 have sent and the other has not read yet.
    sent: [VecDeque<u8>; 2],
    closed: [bool; 2],
    /// Whether a side's present or next wait is to end.
    woken: [bool; 2],
    /// Whether a side found no room, and so is to hear of some, also where that came before it waits.
    refused: [bool; 2],
    capacity: usize,
    now: u64,
}

/// What can be done with one end from any thread, while somebody waits at it.
#[derive(Clone, Debug)]
pub struct PipeHandle {
    shared: Arc<Shared>,
    side: usize,
}

impl PipeHandle {
    /// Ends the present or next wait.
    pub fn wake(&self) {
        let mut state = self
            .shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.woken[self.side] = true;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Where the clock of both ends stands, in milliseconds.
    pub fn now(&self) -> u64 {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .now
    }
}

impl Pipe {
    /// Two connected ends; each direction holds up to `capacity` bytes.
    pub fn pair(capacity: usize) -> (Pipe, Pipe) {
        let state = State {
            sent: Default::default(),
            closed: [false; 2],
            woken: [false; 2],
            refused: [false; 2],
            capacity,
            now: 0,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        (
            Pipe {
                shared: Arc::clone(&shared),
                side: 0,
            },
            Pipe { shared, side: 1 },
        )
    }

    /// What others need of this end.
    pub fn handle(&self) -> PipeHandle {
        PipeHandle {
            shared: Arc::clone(&self.shared),
            side: self.side,
        }
    }

    /// Moves the clock of both ends on by this many milliseconds.
    pub fn advance(&self, milliseconds: u64) {
        self.lock().now += milliseconds;
        self.shared.changed.notify_all();
    }

    /// Where the clock of both ends stands, in milliseconds.
    pub fn now(&self) -> u64 {
        self.lock().now
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn other(&self) -> usize {
        1 - self.side
    }
}

impl Duplex for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.lock();
        let other = self.other();
        if state.sent[other].is_empty() && !state.closed[other] && !buffer.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = buffer.len().min(state.sent[other].len());
        for (place, byte) in buffer.iter_mut().zip(state.sent[other].drain(..count)) {
            *place = byte;
        }
        self.shared.changed.notify_all();
        Ok(count)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        if state.closed[self.side] {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let count = bytes
            .len()
            .min(state.capacity - state.sent[self.side].len());
        if count == 0 && !bytes.is_empty() {
            state.refused[self.side] = true;
            return Err(ErrorKind::WouldBlock.into());
        }
        state.sent[self.side].extend(&bytes[..count]);
        self.shared.changed.notify_all();
        Ok(count)
    }

    fn wait(&mut self, until: Deadline) -> io::Result<()> {
        let mut state = self.lock();
        let other = self.other();
        let before = (
            state.sent[other].len(),
            state.sent[self.side].len(),
            state.closed[other],
        );
        // What can be done now is done without waiting, as with a socket that is ready.
        let has_room = before.1 < state.capacity;
        let refused = std::mem::take(&mut state.refused[self.side]);
        if before.0 > 0 || before.2 || refused && has_room {
            return if until.has_passed(state.now) {
                Err(ErrorKind::TimedOut.into())
            } else {
                Ok(())
            };
        }
        let mut state = self
            .shared
            .changed
            .wait_while(state, |state| {
                let now = (
                    state.sent[other].len(),
                    state.sent[self.side].len(),
                    state.closed[other],
                );
                now == before && !state.woken[self.side] && !until.has_passed(state.now)
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.woken[self.side] = false;
        if until.has_passed(state.now) {
            Err(ErrorKind::TimedOut.into())
        } else {
            Ok(())
        }
    }

    fn yield_turn(&mut self) {}

    fn close_write(&mut self) -> io::Result<()> {
        self.lock().closed[self.side] = true;
        self.shared.changed.notify_all();
        Ok(())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.lock().closed[self.side] = true;
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_like_a_nonblocking_socket() {
        let (mut a, mut b) = Pipe::pair(4);
        let mut buffer = [0; 8];
        assert_eq!(
            b.read(&mut buffer).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        assert_eq!(a.write(b"hello").unwrap(), 4);
        assert_eq!(a.write(b"o").unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(b.read(&mut buffer).unwrap(), 4);
        a.close_write().unwrap();
        assert_eq!(b.read(&mut buffer).unwrap(), 0);
        assert_eq!(a.write(b"o").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_wait_ends_with_its_deadline() {
        let (mut a, b) = Pipe::pair(4);
        let waiting = std::thread::spawn(move || a.wait(Deadline::at(10)).unwrap_err().kind());
        b.advance(10);
        assert_eq!(waiting.join().unwrap(), ErrorKind::TimedOut);
    }
}
