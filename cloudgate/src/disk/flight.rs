//! How is a thing fetched once, however many ask for it at the same time?

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{ByForm, Key};
use crate::net::home::Parker;

/// One piece of work, and who waits for it. No thread is held up by a coroutine that waits.
pub(super) struct Flight<T> {
    begun: AtomicBool,
    state: Mutex<State<T>>,
}

enum State<T> {
    Aloft(Vec<Parker>),
    Landed(T),
}

impl<T: Clone> Flight<T> {
    fn new() -> Flight<T> {
        Flight {
            begun: AtomicBool::new(false),
            state: Mutex::new(State::Aloft(Vec::new())),
        }
    }

    /// Whether the caller is the one who has to do the work, and then [`Flights::land`].
    pub(super) fn begin(&self) -> bool {
        !self.begun.swap(true, Ordering::SeqCst)
    }

    /// Waits for what comes of it.
    pub(super) fn wait(&self) -> T {
        let parker = Parker::new();
        match &mut *self.state() {
            State::Landed(landing) => return landing.clone(),
            State::Aloft(waiting) => waiting.push(parker.clone()),
        }
        loop {
            parker.park();
            if let State::Landed(landing) = &*self.state() {
                return landing.clone();
            }
        }
    }

    fn land(&self, landing: T) {
        let before = std::mem::replace(&mut *self.state(), State::Landed(landing));
        if let State::Aloft(waiting) = before {
            for parker in waiting {
                parker.unpark();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All the work that is being done, by key.
pub(super) struct Flights<T>(Mutex<ByForm<Arc<Flight<T>>>>);

impl<T: Clone> Flights<T> {
    pub(super) fn new() -> Flights<T> {
        Flights(Mutex::default())
    }

    /// The flight for this key, and whether it is a new one: then the caller has to see that it begins.
    pub(super) fn join(&self, key: Key<'_>) -> (Arc<Flight<T>>, bool) {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let flights = &mut flights[key.place()];
        if let Some(flight) = flights.get(key.name) {
            return (Arc::clone(flight), false);
        }
        let flight = Arc::new(Flight::new());
        flights.insert(key.name.into(), Arc::clone(&flight));
        (flight, true)
    }

    /// Ends the flight: whoever comes later begins another.
    pub(super) fn land(&self, key: Key<'_>, flight: &Flight<T>, landing: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[key.place()].remove(key.name);
        flight.land(landing);
    }
}
