//! Which bytes does this base64 text stand for?

/// Decodes base64 (RFC 4648 section 4), with its padding or without; `None` where it is none.
///
/// Bits that no byte needs must be zero: two texts never stand for the same bytes.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digits = match text {
        [rest @ .., b'=', b'='] if text.len().is_multiple_of(4) => rest,
        [rest @ .., b'='] if text.len().is_multiple_of(4) => rest,
        _ => text,
    };
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let mut bits = 0_u32;
        for &digit in group {
            bits = bits << 6 | u32::from(value(digit)?);
        }
        let left = match group.len() {
            4 => 0,
            3 => 2,
            2 => 4,
            _ => return None,
        };
        if bits & ((1 << left) - 1) != 0 {
            return None;
        }
        let count = group.len() - 1;
        let all = (bits >> left).to_be_bytes();
        bytes.extend_from_slice(&all[4 - count..]);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_the_vectors_of_the_rfc_and_refuses_the_rest() {
        // RFC 4648 section 10, then with missing padding.
        for (text, want) in [
            ("", Some("")),
            ("Zg==", Some("f")),
            ("Zm8=", Some("fo")),
            ("Zm9v", Some("foo")),
            ("Zm9vYg==", Some("foob")),
            ("Zm9vYmE=", Some("fooba")),
            ("Zm9vYmFy", Some("foobar")),
            ("Zg", Some("f")),
            ("Zm8", Some("fo")),
            ("QWxhZGRpbjpvcGVuIHNlc2FtZQ==", Some("Aladdin:open sesame")),
            ("Z", None),
            ("Zg=", None),
            ("Zg===", None),
            ("Zh==", None),
            ("Zm9=", None),
            ("Zm 9v", None),
            ("Zm-_", None),
            ("=", None),
            ("====", None),
            ("Zg==Zg==", None),
        ] {
            let decoded = decode(text.as_bytes());
            assert_eq!(decoded.as_deref(), want.map(str::as_bytes), "{text}");
        }
    }
}
