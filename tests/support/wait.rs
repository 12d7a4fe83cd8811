//! How does a test wait for something, and not for ever?

use std::time::{Duration, Instant};

/// How long a test waits for anything before it fails: long, for a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Returns as soon as `condition` holds.
///
/// # Panics
/// When it does not hold within [`LIMIT`]; `what` says what was awaited.
#[track_caller]
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LIMIT, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
