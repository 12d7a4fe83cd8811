//! How is a mistake in a configuration told to a person?

use std::fmt;
use std::string::FromUtf8Error;

use super::node::Place;

/// The most mistakes that are told at once.
pub(crate) const MOST_TOLD: usize = 10;

/// The longest line that is shown, in letters.
const MOST_SHOWN: usize = 160;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) place: Place,
    pub(crate) reason: String,
}

impl Mistake {
    pub(crate) fn new(place: Place, reason: impl Into<String>) -> Mistake {
        Mistake {
            place,
            reason: reason.into(),
        }
    }
}

/// All that is wrong with a configuration, as a text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mistakes {
    text: String,
}

impl Mistakes {
    /// The mistakes in a file of this name, in the order in which they stand there.
    pub(crate) fn new(file: &str, source: &str, mut mistakes: Vec<Mistake>) -> Mistakes {
        mistakes.sort_by_key(|mistake| match mistake.place {
            Place::File { line, column, .. } => (line, column),
            _ => (0, 0),
        });
        let count = mistakes.len();
        let mut told: Vec<_> = mistakes
            .iter()
            .take(MOST_TOLD)
            .map(|mistake| tell(file, source, mistake))
            .collect();
        if count > MOST_TOLD {
            told.push(format!("and {} more\n", count - MOST_TOLD));
        }
        Mistakes {
            text: told.join("\n"),
        }
    }

    /// That a file of this name holds bytes that are no text.
    pub(crate) fn encoding(file: &str, error: &FromUtf8Error) -> Mistakes {
        let (right, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = right.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = right.iter().rposition(|byte| *byte == b'\n');
        let before = String::from_utf8_lossy(&right[start.map_or(0, |at| at + 1)..]);
        let column = before.chars().count() + 1;
        Mistakes {
            text: format!("{file}:{line}:{column}: this is not UTF-8"),
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}

/// The place, what is wrong, the line, and a caret below what is meant.
fn tell(file: &str, source: &str, mistake: &Mistake) -> String {
    let reason = printable(&mistake.reason);
    match mistake.place {
        Place::Environment(name) => format!("environment variable {name}: {reason}\n"),
        Place::Flag(name) => format!("{name}: {reason}\n"),
        Place::File {
            line,
            column,
            width,
        } => {
            let text = source.lines().nth(line - 1).unwrap_or("");
            let shown: String = text.chars().take(MOST_SHOWN).collect();
            let shown = printable(&shown);
            let shown = shown.trim_end();
            let gutter = " ".repeat(line.to_string().len());
            let mut told = format!("{file}:{line}:{column}: {reason}\n");
            if column <= MOST_SHOWN {
                let carets = "^".repeat(width.min(MOST_SHOWN + 1 - column).max(1));
                let before = " ".repeat(column - 1);
                told.push_str(&format!(
                    "{gutter} |\n{line} | {shown}\n{gutter} | {before}{carets}\n"
                ));
            }
            told
        }
    }
}

/// A text without what would move a terminal's cursor, letter for letter.
fn printable(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            '\t' => ' ',
            letter if letter.is_control() => '\u{fffd}',
            letter => letter,
        })
        .collect()
}

/// The known word that is meant by one that is not known, if one is near.
pub(crate) fn near<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    /// Names by which other programs and people call what is meant.
    const OTHERS: [(&str, &str); 22] = [
        ("backends", "servers"),
        ("upstreams", "servers"),
        ("upstream", "servers"),
        ("targets", "servers"),
        ("urls", "servers"),
        ("server", "servers"),
        ("stripprefix", "stripPath"),
        ("prefix", "path"),
        ("route", "path"),
        ("location", "path"),
        ("address", "host"),
        ("listen", "port"),
        ("workers", "threads"),
        ("enabled", "enable"),
        ("https", "ssl"),
        ("tls", "ssl"),
        ("ssl", "tls"),
        ("cert", "certificate"),
        ("autossl", "generateKey"),
        ("loadbalancer", "balance"),
        ("ratelimiting", "rateLimit"),
        ("healthcheck", "health"),
    ];
    let flat = |word: &str| word.replace(['_', '-', ' '], "").to_lowercase();
    let meant = flat(word);
    let find = |wanted: &str| known.iter().copied().find(|name| flat(name) == wanted);
    if let Some(name) = find(&meant) {
        return Some(name);
    }
    let others = OTHERS.iter().filter(|(other, _)| *other == meant);
    if let Some(name) = others
        .map(|(_, name)| flat(name))
        .find_map(|name| find(&name))
    {
        return Some(name);
    }
    let reach = (meant.chars().count() / 3).clamp(1, 2);
    known
        .iter()
        .map(|name| (distance(&meant, &flat(name)), *name))
        .filter(|(far, _)| *far <= reach)
        .min_by_key(|(far, _)| *far)
        .map(|(_, name)| name)
}

/// How many letters have to be changed, put in, taken out or swapped with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    /// A longer word is no slip of a known one.
    const LONGEST: usize = 40;
    let one: Vec<char> = one.chars().take(LONGEST).collect();
    let other: Vec<char> = other.chars().take(LONGEST).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let change = rows[i][j] + usize::from(a != b);
            let mut least = change.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found() {
        let known = [
            "path",
            "stripPath",
            "servers",
            "timeout",
            "tls",
            "rateLimit",
        ];
        for (word, want) in [
            ("strip_path", Some("stripPath")),
            ("strip-path", Some("stripPath")),
            ("StripPath", Some("stripPath")),
            ("stripPaht", Some("stripPath")),
            ("upstreams", Some("servers")),
            ("ssl", Some("tls")),
            ("timout", Some("timeout")),
            ("ptah", Some("path")),
            ("cache", None),
            ("x", None),
        ] {
            assert_eq!(near(word, &known), want, "{word}");
        }
    }
}
