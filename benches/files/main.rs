//! How fast are static files, beside nginx and the least that any server can do?
//!
//! ```text
//! cargo bench --bench files                       # thirteen cases, three rounds: about twelve minutes
//! cargo bench --bench files -- html600 nginx      # only these cases and servers (BENCH_ONLY=html600,nginx does the same)
//! BENCH_SECONDS=2 BENCH_ROUNDS=1 BENCH_CONNECTIONS=256 cargo bench --bench files
//! ```
//!
//! Every server is a process of its own: this program starts itself again with `--child=…`, and nginx below such a child.
//! The load is wrk's, over loopback; processor time and memory come from `/proc`, so it runs on Linux only.

#![allow(clippy::print_stdout)] // The table is the output.
#![allow(clippy::print_stderr)] // Progress goes beside it, so that `cargo bench > table.md` holds the table alone.

#[path = "../harness/mod.rs"]
#[allow(dead_code, reason = "some of it only the other benches need")]
mod harness;

mod app;
mod cases;
mod content;
mod nginx;
mod scripts;
mod selfcheck;
mod servers;
mod site;

use std::process::ExitCode;

use cases::Case;
use harness::options::{self, Named};
use harness::rounds::{self, Cell, Row};
use harness::table::measured;
use harness::{Program, limit, machine, table};
use servers::{Bench, Server};
use site::Site;

fn main() -> ExitCode {
    Program {
        name: "files",
        roles: &[("app", app::serve)],
        selfcheck: selfcheck::run,
        bench,
    }
    .run()
}

fn bench(arguments: &[String]) -> Result<(), String> {
    let (cases, servers) = options::choose::<Case, Server>(&options::names(arguments))?;
    let bench = Bench {
        seconds: options::number("BENCH_SECONDS", 4, 1, 600)?,
        connections: options::number("BENCH_CONNECTIONS", 64, 2, 20_000)?,
        site: Site::lay_out(&cases)?,
    };
    let rounds = options::number("BENCH_ROUNDS", 3, 1, 99)?;
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
    let rows = rounds::run("files", &cells, rounds);
    let load = format!(
        "2 threads, {} connections where nothing else is said, {rounds} rounds of {} s",
        bench.connections, bench.seconds
    );
    println!("{}", machine::describe(&load));
    println!("{}", table::render(&rows, notes(&rows, &cases)));
    Ok(())
}

fn notes(rows: &[Row], cases: &[Case]) -> Vec<String> {
    let mut notes: Vec<String> = cases
        .iter()
        .map(|case| format!("{}: {}.", case.name(), case.describe()))
        .collect();
    notes.push("Answers of 64 KiB and more are counted by their bytes, the unfinished ones at the end of a run too; MB/s are heads and bodies.".to_owned());
    if measured(rows, Server::Nginx.name()) || measured(rows, Server::NginxWithoutSendfile.name()) {
        notes.push(nginx::note());
    }
    if measured(rows, Server::Limit.name()) {
        notes.push(limit::NOTE.to_owned());
    }
    notes
}
