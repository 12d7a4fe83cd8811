//! How much memory does a TLS connection take that rests?

use std::fmt::Write as _;

use crate::cases::Case;
use crate::client::Client;
use crate::clients::{self, Clients};
use crate::harness::options::Named;
use crate::harness::{ask, descriptors};
use crate::memory;
use crate::servers::{Bench, Server};

/// How many connections rest at a time.
const CROWDS: [u32; 2] = [2_000, 10_000];

/// Descriptors that the client and the servers need besides their connections.
const SPARE: u64 = 200;

/// The child's side: the clients.
pub(crate) fn play(arguments: &[String]) -> Result<(), String> {
    let client = Client::new(Case::Idle.terms())?;
    clients::play_over(arguments, |stream| client.over(stream))
}

/// The table of the servers.
pub(crate) fn table(bench: &Bench, servers: &[Server]) -> String {
    let mut text = "\
| idle TLS connections | server | at rest before | all idle | bytes each | after all asked at once | bytes each | peak | all answered in |
|--:|---|--:|--:|--:|--:|--:|--:|--:|
"
    .to_owned();
    for crowd in CROWDS {
        for &server in servers {
            eprintln!("tls: {crowd} idle connections, {}", server.name());
            let row = row(bench, server, crowd);
            let _ = match row {
                Ok(row) => writeln!(text, "| {crowd} | {} | {row} |", server.name()),
                Err(reason) => writeln!(text, "| {crowd} | {} | {reason} |", server.name()),
            };
        }
    }
    text.push_str("\nEach is answered once and rests. Resident memory of all processes of a server (VmRSS), in MiB; the kernel's own for sockets is not in it.\n");
    text
}

fn row(bench: &Bench, server: Server, crowd: u32) -> Result<String, String> {
    let most = descriptors::raise_limit().saturating_sub(SPARE);
    if u64::from(crowd) > most {
        return Err(format!("the limit of open descriptors allows {most}"));
    }
    let running = bench.run(Case::Idle, server, crowd)?;
    let client = Client::new(Case::Idle.terms())?;
    let mut first = client
        .connect(running.port)
        .map_err(|error| error.to_string())?;
    ask::get_over(&mut first, running.port, Case::Idle.target(), &[])?;
    drop(first);
    let ground = memory::at_rest(running.tree);
    let mut clients = Clients::start(running.port, crowd)?;
    clients.open()?;
    let idle = memory::at_rest(running.tree);
    let answered = clients.ask()?;
    let again = memory::at_rest(running.tree);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let each = |bytes: u64| bytes.saturating_sub(ground) / u64::from(crowd);
    Ok(format!(
        "{:.1} | {:.1} | **{}** | {:.1} | **{}** | {:.1} | {answered:.0?}",
        mib(ground),
        mib(idle),
        each(idle),
        mib(again),
        each(again),
        mib(running.tree.peak_memory()),
    ))
}
