//! Why can a server not say who it is?

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Why a certificate and a key cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum IdentityError {
    /// A file cannot be read.
    Unreadable {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no certificate in PEM form.
    NoCertificate {
        /// Where one should be.
        place: String,
    },
    /// There is no private key in PEM form.
    NoKey {
        /// Where one should be.
        place: String,
    },
    /// The private key is encrypted.
    EncryptedKey {
        /// Where it is.
        place: String,
    },
    /// What is there is no PEM, or a certificate or key that cannot be understood.
    Malformed {
        /// Where it is.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The key is not that of the certificate.
    Mismatch {
        /// Where the certificate is.
        certificate: String,
        /// Where the key is.
        key: String,
    },
    /// The certificate is not valid any more.
    Expired {
        /// Where it is.
        place: String,
        /// Whom it is for.
        subject: String,
        /// Until when it was valid.
        at: SystemTime,
        /// How long ago that is.
        ago: Duration,
    },
    /// The certificate is not valid yet.
    NotYetValid {
        /// Where it is.
        place: String,
        /// Whom it is for.
        subject: String,
        /// From when on it is valid.
        at: SystemTime,
    },
    /// The password of a PKCS#12 file is another.
    WrongPassword {
        /// Where it is.
        place: String,
    },
    /// A file in which a key is to be made cannot be written.
    Unwritable {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file in which a key is to be made holds something else.
    NotGenerated {
        /// Which one.
        path: PathBuf,
        /// What is wrong with what it holds.
        reason: String,
    },
    /// A name to show a certificate for is none.
    Name {
        /// What was given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Clients' certificates cannot be verified.
    Clients {
        /// Where the certificates of those who sign them are.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The way of TLS that was chosen cannot do what was asked for.
    Unsupported {
        /// What it cannot do.
        what: &'static str,
    },
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::Unreadable { path, source } => {
                write!(f, "{} cannot be read: {source}", path.display())
            }
            IdentityError::NoCertificate { place } => write!(
                f,
                "{place} holds no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----"
            ),
            IdentityError::NoKey { place } => write!(
                f,
                "{place} holds no private key in PEM form, which begins with -----BEGIN PRIVATE KEY-----"
            ),
            IdentityError::EncryptedKey { place } => write!(
                f,
                "the key in {place} is encrypted; `openssl pkey -in key.pem -out plain.pem` writes it without a password"
            ),
            IdentityError::Malformed { place, reason } => {
                write!(f, "{place} cannot be understood: {reason}")
            }
            IdentityError::Mismatch { certificate, key } => write!(
                f,
                "the key in {key} is not the one of the certificate in {certificate}"
            ),
            IdentityError::Expired {
                place,
                subject,
                at,
                ago,
            } => write!(
                f,
                "the certificate in {place} ({subject}) has expired {} ago, on {}; put a renewed one in its place",
                span(*ago),
                httpdate::fmt_http_date(*at)
            ),
            IdentityError::NotYetValid { place, subject, at } => write!(
                f,
                "the certificate in {place} ({subject}) is not valid before {}; is the clock of this machine right?",
                httpdate::fmt_http_date(*at)
            ),
            IdentityError::WrongPassword { place } => {
                write!(f, "the password of {place} is another")
            }
            IdentityError::Unwritable { path, source } => {
                write!(f, "no key can be written to {}: {source}", path.display())
            }
            IdentityError::NotGenerated { path, reason } => write!(
                f,
                "{} was not made here and is left as it is, but it holds no identity: {reason}; move it away, or name another file",
                path.display()
            ),
            IdentityError::Name { name, reason } => {
                write!(f, "{name:?} is no name to show a certificate for: {reason}")
            }
            IdentityError::Clients { place, reason } => write!(
                f,
                "clients' certificates cannot be verified by {place}: {reason}"
            ),
            IdentityError::Unsupported { what } => {
                write!(f, "native-tls cannot {what}; leave it out, or use rustls")
            }
        }
    }
}

impl std::error::Error for IdentityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            IdentityError::Unreadable { source, .. } | IdentityError::Unwritable { source, .. } => {
                Some(source)
            }
            _ => None,
        }
    }
}

/// A span of time in the largest unit that fits, as people say it.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        86_400.. => (seconds / 86_400, "day"),
        3_600.. => (seconds / 3_600, "hour"),
        60.. => (seconds / 60, "minute"),
        _ => (seconds, "second"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_said_in_its_largest_unit() {
        for (seconds, want) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (3_599, "59 minutes"),
            (7_200, "2 hours"),
            (86_399, "23 hours"),
            (86_400, "1 day"),
            (864_000, "10 days"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), want);
        }
    }
}
