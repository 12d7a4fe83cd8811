//! How does a coroutine wait for a descriptor without leaving its worker?

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use may::io::{CoIo, WaitIo};

use super::agent::Waker;
use super::limit::Place;
use super::{check_home, watchdog, workers};

/// What a wait reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Events(usize);

impl Events {
    /// Bytes or the end of the stream can be read.
    pub(crate) fn readable(self) -> bool {
        self.0 & (0x1 | 0x8 | 0x10 | 0x2000) != 0
    }

    /// The peer has ended its side, or the connection failed: reads go on to the very end.
    pub(crate) fn hung_up(self) -> bool {
        self.0 & (0x8 | 0x10 | 0x2000) != 0
    }
}

/// A nonblocking descriptor that a coroutine of one worker waits on.
pub(crate) struct Socket<T: AsRawFd> {
    /// `None` only while it is taken apart.
    io: Option<CoIo<T>>,
    worker: usize,
}

impl<T: AsRawFd> Socket<T> {
    /// Registers `io` with the poller of `worker`. Its number must be congruent to the worker
    /// ([`move_to`]): may polls it on the worker that the number says.
    ///
    /// # Errors
    /// When the system's poller refuses it.
    pub(crate) fn at_home(worker: usize, io: T) -> io::Result<Socket<T>> {
        debug_assert_eq!(
            io.as_raw_fd() as usize % workers(),
            worker,
            "moved to its worker first"
        );
        let io = CoIo::new(io).map_err(io::Error::from)?;
        Ok(Socket {
            io: Some(io),
            worker,
        })
    }

    /// The descriptor, for nonblocking reads and writes.
    pub(crate) fn get(&self) -> &T {
        self.io().inner()
    }

    /// The descriptor, taken off the poller.
    pub(crate) fn into_inner(mut self) -> T {
        self.take().expect("it is taken once, by value")
    }

    /// Waits for the next event or wake-up; returns at once if one came since the last wait, or the
    /// caller's limit has passed. The caller unwinds itself then (`home::unwind_if_late`): it has to
    /// note first what was reported, for no event comes twice.
    pub(crate) fn wait(&self) -> Events {
        let post = watchdog::post(self.worker);
        let (paused, may_wait) = post.pause(|| Place::AtSocket(self.waker()));
        let mut events = 0;
        if may_wait {
            events = self.io().wait_io();
            check_home(self.worker);
        }
        let _ = post.resume(paused);
        Events(events)
    }

    /// What was reported since the last wait, without waiting: as of when this worker last asked the system.
    #[allow(
        deprecated,
        reason = "it does more than may needs of it: it says what it forgets"
    )]
    pub(crate) fn so_far(&self) -> Events {
        Events(self.io().reset_io())
    }

    /// A handle that wakes the waiting coroutine from any thread.
    pub(crate) fn waker(&self) -> Waker {
        Waker::new(self.worker, self.io().waker())
    }
}

impl<T: AsRawFd> Socket<T> {
    fn io(&self) -> &CoIo<T> {
        self.io
            .as_ref()
            .expect("it is there until it is taken by value")
    }

    /// Takes the descriptor off the poller, and only then lets go of it.
    fn take(&mut self) -> Option<T> {
        self.io.take().map(CoIo::into_inner)
    }
}

impl<T: AsRawFd> Drop for Socket<T> {
    // may would close the descriptor first and then take its number off the poller, which by then
    // may be the number of another thread's new descriptor: that one would never hear an event.
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// How many numbers that do not fit are tried for each worker before a descriptor stays where it is.
const TRIES: usize = 8;

/// Gives the descriptor a number that is congruent to `worker` modulo `workers`.
///
/// # Errors
/// When the process has no such number left.
pub(crate) fn move_to(fd: OwnedFd, worker: usize, workers: usize) -> io::Result<OwnedFd> {
    step(fd, worker, workers, usize::MAX).map_err(|_| rustix::io::Errno::MFILE.into())
}

/// As [`move_to`], as far as that is cheap.
///
/// # Errors
/// Gives the descriptor back, with whatever number, when none that fits is near: where thousands are
/// taken, the free ones may all belong to other workers.
pub(crate) fn try_move_to(fd: OwnedFd, worker: usize, workers: usize) -> Result<OwnedFd, OwnedFd> {
    step(fd, worker, workers, TRIES * workers)
}

fn step(mut fd: OwnedFd, worker: usize, workers: usize, most: usize) -> Result<OwnedFd, OwnedFd> {
    // Numbers that do not fit are held until the end, or the system would hand them out again.
    let mut unfit = Vec::new();
    while fd.as_raw_fd() as usize % workers != worker {
        if unfit.len() == most {
            return Err(fd);
        }
        match rustix::io::fcntl_dupfd_cloexec(fd.as_fd(), fd.as_raw_fd() + 1) {
            Ok(next) => unfit.push(std::mem::replace(&mut fd, next)),
            Err(_) => return Err(fd),
        }
    }
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_moves_to_the_number_of_its_worker() {
        for worker in 0..3 {
            let file = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
            assert_eq!(
                move_to(file, worker, 3).unwrap().as_raw_fd() as usize % 3,
                worker
            );
        }
    }

    #[test]
    fn a_descriptor_without_a_fitting_number_nearby_is_given_back() {
        // With so many workers only the number in front of it would fit.
        let file = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let number = file.as_raw_fd() as usize;
        let back = step(file, number - 1, 1 << 40, TRIES).unwrap_err();
        assert!(back.as_raw_fd() as usize >= number + TRIES);
    }
}
