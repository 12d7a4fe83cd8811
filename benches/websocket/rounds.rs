//! In which order are the cells measured, and what else did the machine do meanwhile?

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::child::Running;
use crate::harness::measure;

/// One server in one case: what is measured at a time.
pub(crate) struct Cell<'b, S> {
    pub(crate) case: &'static str,
    pub(crate) server: &'static str,
    /// Starts the server and checks what it answers.
    pub(crate) start: Box<dyn Fn() -> Result<Running, String> + 'b>,
    /// Measures a server that was started for it.
    pub(crate) measure: Measure<'b, S>,
    /// One line of progress.
    pub(crate) show: fn(&S) -> String,
}

pub(crate) type Measure<'b, S> = Box<dyn Fn(&Running) -> Result<S, String> + 'b>;

/// A server's results in one case.
pub(crate) struct Row<S> {
    pub(crate) case: &'static str,
    pub(crate) server: &'static str,
    pub(crate) samples: Vec<S>,
    /// Why samples are missing, once each.
    pub(crate) faults: Vec<String>,
}

/// Measures the cells of each case in turn, each with a fresh process. Servers change places from round to round, so that
/// slow drift of the machine meets all of them.
pub(crate) fn run<S>(title: &str, cases: &[Vec<Cell<'_, S>>], rounds: u32) -> Vec<Row<S>> {
    let mut rows: Vec<Vec<Row<S>>> = cases
        .iter()
        .map(|case| case.iter().map(open_row).collect())
        .collect();
    for round in 0..rounds as usize {
        for (block, (rows, case)) in rows.iter_mut().zip(cases).enumerate() {
            let width = case.len();
            for turn in 0..width {
                let place = (turn + round + block) % width;
                let (row, cell) = (&mut rows[place], &case[place]);
                if row.samples.is_empty() && !row.faults.is_empty() {
                    continue;
                }
                eprint!("{title}: round {} {} {} ", round + 1, row.case, row.server);
                let outcome = (cell.start)().and_then(|running| (cell.measure)(&running));
                match outcome {
                    Ok(sample) => {
                        eprintln!("{}", (cell.show)(&sample));
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
fn open_row<S>(cell: &Cell<'_, S>) -> Row<S> {
    Row {
        case: cell.case,
        server: cell.server,
        samples: Vec::new(),
        faults: (cell.start)().err().into_iter().collect(),
    }
}

/// The processor time used so far: by the server, by this process, and by all of the machine.
pub(crate) struct Usage {
    server: Duration,
    client: Duration,
    machine: Duration,
    when: Instant,
}

/// What was used in a time.
pub(crate) struct Shares {
    pub(crate) server: Duration,
    pub(crate) client: Duration,
    /// The share of the machine that neither of them used, and that was not idle: 0 to 1.
    pub(crate) foreign: f64,
}

impl Usage {
    pub(crate) fn now(running: &Running) -> Self {
        Self {
            server: running.tree.cpu(),
            client: measure::own_cpu(),
            machine: measure::machine_cpu(),
            when: Instant::now(),
        }
    }

    /// To be called when the load is over. A program that wants a whole core gets little of it beside a server of many threads,
    /// so the machine is watched for a moment afterwards too, and the greater share counts.
    pub(crate) fn until_now(&self, running: &Running) -> Shares {
        let shares = self.between(&Self::now(running));
        let after = Self::now(running);
        thread::sleep(AFTERWARDS);
        let rest = after.between(&Self::now(running));
        Shares {
            foreign: shares.foreign.max(rest.foreign),
            ..shares
        }
    }

    fn between(&self, now: &Self) -> Shares {
        let server = now.server.saturating_sub(self.server);
        let client = now.client.saturating_sub(self.client);
        let machine = now.machine.saturating_sub(self.machine);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let capacity = (now.when - self.when).as_secs_f64() * cores as f64;
        Shares {
            server,
            client,
            foreign: machine.saturating_sub(server + client).as_secs_f64() / capacity,
        }
    }
}

const AFTERWARDS: Duration = Duration::from_millis(300);
