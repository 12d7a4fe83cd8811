//! Does every request end where its head says, however its body arrives?

use cloudgate::__fuzz::{self, Decoded, Length};
use cloudgate::Limits;

/// The body of a request, or the input itself as a chunked body, is the same in whatever pieces it
/// comes and is read; it ends where a plain second reading says.
pub fn framing_decode(input: &[u8]) {
    for limits in super::limits() {
        if let Ok(Some(head)) = __fuzz::head(input, &limits)
            && let Ok(message) = head.message
        {
            body(message.length, &input[head.consumed..], &limits);
        }
        body(Length::Chunked, input, &limits);
    }
}

fn body(length: Length, input: &[u8], limits: &Limits) {
    let whole = __fuzz::decode(length, input, &[], input.len().max(1), limits);
    for pieces in super::cuts(input) {
        for room in [0, 1, 7, input.len().max(1)] {
            let got = __fuzz::decode(length, input, &pieces, room, limits);
            compare(&whole, &got);
        }
    }
    assert!(whole.consumed <= input.len());
    assert!(whole.body.len() <= whole.consumed);
    match length {
        Length::None => assert!(whole.done && whole.consumed == 0),
        Length::Sized(length) => {
            let end = usize::try_from(length).map_or(input.len(), |length| length.min(input.len()));
            assert_eq!(whole.body, &input[..end]);
            assert_eq!(whole.done, end as u64 == length);
        }
        Length::Chunked if whole.done => {
            ends_where_a_second_reading_says(&whole, input);
            chunked_again(&whole.body, limits);
        }
        Length::Chunked => {}
    }
    if whole.done {
        // What stands behind the body belongs to the next request.
        let alone = __fuzz::decode(length, &input[..whole.consumed], &[], 64, limits);
        compare(&whole, &alone);
    }
}

fn compare(whole: &Decoded, got: &Decoded) {
    assert_eq!(
        whole.refusal, got.refusal,
        "the pieces decide about the body"
    );
    if whole.refusal.is_none() {
        assert_eq!(whole, got, "the pieces decide about the body");
    } else {
        // How much of the body was handed on before the fault was seen may differ, not what.
        let common = whole.body.len().min(got.body.len());
        assert_eq!(whole.body[..common], got.body[..common]);
        assert!(!whole.done && !got.done);
    }
}

/// Reads chunks line by line, without care for limits or for what extensions and trailers hold.
fn ends_where_a_second_reading_says(whole: &Decoded, input: &[u8]) {
    let (mut body, mut at) = (Vec::new(), 0);
    let line_end = |at: usize| {
        let found = input[at..].windows(2).position(|pair| pair == b"\r\n");
        at + found.expect("a line of a body that was accepted")
    };
    loop {
        let end = line_end(at);
        let digits = input[at..end].split(|&byte| byte == b';').next();
        let digits = std::str::from_utf8(digits.expect("the first piece")).expect("hex digits");
        let size = usize::from_str_radix(digits, 16).expect("hex digits");
        assert!(!digits.starts_with('+'));
        at = end + 2;
        if size == 0 {
            break;
        }
        body.extend_from_slice(&input[at..at + size]);
        assert_eq!(&input[at + size..at + size + 2], b"\r\n");
        at += size + 2;
    }
    loop {
        let end = line_end(at);
        let empty = end == at;
        at = end + 2;
        if empty {
            break;
        }
    }
    assert_eq!((body, at), (whole.body.clone(), whole.consumed));
}

fn chunked_again(body: &[u8], limits: &Limits) {
    let mut text = Vec::new();
    for piece in body.chunks(13) {
        text.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        text.extend_from_slice(piece);
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"0\r\n\r\n");
    let again = __fuzz::decode(Length::Chunked, &text, &[5], 9, limits);
    assert_eq!(again.body, body);
    assert!(again.done && again.consumed == text.len());
}
