//! What do those want to know who watch the process?

use crate::message::metrics::{Exposition, gather};
use crate::net::home;
use crate::services::process::Process;

/// What this process and its parts do now, for Prometheus and whoever else reads its text format.
///
/// | name | meaning |
/// |---|---|
/// | `cloudgate_connections` | connections that are open |
/// | `cloudgate_connections_parked` | those of them that are idle, without a coroutine |
/// | `cloudgate_connections_max` | the most that are taken at once |
/// | `cloudgate_certificate_expiry_timestamp_seconds` | until when a certificate is valid, in seconds since 1970, by `name` and `place` |
/// | `cloudgate_certificate_problem` | 1 where a newer certificate could not be taken, else 0 |
/// | `process_*` | CPU time, memory, descriptors, threads and start of the process |
///
/// What a gateway counts is there as well. It is for a route that only the right people reach; [`Admin`](crate::Admin) has
/// it as `/metrics`.
///
/// ```
/// use cloudgate::{App, Request};
/// let app = App::new().get("/metrics", cloudgate::metrics);
/// assert!(app.call(&mut Request::get("/metrics")).text().contains("# TYPE process_threads gauge\n"));
/// ```
///
/// The figures of the process are read on a thread for blocking work. While all of these are busy and others wait for
/// them, they are left out.
pub fn metrics() -> String {
    let mut out = Exposition::default();
    if let Ok(process) = home::try_blocking(Process::read) {
        process.tell(&mut out);
    }
    gather(&mut out);
    out.to_string()
}
