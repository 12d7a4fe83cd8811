//! What was done, in a table for people?

use std::time::Duration;

use super::super::say;
use super::encode::Coding;
use super::find::Found;
use super::sibling::Made;

/// The siblings of one coding.
#[derive(Debug)]
struct Row {
    coding: Coding,
    made: usize,
    up_to_date: usize,
    not_smaller: usize,
    /// Bytes of the files that have one.
    before: u64,
    /// Bytes of the siblings.
    after: u64,
}

/// What a run has found and made.
#[derive(Debug)]
pub(super) struct Summary {
    files: usize,
    bytes: u64,
    too_small: usize,
    rows: Vec<Row>,
}

impl Summary {
    pub(super) fn new(codings: &[Coding], found: &Found) -> Summary {
        let mut rows: Vec<Row> = codings
            .iter()
            .map(|coding| Row {
                coding: *coding,
                made: 0,
                up_to_date: 0,
                not_smaller: 0,
                before: 0,
                after: 0,
            })
            .collect();
        for present in &found.present {
            if let Some(row) = rows.iter_mut().find(|row| row.coding == present.coding) {
                row.up_to_date += 1;
                row.before += present.before;
                row.after += present.after;
            }
        }
        Summary {
            files: found.files,
            bytes: found.bytes,
            too_small: found.too_small,
            rows,
        }
    }

    pub(super) fn add(&mut self, coding: Coding, result: &Made) {
        let Some(row) = self.rows.iter_mut().find(|row| row.coding == coding) else {
            return;
        };
        match *result {
            Made::Written { before, after } => {
                row.made += 1;
                row.before += before;
                row.after += after;
            }
            Made::NotSmaller => row.not_smaller += 1,
        }
    }

    pub(super) fn text(&self, failures: usize, took: Duration) -> String {
        let mut text = format!(
            "{} · {} · {} too small · {} failed · {:.1} s\n",
            say::count(self.files, "file"),
            say::bytes(self.bytes),
            self.too_small,
            failures,
            took.as_secs_f64()
        );
        if self.files == 0 {
            return text;
        }
        text += "\n          made  up to date  not smaller      before       after\n";
        for row in &self.rows {
            let share = if row.before == 0 {
                String::new()
            } else {
                format!("{:>5.1} %", row.after as f64 * 100.0 / row.before as f64)
            };
            let line = format!(
                "{:<8}{:>6}{:>12}{:>13}{:>12}{:>12}  {share}",
                row.coding.name(),
                row.made,
                row.up_to_date,
                row.not_smaller,
                say::bytes(row.before),
                say::bytes(row.after),
            );
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::find::Present;
    use super::*;

    #[test]
    fn it_is_a_table_with_a_row_for_each_coding() {
        let found = Found {
            files: 3,
            bytes: 30_000,
            too_small: 1,
            present: vec![Present {
                coding: Coding::Gzip,
                before: 10_000,
                after: 2_000,
            }],
            ..Found::default()
        };
        let mut summary = Summary::new(&[Coding::Brotli, Coding::Gzip], &found);
        summary.add(
            Coding::Gzip,
            &Made::Written {
                before: 10_000,
                after: 3_000,
            },
        );
        summary.add(Coding::Brotli, &Made::NotSmaller);
        assert_eq!(
            summary.text(2, Duration::from_millis(1234)),
            "3 files · 30.0 kB · 1 too small · 2 failed · 1.2 s\n\n\
             \u{20}         made  up to date  not smaller      before       after\n\
             brotli       0           0            1         0 B         0 B\n\
             gzip         1           1            0     20.0 kB      5.0 kB   25.0 %\n"
        );
    }
}
