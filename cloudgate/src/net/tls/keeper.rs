//! Who looks after the certificates of a server that runs?

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use super::live::Live;

/// How often it is looked whether files have changed, and certificates are about to expire.
const EVERY: Duration = Duration::from_secs(1);

/// A thread that looks after certificates until it is dropped.
pub(crate) struct Keeper(Arc<End>);

#[derive(Default)]
struct End {
    reached: Mutex<bool>,
    told: Condvar,
}

impl Keeper {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system gives none.
    pub(crate) fn start(lives: Vec<Arc<Live>>) -> io::Result<Keeper> {
        let end = Arc::new(End::default());
        let seen = Arc::clone(&end);
        thread::Builder::new()
            .name("cloudgate-certificates".to_owned())
            .spawn(move || {
                let mut ended = seen.reached.lock().unwrap_or_else(PoisonError::into_inner);
                while !*ended {
                    drop(ended);
                    let now = SystemTime::now();
                    lives.iter().for_each(|live| live.look(now));
                    ended = seen.reached.lock().unwrap_or_else(PoisonError::into_inner);
                    if !*ended {
                        let waited = seen.told.wait_timeout(ended, EVERY);
                        ended = waited.unwrap_or_else(PoisonError::into_inner).0;
                    }
                }
            })?;
        Ok(Keeper(end))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *self
            .0
            .reached
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.0.told.notify_all();
    }
}
