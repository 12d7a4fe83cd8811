//! How is a server of others spoken to by TLS, and is it the one that was meant?

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

use super::engine::{AT_ONCE, Engine};
use super::identity::{Identity, parse_certificates, read};
use super::identity_error::IdentityError;
use super::serving::provider;

/// How a server of others is spoken to by TLS.
///
/// It has to show a certificate for the name that it was asked for by, in its time, and signed by somebody whom the system
/// trusts, unless told otherwise (RFC 9110 section 4.3.4).
#[derive(Clone, Debug, Default)]
pub struct TlsClient {
    trust: Trust,
    identity: Option<Identity>,
    name: Option<String>,
}

/// Whose word is taken for who a server is.
#[derive(Clone, Debug, Default)]
enum Trust {
    #[default]
    System,
    These {
        certificates: Arc<[CertificateDer<'static>]>,
        place: String,
    },
    Anybody,
}

impl TlsClient {
    /// Trusts whom the system trusts.
    pub fn new() -> TlsClient {
        TlsClient::default()
    }

    /// Trusts those alone whose certificates are in this file, in PEM form: for servers with an authority of their own.
    ///
    /// # Errors
    /// [`IdentityError`], which names the file.
    pub fn trust_file(mut self, path: impl AsRef<Path>) -> Result<TlsClient, IdentityError> {
        let path = path.as_ref();
        let place = path.display().to_string();
        let certificates = parse_certificates(&read(path)?, &place)?.into();
        self.trust = Trust::These {
            certificates,
            place,
        };
        Ok(self)
    }

    /// Shows this to a server that asks who it is.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> TlsClient {
        self.identity = Some(identity);
        self
    }

    /// Asks for the server by this name, and wants a certificate for it, in place of the host that is connected to.
    #[must_use]
    pub fn server_name(mut self, name: &str) -> TlsClient {
        self.name = Some(name.to_owned());
        self
    }

    /// Takes whoever answers for the one that was meant: then anybody on the way can read and change what is sent. For
    /// tests, and for looking at a certificate.
    #[must_use]
    pub fn dangerously_trust_anybody(mut self) -> TlsClient {
        self.trust = Trust::Anybody;
        self
    }

    /// What begins sessions. It reads the disk.
    ///
    /// # Errors
    /// [`IdentityError`] for certificates that cannot be used.
    pub(crate) fn connector(&self) -> Result<Connector, IdentityError> {
        let provider = provider();
        let refuse = |place: &str, reason: String| IdentityError::Malformed {
            place: place.to_owned(),
            reason,
        };
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| refuse("the configuration of TLS", error.to_string()))?;
        let builder = match &self.trust {
            Trust::System => builder.with_root_certificates(roots_of_the_system()?),
            Trust::These {
                certificates,
                place,
            } => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates.iter() {
                    roots
                        .add(certificate.clone())
                        .map_err(|error| refuse(place, error.to_string()))?;
                }
                builder.with_root_certificates(roots)
            }
            Trust::Anybody => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified(provider))),
        };
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let shown = SingleCertAndKey::from(CertifiedKey::clone(identity.certified()));
                builder.with_client_cert_resolver(Arc::new(shown))
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Connector {
            config: Arc::new(config),
            name: self.name.clone(),
        })
    }
}

/// Begins sessions as a client.
pub(crate) struct Connector {
    config: Arc<ClientConfig>,
    /// Whom it asks for, where that is not the host that is connected to.
    name: Option<String>,
}

impl Connector {
    /// A session with `host`, a name or an IP address, whose handshake is still to come
    /// ([`Session::handshake`](super::session::Session::handshake)).
    ///
    /// # Errors
    /// `InvalidInput` where `host` is neither.
    pub(crate) fn begin(&self, host: &str) -> io::Result<Box<dyn Engine>> {
        let name = self.name.as_deref().unwrap_or(host);
        let bare = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        let name = ServerName::try_from(bare.to_owned()).map_err(|_| {
            let reason = format!("{name:?} is neither a host nor an IP address");
            io::Error::new(io::ErrorKind::InvalidInput, reason)
        })?;
        let mut session =
            ClientConnection::new(Arc::clone(&self.config), name).map_err(io::Error::other)?;
        session.set_buffer_limit(Some(AT_ONCE));
        Ok(Box::new(session))
    }
}

/// Those whom the system trusts.
///
/// # Errors
/// [`IdentityError::Unreadable`] where there is nobody.
fn roots_of_the_system() -> Result<RootCertStore, IdentityError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A system may hold old ones that cannot be used.
    let (taken, _) = roots.add_parsable_certificates(found.certs);
    if taken == 0 {
        let reason = match found.errors.first() {
            Some(error) => error.to_string(),
            None => "it holds no certificate".to_owned(),
        };
        return Err(IdentityError::Unreadable {
            path: "the system's store of trusted certificates".into(),
            source: io::Error::other(format!(
                "{reason}; install the package ca-certificates, or name those that are to be trusted"
            )),
        });
    }
    Ok(roots)
}

/// Takes every certificate, if only the server has its key.
struct Unverified(Arc<CryptoProvider>);

impl fmt::Debug for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unverified")
    }
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;
    use crate::message::{Deadline, Duplex};
    use crate::net::tls::clients::ClientCa;
    use crate::net::tls::lane::Lane;
    use crate::net::tls::serving::{Tls, tickets};
    use crate::net::tls::session::Session;
    use crate::proto::pipe::Pipe;

    struct Made {
        pem: String,
        identity: Identity,
    }

    fn made(name: &str) -> Made {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(pem.as_bytes(), key.as_bytes()).unwrap();
        Made { pem, identity }
    }

    fn trusting(made: &Made) -> TlsClient {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        std::fs::write(&path, &made.pem).unwrap();
        TlsClient::new().trust_file(&path).unwrap()
    }

    /// What a client hears who connects to `host`: the greeting, or why there is none.
    fn greeting(tls: &Tls, client: &TlsClient, host: &str) -> Result<String, String> {
        let (ours, theirs) = Pipe::pair(1 << 20);
        let acceptor = tls.acceptor(&tickets().unwrap()).unwrap();
        let serving = std::thread::spawn(move || {
            let mut session = Session::new(ours, acceptor.begin().unwrap());
            if session.accept(Deadline::NEVER, &Lane::new()).is_ok() {
                let client = session.engine().agreed().client;
                let client = client.map(|client| client.names()[0].clone());
                let text = format!("hello {}", client.unwrap_or_default());
                session.write(text.as_bytes()).unwrap();
                session.close_write().unwrap();
            }
        });
        let engine = client.connector().unwrap().begin(host).unwrap();
        let mut session = Session::new(theirs, engine);
        let mut text = Vec::new();
        let outcome = session
            .handshake(Deadline::NEVER, &Lane::new())
            .and_then(|()| {
                let mut buffer = [0; 64];
                loop {
                    match session.read(&mut buffer) {
                        Ok(0) => return Ok(()),
                        Ok(count) => text.extend_from_slice(&buffer[..count]),
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {
                            session.wait(Deadline::NEVER)?;
                        }
                        Err(error) => return Err(error),
                    }
                }
            });
        drop(session);
        serving.join().unwrap();
        outcome
            .map(|()| String::from_utf8(text).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_is_the_one_that_was_meant_or_none() {
        let (server, other) = (made("a.example"), made("a.example"));
        let tls = Tls::new(server.identity.clone());
        let hello = Ok("hello ".to_owned());
        assert_eq!(greeting(&tls, &trusting(&server), "a.example"), hello);
        let error = greeting(&tls, &trusting(&other), "a.example").unwrap_err();
        assert!(error.contains("invalid peer certificate"), "{error}");
        let error = greeting(&tls, &trusting(&server), "b.example").unwrap_err();
        assert!(
            error.contains("not valid for name \"b.example\""),
            "{error}"
        );
        let named = trusting(&server).server_name("a.example");
        assert_eq!(greeting(&tls, &named, "10.0.0.1"), hello);
        let anybody = TlsClient::new().dangerously_trust_anybody();
        assert_eq!(greeting(&tls, &anybody, "[::1]"), hello);
    }

    #[test]
    fn it_says_who_it_is_where_it_is_asked() {
        let (server, client) = (made("a.example"), made("client"));
        let clients = ClientCa::from_pem(client.pem.as_bytes()).unwrap();
        let tls = Tls::new(server.identity.clone()).client_ca(clients);
        let known = trusting(&server).identity(client.identity);
        assert_eq!(
            greeting(&tls, &known, "a.example"),
            Ok("hello client".to_owned())
        );
        let error = greeting(&tls, &trusting(&server), "a.example").unwrap_err();
        assert!(error.contains("CertificateRequired"), "{error}");
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let client = TlsClient::new().dangerously_trust_anybody();
        let connector = client.connector().unwrap();
        for host in ["", "a b", "a..b", "[::1"] {
            let error = connector.begin(host).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{host}");
        }
        for host in ["a.example", "::1", "[::1]", "127.0.0.1"] {
            assert!(connector.begin(host).is_ok(), "{host}");
        }
    }
}
