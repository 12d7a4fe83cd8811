//! Does every answer of a server have one meaning, however it arrives?

use cloudgate::__fuzz::{self, Length};

/// A head is understood or refused alike in whatever pieces it comes; one without a body says so, whatever its fields say;
/// and no connection is used again whose answer ends with it.
pub fn answer(input: &[u8]) {
    for limits in super::limits() {
        for to_head in [false, true] {
            let whole = __fuzz::answer(input, to_head, &limits);
            for pieces in super::cuts(input) {
                let (mut end, mut size, mut sizes) = (0, 1, pieces.iter());
                let arrived = loop {
                    if end >= input.len() {
                        break Ok(None);
                    }
                    size = sizes.next().copied().unwrap_or(size);
                    end = (end + size).min(input.len());
                    match __fuzz::answer(&input[..end], to_head, &limits) {
                        Ok(None) => {}
                        other => break other,
                    }
                };
                match (&whole, &arrived) {
                    // Where two rules are broken the pieces decide which is seen first.
                    (Err(_), Err(_)) => {}
                    _ => assert_eq!(whole, arrived, "the pieces decide what the answer means"),
                }
            }
            let Ok(Some(head)) = whole else { continue };
            assert!(head.consumed <= limits.head && head.fields.len() <= limits.fields);
            for (name, value) in &head.fields {
                assert!(!name.is_empty() && !value.iter().any(|byte| b"\r\n\0".contains(byte)));
            }
            let Ok((length, keep_alive)) = head.message else {
                continue;
            };
            if to_head || matches!(head.status, 100..=199 | 204 | 304) {
                assert_eq!(length, Some(Length::None));
            }
            assert!(length.is_some() || !keep_alive);
        }
    }
}
