//! Has somebody pressed Ctrl-C?
//!
//! A signal only sets a flag. The work looks at it between steps and returns a failure, and the
//! guards on the way out remove what was made so far.

use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;

pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub(crate) fn listen() -> Result<Interrupt, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(|error| {
                Failure::could_not(format!("cannot listen for Ctrl-C: {error}"))
            })?;
        }
        Ok(Interrupt(flag))
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.0.load(Ordering::Relaxed) {
            Err(Failure::cancelled())
        } else {
            Ok(())
        }
    }

    /// Waits for a program, and ends it when the signal comes first.
    pub(crate) fn wait(&self, child: &mut Child) -> Result<ExitStatus, Failure> {
        loop {
            if let Err(cancelled) = self.check() {
                let _ = child.kill();
                let _ = child.wait();
                return Err(cancelled);
            }
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => thread::sleep(Duration::from_millis(2)),
                Err(error) => {
                    return Err(Failure::could_not(format!(
                        "cannot wait for a program: {error}"
                    )));
                }
            }
        }
    }
}
