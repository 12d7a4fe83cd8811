//! How do all open pages of a user hear of a change at once?

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cloudgate::{
    Extension, HttpError, Receiver, RecvError, Sender, Sse, SseEvent, State, Status, channel, get,
};
use serde::Serialize;

use crate::store::User;

/// How many changes wait for one page. One that reads slower loses its stream, connects again, and asks
/// for the whole list: that is cheaper than to keep all it has missed.
const MOST_WAITING: usize = 32;

/// How many streams one user may have open.
const MOST_STREAMS: usize = 20;

/// How often a silent stream says that it is there; it also finds out by that when the page is not.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// What happened to the item of this id.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Added(i64),
    Changed(i64),
    Removed(i64),
}

/// The open streams of each user.
#[derive(Default)]
pub struct Hub(Mutex<HashMap<i64, Vec<Sender<Change>>>>);

impl Hub {
    /// Tells all streams of a user; never waits for any of them.
    pub fn publish(&self, user: i64, change: Change) {
        if let Some(streams) = self.lock().get_mut(&user) {
            streams.retain(|stream| stream.try_send(change).is_ok());
        }
    }

    /// A new stream, unless the user has too many.
    fn subscribe(&self, user: i64) -> Option<Receiver<Change>> {
        let mut all = self.lock();
        all.retain(|_, streams| {
            streams.retain(|stream| !stream.is_closed());
            !streams.is_empty()
        });
        let streams = all.entry(user).or_default();
        if streams.len() == MOST_STREAMS {
            return None;
        }
        let (sender, receiver) = channel(MOST_WAITING);
        streams.push(sender);
        Some(receiver)
    }

    // Held for moments, and nothing waits under it: such a lock is fine on a worker.
    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Vec<Sender<Change>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The changes of the user's list, from now on, until the page is closed.
#[get("/api/changes")]
fn changes(Extension(user): Extension<User>, hub: State<Hub>) -> Result<Sse, HttpError> {
    let Some(changes) = hub.subscribe(user.id) else {
        return Err(HttpError::new(
            Status::TOO_MANY_REQUESTS,
            "too many pages are open",
        ));
    };
    Ok(Sse::new(move |events| {
        loop {
            match changes.recv_timeout(KEEP_ALIVE) {
                Ok(change) => events.send(SseEvent::json(&change)?)?,
                Err(RecvError::TimedOut) => events.keep_alive()?,
                Err(_) => return Ok(()), // the hub has dropped us
            }
        }
    }))
}
