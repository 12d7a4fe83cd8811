//! What do those want to know who watch the process?

use crate::message::metrics::{Exposition, gather};
use crate::net::home::{self, Busy};
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
/// What a gateway counts is there as well; the guide's chapter "Operating a gateway" lists all of it. It is for a route that only the right people reach; [`Admin`](crate::Admin) has
/// it as `/metrics`.
///
/// ```
/// use cloudgate::{App, Request};
/// let app = App::new().get("/metrics", cloudgate::metrics);
/// assert!(app.call(&mut Request::get("/metrics")).text().contains("# TYPE process_threads gauge\n"));
/// ```
///
/// All of it is put together on a thread for blocking work. While these are busy and their line is full, the figures of the process are
/// left out.
pub fn metrics() -> String {
    // The rest of it as well: a thousand services are 2 MB of text, which take 10 ms.
    home::try_blocking(|| text(Process::read())).unwrap_or_else(|Busy| text(Process::default()))
}

fn text(process: Process) -> String {
    let mut out = Exposition::default();
    process.tell(&mut out);
    gather(&mut out);
    out.to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::message::{Request, Response};
    use crate::net::tls::identity::Identity;
    use crate::server::Server;
    use crate::services::gateway::stats::{ReloadStats, ServerStats, ServiceStats};

    const GUIDE: &str = include_str!("../../../docs/guide/17-operating-a-gateway.md");

    /// Name, kind and names of the labels.
    type Row = (String, String, Vec<String>);

    fn told(text: &str) -> BTreeSet<Row> {
        let mut rows = BTreeSet::new();
        let (mut name, mut kind) = (String::new(), String::new());
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("# TYPE ") {
                let (first, second) = head.split_once(' ').unwrap();
                (name, kind) = (first.to_owned(), second.to_owned());
            } else if !line.starts_with('#') {
                let labels = line.split_once('{').map_or("", |(_, labels)| labels);
                let labels = labels
                    .split("=\"")
                    .map(|piece| piece.rsplit(['"', ',']).next().unwrap())
                    .filter(|label| !label.contains('}') && !label.is_empty() && *label != "le")
                    .map(str::to_owned);
                rows.insert((name.clone(), kind.clone(), labels.collect()));
            }
        }
        rows
    }

    fn listed() -> BTreeSet<Row> {
        let rows = GUIDE.lines().filter_map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let name = cells.get(1)?.trim_matches('`');
            let is_family = name.starts_with("cloudgate_") || name.starts_with("process_");
            let labels = cells
                .get(3)?
                .split(',')
                .map(|label| label.trim().trim_matches('`'));
            let labels = labels.filter(|label| !label.is_empty()).map(str::to_owned);
            is_family.then(|| (name.to_owned(), cells[2].to_owned(), labels.collect()))
        });
        rows.collect()
    }

    #[test]
    fn the_guide_lists_every_family_with_its_labels() {
        home::start_for_tests();
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let _server = Server::bind_tls("127.0.0.1:0", identity)
            .unwrap()
            .serve(|_: &mut Request<'_>| Response::html("hello"))
            .unwrap();
        let _service = ServiceStats::new("a");
        let _reloads = ReloadStats::new();
        let _upstream = ServerStats::new("a", "http://127.0.0.1:3001");
        let ours = |row: &Row| row.0.starts_with("cloudgate_") || row.0.starts_with("process_");
        let told: BTreeSet<_> = told(&metrics()).into_iter().filter(ours).collect();
        assert!(told.len() > 20, "{told:?}");
        assert_eq!(told, listed());
    }
}
