//! How does a terminal show what a phone can read?

use qrcodegen::{QrCode, QrCodeEcc};

/// The light frame around it, in modules: ISO/IEC 18004 section 5.3.8 asks for four.
const QUIET: i32 = 4;

/// A square for a text: two modules a character, one above the other.
#[derive(Debug)]
pub(super) struct Square {
    pub(super) columns: usize,
    pub(super) lines: Vec<String>,
}

/// The square for a text, unless that is too long for one.
pub(super) fn square(text: &str) -> Option<Square> {
    let code = QrCode::encode_text(text, QrCodeEcc::Low).ok()?;
    let range = -QUIET..code.size() + QUIET;
    let lines = range
        .clone()
        .step_by(2)
        .map(|y| {
            let line: String = range
                .clone()
                .map(|x| half_blocks(code.get_module(x, y), code.get_module(x, y + 1)))
                .collect();
            // Black on white, whatever the colours of the terminal.
            format!("\x1b[30;107m{line}\x1b[0m")
        })
        .collect();
    Some(Square {
        columns: range.len(),
        lines,
    })
}

fn half_blocks(above: bool, below: bool) -> char {
    match (above, below) {
        (true, true) => '█',
        (true, false) => '▀',
        (false, true) => '▄',
        (false, false) => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_is_where_the_code_has_it() {
        let text = "http://192.168.100.200:65535";
        let code = QrCode::encode_text(text, QrCodeEcc::Low).unwrap();
        let square = square(text).unwrap();
        assert_eq!((square.columns, square.lines.len()), (33, 17));
        for (row, line) in (-QUIET..).step_by(2).zip(&square.lines) {
            let line = line
                .strip_prefix("\x1b[30;107m")
                .and_then(|line| line.strip_suffix("\x1b[0m"));
            let letters: Vec<char> = line.unwrap().chars().collect();
            assert_eq!(letters.len(), square.columns);
            for (x, letter) in (-QUIET..).zip(letters) {
                let shown = ("█▀".contains(letter), "█▄".contains(letter));
                assert_eq!(
                    shown,
                    (code.get_module(x, row), code.get_module(x, row + 1)),
                    "{x} {row}"
                );
            }
        }
        assert!(super::square(&"x".repeat(3000)).is_none());
    }
}
