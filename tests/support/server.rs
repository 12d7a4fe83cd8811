//! How does a test get a server?

use cloudgate::{Running, Server, Service, Settings};

/// A server on a free port of this machine; dropping it ends it.
///
/// # Panics
/// When it does not start.
#[track_caller]
pub fn start(service: impl Service) -> Running {
    start_with(service, |_| ())
}

/// As [`start`], with other settings.
///
/// # Panics
/// When it does not start.
#[track_caller]
pub fn start_with(service: impl Service, change: impl FnOnce(&mut Settings)) -> Running {
    let mut settings = Settings::default();
    // The first server of the process decides, and every test should see more than one worker.
    settings.workers.workers = settings.workers.workers.max(2);
    change(&mut settings);
    Server::bind("127.0.0.1:0")
        .expect("a free port")
        .with_settings(settings)
        .serve(service)
        .expect("a server that starts")
}
