//! How fast are the five cases of the original's benchmark, beside nginx, may_minihttp and the least that any server can do?
//!
//! ```text
//! cargo bench --bench seeds                     # five cases, four servers, three rounds: about seven minutes
//! cargo bench --bench seeds -- simple nginx     # only these cases and servers (BENCH_ONLY=simple,nginx does the same)
//! BENCH_SECONDS=2 BENCH_ROUNDS=1 BENCH_CONNECTIONS=256 BENCH_PIPELINE=16 cargo bench --bench seeds
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
mod floor;
mod nginx;
mod options;
mod selfcheck;
mod servers;
mod site;

use std::process::ExitCode;

use harness::options::Named;
use harness::rounds::{self, Cell, Row};
use harness::table::measured;
use harness::{Program, limit, machine, table};
use options::Options;
use servers::Server;
use site::Site;

fn main() -> ExitCode {
    Program {
        name: "seeds",
        roles: &[("app", app::serve), ("floor", floor::serve)],
        selfcheck: selfcheck::run,
        bench,
    }
    .run()
}

fn bench(arguments: &[String]) -> Result<(), String> {
    let options = Options::read(arguments)?;
    let site = Site::lay_out()?;
    let cells: Vec<Vec<Cell<'_>>> = options
        .cases
        .iter()
        .map(|&case| {
            let cell = |&server: &Server| Cell {
                case: case.name(),
                server: server.name(),
                start: Box::new({
                    let (options, site) = (&options, &site);
                    move || server.start(case, options, site)
                }),
            };
            options.servers.iter().map(cell).collect()
        })
        .collect();
    let rows = rounds::run("seeds", &cells, options.rounds);
    let pipeline = if options.pipeline > 1 {
        format!(", {} requests pipelined", options.pipeline)
    } else {
        String::new()
    };
    let load = format!(
        "2 threads, {} connections{pipeline}, {} rounds of {} s",
        options.connections, options.rounds, options.seconds
    );
    println!("{}", machine::describe(&load));
    println!("{}", table::render(&rows, notes(&rows, &site)));
    Ok(())
}

fn notes(rows: &[Row], site: &Site) -> Vec<String> {
    let mut notes = vec![format!("The picture is `{}`.", site.png_target())];
    if measured(rows, Server::Nginx.name()) {
        notes.push(nginx::note());
    }
    if measured(rows, Server::MayMinihttp.name()) {
        notes.push("may_minihttp: from memory, no files; its runtime ties its threads to cores, which no other row does.".to_owned());
    }
    if measured(rows, Server::Limit.name()) {
        notes.push(limit::NOTE.to_owned());
    }
    notes
}
