//! What does a program that watches this one want to know of its servers?

use std::sync::{Arc, Weak};
use std::time::UNIX_EPOCH;

use super::Shared;
use crate::message::metrics::{Collect, Exposition, Kind, register};

/// Notes a server that runs, until it has ended.
pub(super) fn note(shared: &Arc<Shared>) {
    let weak = Arc::downgrade(shared);
    register(weak as Weak<dyn Collect>);
}

impl Collect for Shared {
    fn collect(&self, out: &mut Exposition) {
        let mut gauge = |name, help, value: usize| {
            out.family(name, Kind::Gauge, help)
                .sample(&[], value as f64);
        };
        gauge(
            "cloudgate_connections",
            "Connections that are open.",
            self.seats.taken(),
        );
        gauge(
            "cloudgate_connections_parked",
            "Connections that are idle, without a coroutine.",
            self.lot.len(),
        );
        gauge(
            "cloudgate_connections_max",
            "The most connections that are taken at once.",
            self.seats.capacity(),
        );
        for status in self.tls.iter().flat_map(|live| live.certificates()) {
            let said = &status.certificate;
            let name = said.names().first().map_or(said.subject(), String::as_str);
            let labels = [("name", name), ("place", &status.place)];
            let until = said.valid_until().duration_since(UNIX_EPOCH);
            // The same one may be shown on several ports.
            out.family(
                "cloudgate_certificate_expiry_timestamp_seconds",
                Kind::Lowest,
                "Until when a certificate is valid.",
            )
            .sample(&labels, until.map_or(0.0, |until| until.as_secs() as f64));
            out.family(
                "cloudgate_certificate_problem",
                Kind::Highest,
                "Whether a newer certificate could not be taken.",
            )
            .sample(&labels, f64::from(u8::from(status.problem.is_some())));
        }
    }
}
