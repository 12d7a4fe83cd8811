//! How are the results shown in one table that can be pasted into a README?

use std::fmt::Write;

use super::rounds::{Row, Sample};

/// The table, with a column of MB/s where wrk counted bytes, and the notes below it.
pub(crate) fn render(rows: &[Row], own_notes: Vec<String>) -> String {
    let with_bytes = rows
        .iter()
        .flat_map(|row| &row.samples)
        .any(|sample| sample.bytes_per_second > 0.0);
    let (title, rule, empty) = if with_bytes {
        (" MB/s |", "--:|", " |")
    } else {
        ("", "", "")
    };
    let mut text = format!(
        "\
| case | server | requests/s |{title} p50 ms | p99 ms | server CPU µs/request | peak resident MB | requests/s ÷ nginx | CPU ÷ nginx | CPU ÷ limit | foreign CPU % by round |
|---|---|--:|{rule}--:|--:|--:|--:|--:|--:|--:|---|
"
    );
    for row in rows {
        let _ = match figures(row) {
            Some(own) => write_figures(&mut text, row, &own, rows, with_bytes),
            None => writeln!(
                text,
                "| {} | {} | {} |{empty} | | | | | | | | |",
                row.case,
                row.server,
                row.faults.join("; ")
            ),
        };
    }
    text.push('\n');
    for note in notes(rows, own_notes) {
        let _ = writeln!(text, "- {note}");
    }
    text
}

/// Whether the table has figures of this server.
pub(crate) fn measured(rows: &[Row], server: &str) -> bool {
    rows.iter()
        .any(|row| row.server == server && !row.samples.is_empty())
}

/// The median of a server's requests per second in a case.
pub(crate) fn per_second(rows: &[Row], case: &str, server: &str) -> Option<f64> {
    rows.iter()
        .find(|row| row.case == case && row.server == server)
        .and_then(figures)
        .map(|figures| figures.median.per_second)
}

fn write_figures(
    text: &mut String,
    row: &Row,
    own: &Figures,
    rows: &[Row],
    with_bytes: bool,
) -> std::fmt::Result {
    let beside = |server: &str| {
        rows.iter()
            .find(|other| other.case == row.case && other.server == server)
            .and_then(figures)
    };
    let (nginx, limit) = (beside("nginx"), beside("limit"));
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
    let bytes = if with_bytes {
        let megabytes = own.median.bytes_per_second / 1e6;
        if megabytes > 0.0 {
            format!(" {} |", grouped(megabytes))
        } else {
            " – |".to_owned()
        }
    } else {
        String::new()
    };
    writeln!(
        text,
        "| {} | {} | {}{} |{bytes} {:.2} | {:.2} | {:.2} | {:.1} | {} | {} | {} | {} |",
        row.case,
        row.server,
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
            bytes_per_second: by(|sample| sample.bytes_per_second)?,
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

/// Whole thousands apart; below a hundred with two decimals.
pub(crate) fn grouped(number: f64) -> String {
    if number < 100.0 {
        return format!("{number:.2}");
    }
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

fn notes(rows: &[Row], own: Vec<String>) -> Vec<String> {
    let mut notes = vec![
        format!(
            "Medians of the rounds in which other programs used less than {:.0} % of the machine; `!` marks the others, `~` a row that had no quiet round.",
            Sample::QUIET_BELOW * 100.0
        ),
        "Every cell is a fresh process and a second or more of warm-up. Memory is the sum of VmHWM over the server's processes.".to_owned(),
    ];
    notes.extend(own);
    let sizes: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(format!("{} {} {}", row.case, row.server, row.answer_bytes?)))
        .collect();
    notes.push(format!(
        "Bytes of an answer with its head: {}.",
        sizes.join(", ")
    ));
    notes
}
