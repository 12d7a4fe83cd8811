//! What does a plain reading of a whole `multipart/form-data` body find?
//!
//! The oracle of the property `multipart`: it has the body in one piece and looks for the marks in it. It
//! is laxer than the library, which refuses what can be read in two ways.

use cloudgate::__fuzz::Part;

/// The parts of a body; `None` where it is malformed.
pub fn parse(body: &[u8], boundary: &str, most_parts: usize) -> Option<Vec<Part>> {
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let first = &delimiter[2..];
    // The first mark may stand at the very start, without its line break; what is before it is ignored.
    let mut at = if body.starts_with(first) {
        first.len()
    } else {
        find(body, &delimiter)? + delimiter.len()
    };
    let mut parts = Vec::new();
    loop {
        let rest = &body[at..];
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        let padding = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        if !rest[padding..].starts_with(b"\r\n") || parts.len() == most_parts {
            return None;
        }
        let start = at + padding;
        let end = start + find(&body[start..], &delimiter)?;
        parts.push(part(&body[start..end])?);
        at = end + delimiter.len();
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

fn part(text: &[u8]) -> Option<Part> {
    let head_length = find(text, b"\r\n\r\n")?;
    let mut part = Part {
        name: String::new(),
        filename: None,
        content_type: "text/plain".to_owned(),
        data: text[head_length + 4..].to_vec(),
    };
    let mut named = false;
    let head = String::from_utf8_lossy(&text[..head_length]).into_owned();
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

fn unquote(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text.replace("%22", "\""), &quoted[at + 1..])),
            '\\' if quoted[at + 1..].starts_with(['"', '\\']) => {
                text.extend(characters.next().map(|(_, next)| next));
            }
            other => text.push(other),
        }
    }
    None
}
