//! Which bytes does this base64 text stand for?

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Padding is there or not, as clients like it; bits that no byte needs must be zero.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Decodes base64 (RFC 4648 section 4), with its padding or without; `None` where it is none.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    ENGINE.decode(text).ok()
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
            // Half of the padding is as good as none.
            ("Zg=", Some("f")),
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
