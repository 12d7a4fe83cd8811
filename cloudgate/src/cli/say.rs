//! How does the program speak to people?
//!
//! Not by `print!`, which panics where the reader has gone, such as `head`.

use std::io::{self, Write};
use std::path::Path;

/// Writes to standard output.
pub(super) fn out(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes a line to standard error, with the program's name in front.
pub(super) fn error(line: &str) {
    let _ = writeln!(io::stderr(), "cloudgate: {line}");
}

/// Writes lines to standard error as they are.
pub(super) fn plain_error(lines: &str) {
    let _ = writeln!(io::stderr(), "{lines}");
}

/// A path as a terminal may see it: a name can hold what moves its cursor.
pub(super) fn path(path: &Path) -> String {
    let mut shown = String::new();
    for letter in path.to_string_lossy().chars() {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// A number of bytes for people: `999 B`, `1.0 kB`, `12.3 MB`.
pub(super) fn bytes(count: u64) -> String {
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64;
    let mut unit = "";
    for larger in ["kB", "MB", "GB", "TB", "PB", "EB"] {
        // What would be shown as 1000.0 belongs to the next unit.
        if value < 999.95 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// A number and what it counts: `1 file`, `2 files`.
pub(super) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_unit_that_fits() {
        for (count, want) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (12_345_678, "12.3 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(count), want);
        }
    }

    #[test]
    fn a_path_cannot_move_the_cursor() {
        assert_eq!(path(Path::new("ä/a\u{1b}[2J\n")), "ä/a\\u{1b}[2J\\n");
    }
}
