//! How fast is TLS, beside nginx with the same keys, protocols and ciphers?
//!
//! ```text
//! cargo bench --bench tls                       # ten cases, three rounds, and connections at rest: about nine minutes
//! cargo bench --bench tls -- full-tls13 idle    # only these cases (BENCH_ONLY=full-tls13,idle does the same)
//! BENCH_SECONDS=2 BENCH_ROUNDS=1 BENCH_CONNECTIONS=256 BENCH_HANDSHAKES=32 cargo bench --bench tls
//! ```
//!
//! Requests come from wrk, handshakes from a client of this program, all of them with AES-128-GCM and X25519: before a
//! cell is measured, a client and the server say what they have agreed on. Every server is a process of its own, and so
//! is the client; processor time and memory come from `/proc`, so it runs on Linux only.

#![allow(clippy::print_stdout)] // The table is the output.
#![allow(clippy::print_stderr)] // Progress goes beside it, so that `cargo bench > table.md` holds the table alone.

#[path = "../harness/mod.rs"]
#[allow(dead_code, reason = "some of it only the other benches need")]
mod harness;

mod app;
mod cases;
mod client;
#[path = "../idle/clients.rs"]
#[allow(dead_code, reason = "the bench `idle` speaks no TLS")]
mod clients;
#[path = "../files/content.rs"]
#[allow(dead_code, reason = "the bench `files` has more of them")]
mod content;
mod idle;
#[path = "../idle/memory.rs"]
mod memory;
mod nginx;
mod selfcheck;
mod servers;
mod site;

use std::cell::RefCell;
use std::process::ExitCode;

use cases::Case;
use harness::options::{self, Named};
use harness::rounds::{self, Cell, Row};
use harness::table::measured;
use harness::{Program, machine, table};
use servers::{Bench, Server};
use site::Site;

/// What each connection at rest has asked for.
const TARGET: &str = "/simple";

fn main() -> ExitCode {
    Program {
        name: "tls",
        roles: &[
            ("app", app::serve),
            ("handshakes", client::play),
            ("clients", idle::play),
        ],
        selfcheck: selfcheck::run,
        bench,
    }
    .run()
}

fn bench(arguments: &[String]) -> Result<(), String> {
    let (mut cases, servers) = options::choose::<Case, Server>(&options::names(arguments))?;
    let bench = Bench {
        seconds: options::number("BENCH_SECONDS", 4, 1, 600)?,
        connections: options::number("BENCH_CONNECTIONS", 64, 2, 20_000)?,
        handshakes: options::number("BENCH_HANDSHAKES", 16, 1, 1_000)?,
        site: Site::lay_out()?,
        wrk_agreed: RefCell::default(),
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
            servers.iter().map(cell).collect()
        })
        .collect();
    let rows = rounds::run("tls", &cells, rounds);
    let load = format!(
        "4 threads, {} connections, for handshakes {} threads of a client of this program, {rounds} rounds of {} s",
        bench.connections, bench.handshakes, bench.seconds
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
    notes.push("AES-128-GCM with X25519 everywhere; the client of the handshakes believes every certificate. A handshake's time is from the connection's start to its end.".to_owned());
    if measured(rows, Server::Nginx.name()) {
        notes.push(nginx::note());
    }
    notes
}
