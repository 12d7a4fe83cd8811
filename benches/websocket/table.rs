//! How are the results shown in tables that can be pasted into a README?

use std::fmt::Write;

use crate::harness::table::{grouped, median};
use crate::rounds::Row;
use crate::{broadcast, echo, idle};

/// Above this share of the machine other programs have disturbed a sample.
const QUIET_BELOW: f64 = 0.06;

pub(crate) const NOTE: &str = "Medians of the rounds in which other programs used less than 6 % of the machine; `!` marks the others, `~` a row that had no quiet round. Every cell is a fresh process; memory is the sum of VmHWM over the server's processes, where nothing else is said.";

/// What all samples have.
trait Measured: Copy {
    /// The title of the last column.
    const LAST: &'static str = "foreign CPU % by round";

    /// What other programs took of the machine meanwhile, where that changes what was measured.
    fn foreign(&self) -> Option<f64>;

    fn quiet(&self) -> bool {
        self.foreign().is_none_or(|share| share < QUIET_BELOW)
    }
}

impl Measured for echo::Sample {
    fn foreign(&self) -> Option<f64> {
        Some(self.foreign)
    }
}

impl Measured for broadcast::Sample {
    fn foreign(&self) -> Option<f64> {
        Some(self.foreign)
    }
}

impl Measured for idle::Sample {
    const LAST: &'static str = "faults";

    fn foreign(&self) -> Option<f64> {
        None
    }
}

/// The samples that count, and whether none was quiet.
struct Taken<S> {
    samples: Vec<S>,
    noisy: bool,
}

impl<S: Measured> Taken<S> {
    fn of(row: &Row<S>) -> Self {
        let quiet: Vec<S> = row
            .samples
            .iter()
            .filter(|sample| sample.quiet())
            .copied()
            .collect();
        if quiet.is_empty() {
            Self {
                samples: row.samples.clone(),
                noisy: true,
            }
        } else {
            Self {
                samples: quiet,
                noisy: false,
            }
        }
    }

    fn by(&self, field: fn(&S) -> f64) -> f64 {
        median(self.samples.iter().map(field).collect()).unwrap_or(f64::NAN)
    }

    fn mark(&self) -> &'static str {
        if self.noisy { "~" } else { "" }
    }
}

/// The rows of `case` that have figures, by server.
fn beside<'r, S: Measured>(rows: &'r [Row<S>], case: &str, server: &str) -> Option<&'r Row<S>> {
    rows.iter()
        .find(|row| row.case == case && row.server == server && !row.samples.is_empty())
}

fn ratio(of: f64, to: Option<f64>) -> String {
    to.map_or_else(|| "–".to_owned(), |to| format!("{:.2}", of / to))
}

/// The last column: what else the machine did in each round, and what went wrong.
fn rounds<S: Measured>(row: &Row<S>) -> String {
    let mut all: Vec<String> = row
        .samples
        .iter()
        .filter_map(|sample| {
            let mark = if sample.quiet() { "" } else { "!" };
            Some(format!("{:.0}{mark}", sample.foreign()? * 100.0))
        })
        .collect();
    all.extend(row.faults.iter().cloned());
    all.join(" · ")
}

/// A heading, and a line for each row; where there are no figures, the reason stands in their place.
fn table<S: Measured>(
    rows: &[Row<S>],
    columns: &[&str],
    line: impl Fn(&Row<S>, &Taken<S>) -> Vec<String>,
) -> String {
    let mut text = format!(
        "| case | server | {} | {} |\n|---|---|{}---|\n",
        columns.join(" | "),
        S::LAST,
        "--:|".repeat(columns.len())
    );
    for row in rows {
        let (mark, cells, last) = if row.samples.is_empty() {
            let mut cells = vec![row.faults.join("; ")];
            cells.resize(columns.len(), String::new());
            ("", cells, String::new())
        } else {
            let taken = Taken::of(row);
            (taken.mark(), line(row, &taken), rounds(row))
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {} | {mark}{} | {} | {last} |",
            row.case,
            row.server,
            cells.join(" | ")
        );
    }
    text
}

pub(crate) fn echoes(rows: &[Row<echo::Sample>]) -> String {
    let columns = [
        "messages/s",
        "p50 ms",
        "p99 ms",
        "server CPU µs/message",
        "peak resident MB",
        "messages/s ÷ tungstenite",
        "÷ ws",
        "÷ bun",
        "÷ limit",
        "CPU ÷ limit",
    ];
    table(rows, &columns, |row, taken| {
        let (per_second, cpu) = (
            taken.by(|sample| sample.per_second),
            taken.by(|sample| sample.cpu_us),
        );
        let other = |server| beside(rows, row.case, server).map(Taken::of);
        let times = |server| {
            ratio(
                per_second,
                other(server).map(|other| other.by(|sample| sample.per_second)),
            )
        };
        vec![
            grouped(per_second),
            format!("{:.2}", taken.by(|sample| sample.p50_ms)),
            format!("{:.2}", taken.by(|sample| sample.p99_ms)),
            format!("{cpu:.2}"),
            format!("{:.1}", taken.by(|sample| sample.peak_bytes) / 1e6),
            times("tungstenite"),
            times("ws"),
            times("bun"),
            times("limit"),
            ratio(
                cpu,
                other("limit").map(|other| other.by(|sample| sample.cpu_us)),
            ),
        ]
    })
}

pub(crate) fn broadcasts(rows: &[Row<broadcast::Sample>]) -> String {
    let columns = [
        "last has it after ms",
        "shortest–longest ms",
        "÷ uncompressed",
        "÷ limit",
        "server CPU µs/receiver",
        "client CPU µs/receiver",
        "bytes of a frame",
        "peak resident MB",
    ];
    table(rows, &columns, |row, taken| {
        let time = taken.by(|sample| sample.median_ms);
        let other = |case, server| {
            beside(rows, case, server).map(|other| Taken::of(other).by(|sample| sample.median_ms))
        };
        vec![
            format!("{time:.1}"),
            format!(
                "{:.1}–{:.1}",
                taken.by(|sample| sample.least_ms),
                taken.by(|sample| sample.most_ms)
            ),
            ratio(time, other("broadcast", row.server)),
            ratio(time, other("broadcast", "limit")),
            format!("{:.2}", taken.by(|sample| sample.cpu_us)),
            format!("{:.2}", taken.by(|sample| sample.client_us)),
            format!("{:.0}", taken.by(|sample| sample.wire_bytes)),
            format!("{:.1}", taken.by(|sample| sample.peak_bytes) / 1e6),
        ]
    })
}

pub(crate) fn idles(rows: &[Row<idle::Sample>]) -> String {
    let columns = [
        "at rest MiB",
        "all open MiB",
        "bytes a socket",
        "after a message on each MiB",
        "bytes a socket",
        "peak resident MB",
    ];
    table(rows, &columns, |_, taken| {
        let ground = taken.by(|sample| sample.ground);
        let sockets = taken.by(|sample| sample.sockets);
        let mib = |bytes: f64| format!("{:.1}", bytes / f64::from(1 << 20));
        let each = |bytes: f64| format!("{:.0}", (bytes - ground) / sockets);
        let (open, used) = (
            taken.by(|sample| sample.open),
            taken.by(|sample| sample.used),
        );
        vec![
            mib(ground),
            mib(open),
            each(open),
            mib(used),
            each(used),
            format!("{:.1}", taken.by(|sample| sample.peak_bytes) / 1e6),
        ]
    })
}
