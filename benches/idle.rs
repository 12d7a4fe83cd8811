//! How much resident memory does an idle kept-alive connection take, for cloudgate and for nginx?
//!
//! ```text
//! cargo bench --bench idle                            # 10,000 connections
//! IDLE_CONNECTIONS=19000 cargo bench --bench idle     # as many as the descriptor limit allows
//! ```
//!
//! Each server is a process of its own, and so is the client. Every connection is answered once and
//! rests; then all of them ask at the same time, and every answer is counted.

#![allow(clippy::print_stdout)] // The table is the output.
#![allow(clippy::print_stderr)] // Progress goes beside it.
// What the bench `seeds` has for its own use is not needed here.
#![allow(dead_code, unused_imports)]

#[path = "harness/mod.rs"]
mod harness;

#[path = "seeds/app.rs"]
mod app;
#[path = "seeds/cases.rs"]
mod cases;
#[path = "idle/clients.rs"]
mod clients;
#[path = "idle/memory.rs"]
mod memory;
#[path = "seeds/nginx.rs"]
mod nginx;
#[path = "seeds/site.rs"]
mod site;

use std::process::ExitCode;
use std::time::Duration;

use clients::Clients;
use harness::child::Running;
use harness::{Program, ask, descriptors};
use site::Site;

/// Descriptors that the client and the servers need besides their connections.
const SPARE: u64 = 200;

/// A server set up for so few connections shows what is set aside at the start for more.
const FEW: u32 = 64;

fn main() -> ExitCode {
    Program {
        name: "idle",
        roles: &[("app", app::serve), ("clients", clients::play)],
        selfcheck: || (),
        bench,
    }
    .run()
}

/// What was measured of one server, in bytes.
struct Row {
    name: &'static str,
    /// Set up for few connections, and for all of them.
    few: u64,
    ground: u64,
    idle: u64,
    again: u64,
    peak: u64,
    woken: Duration,
}

fn bench(_arguments: &[String]) -> Result<(), String> {
    let connections = connections()?;
    let site = Site::lay_out()?;
    let mut rows = Vec::new();
    for (name, start) in [
        (
            "cloudgate",
            cloudgate as fn(&Site, u32) -> Result<Running, String>,
        ),
        ("nginx", nginx::start),
    ] {
        match measure(name, start, connections, &site) {
            Ok(row) => rows.push(row),
            Err(reason) => eprintln!("{name}: {reason}"),
        }
    }
    if rows.is_empty() {
        return Err("nothing was measured".to_owned());
    }
    println!("{}", table(&rows, connections));
    Ok(())
}

fn cloudgate(site: &Site, _connections: u32) -> Result<Running, String> {
    Running::start("app", &[], site.dir())
}

fn measure(
    name: &'static str,
    start: fn(&Site, u32) -> Result<Running, String>,
    connections: u32,
    site: &Site,
) -> Result<Row, String> {
    let answered_once = |connections| -> Result<(Running, u64), String> {
        let server = start(site, connections)?;
        ask::get(server.port, TARGET, &[])?;
        let memory = memory::at_rest(server.tree);
        Ok((server, memory))
    };
    // nginx sets its tables of connections aside at the start, one a worker.
    let (_, few) = answered_once(FEW)?;
    let (server, ground) = answered_once(connections)?;
    eprintln!("{name}: {connections} connections");
    let mut clients = Clients::start(server.port, connections)?;
    clients.open()?;
    let idle = memory::at_rest(server.tree);
    let woken = clients.ask()?;
    let again = memory::at_rest(server.tree);
    Ok(Row {
        name,
        few,
        ground,
        idle,
        again,
        peak: server.tree.peak_memory(),
        woken,
    })
}

/// What every connection asks for.
const TARGET: &str = "/api/tests/simple";

fn connections() -> Result<u32, String> {
    let most = descriptors::raise_limit().saturating_sub(SPARE);
    let wanted = match std::env::var("IDLE_CONNECTIONS") {
        Err(_) => most.min(10_000),
        Ok(text) => text
            .parse()
            .map_err(|_| format!("IDLE_CONNECTIONS is {text:?}; give a number"))?,
    };
    if wanted == 0 || wanted > most {
        return Err(format!(
            "{wanted} connections: the limit of open descriptors allows 1 to {most}"
        ));
    }
    u32::try_from(wanted).map_err(|_| format!("{wanted} connections are too many"))
}

fn table(rows: &[Row], connections: u32) -> String {
    let mut text = format!(
        "{connections} kept-alive connections, each answered once; then all ask at the same time.\n\n\
         | server | at rest | all idle | bytes each | all idle again after all asked | bytes each | set aside for each at the start | peak | all answered in |\n\
         |---|---|---|---|---|---|---|---|---|\n"
    );
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    for row in rows {
        let each = |from: u64, to: u64| to.saturating_sub(from) / u64::from(connections);
        text.push_str(&format!(
            "| {} | {} | {} | **{}** | {} | **{}** | {} | {} | {:.0?} |\n",
            row.name,
            mib(row.ground),
            mib(row.idle),
            each(row.ground, row.idle),
            mib(row.again),
            each(row.ground, row.again),
            each(row.few, row.ground),
            mib(row.peak),
            row.woken
        ));
    }
    text.push_str(
        "\nResident memory of all processes of a server (VmRSS); the kernel's own memory for sockets is not in it.\n",
    );
    text
}
