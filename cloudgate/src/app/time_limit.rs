//! How long may a handler take?

use std::time::Duration;

use http::StatusCode;

use crate::message::{Middleware, Next, Request, Response};
use crate::net::home::{self, Late};

/// A limit to the time that the rest of the way may take to answer a request. Past it the client gets
/// `503 Service Unavailable` (RFC 9110 section 15.6.4).
///
/// ```
/// use cloudgate::{App, TimeLimit};
/// use std::time::Duration;
///
/// let app = App::new()
///     .get("/report", || "a long one")
///     .wrap(TimeLimit::new(Duration::from_secs(5)));
/// ```
///
/// A handler is a plain function, which nobody can stop while it computes. What can end is each of
/// its waits in cloudgate's own calls: reading the request's body, [`sleep`](crate::sleep),
/// [`blocking`](crate::blocking()), [`Notify`](crate::Notify), [`channel`](crate::channel()). A wait that
/// finds itself late unwinds the handler's stack as a panic would, so destructors run, but nothing is
/// logged as a panic. So:
///
/// - A handler that computes without a wait is not interrupted; the log names one that holds its
///   worker for over 100 ms. If it ends late without another wait, its answer is sent all the same.
/// - What [`blocking`](crate::blocking()) has begun runs to its end on its thread, and its result is
///   dropped; so does the handler of a `#[route(…, blocking)]`. What still waits for a thread is not begun.
/// - Waits in destructors are not cut while the stack is unwound: the answer waits for them.
/// - A [`std::sync::Mutex`] that is held in such a wait is poisoned, as by a panic. A
///   [`std::panic::catch_unwind`] on the way catches the unwinding; the next wait unwinds again.
/// - The limit is for the handler, not for what it returns: a [stream](crate::Response::stream) may
///   write for as long as its reader is fast enough.
/// - Of several limits around each other the earliest counts.
///
/// The connection can be used on if all of the request's body was read, or what was left of it has
/// arrived and is not much; else it is closed behind the answer.
///
/// On a thread that is no worker, as in a test by [`App::call`](crate::App::call), there is no limit.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit {
    limit: Duration,
}

impl TimeLimit {
    /// A limit of this length, with a precision of about a millisecond; zero for none.
    pub const fn new(limit: Duration) -> TimeLimit {
        TimeLimit { limit }
    }
}

impl Middleware for TimeLimit {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        if self.limit.is_zero() {
            return next.run(request);
        }
        home::within(self.limit, || next.run(request)).unwrap_or_else(|Late| {
            log::warn!(
                "{} {} had no answer within {:?}: the client gets a 503",
                request.method(),
                request.path(),
                self.limit
            );
            Response::error(StatusCode::SERVICE_UNAVAILABLE)
        })
    }
}
