//! Is this the secret, without telling by the time that it takes how much of it is right?

use subtle::{Choice, ConstantTimeEq};

/// Whether `shown` is one of the secrets. The time depends on their number and lengths alone; an
/// empty one never fits.
pub(crate) fn is_one_of<'s>(shown: &[u8], secrets: impl IntoIterator<Item = &'s [u8]>) -> bool {
    let fits = secrets
        .into_iter()
        .filter(|secret| !secret.is_empty())
        .fold(Choice::from(0), |fits, secret| fits | secret.ct_eq(shown));
    fits.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_secret_fits_and_never_an_empty_one() {
        let secrets = [&b"one"[..], b"", b"three"];
        for (shown, want) in [
            ("one", true),
            ("three", true),
            ("", false),
            ("on", false),
            ("onee", false),
            ("two", false),
        ] {
            assert_eq!(is_one_of(shown.as_bytes(), secrets), want, "{shown}");
        }
        assert!(!is_one_of(b"", []));
    }
}
