//! Which fields and files does a `multipart/form-data` body hold (RFC 7578)?
//!
//! A pure function over a body in memory, whose size the body limit has bounded already.

use bytes::Bytes;
use memchr::memmem;

/// The most parts of one body; past it the body is refused.
const MOST_PARTS: usize = 1000;

/// The most bytes of one part's header fields.
const MOST_HEAD: usize = 8 << 10;

/// One part of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// The client's file name; `None` for an ordinary field.
    pub(crate) filename: Option<String>,
    pub(crate) content_type: String,
    pub(crate) data: Bytes,
}

/// The boundary that a Content-Type names: 1 to 70 characters (RFC 2046 section 5.1.1).
pub(crate) fn boundary_of(content_type: &str) -> Option<String> {
    let boundary = parameter(content_type, "boundary")?;
    let fits = (1..=70).contains(&boundary.len())
        && boundary.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    fits.then_some(boundary)
}

/// The parts of a body; `None` where it is malformed or has more than 1000 parts.
pub(crate) fn parse(body: &Bytes, boundary: &str) -> Option<Vec<Part>> {
    let delimiter = format!("\r\n--{boundary}");
    let first = &delimiter.as_bytes()[2..];
    // The first delimiter may stand at the very start, without its line break; a preamble is ignored.
    let mut at = if body.starts_with(first) {
        first.len()
    } else {
        memmem::find(body, delimiter.as_bytes())? + delimiter.len()
    };
    let finder = memmem::Finder::new(delimiter.as_bytes());
    let mut parts = Vec::new();
    loop {
        let rest = &body[at..];
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        // White space may pad the delimiter line.
        let padding = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        if !rest[padding..].starts_with(b"\r\n") || parts.len() == MOST_PARTS {
            return None;
        }
        // The line break stays, for a part may begin with the blank line that ends its fields.
        let part_start = at + padding;
        let part_end = part_start + finder.find(&body[part_start..])?;
        parts.push(parse_part(body, part_start, part_end)?);
        at = part_end + delimiter.len();
    }
}

fn parse_part(body: &Bytes, start: usize, end: usize) -> Option<Part> {
    let head_length = memmem::find(&body[start..end], b"\r\n\r\n")?;
    if head_length > MOST_HEAD {
        return None;
    }
    let mut part = Part {
        name: String::new(),
        filename: None,
        content_type: "text/plain".to_owned(),
        data: body.slice(start + head_length + 4..end),
    };
    let mut named = false;
    let head = String::from_utf8_lossy(&body[start..start + head_length]).into_owned();
    for line in head.split("\r\n").filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-disposition") {
            let kind = value.split(';').next().unwrap_or("").trim();
            if !kind.eq_ignore_ascii_case("form-data") {
                return None;
            }
            part.name = parameter(value, "name")?;
            part.filename = parameter(value, "filename");
            named = true;
        } else if name.eq_ignore_ascii_case("content-type") {
            part.content_type = value.to_owned();
        }
    }
    named.then_some(part)
}

/// The value of a parameter behind `;`, quoted or not. Browsers write `"` in names as `%22`
/// (RFC 7578 section 2), others as `\"`.
fn parameter(value: &str, wanted: &str) -> Option<String> {
    let mut rest = value.split_once(';')?.1;
    loop {
        let (name, behind) = rest.split_once('=')?;
        let behind = behind.trim_start();
        let (text, after) = match behind.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = behind.find(';').unwrap_or(behind.len());
                (behind[..end].trim_end().to_owned(), &behind[end..])
            }
        };
        if name.trim().eq_ignore_ascii_case(wanted) {
            return Some(text);
        }
        rest = after.trim_start().strip_prefix(';')?;
    }
}

/// The text up to the closing quote, and what is behind it.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text.replace("%22", "\""), &quoted[at + 1..])),
            // Old browsers send Windows paths with bare backslashes: only quotes and backslashes are escaped.
            '\\' if quoted[at + 1..].starts_with(['"', '\\']) => {
                text.extend(characters.next().map(|(_, next)| next));
            }
            other => text.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(body: &str) -> Option<Vec<(String, Option<String>, String)>> {
        let parts = parse(&Bytes::copy_from_slice(body.as_bytes()), "x")?;
        Some(
            parts
                .into_iter()
                .map(|part| {
                    (
                        part.name,
                        part.filename,
                        String::from_utf8_lossy(&part.data).into_owned(),
                    )
                })
                .collect(),
        )
    }

    #[test]
    fn fields_and_files() {
        let body = "preamble\r\n--x \r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n2\r\n--x\r\n\
            content-disposition: form-data; filename=\"q%22.txt\"; name=b\r\n\r\n\r\n--x--\r\nepilogue";
        assert_eq!(
            parts(body),
            Some(vec![
                ("a".to_owned(), None, "1\r\n2".to_owned()),
                ("b".to_owned(), Some("q\".txt".to_owned()), String::new())
            ])
        );
        assert_eq!(parts("--x--"), Some(vec![]));
    }

    #[test]
    fn malformed_bodies_are_refused() {
        for body in [
            "",
            "--x",
            "--x\r\n",
            "--xy\r\n\r\n--x--",
            "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1",
            "--x\r\nContent-Disposition: form-data; name=\"a\r\n\r\n1\r\n--x--",
            "--x\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n1\r\n--x--",
            "--x\r\nContent-Type: text/plain\r\n\r\n1\r\n--x--",
            "--x\r\nno colon\r\n\r\n1\r\n--x--",
        ] {
            assert_eq!(parts(body), None, "{body:?}");
        }
    }

    #[test]
    fn limits_hold_at_the_limit_and_one_past_it() {
        let part = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n";
        assert_eq!(
            parts(&(part.repeat(MOST_PARTS) + "--x--")).unwrap().len(),
            MOST_PARTS
        );
        assert_eq!(parts(&(part.repeat(MOST_PARTS + 1) + "--x--")), None);
        let boundary = |length: usize| {
            boundary_of(&format!(
                "multipart/form-data; boundary={}",
                "b".repeat(length)
            ))
        };
        assert!(boundary(70).is_some() && boundary(71).is_none() && boundary(0).is_none());
    }

    #[test]
    fn parameters_are_found_in_any_place_and_quoting() {
        assert_eq!(parameter("a; b=\"x;y=z\"; c=d", "c").as_deref(), Some("d"));
        assert_eq!(
            parameter("a; b=\"x\\\"y\\\\\"", "B").as_deref(),
            Some("x\"y\\")
        );
        assert_eq!(
            parameter("a; b=\"C:\\dir\\f\"", "b").as_deref(),
            Some("C:\\dir\\f")
        );
        assert_eq!(parameter("a; b", "b"), None);
    }
}
