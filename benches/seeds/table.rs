//! How are the results shown in one table that can be pasted into a README?

use std::fmt::Write;

use crate::nginx;
use crate::rounds::{Row, Sample};
use crate::servers::Server;
use crate::site::Site;

const HEAD: &str = "\
| case | server | requests/s | p50 ms | p99 ms | server CPU µs/request | peak resident MB | requests/s ÷ nginx | CPU ÷ nginx | CPU ÷ limit | foreign CPU % by round |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|
";

pub(crate) fn render(rows: &[Row], site: &Site) -> String {
    let mut text = HEAD.to_owned();
    for row in rows {
        let _ = match figures(row) {
            Some(own) => write_figures(&mut text, row, &own, rows),
            None => writeln!(
                text,
                "| {} | {} | {} | | | | | | | | |",
                row.case.name(),
                row.server.name(),
                row.faults.join("; ")
            ),
        };
    }
    text.push('\n');
    for note in notes(rows, site) {
        let _ = writeln!(text, "- {note}");
    }
    text
}

fn write_figures(text: &mut String, row: &Row, own: &Figures, rows: &[Row]) -> std::fmt::Result {
    let beside = |server: Server| {
        rows.iter()
            .find(|other| other.case == row.case && other.server == server)
            .and_then(figures)
    };
    let (nginx, limit) = (beside(Server::Nginx), beside(Server::Limit));
    let ratio = |of: f64, to: Option<f64>| {
        to.map_or_else(|| "–".to_owned(), |to| format!("{:.2}", of / to))
    };
    let mut foreign: Vec<String> = row
        .samples
        .iter()
        .map(|sample| {
            format!(
                "{:.0}{}",
                sample.foreign * 100.0,
                if sample.quiet() { "" } else { "!" }
            )
        })
        .collect();
    foreign.extend(row.faults.iter().cloned());
    writeln!(
        text,
        "| {} | {} | {}{} | {:.2} | {:.2} | {:.2} | {:.1} | {} | {} | {} | {} |",
        row.case.name(),
        row.server.name(),
        if own.noisy { "~" } else { "" },
        grouped(own.median.per_second),
        own.median.p50_ms,
        own.median.p99_ms,
        own.median.cpu_us,
        own.median.peak_bytes / 1e6,
        ratio(
            own.median.per_second,
            nginx.as_ref().map(|figures| figures.median.per_second)
        ),
        ratio(
            own.median.cpu_us,
            nginx.as_ref().map(|figures| figures.median.cpu_us)
        ),
        ratio(
            own.median.cpu_us,
            limit.as_ref().map(|figures| figures.median.cpu_us)
        ),
        foreign.join(" · "),
    )
}

struct Figures {
    median: Sample,
    /// Not one round was quiet, so all were taken.
    noisy: bool,
}

fn figures(row: &Row) -> Option<Figures> {
    let quiet: Vec<Sample> = row
        .samples
        .iter()
        .filter(|sample| sample.quiet())
        .copied()
        .collect();
    let noisy = quiet.is_empty();
    let taken = if noisy { &row.samples } else { &quiet };
    let by = |field: fn(&Sample) -> f64| median(taken.iter().map(field).collect());
    Some(Figures {
        median: Sample {
            per_second: by(|sample| sample.per_second)?,
            p50_ms: by(|sample| sample.p50_ms)?,
            p99_ms: by(|sample| sample.p99_ms)?,
            cpu_us: by(|sample| sample.cpu_us)?,
            peak_bytes: by(|sample| sample.peak_bytes)?,
            foreign: by(|sample| sample.foreign)?,
        },
        noisy,
    })
}

pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn notes(rows: &[Row], site: &Site) -> Vec<String> {
    let mut notes = vec![
        format!(
            "Medians of the rounds in which other programs used less than {:.0} % of the machine; `!` marks the others, `~` a row that had no quiet round.",
            Sample::QUIET_BELOW * 100.0
        ),
        "Every cell is a fresh process and one second of warm-up. Memory is the sum of VmHWM over the server's processes.".to_owned(),
    ];
    let measured = |server: Server| {
        rows.iter()
            .any(|row| row.server == server && !row.samples.is_empty())
    };
    if measured(Server::Nginx) {
        notes.extend(nginx::notes());
    }
    if measured(Server::MayMinihttp) {
        notes.push("may_minihttp: from memory, no files; its runtime ties its threads to cores, which no other row does.".to_owned());
    }
    if measured(Server::Limit) {
        notes.push("limit: bare epoll loops that look for the blank line and repeat cloudgate's own answer, byte for byte (another's where cloudgate gave none).".to_owned());
    }
    let sizes: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            Some(format!(
                "{} {} {}",
                row.case.name(),
                row.server.name(),
                row.answer_bytes?
            ))
        })
        .collect();
    notes.push(format!(
        "Bytes of an answer with its head: {}. The picture is `{}`.",
        sizes.join(", "),
        site.png_target()
    ));
    notes
}
