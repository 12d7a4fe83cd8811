//! How does one service take the place of another while requests come?

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::message::{Request, Response, Service, StartError};
use crate::net::home;

/// A service that can be exchanged. A request that has begun ends with the one that it began with.
pub(crate) struct Swap<S> {
    /// Those of each worker, each behind a reference count of its own: a request touches nothing that other workers do.
    workers: Box<[Place<S>]>,
}

#[repr(align(128))]
struct Place<S>(Mutex<Arc<Own<S>>>);

/// The service as one worker holds it.
struct Own<S>(Arc<S>);

impl<S> Swap<S> {
    pub(crate) fn new(service: S) -> Swap<S> {
        let service = Arc::new(service);
        // The workers may start later than this is made. With more of them than was expected some share a place.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let place = || Place(Mutex::new(Arc::new(Own(Arc::clone(&service)))));
        Swap {
            workers: (0..home::workers().max(cores)).map(|_| place()).collect(),
        }
    }

    /// Has requests answered by this one from now on.
    pub(crate) fn set(&self, service: S) {
        let service = Arc::new(service);
        for place in &self.workers {
            let next = Arc::new(Own(Arc::clone(&service)));
            let last = std::mem::replace(&mut *place.lock(), next);
            // Not under the lock: it may be the end of much.
            drop(last);
        }
    }

    fn own(&self) -> Arc<Own<S>> {
        let worker = home::current().unwrap_or_default();
        Arc::clone(&self.workers[worker % self.workers.len()].lock())
    }
}

impl<S> Place<S> {
    fn lock(&self) -> MutexGuard<'_, Arc<Own<S>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Service> Service for Swap<S> {
    fn call(&self, request: &mut Request<'_>) -> Response {
        self.own().0.call(request)
    }

    fn start(&self) -> Result<(), StartError> {
        self.own().0.start()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(word: &'static str) -> Box<dyn Fn(&mut Request<'_>) -> Response + Send + Sync> {
        Box::new(move |_| Response::html(word))
    }

    #[test]
    fn a_request_is_answered_by_the_one_that_is_there_when_it_begins() {
        let swap = Arc::new(Swap::new(says("a")));
        let ask = |swap: &Swap<_>| swap.call(&mut Request::get("/")).text();
        assert_eq!(ask(&swap), "a");
        swap.set(says("b"));
        assert_eq!(ask(&swap), "b");
        // One that exchanges it while it answers ends as it began.
        let inner = Arc::clone(&swap);
        let changing: Box<dyn Fn(&mut Request<'_>) -> Response + Send + Sync> =
            Box::new(move |_| {
                inner.set(says("d"));
                Response::html("c")
            });
        swap.set(changing);
        assert_eq!(ask(&swap), "c");
        assert_eq!(ask(&swap), "d");
    }

    #[test]
    fn what_was_exchanged_is_let_go() {
        let held = Arc::new(());
        let theirs = Arc::clone(&held);
        let first: Box<dyn Fn(&mut Request<'_>) -> Response + Send + Sync> = Box::new(move |_| {
            let _ = &theirs;
            Response::html("a")
        });
        let swap = Swap::new(first);
        assert_eq!(Arc::strong_count(&held), 2);
        swap.set(says("b"));
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
