//! Who does a server say that it is?

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::generated::{self, GeneratedKey};
use super::identity_error::IdentityError;
use super::local_ca;
#[cfg(feature = "pkcs12")]
use super::pkcs12;
use super::serving::provider;
use crate::message::Certificate;
use crate::net::home;

/// The largest file of certificates or of a key that is read, in bytes.
pub(crate) const LARGEST: u64 = 1 << 20;

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
///
/// While a server runs, one that came from files is read again when they change: see [`Tls`](crate::Tls).
#[derive(Clone)]
pub struct Identity(Arc<Known>);

struct Known {
    source: Source,
    certified: Arc<CertifiedKey>,
    /// The private key as it was read.
    #[cfg(feature = "native-tls")]
    key: PrivateKeyDer<'static>,
    /// What the server's own certificate says.
    certificate: Certificate,
    /// What people call the place where it is.
    place: String,
    /// What the files were like before they were read.
    stamps: Vec<Stamp>,
}

/// Where it came from.
enum Source {
    Memory,
    PemFiles {
        certificate: PathBuf,
        key: PathBuf,
    },
    Generated(GeneratedKey),
    #[cfg(feature = "pkcs12")]
    Pkcs12 {
        path: PathBuf,
        password: String,
    },
}

/// What tells one state of a file from another: device, inode, length, and the times of its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Option<[i64; 7]>);

impl Stamp {
    /// The file behind every link; one that is not there has a stamp as well.
    pub(crate) fn of(path: &Path) -> Stamp {
        Stamp(fs::metadata(path).ok().map(|data| {
            [
                data.dev() as i64,
                data.ino() as i64,
                data.size() as i64,
                data.mtime(),
                data.mtime_nsec(),
                data.ctime(),
                data.ctime_nsec(),
            ]
        }))
    }
}

/// A chain, the server's own certificate first, and the key of that.
pub(crate) struct Material {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
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
        let source = Source::PemFiles {
            certificate: certificate.as_ref().to_owned(),
            key: key.as_ref().to_owned(),
        };
        source.read_aside()
    }

    /// Reads a certificate with its chain and its key from a file in PKCS#12 form (`.p12`, `.pfx`), with the feature
    /// `pkcs12`. One that is encrypted by RC2 or triple DES, as old programs write it, is read as well.
    ///
    /// # Errors
    /// [`IdentityError`], which names the file.
    #[cfg(feature = "pkcs12")]
    pub fn from_pkcs12_file(
        path: impl AsRef<Path>,
        password: &str,
    ) -> Result<Identity, IdentityError> {
        let source = Source::Pkcs12 {
            path: path.as_ref().to_owned(),
            password: password.to_owned(),
        };
        source.read_aside()
    }

    /// As [`Identity::from_pkcs12_file`], of what was read already.
    ///
    /// # Errors
    /// As [`Identity::from_pkcs12_file`].
    #[cfg(feature = "pkcs12")]
    pub fn from_pkcs12(bytes: &[u8], password: &str) -> Result<Identity, IdentityError> {
        let (bytes, password) = (bytes.to_vec(), password.to_owned());
        home::blocking(move || {
            let place = "the PKCS#12 file";
            let material = pkcs12::read(&bytes, &password, place)?;
            let now = SystemTime::now();
            Identity::new(Source::Memory, material, (place, place), Vec::new(), now)
        })
    }

    /// Takes the key that was made in a file, or makes it.
    ///
    /// # Errors
    /// [`IdentityError`], where the file cannot be written or holds something else.
    pub fn generated(key: &GeneratedKey) -> Result<Identity, IdentityError> {
        Source::Generated(key.clone()).read_aside()
    }

    /// As [`Identity::from_pem_files`], of what was read already.
    ///
    /// # Errors
    /// As [`Identity::from_pem_files`].
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Identity, IdentityError> {
        let places = ("the certificate", "the key");
        let material = parse_pem(certificate, places.0, key, places.1)?;
        let now = SystemTime::now();
        Identity::new(Source::Memory, material, places, Vec::new(), now)
    }

    /// The server's own certificate.
    pub fn certificate(&self) -> &Certificate {
        &self.0.certificate
    }

    fn new(
        source: Source,
        material: Material,
        (place, key_place): (&str, &str),
        stamps: Vec<Stamp>,
        now: SystemTime,
    ) -> Result<Identity, IdentityError> {
        let Material { chain, key } = material;
        let malformed = |place: &str, reason: String| IdentityError::Malformed {
            place: place.to_owned(),
            reason,
        };
        let Some(own) = chain.first() else {
            return Err(IdentityError::NoCertificate {
                place: place.to_owned(),
            });
        };
        let certificate =
            Certificate::from_der(own).map_err(|error| malformed(place, error.to_string()))?;
        let certified = CertifiedKey::from_der(chain, key.clone_key(), &provider()).map_err(
            |error| match error {
                rustls::Error::InconsistentKeys(_) => IdentityError::Mismatch {
                    certificate: place.to_owned(),
                    key: key_place.to_owned(),
                },
                rustls::Error::InvalidCertificate(reason) => {
                    malformed(place, format!("{reason:?}"))
                }
                other => malformed(key_place, other.to_string()),
            },
        )?;
        in_time(&certificate, place, now)?;
        Ok(Identity(Arc::new(Known {
            source,
            certified: Arc::new(certified),
            #[cfg(feature = "native-tls")]
            key,
            certificate,
            place: place.to_owned(),
            stamps,
        })))
    }

    pub(crate) fn certified(&self) -> &Arc<CertifiedKey> {
        &self.0.certified
    }

    /// The private key as it was read.
    #[cfg(feature = "native-tls")]
    pub(crate) fn key(&self) -> &PrivateKeyDer<'static> {
        &self.0.key
    }

    /// What people call the place where it is.
    pub(crate) fn place(&self) -> &str {
        &self.0.place
    }

    /// What the files are like now, where that is not what they were like when they were read.
    pub(crate) fn changed(&self) -> Option<Vec<Stamp>> {
        let now = self.0.source.stamps();
        (now != self.0.stamps).then_some(now)
    }

    /// Whether it was made here and is to be made anew.
    pub(crate) fn is_due(&self, now: SystemTime) -> bool {
        matches!(self.0.source, Source::Generated(_)) && generated::is_due(&self.0.certificate, now)
    }

    /// Reads it anew from where it came.
    ///
    /// # Errors
    /// As at first.
    pub(crate) fn read_again(&self, now: SystemTime) -> Result<Identity, IdentityError> {
        if matches!(self.0.source, Source::Memory) {
            return Ok(self.clone());
        }
        self.0.source.read(now)
    }
}

impl Source {
    fn files(&self) -> Vec<&Path> {
        match self {
            Source::Memory => Vec::new(),
            Source::PemFiles { certificate, key } => vec![certificate, key],
            Source::Generated(key) => vec![key.path()],
            #[cfg(feature = "pkcs12")]
            Source::Pkcs12 { path, .. } => vec![path],
        }
    }

    fn stamps(&self) -> Vec<Stamp> {
        let mut stamps: Vec<_> = self.files().into_iter().map(Stamp::of).collect();
        if matches!(self, Source::Generated(_)) {
            // Who makes a local CA while the server runs has it sign from then on.
            stamps.extend(local_ca::key_file().map(|path| Stamp::of(&path)));
        }
        stamps
    }

    /// Reads it at its first time, beside the worker if a handler should want that.
    fn read_aside(self) -> Result<Identity, IdentityError> {
        home::blocking(move || self.read(SystemTime::now()))
    }

    fn read(&self, now: SystemTime) -> Result<Identity, IdentityError> {
        // Before they are read, so that what changes meanwhile is seen to have changed.
        let stamps = self.stamps();
        match self {
            Source::Generated(key) => {
                let place = key.path().display().to_string();
                let material = key.ensure(now)?;
                // It may have been written just now.
                let stamps = self.stamps();
                let source = Source::Generated(key.clone());
                Identity::new(source, material, (&place, &place), stamps, now)
            }
            #[cfg(feature = "pkcs12")]
            Source::Pkcs12 { path, password } => {
                let place = path.display().to_string();
                let material = pkcs12::read(&read(path)?, password, &place)?;
                let source = Source::Pkcs12 {
                    path: path.clone(),
                    password: password.clone(),
                };
                Identity::new(source, material, (&place, &place), stamps, now)
            }
            Source::Memory => Err(IdentityError::NoCertificate {
                place: "the memory".to_owned(),
            }),
            Source::PemFiles { certificate, key } => {
                let (chain, secret) = (read(certificate)?, read(key)?);
                let place = |path: &Path| path.display().to_string();
                let (chain_place, key_place) = (place(certificate), place(key));
                let material = parse_pem(&chain, &chain_place, &secret, &key_place)?;
                let source = Source::PemFiles {
                    certificate: certificate.clone(),
                    key: key.clone(),
                };
                Identity::new(source, material, (&chain_place, &key_place), stamps, now)
            }
        }
    }
}

/// Refuses a certificate out of its time (RFC 5280 section 4.1.2.5).
fn in_time(certificate: &Certificate, place: &str, now: SystemTime) -> Result<(), IdentityError> {
    let (place, subject) = (place.to_owned(), called(certificate));
    if let Ok(ago) = now.duration_since(certificate.valid_until())
        && !ago.is_zero()
    {
        let at = certificate.valid_until();
        return Err(IdentityError::Expired {
            place,
            subject,
            at,
            ago,
        });
    }
    if now < certificate.valid_from() {
        let at = certificate.valid_from();
        return Err(IdentityError::NotYetValid { place, subject, at });
    }
    Ok(())
}

/// How people know a certificate: by the first host that it is for.
pub(crate) fn called(certificate: &Certificate) -> String {
    match certificate.names().first() {
        Some(name) => name.clone(),
        None => certificate.subject().to_owned(),
    }
}

/// Reads a chain and a key in PEM form (RFC 7468).
///
/// # Errors
/// [`IdentityError`] with the place.
pub(crate) fn parse_pem(
    chain: &[u8],
    chain_place: &str,
    key: &[u8],
    key_place: &str,
) -> Result<Material, IdentityError> {
    let chain = parse_certificates(chain, chain_place)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
        pem::Error::NoItemsFound if holds_encrypted_key(key) => IdentityError::EncryptedKey {
            place: key_place.to_owned(),
        },
        pem::Error::NoItemsFound => IdentityError::NoKey {
            place: key_place.to_owned(),
        },
        other => IdentityError::Malformed {
            place: key_place.to_owned(),
            reason: other.to_string(),
        },
    })?;
    Ok(Material { chain, key })
}

/// Reads certificates in PEM form, of which there is at least one.
///
/// # Errors
/// [`IdentityError`] with the place.
pub(crate) fn parse_certificates(
    pem: &[u8],
    place: &str,
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| IdentityError::Malformed {
            place: place.to_owned(),
            reason: error.to_string(),
        })?;
    if chain.is_empty() {
        return Err(IdentityError::NoCertificate {
            place: place.to_owned(),
        });
    }
    Ok(chain)
}

fn holds_encrypted_key(pem: &[u8]) -> bool {
    let marker = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";
    let old = b"Proc-Type: 4,ENCRYPTED";
    memchr::memmem::find(pem, marker).is_some() || memchr::memmem::find(pem, old).is_some()
}

/// Whether a file is called as those in PKCS#12 form are.
pub(crate) fn is_pkcs12(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    extension.eq_ignore_ascii_case("p12") || extension.eq_ignore_ascii_case("pfx")
}

/// Reads a file of certificates or of a key.
///
/// # Errors
/// [`IdentityError::Unreadable`], also where it is larger than such a file is.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, IdentityError> {
    let unreadable = |source| IdentityError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(unreadable(io::Error::other(
            "it has over a mebibyte, more than a certificate has",
        )));
    }
    Ok(bytes)
}

/// The key is not shown.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("certificate", &self.0.certificate)
            .field("chain", &self.0.certified.cert.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        assert_eq!(identity.certificate().names(), ["localhost"]);
        let shown = format!("{identity:?}");
        assert!(shown.contains("localhost") && shown.contains("chain: 1, .."));
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
    fn a_certificate_out_of_its_time_is_refused() {
        let (certificate, key) = made();
        let made = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let own = made.certificate();
        let (from, until) = (own.valid_from(), own.valid_until());
        let second = Duration::from_secs(1);
        assert!(in_time(own, "a.pem", from).is_ok() && in_time(own, "a.pem", until).is_ok());
        assert_eq!(
            in_time(own, "a.pem", from - second)
                .unwrap_err()
                .to_string(),
            format!(
                "the certificate in a.pem (localhost) is not valid before {}; is the clock of this machine right?",
                httpdate::fmt_http_date(from)
            )
        );
        assert_eq!(
            in_time(own, "a.pem", until + 2 * 86_400 * second)
                .unwrap_err()
                .to_string(),
            format!(
                "the certificate in a.pem (localhost) has expired 2 days ago, on {}; put a renewed one in its place",
                httpdate::fmt_http_date(until)
            )
        );
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
        fs::write(&large, vec![b'\n'; LARGEST as usize + 1]).unwrap();
        let error = Identity::from_pem_files(&large, &large).unwrap_err();
        assert!(
            error.to_string().contains("more than a certificate has"),
            "{error}"
        );
        fs::write(&large, vec![b'\n'; LARGEST as usize]).unwrap();
        let error = Identity::from_pem_files(&large, &large).unwrap_err();
        assert!(
            matches!(error, IdentityError::NoCertificate { .. }),
            "{error}"
        );
    }

    #[test]
    fn a_change_of_its_files_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("both.pem");
        let (certificate, key) = made();
        fs::write(&path, format!("{certificate}{key}")).unwrap();
        let identity = Identity::from_pem_files(&path, &path).unwrap();
        assert_eq!(identity.changed(), None);
        let (certificate, key) = made();
        fs::write(folder.path().join("new"), format!("{certificate}{key}")).unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert!(identity.changed().is_some());
        let again = identity.read_again(SystemTime::now()).unwrap();
        assert_eq!(again.changed(), None);
        assert_ne!(again.certificate(), identity.certificate());
        fs::remove_file(&path).unwrap();
        assert!(again.changed().is_some() && again.read_again(SystemTime::now()).is_err());
    }
}
