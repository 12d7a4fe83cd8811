//! Which clients are let in that show a certificate, and must they (RFC 8446 section 4.3.2)?

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use super::identity::{Stamp, parse_certificates, read};
use super::identity_error::IdentityError;

/// Who signs the certificates by which clients say who they are (mutual TLS).
///
/// Clients are asked for a certificate, and one without a good one does not get in: the handshake fails, before any
/// request. The handler finds it in [`Request::client_certificate`](crate::Request::client_certificate).
///
/// ```no_run
/// use cloudgate::{App, ClientCa, ClientCertificate, Identity, Server, Tls, route};
///
/// #[route("/whoami")]
/// fn who(ClientCertificate(me): ClientCertificate) -> String {
///     me.subject().to_owned()
/// }
///
/// fn main() -> cloudgate::Result<()> {
///     let clients = ClientCa::from_pem_file("clients-ca.pem")?;
///     let tls = Tls::new(Identity::from_pem_files("cert.pem", "key.pem")?).client_ca(clients);
///     App::gather().run_on(Server::bind_tls("0.0.0.0:443", tls)?)
/// }
/// ```
///
/// It is signed by one of these, by a chain that the client sends along, in its time, and for TLS clients if it says what
/// it is for (RFC 5280).
#[derive(Clone)]
pub struct ClientCa {
    roots: Arc<[CertificateDer<'static>]>,
    /// Lists of certificates that are not good any more.
    revoked: Arc<[CertificateRevocationListDer<'static>]>,
    optional: bool,
    place: String,
    file: Option<PathBuf>,
    revoked_file: Option<PathBuf>,
    /// What the files were like before they were read.
    stamps: Vec<Stamp>,
}

impl ClientCa {
    /// Reads the certificates of those who sign, in PEM form.
    ///
    /// # Errors
    /// [`IdentityError`], which names the file.
    pub fn from_pem_file(path: impl AsRef<Path>) -> Result<ClientCa, IdentityError> {
        let path = path.as_ref();
        let stamps = vec![Stamp::of(path)];
        let mut clients = ClientCa::new(&read(path)?, path.display().to_string())?;
        clients.file = Some(path.to_owned());
        clients.stamps = stamps;
        Ok(clients)
    }

    /// As [`ClientCa::from_pem_file`], of what was read already.
    ///
    /// # Errors
    /// As [`ClientCa::from_pem_file`].
    pub fn from_pem(certificates: &[u8]) -> Result<ClientCa, IdentityError> {
        ClientCa::new(certificates, "the clients' CA".to_owned())
    }

    fn new(pem: &[u8], place: String) -> Result<ClientCa, IdentityError> {
        let roots = parse_certificates(pem, &place)?;
        Ok(ClientCa {
            roots: roots.into(),
            revoked: Arc::new([]),
            optional: false,
            place,
            file: None,
            revoked_file: None,
            stamps: Vec::new(),
        })
    }

    /// Lets clients in that show no certificate as well; the handler decides. One that is shown has to be good all the
    /// same.
    #[must_use]
    pub fn optional(mut self) -> ClientCa {
        self.optional = true;
        self
    }

    /// Refuses certificates that are in one of the lists of this file, in PEM form (`BEGIN X509 CRL`, RFC 5280 section 5).
    ///
    /// There has to be a list of each who signs for clients, and in its time: otherwise nobody that they have signed for
    /// gets in.
    ///
    /// # Errors
    /// [`IdentityError`], which names the file.
    pub fn revoked_in(mut self, path: impl AsRef<Path>) -> Result<ClientCa, IdentityError> {
        let path = path.as_ref();
        self.stamps.push(Stamp::of(path));
        let lists: Vec<_> = CertificateRevocationListDer::pem_slice_iter(&read(path)?)
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
            .and_then(|lists: Vec<_>| match lists.is_empty() {
                true => Err("it holds no list, which begins with -----BEGIN X509 CRL-----".into()),
                false => Ok(lists),
            })
            .map_err(|reason| IdentityError::Malformed {
                place: path.display().to_string(),
                reason,
            })?;
        self.revoked = lists.into();
        self.revoked_file = Some(path.to_owned());
        Ok(self)
    }

    pub(crate) fn changed(&self) -> Option<Vec<Stamp>> {
        let files = self.file.iter().chain(&self.revoked_file);
        let now: Vec<_> = files.map(|path| Stamp::of(path)).collect();
        (now != self.stamps).then_some(now)
    }

    /// Reads the files anew.
    ///
    /// # Errors
    /// As at first.
    pub(crate) fn read_again(&self) -> Result<ClientCa, IdentityError> {
        let mut again = match &self.file {
            Some(path) => ClientCa::from_pem_file(path)?,
            None => ClientCa {
                stamps: Vec::new(),
                ..self.clone()
            },
        };
        again.optional = self.optional;
        match &self.revoked_file {
            Some(path) => again.revoked_in(path),
            None => Ok(again),
        }
    }

    /// What verifies clients.
    ///
    /// # Errors
    /// [`IdentityError::Clients`] where one of the certificates or lists cannot be used.
    pub(crate) fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, IdentityError> {
        let refuse = |reason: String| IdentityError::Clients {
            place: self.place.clone(),
            reason,
        };
        let mut roots = RootCertStore::empty();
        for root in self.roots.iter() {
            roots
                .add(root.clone())
                .map_err(|error| refuse(error.to_string()))?;
        }
        let mut verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        if !self.revoked.is_empty() {
            verifier = verifier
                .with_crls(self.revoked.iter().cloned())
                .only_check_end_entity_revocation()
                .enforce_revocation_expiration();
        }
        if self.optional {
            verifier = verifier.allow_unauthenticated();
        }
        verifier.build().map_err(|error| refuse(error.to_string()))
    }
}

impl fmt::Debug for ClientCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCa")
            .field("place", &self.place)
            .field("certificates", &self.roots.len())
            .field("optional", &self.optional)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_used_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let made = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
        std::fs::write(&path, made.cert.pem()).unwrap();
        let clients = ClientCa::from_pem_file(&path).unwrap();
        assert!(format!("{clients:?}").contains("certificates: 1, optional: false"));
        let error = clients.clone().revoked_in(&path).unwrap_err().to_string();
        assert!(error.contains("BEGIN X509 CRL"), "{error}");
        let error = ClientCa::from_pem(b"").unwrap_err().to_string();
        assert!(
            error.starts_with("the clients' CA holds no certificate"),
            "{error}"
        );
        assert_eq!(clients.changed(), None);
        std::fs::remove_file(&path).unwrap();
        assert!(clients.changed().is_some());
        let error = clients.read_again().unwrap_err().to_string();
        assert!(error.contains("ca.pem cannot be read"), "{error}");
    }
}
