//! In which order are the cells measured, and what is kept of each?

use std::thread;
use std::time::{Duration, Instant};

use super::child::Running;
use super::load::{self, Plan};
use super::{descriptors, measure};

/// One server in one case: what is measured at a time.
pub(crate) struct Cell<'b> {
    pub(crate) case: &'static str,
    pub(crate) server: &'static str,
    /// Starts the server, checks its answer to the case, and hands it over running.
    pub(crate) start: Box<dyn Fn() -> Result<Started, String> + 'b>,
}

pub(crate) struct Started {
    pub(crate) running: Running,
    /// Servers that this one asks: their time is neither its own nor foreign.
    pub(crate) behind: Vec<Running>,
    /// Bytes of the answer with its head.
    pub(crate) answer_bytes: usize,
    pub(crate) plan: Plan,
}

/// A server's results in one case.
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) server: &'static str,
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
    /// 0 where the client was not asked to count them.
    pub(crate) bytes_per_second: f64,
    /// The share of the machine that neither the server nor its client used, and that was not idle: 0 to 1.
    pub(crate) foreign: f64,
}

impl Sample {
    pub(crate) const QUIET_BELOW: f64 = 0.06;

    pub(crate) fn quiet(&self) -> bool {
        self.foreign < Self::QUIET_BELOW
    }
}

/// Answers from this size on are counted by their bytes: at the end of a run a good part of them is on its way.
const COUNTED_BY_BYTES: usize = 64 * 1024;

/// Measures the cells of each case in turn. Servers change places from cell to cell, so that slow drift of the machine meets
/// all of them.
pub(crate) fn run(title: &str, cases: &[Vec<Cell<'_>>], rounds: u32) -> Vec<Row> {
    // Where it cannot be raised, wrk reports socket errors and the cell is void.
    descriptors::raise_limit();
    let mut seconds = 0;
    let mut cells = 0;
    let mut rows: Vec<Vec<Row>> = Vec::new();
    for case in cases {
        let mut block = Vec::new();
        for cell in case {
            let (row, plan) = open_row(cell);
            if let Some(plan) = plan {
                cells += rounds;
                seconds += (plan.warm_up + plan.seconds + 1) * rounds;
            }
            block.push(row);
        }
        rows.push(block);
    }
    eprintln!("{title}: {cells} cells, about {} min", seconds.div_ceil(60));
    let mut done = 0;
    for round in 0..rounds as usize {
        for (block, (rows, case)) in rows.iter_mut().zip(cases).enumerate() {
            let width = case.len();
            for turn in 0..width {
                let place = (turn + round + block) % width;
                let (row, cell) = (&mut rows[place], &case[place]);
                if row.samples.is_empty() && !row.faults.is_empty() {
                    continue;
                }
                done += 1;
                eprint!("{title}: [{done}/{cells}] {} {} ", row.case, row.server);
                match measured(cell) {
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
    rows.into_iter().flatten().collect()
}

/// Tries the server once, so that a row that cannot be measured costs no time later.
fn open_row(cell: &Cell<'_>) -> (Row, Option<Plan>) {
    let mut row = Row {
        case: cell.case,
        server: cell.server,
        answer_bytes: None,
        samples: Vec::new(),
        faults: Vec::new(),
    };
    let mut plan = None;
    match (cell.start)() {
        Ok(started) => {
            row.answer_bytes = Some(started.answer_bytes);
            plan = Some(started.plan);
        }
        Err(reason) => row.faults.push(reason),
    }
    if let Some(missing) = plan.as_ref().and_then(|plan| plan.client.missing()) {
        row.faults = vec![missing.to_owned()];
        plan = None;
    }
    (row, plan)
}

/// A fresh process for each cell: peak memory is this case's own, and no cell inherits another's heap.
fn measured(cell: &Cell<'_>) -> Result<Sample, String> {
    let Started {
        running,
        behind,
        answer_bytes,
        plan,
    } = (cell.start)()?;
    load::run(&plan, plan.warm_up, running.port)?;
    // Connections of the warm-up are still being closed.
    thread::sleep(Duration::from_millis(100));

    let behind_cpu = || -> Duration { behind.iter().map(|server| server.tree.cpu()).sum() };
    let before = (
        running.tree.cpu(),
        measure::own_cpu() + behind_cpu(),
        measure::machine_cpu(),
        Instant::now(),
    );
    let load = load::run(&plan, plan.seconds, running.port)?;
    let server_cpu = running.tree.cpu().saturating_sub(before.0);
    let load_cpu = (measure::own_cpu() + behind_cpu()).saturating_sub(before.1);
    let machine_cpu = measure::machine_cpu().saturating_sub(before.2);
    let capacity = before.3.elapsed().as_secs_f64()
        * thread::available_parallelism().map_or(1, usize::from) as f64;

    let bytes_per_second = load
        .received
        .map_or(0.0, |(bytes, time)| bytes * 1e6 / time);
    let (requests, per_second) = match load.received {
        Some((bytes, _)) if answer_bytes >= COUNTED_BY_BYTES => (
            bytes / answer_bytes as f64,
            bytes_per_second / answer_bytes as f64,
        ),
        _ => (load.requests as f64, load.per_second),
    };
    Ok(Sample {
        per_second,
        p50_ms: load.p50_ms,
        p99_ms: load.p99_ms,
        cpu_us: server_cpu.as_secs_f64() * 1e6 / requests,
        peak_bytes: running.tree.peak_memory() as f64,
        bytes_per_second,
        foreign: machine_cpu
            .saturating_sub(server_cpu + load_cpu)
            .as_secs_f64()
            / capacity,
    })
}
