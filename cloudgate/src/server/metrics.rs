//! What does a program that watches this one want to know of its servers?

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::UNIX_EPOCH;

use super::Shared;

/// Those of this process that run.
static SERVERS: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

/// Notes a server that runs, and forgets those that have ended.
pub(super) fn note(shared: &Arc<Shared>) {
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    servers.retain(|server| server.strong_count() > 0);
    servers.push(Arc::downgrade(shared));
}

/// What the servers of this process do now, for Prometheus and whoever else reads its text format.
///
/// | name | meaning |
/// |---|---|
/// | `cloudgate_connections` | connections that are open |
/// | `cloudgate_connections_parked` | those of them that are idle, without a coroutine |
/// | `cloudgate_connections_max` | the most that are taken at once |
/// | `cloudgate_certificate_expiry_timestamp_seconds` | until when a certificate is valid, in seconds since 1970, by `name` and `place` |
/// | `cloudgate_certificate_problem` | 1 where a newer certificate could not be taken, else 0 |
///
/// It is for a route that only the right people reach:
///
/// ```
/// use cloudgate::{App, Request};
/// let app = App::new().get("/metrics", cloudgate::metrics);
/// assert!(app.call(&mut Request::get("/metrics")).text().contains("# TYPE cloudgate_connections gauge\n"));
/// ```
pub fn metrics() -> String {
    let servers: Vec<_> = {
        let servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
        servers.iter().filter_map(Weak::upgrade).collect()
    };
    let sum = |count: fn(&Shared) -> usize| servers.iter().map(|server| count(server)).sum();
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: usize| {
        head(&mut text, name, help);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name} {value}");
    };
    gauge(
        "cloudgate_connections",
        "Connections that are open.",
        sum(|server| server.seats.taken()),
    );
    gauge(
        "cloudgate_connections_parked",
        "Connections that are idle, without a coroutine.",
        sum(|server| server.lot.len()),
    );
    gauge(
        "cloudgate_connections_max",
        "The most connections that are taken at once.",
        sum(|server| server.seats.capacity()),
    );
    let mut certificates: Vec<_> = servers
        .iter()
        .flat_map(|server| &server.tls)
        .flat_map(|live| live.certificates())
        .map(|status| {
            let said = &status.certificate;
            let name = said.names().first().map_or(said.subject(), String::as_str);
            let labels = format!(
                "name=\"{}\",place=\"{}\"",
                escaped(name),
                escaped(&status.place)
            );
            let until = said.valid_until().duration_since(UNIX_EPOCH);
            let until = until.map_or(0, |until| until.as_secs());
            (labels, until, u8::from(status.problem.is_some()))
        })
        .collect();
    if certificates.is_empty() {
        return text;
    }
    // The same one may be shown on several ports.
    certificates.sort();
    certificates.dedup_by(|later, first| later.0 == first.0);
    let name = "cloudgate_certificate_expiry_timestamp_seconds";
    head(&mut text, name, "Until when a certificate is valid.");
    for (labels, until, _) in &certificates {
        let _ = writeln!(text, "{name}{{{labels}}} {until}");
    }
    let name = "cloudgate_certificate_problem";
    head(
        &mut text,
        name,
        "Whether a newer certificate could not be taken.",
    );
    for (labels, _, problem) in &certificates {
        let _ = writeln!(text, "{name}{{{labels}}} {problem}");
    }
    text
}

fn head(text: &mut String, name: &str, help: &str) {
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
}

/// A label's value, in which three characters cannot stand as they are.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
