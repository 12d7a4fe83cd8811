//! How much memory does a gateway take for connections that rest?

use std::fmt::Write as _;

use crate::cases::Case;
use crate::clients::Clients;
use crate::harness::options::Named;
use crate::harness::{ask, descriptors};
use crate::memory;
use crate::servers::{Bench, Row, Server};

/// How many connections rest.
const CROWD: u32 = 1_000;

/// The table of the gateways.
pub(crate) fn table(bench: &Bench, servers: &[Server]) -> String {
    descriptors::raise_limit();
    let mut text = format!(
        "\
| gateway | at rest before | {CROWD} connections idle | after all asked at once | peak | all answered in |
|---|--:|--:|--:|--:|--:|
"
    );
    for &server in servers {
        if matches!(server, Server::Direct | Server::Limit) {
            continue;
        }
        eprintln!("gateway: {CROWD} idle connections, {}", server.name());
        let row = row(bench, server).unwrap_or_else(|reason| format!("{reason} | | | |"));
        let _ = writeln!(text, "| {} | {row} |", server.name());
    }
    text.push_str("\nEach connection is answered once and rests. Resident memory of all processes of a gateway (VmRSS), in MiB; the kernel's own for sockets is not in it.\n");
    text
}

fn row(bench: &Bench, server: Server) -> Result<String, String> {
    let Row { running, behind } = bench.run(Case::Idle, server, CROWD)?;
    ask::get(running.port, Case::Idle.target(), &[])?;
    let ground = memory::at_rest(running.tree);
    let mut clients = Clients::start(running.port, CROWD)?;
    clients.open()?;
    let idle = memory::at_rest(running.tree);
    let answered = clients.ask()?;
    let again = memory::at_rest(running.tree);
    let peak = running.tree.peak_memory();
    drop(behind);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Ok(format!(
        "{:.1} | **{:.1}** | {:.1} | {:.1} | {answered:.0?}",
        mib(ground),
        mib(idle),
        mib(again),
        mib(peak),
    ))
}
