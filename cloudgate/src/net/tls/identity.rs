//! Who does a server say that it is?

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};

/// The largest file of certificates or of a key that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// A certificate with its chain, and its private key: what a server shows to those who connect by TLS.
///
/// ```no_run
/// use cloudgate::{App, Identity, Server};
/// let identity = Identity::from_pem_files("cert.pem", "key.pem")?;
/// let server = Server::bind("0.0.0.0:80")?
///     .and_bind_tls("0.0.0.0:443", &identity)?
///     .serve(App::new().get("/", || "hello"))?;
/// # Ok::<(), cloudgate::Error>(())
/// ```
#[derive(Clone)]
pub struct Identity {
    config: Arc<ServerConfig>,
    certificates: usize,
}

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
        }
    }
}

impl std::error::Error for IdentityError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            IdentityError::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Identity {
    /// Reads a certificate with its chain, the server's own first, and its key: PKCS#8, PKCS#1 or SEC1. Both may be in one
    /// file.
    ///
    /// # Errors
    /// [`IdentityError`], which names the file.
    pub fn from_pem_files(
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Identity, IdentityError> {
        let (certificate, key) = (certificate.as_ref(), key.as_ref());
        let chain = read(certificate)?;
        let secret = read(key)?;
        let place = |path: &Path| path.display().to_string();
        Identity::new(&chain, &place(certificate), &secret, &place(key))
    }

    /// As [`Identity::from_pem_files`], of what was read already.
    ///
    /// # Errors
    /// As [`Identity::from_pem_files`].
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Identity, IdentityError> {
        Identity::new(certificate, "the certificate", key, "the key")
    }

    fn new(
        chain: &[u8],
        chain_place: &str,
        key: &[u8],
        key_place: &str,
    ) -> Result<Identity, IdentityError> {
        let malformed = |place: &str, reason: &dyn fmt::Display| IdentityError::Malformed {
            place: place.to_owned(),
            reason: reason.to_string(),
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|error| malformed(chain_place, &error))?;
        if chain.is_empty() {
            return Err(IdentityError::NoCertificate {
                place: chain_place.to_owned(),
            });
        }
        let secret = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            pem::Error::NoItemsFound if holds_encrypted_key(key) => IdentityError::EncryptedKey {
                place: key_place.to_owned(),
            },
            pem::Error::NoItemsFound => IdentityError::NoKey {
                place: key_place.to_owned(),
            },
            other => malformed(key_place, &other),
        })?;
        let certificates = chain.len();
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| malformed("the configuration of TLS", &error))?;
        let mut config = builder
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => IdentityError::Mismatch {
                    certificate: chain_place.to_owned(),
                    key: key_place.to_owned(),
                },
                rustls::Error::InvalidCertificate(reason) => {
                    malformed(chain_place, &format_args!("{reason:?}"))
                }
                other => malformed(key_place, &other),
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Whichever worker a client comes back to, the ticket that it brings is good there.
        config.ticketer =
            ring::Ticketer::new().map_err(|error| malformed("the configuration of TLS", &error))?;
        Ok(Identity {
            config: Arc::new(config),
            certificates,
        })
    }

    pub(crate) fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }
}

fn holds_encrypted_key(pem: &[u8]) -> bool {
    let marker = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";
    let old = b"Proc-Type: 4,ENCRYPTED";
    memchr::memmem::find(pem, marker).is_some() || memchr::memmem::find(pem, old).is_some()
}

fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    let unreadable = |source| IdentityError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let length = fs::metadata(path).map_err(unreadable)?.len();
    if length > LARGEST {
        let source = io::Error::other(format!(
            "it has {length} bytes, more than a certificate has"
        ));
        return Err(unreadable(source));
    }
    fs::read(path).map_err(unreadable)
}

/// The key is not shown.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("certificates", &self.certificates)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    fn error(certificate: &str, key: &str) -> String {
        Identity::from_pem(certificate.as_bytes(), key.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_pair_is_taken_also_from_one_file() {
        let (certificate, key) = made();
        assert!(Identity::from_pem(certificate.as_bytes(), key.as_bytes()).is_ok());
        let both = format!("{key}{certificate}");
        let identity = Identity::from_pem(both.as_bytes(), both.as_bytes()).unwrap();
        assert_eq!(format!("{identity:?}"), "Identity { certificates: 1, .. }");
    }

    #[test]
    fn what_cannot_be_used_is_told_with_its_place() {
        let (certificate, key) = made();
        let (_, other) = made();
        assert!(error("", &key).starts_with("the certificate holds no certificate in PEM form"));
        assert!(error(&key, &key).starts_with("the certificate holds no certificate"));
        assert!(error(&certificate, "").starts_with("the key holds no private key"));
        assert_eq!(
            error(&certificate, &other),
            "the key in the key is not the one of the certificate in the certificate"
        );
        let encrypted =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        assert!(error(&certificate, encrypted).contains("is encrypted; `openssl pkey"));
        let broken = certificate.replace("MII", "!!!");
        assert!(error(&broken, &key).starts_with("the certificate cannot be understood"));
        let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(error(empty, &key).starts_with("the certificate cannot be understood"));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Identity::from_pem_files("/nowhere/cert.pem", "/nowhere/key.pem").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("/nowhere/cert.pem cannot be read: "),
            "{error}"
        );
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large.pem");
        fs::write(&large, vec![b'x'; LARGEST as usize + 1]).unwrap();
        let error = Identity::from_pem_files(&large, &large).unwrap_err();
        assert!(
            error.to_string().contains("more than a certificate has"),
            "{error}"
        );
    }
}
