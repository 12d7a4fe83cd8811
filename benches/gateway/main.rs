//! What does it cost to pass requests on, beside nginx, HAProxy, Caddy, and the least that any gateway can do?
//!
//! ```text
//! cargo bench --bench gateway                    # four cases, eight servers, three rounds, and connections at rest: about ten minutes
//! cargo bench --bench gateway -- hello nginx     # only these cases and servers (BENCH_ONLY=hello,nginx does the same)
//! BENCH_SECONDS=2 BENCH_ROUNDS=1 BENCH_CONNECTIONS=256 cargo bench --bench gateway
//! ```
//!
//! Behind all of them is the same small server, a process of its own whose time is not counted: bare epoll loops that
//! repeat one answer. The load is wrk's, over loopback; processor time and memory come from `/proc`, so it runs on Linux
//! only.

#![allow(clippy::print_stdout)] // The table is the output.
#![allow(clippy::print_stderr)] // Progress goes beside it, so that `cargo bench > table.md` holds the table alone.

#[path = "../harness/mod.rs"]
#[allow(dead_code, reason = "some of it only the other benches need")]
mod harness;

mod app;
mod bare;
mod cases;
#[path = "../tls/client.rs"]
#[allow(dead_code, reason = "the bench `tls` measures handshakes")]
mod client;
#[path = "../idle/clients.rs"]
#[allow(dead_code, reason = "the bench `tls` speaks TLS over them")]
mod clients;
mod foreign;
mod idle;
#[path = "../idle/memory.rs"]
mod memory;
mod nginx;
mod selfcheck;
mod servers;
mod site;

use std::process::ExitCode;

use cases::Case;
use harness::options::{self, Named};
use harness::rounds::{self, Cell, Row};
use harness::table::measured;
use harness::{Program, machine, table};
use servers::{Bench, Server};
use site::Site;

/// What each connection at rest has asked for.
const TARGET: &str = "/v1/hello";

fn main() -> ExitCode {
    Program {
        name: "gateway",
        roles: &[
            ("app", app::serve),
            ("bare", bare::serve),
            ("clients", clients::play),
        ],
        selfcheck: selfcheck::run,
        bench,
    }
    .run()
}

fn bench(arguments: &[String]) -> Result<(), String> {
    let (mut cases, servers) = options::choose::<Case, Server>(&options::names(arguments))?;
    let bench = Bench {
        seconds: options::number("BENCH_SECONDS", 5, 1, 600)?,
        connections: options::number("BENCH_CONNECTIONS", 100, 2, 20_000)?,
        site: Site::lay_out()?,
    };
    let rounds = options::number("BENCH_ROUNDS", 3, 1, 99)?;
    let at_rest = cases.contains(&Case::Idle);
    cases.retain(|&case| case != Case::Idle);
    let cells: Vec<Vec<Cell<'_>>> = cases
        .iter()
        .map(|&case| {
            let cell = |&server: &Server| Cell {
                case: case.name(),
                server: server.name(),
                start: Box::new({
                    let bench = &bench;
                    move || bench.start(case, server)
                }),
            };
            servers
                .iter()
                .filter(|server| server.takes_part_in(case))
                .map(cell)
                .collect()
        })
        .collect();
    let rows = rounds::run("gateway", &cells, rounds);
    let load = format!(
        "2 threads (4 over TLS), {} connections, {rounds} rounds of {} s",
        bench.connections, bench.seconds
    );
    println!("{}", machine::describe(&load));
    if !rows.is_empty() {
        println!("{}", table::render(&rows, notes(&rows, &cases)));
    }
    if at_rest {
        println!("{}", idle::table(&bench, &servers));
    }
    Ok(())
}

fn notes(rows: &[Row], cases: &[Case]) -> Vec<String> {
    let mut notes: Vec<String> = cases
        .iter()
        .map(|case| format!("{}: {}.", case.name(), case.describe()))
        .collect();
    for &case in cases {
        if let Some(note) = beside_direct(rows, case) {
            notes.push(note);
        }
    }
    notes.push("direct: the server behind them, asked without a gateway.".to_owned());
    if measured(rows, Server::Nginx.name()) || measured(rows, Server::NginxGuide.name()) {
        notes.push(nginx::NOTE.to_owned());
    }
    for (server, note) in foreign::NOTES {
        if measured(rows, server.name()) {
            notes.push(note.to_owned());
        }
    }
    if measured(rows, Server::Limit.name()) {
        notes.push(bare::NOTE.to_owned());
    }
    notes
}

/// What is left of the requests per second by way of each gateway.
fn beside_direct(rows: &[Row], case: Case) -> Option<String> {
    let direct = table::per_second(rows, case.name(), Server::Direct.name())?;
    let shares: Vec<String> = Server::ALL
        .iter()
        .filter(|&&server| server != Server::Direct)
        .filter_map(|server| {
            let own = table::per_second(rows, case.name(), server.name())?;
            Some(format!("{} {:.2}", server.name(), own / direct))
        })
        .collect();
    let published = match case {
        Case::Hello => {
            " (zolly publishes 0.54 for itself and 0.38 for KrakenD, on another machine)"
        }
        _ => "",
    };
    Some(format!(
        "{}: requests/s ÷ direct: {}{published}.",
        case.name(),
        shares.join(", ")
    ))
}
