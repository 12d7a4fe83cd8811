//! Which addresses does a name have now?
//!
//! Names are looked up by the system, on a thread that may block, again and again: a server that has moved is found
//! without a restart, and one that cannot be found yet is no reason not to start.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::home::{self, Notify};

/// After what time a name is looked up again; what was found is used meanwhile.
const FRESH: Duration = Duration::from_secs(10);

/// After what time a name is looked up again that was not found.
const RETRY: Duration = Duration::from_secs(1);

/// How long a wait for a lookup is before it is looked whether that has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The most addresses of one name that are used.
const MOST: usize = 32;

type Lookup = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// A host and a port.
pub(crate) struct Name {
    host: String,
    port: u16,
    lookup: Lookup,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    looked: Notify,
}

#[derive(Default)]
struct State {
    addresses: Arc<[SocketAddr]>,
    /// Why the last lookup found nothing.
    failed: Option<(io::ErrorKind, String)>,
    looked_at: Option<Instant>,
    looking: bool,
}

impl Name {
    /// A name that is looked up when it is first wanted; an address is what it says.
    pub(crate) fn new(host: &str, port: u16) -> Name {
        Name::with(host, port, |host, port| {
            Ok((host, port).to_socket_addrs()?.collect())
        })
    }

    fn with(host: &str, port: u16, lookup: Lookup) -> Name {
        let mut state = State::default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            state.addresses = Arc::from([SocketAddr::new(address, port)]);
        }
        Name {
            host: host.to_owned(),
            port,
            lookup,
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                looked: Notify::new(),
            }),
        }
    }

    /// Its addresses, no older than a while unless nothing newer can be found. Waits for the first lookup, `limit` at
    /// most.
    ///
    /// # Errors
    /// `TimedOut` where that takes longer, and what the system says where nothing was ever found.
    pub(crate) fn addresses(&self, limit: Duration) -> io::Result<Arc<[SocketAddr]>> {
        let due = Instant::now() + limit;
        loop {
            let mut state = self.shared.lock();
            let age = state.looked_at.map(|at| at.elapsed());
            let fresh = match age {
                // An address, which needs no lookup.
                None => !state.addresses.is_empty(),
                Some(age) if state.failed.is_some() => age < RETRY,
                Some(age) => age < FRESH,
            };
            if !fresh && !state.looking {
                state.looking = true;
                drop(state);
                self.look_up();
                continue;
            }
            if !state.addresses.is_empty() {
                return Ok(Arc::clone(&state.addresses));
            }
            if let Some((kind, reason)) = state.failed.as_ref().filter(|_| fresh) {
                return Err(io::Error::new(*kind, reason.clone()));
            }
            drop(state);
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let reason = format!("{} was not looked up in time", self.host);
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            // A word to all is not kept for who comes a moment too late.
            self.shared.looked.wait_timeout(left.min(LOOK_AGAIN));
        }
    }

    /// The addresses that were found last, which may be none. Has them looked up again where that is due.
    pub(crate) fn known(&self) -> Arc<[SocketAddr]> {
        let mut state = self.shared.lock();
        let due = match state.looked_at {
            None => state.addresses.is_empty(),
            Some(at) => at.elapsed() >= FRESH,
        };
        let known = Arc::clone(&state.addresses);
        if due && !state.looking {
            state.looking = true;
            drop(state);
            self.look_up();
        }
        known
    }

    /// Has a thread look it up.
    fn look_up(&self) {
        let (host, port, lookup) = (self.host.clone(), self.port, self.lookup);
        let shared = Arc::clone(&self.shared);
        let begun = home::try_start_work(move || {
            let found = lookup(&host, port);
            shared.note(&host, found);
        });
        if begun.is_err() {
            let full = io::Error::new(
                io::ErrorKind::WouldBlock,
                "too much work waits for a thread that may block",
            );
            self.shared.note(&self.host, Err(full));
        }
    }
}

impl Shared {
    fn note(&self, host: &str, found: io::Result<Vec<SocketAddr>>) {
        let mut state = self.lock();
        state.looking = false;
        state.looked_at = Some(Instant::now());
        let found = found.and_then(|found| match found.is_empty() {
            true => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the name has no address",
            )),
            false => Ok(found),
        });
        match found {
            Ok(mut addresses) => {
                addresses.truncate(MOST);
                if *state.addresses != *addresses {
                    state.addresses = addresses.into();
                }
                if state.failed.take().is_some() {
                    log::info!("{host} is found again");
                }
            }
            Err(error) => {
                if state.failed.is_none() {
                    let known = match state.addresses.len() {
                        0 => "",
                        _ => "; its last addresses are used",
                    };
                    log::warn!("{host} cannot be looked up: {error}{known}");
                }
                state.failed = Some((error.kind(), format!("{host}: {error}")));
            }
        }
        drop(state);
        self.looked.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_address_needs_no_lookup() {
        for (host, want) in [("10.0.0.1", "10.0.0.1:80"), ("[::1]", "[::1]:80")] {
            let name = Name::with(host, 80, |_, _| Err(io::Error::other("asked")));
            let found = name.addresses(LONG).unwrap();
            assert_eq!(*found, [want.parse::<SocketAddr>().unwrap()]);
        }
    }

    #[test]
    fn a_name_is_looked_up_once_and_many_wait_for_that() {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let name = Arc::new(Name::with("a.test", 80, |host, port| {
            assert_eq!((host, port), ("a.test", 80));
            ASKED.fetch_add(1, Ordering::SeqCst);
            Ok(vec!["10.0.0.1:80".parse().unwrap()])
        }));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let name = Arc::clone(&name);
                std::thread::spawn(move || name.addresses(LONG).unwrap().len())
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 1);
        }
        assert_eq!(ASKED.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn what_was_not_found_is_an_error_that_names_it_and_old_addresses_live_on() {
        let name = Name::with("b.test", 80, |_, _| Err(io::Error::other("no such name")));
        let error = name.addresses(LONG).unwrap_err();
        assert_eq!(error.to_string(), "b.test: no such name");
        let empty = Name::with("c.test", 80, |_, _| Ok(Vec::new()));
        let error = empty.addresses(LONG).unwrap_err();
        assert_eq!(error.to_string(), "c.test: the name has no address");

        let known = "10.0.0.1:80".parse().unwrap();
        name.shared.note("b.test", Ok(vec![known]));
        name.shared.note("b.test", Err(io::Error::other("gone")));
        assert_eq!(*name.addresses(LONG).unwrap(), [known]);
        let many = vec![known; MOST + 1];
        name.shared.note("b.test", Ok(many));
        assert_eq!(name.addresses(LONG).unwrap().len(), MOST);
    }

    #[test]
    fn a_lookup_that_hangs_is_waited_for_no_longer_than_allowed() {
        let name = Name::with("d.test", 80, |_, _| {
            std::thread::sleep(Duration::from_millis(300));
            Ok(vec!["10.0.0.1:80".parse().unwrap()])
        });
        let error = name.addresses(Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(name.addresses(LONG).unwrap().len(), 1);
    }
}
