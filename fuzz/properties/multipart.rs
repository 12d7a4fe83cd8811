//! Does every form have one meaning, however it arrives, and keep it when it is written again?
//!
//! An input is a Content-Type on the first line, and the body behind it.

use cloudgate::__fuzz::{self, Part};

use super::{cuts, whole_form};

/// The most parts that a form may have.
const MOST_PARTS: usize = 1000;

/// Heads of parts longer than this may be over the limit once they are written again.
const LONG_HEAD: usize = 8000;

/// A boundary and parts keep to their limits; how a body is cut into pieces changes neither its parts nor
/// what is wrong with it; a plain reading finds the same parts; written again, they are the same.
pub fn multipart(input: &[u8]) {
    let end = input
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(input.len());
    let (first_line, body) = (&input[..end], input.get(end + 1..).unwrap_or_default());
    let Ok(content_type) = std::str::from_utf8(first_line) else {
        return;
    };
    let Some(boundary) = __fuzz::boundary(content_type) else {
        return;
    };
    assert!((1..=70).contains(&boundary.len()));
    assert!(boundary.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
    let whole = __fuzz::multipart(body, &boundary, &[]);
    for pieces in cuts(body) {
        let cut = __fuzz::multipart(body, &boundary, &pieces);
        assert_eq!(cut, whole, "in pieces of {pieces:?}");
    }
    let Ok(parts) = whole else {
        return;
    };
    assert_eq!(
        whole_form::parse(body, &boundary, MOST_PARTS).as_deref(),
        Some(parts.as_slice()),
        "a plain reading finds something else"
    );
    assert!(parts.len() <= MOST_PARTS);
    let held: usize = parts.iter().map(|part| part.data.len()).sum();
    assert!(held <= body.len());
    let mark = format!("--{boundary}");
    let marks = body
        .windows(mark.len())
        .filter(|window| *window == mark.as_bytes())
        .count();
    assert!(parts.len() < marks.max(1));
    if parts.iter().all(|part| head(part).len() < LONG_HEAD) {
        written_again(&parts);
    }
}

fn written_again(parts: &[Part]) {
    let mut plain = Vec::new();
    for part in parts {
        plain.extend_from_slice(head(part).as_bytes());
        plain.extend_from_slice(&part.data);
    }
    let fresh = |boundary: &String| {
        !plain
            .windows(boundary.len())
            .any(|window| window == boundary.as_bytes())
    };
    let boundary = (0..)
        .map(|number| format!("b{number}"))
        .find(fresh)
        .expect("numbers without end");
    let mut text = Vec::new();
    for part in parts {
        text.extend_from_slice(format!("--{boundary}\r\n{}\r\n\r\n", head(part)).as_bytes());
        text.extend_from_slice(&part.data);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let again = __fuzz::multipart(&text, &boundary, &[]);
    assert_eq!(
        again.as_deref(),
        Ok(parts),
        "written as {}",
        text.escape_ascii()
    );
}

fn head(part: &Part) -> String {
    let mut head = format!(
        "Content-Disposition: form-data; name={}",
        parameter(&part.name)
    );
    if let Some(filename) = &part.filename {
        head.push_str(&format!("; filename={}", parameter(filename)));
    }
    head.push_str(&format!("\r\nContent-Type: {}", part.content_type));
    head
}

/// In quotes `%22` stands for a quote, so a text with `%22` in it has come without quotes.
fn parameter(text: &str) -> String {
    if text.contains("%22") {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
