//! How fast, and how small, are WebSockets beside tungstenite on threads, `ws`, uWebSockets and the least that any server can do?
//!
//! ```text
//! cargo bench --bench websocket                       # five cases, seven servers, three rounds: about nine minutes
//! cargo bench --bench websocket -- echo64 cloudgate   # only these cases and servers (BENCH_ONLY=echo64,cloudgate does the same)
//! BENCH_SECONDS=2 BENCH_ROUNDS=1 WS_SOCKETS=2000 cargo bench --bench websocket
//! ```
//!
//! - `echo64`: 64 sockets, each of which sends a text of 64 bytes, waits for its echo, and sends the next.
//! - `echo64x16`: the same with 16 messages on the way on each socket.
//! - `broadcast`: 10,000 sockets (`WS_SOCKETS`) listen, and one more sends 128 bytes that all of them get: the time from then
//!   until the last has it, the median of 15 publishes (`WS_PUBLISHES`) with 100 ms of rest (`WS_PAUSE_MS`) between them.
//! - `broadcast-deflate`: the same where the clients offer permessage-deflate as browsers do.
//! - `idle`: what 10,000 open sockets add to the server's resident memory, before and after one message on each.
//!
//! cloudgate takes part with callbacks, where an idle socket is parked, with a coroutine a socket, and in `echo64x16` with
//! callbacks that gather what they send. `ws` and `bun`, whose server is uWebSockets, come from npm; the benchmark is told where they are:
//!
//! ```text
//! npm install --prefix /tmp/peers ws bun
//! WS_NODE_MODULES=/tmp/peers/node_modules cargo bench --bench websocket
//! ```
//!
//! Every server is a process of its own: this program starts itself again with `--child=…`, and programs that are not ours
//! below such a child. The client is the same for all, two threads of this process over loopback; it sends frames that were
//! made beforehand and compares what comes back. Processor time and memory come from `/proc`, so it runs on Linux only.

#![allow(clippy::print_stdout)] // The table is the output.
#![allow(clippy::print_stderr)] // Progress goes beside it, so that `cargo bench > table.md` holds the table alone.

#[path = "../harness/mod.rs"]
#[allow(dead_code, reason = "some of it only the other benches need")]
mod harness;

mod app;
mod bare;
mod broadcast;
mod cases;
mod check;
mod echo;
mod frames;
mod idle;
mod load;
#[path = "../idle/memory.rs"]
mod memory;
mod peers;
mod rounds;
mod selfcheck;
mod servers;
mod socket;
mod table;
mod threads;

use std::process::ExitCode;
use std::time::Duration;

use cases::{Case, Kind};
use harness::folder::Folder;
use harness::options::{self, Named, number};
use harness::{Program, descriptors, machine};
use rounds::{Cell, Measure, Row};
use servers::Server;

fn main() -> ExitCode {
    Program {
        name: "websocket",
        roles: &[
            ("app", app::serve),
            ("bare", bare::serve),
            ("threads", threads::serve),
        ],
        selfcheck: selfcheck::run,
        bench,
    }
    .run()
}

/// One run of the benchmark.
struct Bench {
    cases: Vec<Case>,
    servers: Vec<Server>,
    folder: Folder,
    seconds: u32,
    rounds: u32,
    sockets: u32,
    publishes: u32,
    pause_ms: u32,
}

/// Descriptors that client and servers need besides their sockets.
const SPARE: u32 = 200;

fn bench(arguments: &[String]) -> Result<(), String> {
    let (cases, servers) = options::choose(&options::names(arguments))?;
    let most = u32::try_from(descriptors::raise_limit()).unwrap_or(u32::MAX);
    let most = most.saturating_sub(SPARE);
    let bench = Bench {
        cases,
        servers,
        folder: Folder::fresh()?,
        seconds: number("BENCH_SECONDS", 5, 1, 600)?,
        rounds: number("BENCH_ROUNDS", 3, 1, 99)?,
        sockets: number("WS_SOCKETS", 10_000.min(most), 2, most)?,
        publishes: number("WS_PUBLISHES", 15, 1, 10_000)?,
        pause_ms: number("WS_PAUSE_MS", 100, 0, 60_000)?,
    };
    let mut tables = Vec::new();
    if bench.has(Kind::Echo) {
        tables.push(table::echoes(&bench.echoes()));
    }
    if bench.has(Kind::Broadcast) {
        tables.push(table::broadcasts(&bench.broadcasts()));
    }
    if bench.has(Kind::Idle) {
        tables.push(table::idles(&bench.idles()));
    }
    println!("{}", machine::of_programs(&peers::versions()));
    println!("{}", bench.load());
    println!("{}", tables.join("\n"));
    for note in [
        table::NOTE,
        app::NOTE,
        threads::NOTE,
        peers::WS_NOTE,
        peers::BUN_NOTE,
        bare::NOTE,
    ] {
        println!("- {note}");
    }
    Ok(())
}

impl Bench {
    fn has(&self, kind: Kind) -> bool {
        self.cases.iter().any(|case| case.kind() == kind)
    }

    fn load(&self) -> String {
        format!(
            "Load: own client, {} threads, on the same machine over loopback. Echo: {} sockets, {} rounds of {} s after 1 s of warm-up. Broadcast: {} sockets, {} publishes a round with {} ms between them. Idle: {} sockets.\n",
            load::THREADS,
            echo::SOCKETS,
            self.rounds,
            self.seconds,
            self.sockets,
            self.publishes,
            self.pause_ms,
            self.sockets,
        )
    }

    fn echoes(&self) -> Vec<Row<echo::Sample>> {
        let cells = self.cells(
            Kind::Echo,
            |case| Box::new(move |running| echo::measure(running, case, self.seconds)),
            |sample: &echo::Sample| {
                format!(
                    "{:.0}/s {:.2} µs, {:.0} % foreign",
                    sample.per_second,
                    sample.cpu_us,
                    sample.foreign * 100.0
                )
            },
        );
        rounds::run("websocket", &cells, self.rounds)
    }

    fn broadcasts(&self) -> Vec<Row<broadcast::Sample>> {
        let plan = broadcast::Plan {
            subscribers: self.sockets as usize,
            publishes: self.publishes,
            pause: Duration::from_millis(u64::from(self.pause_ms)),
        };
        let plan = &plan;
        let cells = self.cells(
            Kind::Broadcast,
            |case| Box::new(move |running| broadcast::measure(running, case, plan)),
            |sample: &broadcast::Sample| {
                format!(
                    "{:.1} ms {:.2} µs, {:.0} % foreign",
                    sample.median_ms,
                    sample.cpu_us,
                    sample.foreign * 100.0
                )
            },
        );
        rounds::run("websocket", &cells, self.rounds)
    }

    fn idles(&self) -> Vec<Row<idle::Sample>> {
        let sockets = self.sockets as usize;
        let cells = self.cells(
            Kind::Idle,
            |_| Box::new(move |running| idle::measure(running, sockets)),
            |sample: &idle::Sample| {
                format!(
                    "{:.0} bytes a socket",
                    (sample.open - sample.ground) / sample.sockets
                )
            },
        );
        // Memory is the same each time.
        rounds::run("websocket", &cells, 1)
    }

    fn cells<'b, S>(
        &'b self,
        kind: Kind,
        measure: impl Fn(Case) -> Measure<'b, S>,
        show: fn(&S) -> String,
    ) -> Vec<Vec<Cell<'b, S>>> {
        let cases = self.cases.iter().filter(|case| case.kind() == kind);
        cases
            .map(|&case| {
                let servers = self.servers.iter().copied();
                servers
                    .filter(|server| server.takes_part_in(case))
                    .map(|server| Cell {
                        case: case.name(),
                        server: server.name(),
                        start: Box::new(move || server.start(case, &self.folder)),
                        measure: measure(case),
                        show,
                    })
                    .collect()
            })
            .collect()
    }
}
