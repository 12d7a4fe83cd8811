//! How does a test speak TLS: as whom, and whom does it trust?

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use cloudgate::Identity;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::LIMIT;

/// A connection of a client of another make.
pub type TlsClient = StreamOwned<ClientConnection, TcpStream>;

/// A key and a certificate for localhost that it has signed itself.
pub struct SelfSigned {
    /// The certificate in PEM form.
    pub certificate: String,
    /// The key in PEM form.
    pub key: String,
    /// The certificate.
    pub der: CertificateDer<'static>,
}

impl SelfSigned {
    /// A new one.
    ///
    /// # Panics
    /// When none can be made.
    pub fn new() -> SelfSigned {
        let made =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        SelfSigned {
            certificate: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            der: made.cert.der().clone(),
        }
    }

    /// What a server shows.
    ///
    /// # Panics
    /// When the library does not take it.
    pub fn identity(&self) -> Identity {
        Identity::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).expect("an identity")
    }
}

impl Default for SelfSigned {
    fn default() -> SelfSigned {
        SelfSigned::new()
    }
}

/// Clients that trust these certificates and no others.
///
/// # Panics
/// When one of them is none.
pub fn trusting(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).expect("a certificate");
    }
    ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// A session with localhost that begins.
///
/// # Panics
/// When the library refuses its configuration.
pub fn session(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("localhost").expect("a name");
    ClientConnection::new(Arc::clone(config), name).expect("a session")
}

/// Connects to a server that is localhost.
///
/// # Errors
/// When it cannot be reached.
pub fn open_tls(address: SocketAddr, config: &Arc<ClientConfig>) -> std::io::Result<TlsClient> {
    let stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok(StreamOwned::new(session(config), stream))
}
