//! In which order are the cells measured, and what is kept of each?

use std::thread;
use std::time::{Duration, Instant};

use crate::cases::Case;
use crate::load;
use crate::measure;
use crate::options::Options;
use crate::servers::Server;
use crate::site::Site;

/// A server's results in one case.
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) server: Server,
    /// Bytes of the answer with its head, if it gave one.
    pub(crate) answer_bytes: Option<usize>,
    pub(crate) samples: Vec<Sample>,
    /// Why samples are missing, once each.
    pub(crate) faults: Vec<String>,
}

#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) cpu_us: f64,
    pub(crate) peak_bytes: f64,
    /// The share of the machine that neither the server nor wrk used, and that was not idle: 0 to 1.
    pub(crate) foreign: f64,
}

impl Sample {
    pub(crate) const QUIET_BELOW: f64 = 0.06;

    pub(crate) fn quiet(&self) -> bool {
        self.foreign < Self::QUIET_BELOW
    }
}

/// Servers change places from cell to cell, so that slow drift of the machine meets all of them.
pub(crate) fn run(options: &Options, site: &Site) -> Result<Vec<Row>, String> {
    raise_descriptor_limit();
    let mut rows = Vec::new();
    for &case in &options.cases {
        for &server in &options.servers {
            rows.push(open_row(case, server, options, site));
        }
    }
    let cells = rows.iter().filter(|row| row.faults.is_empty()).count() as u32 * options.rounds;
    eprintln!(
        "seeds: {cells} cells, about {} min",
        (cells * (options.seconds + 2)).div_ceil(60)
    );
    let mut done = 0;
    let width = options.servers.len();
    for round in 0..options.rounds as usize {
        for (block, rows) in rows.chunks_mut(width).enumerate() {
            for turn in 0..width {
                let row = &mut rows[(turn + round + block) % width];
                if row.samples.is_empty() && !row.faults.is_empty() {
                    continue;
                }
                done += 1;
                eprint!(
                    "seeds: [{done}/{cells}] {} {} ",
                    row.case.name(),
                    row.server.name()
                );
                match cell(row.case, row.server, options, site) {
                    Ok(sample) => {
                        eprintln!(
                            "{:.0}/s {:.2} µs, {:.0} % foreign",
                            sample.per_second,
                            sample.cpu_us,
                            sample.foreign * 100.0
                        );
                        row.samples.push(sample);
                    }
                    Err(reason) => {
                        eprintln!("{reason}");
                        if !row.faults.contains(&reason) {
                            row.faults.push(reason);
                        }
                    }
                }
            }
        }
    }
    Ok(rows)
}

/// Tries the server once, so that a row that cannot be measured costs no time later.
fn open_row(case: Case, server: Server, options: &Options, site: &Site) -> Row {
    let mut row = Row {
        case,
        server,
        answer_bytes: None,
        samples: Vec::new(),
        faults: Vec::new(),
    };
    match server.start(case, options, site) {
        Ok((_, bytes)) => row.answer_bytes = Some(bytes),
        Err(reason) => row.faults.push(reason),
    }
    if load::version().is_none() {
        row.faults = vec![load::MISSING.to_owned()];
    }
    row
}

/// A fresh process for each cell: peak memory is this case's own, and no cell inherits another's heap.
fn cell(case: Case, server: Server, options: &Options, site: &Site) -> Result<Sample, String> {
    let (running, _) = server.start(case, options, site)?;
    let target = case.target(site);
    load::run(options, 1, site, running.port, &target)?;
    // Connections of the warm-up are still being closed.
    thread::sleep(Duration::from_millis(100));

    let before = (
        running.tree.cpu(),
        measure::own_cpu(),
        measure::machine_cpu(),
        Instant::now(),
    );
    let load = load::run(options, options.seconds, site, running.port, &target)?;
    let server_cpu = running.tree.cpu().saturating_sub(before.0);
    let load_cpu = measure::own_cpu().saturating_sub(before.1);
    let machine_cpu = measure::machine_cpu().saturating_sub(before.2);
    let capacity = before.3.elapsed().as_secs_f64()
        * thread::available_parallelism().map_or(1, usize::from) as f64;

    Ok(Sample {
        per_second: load.per_second,
        p50_ms: load.p50_ms,
        p99_ms: load.p99_ms,
        cpu_us: server_cpu.as_secs_f64() * 1e6 / load.requests as f64,
        peak_bytes: running.tree.peak_memory() as f64,
        foreign: machine_cpu
            .saturating_sub(server_cpu + load_cpu)
            .as_secs_f64()
            / capacity,
    })
}

/// Children inherit it; with many connections the usual 1024 would end wrk and the servers alike.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it cannot be raised, wrk reports socket errors and the cell is void.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}
