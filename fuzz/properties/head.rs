//! Does every request head have one meaning, however it arrives?

use cloudgate::__fuzz::{self, Head, Refusal};
use cloudgate::Limits;

/// Bytes of the empty lines that may stand in front of a head.
const EMPTY_LINES: usize = 8;

/// A head is accepted or refused alike in whatever pieces it comes; what is accepted keeps to the
/// limits and, written again, means the same.
pub fn head(input: &[u8]) {
    for limits in super::limits() {
        let whole = __fuzz::head(input, &limits);
        for pieces in super::cuts(input) {
            let arrived = arriving(input, &pieces, &limits);
            compare(input, &whole, &arrived, &limits);
        }
        if let Ok(Some(head)) = &whole {
            keeps_to_limits(head, input, &limits);
            written_again(head, &limits);
        }
    }
}

/// The first answer that is not "more, please", as a connection asks for it.
fn arriving(input: &[u8], pieces: &[usize], limits: &Limits) -> Result<Option<Head>, Refusal> {
    let (mut sizes, mut size, mut end) = (pieces.iter(), 1, 0);
    while end < input.len() {
        size = sizes.next().copied().unwrap_or(size);
        end = (end + size).min(input.len());
        match __fuzz::head(&input[..end], limits) {
            Ok(None) => {}
            other => return other,
        }
    }
    Ok(None)
}

fn compare(
    input: &[u8],
    whole: &Result<Option<Head>, Refusal>,
    arrived: &Result<Option<Head>, Refusal>,
    limits: &Limits,
) {
    // Where two rules are broken, one of them a limit, the pieces decide which is seen first.
    let limits_are_far = input.len() <= limits.target.min(limits.head);
    match (whole, arrived) {
        (Err(_), Err(_)) if !limits_are_far => {}
        _ => assert_eq!(whole, arrived, "the pieces decide what the head means"),
    }
}

fn keeps_to_limits(head: &Head, input: &[u8], limits: &Limits) {
    assert!(head.consumed <= input.len());
    assert!(head.consumed <= limits.head + EMPTY_LINES);
    assert!(head.fields.len() <= limits.fields);
    // `http://h?q` has the path `/`, one byte more than was sent.
    assert!(head.target.len() <= limits.target + 1);
    assert_eq!(head.question, head.target.find('?'));
    assert!(head.target == "*" || head.target.starts_with('/'));
    assert!(!head.method.is_empty() && head.method.is_ascii());
    let sent = &input[..head.consumed];
    for (name, value) in &head.fields {
        assert!(!name.is_empty() && !name.contains([' ', ':', '\r', '\n']));
        assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
        assert!(find(sent, name.as_bytes()) && find(sent, value));
    }
}

fn find(text: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || text.windows(wanted.len()).any(|window| window == wanted)
}

fn written_again(head: &Head, limits: &Limits) {
    let target = match &head.authority {
        None => head.target.clone(),
        Some(authority) if head.method == "CONNECT" => authority.clone(),
        Some(authority) => format!("http://{authority}{}", head.target),
    };
    let mut text = format!("{} {target} HTTP/1.{}\r\n", head.method, head.minor).into_bytes();
    for (name, value) in &head.fields {
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    if target.len() > limits.target || text.len() > limits.head {
        return;
    }
    let again = __fuzz::head(&text, limits);
    let mut want = head.clone();
    want.consumed = text.len();
    assert_eq!(again, Ok(Some(want)), "written as {}", text.escape_ascii());
}
