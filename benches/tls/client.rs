//! How does a client agree on keys again and again?

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind,
    SignatureScheme, StreamOwned,
};

use crate::harness::load::Load;

/// What a client is to agree on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) version: Version,
    pub(crate) kind: HandshakeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Tls12,
    Tls13,
}

impl Terms {
    /// For the command line of a child.
    pub(crate) fn words(self) -> Vec<String> {
        let version = match self.version {
            Version::Tls12 => "1.2",
            Version::Tls13 => "1.3",
        };
        let kind = match self.kind {
            HandshakeKind::Resumed => "resumed",
            _ => "full",
        };
        vec![version.to_owned(), kind.to_owned()]
    }

    pub(crate) fn parse(version: &str, kind: &str) -> Option<Self> {
        Some(Self {
            version: match version {
                "1.2" => Version::Tls12,
                "1.3" => Version::Tls13,
                _ => return None,
            },
            kind: match kind {
                "full" => HandshakeKind::Full,
                "resumed" => HandshakeKind::Resumed,
                _ => return None,
            },
        })
    }
}

/// The suites that everybody has to agree on: no server does other work than the next.
const SUITES: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
];

/// A client with its tickets.
pub(crate) struct Client(Arc<ClientConfig>);

pub(crate) type Connection = StreamOwned<ClientConnection, TcpStream>;

impl Client {
    pub(crate) fn new(terms: Terms) -> Result<Self, String> {
        let told = |error: rustls::Error| error.to_string();
        let mut provider = aws_lc_rs::default_provider();
        provider
            .cipher_suites
            .retain(|suite| SUITES.contains(&suite.suite()));
        // OpenSSL shows no P-256 certificate to a client that does not name the curve; keys are agreed on by the first.
        provider.kx_groups = vec![aws_lc_rs::kx_group::X25519, aws_lc_rs::kx_group::SECP256R1];
        let credulous = Arc::new(Credulous(provider.clone()));
        let version = match terms.version {
            Version::Tls12 => &TLS12,
            Version::Tls13 => &TLS13,
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .map_err(told)?
            .dangerous()
            .with_custom_certificate_verifier(credulous)
            .with_no_client_auth();
        config.resumption = match terms.kind {
            HandshakeKind::Resumed => Resumption::in_memory_sessions(8),
            _ => Resumption::disabled(),
        };
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn connect(&self, port: u16) -> io::Result<Connection> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        self.over(stream)
    }

    /// Agrees on keys over a connection.
    pub(crate) fn over(&self, stream: TcpStream) -> io::Result<Connection> {
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)?;
        stream.set_nodelay(true)?;
        let mut connection = StreamOwned::new(session, stream);
        while connection.conn.is_handshaking() {
            connection.conn.complete_io(&mut connection.sock)?;
        }
        Ok(connection)
    }
}

/// Says that nothing more is sent, and reads what the server has left to say: tickets, and its own end.
pub(crate) fn take_leave(mut connection: Connection) -> io::Result<()> {
    connection.conn.send_close_notify();
    connection.flush()?;
    let rest = connection.read_to_end(&mut Vec::new());
    match rest {
        Ok(0) => Ok(()),
        Ok(_) => Err(io::Error::other("the server answered what nobody asked")),
        // nginx closes without a word then.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        Err(error) => Err(error),
    }
}

/// Believes every server: what a client checks costs the client alone.
#[derive(Debug)]
struct Credulous(CryptoProvider);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The child's side: so many threads, each with tickets of its own, one connection after another.
pub(crate) fn play(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [version, kind, numbers @ ..] = &words[..] else {
        return Err("handshakes: terms and three numbers, please".to_owned());
    };
    let numbers: Vec<u32> = numbers
        .iter()
        .filter_map(|word| word.parse().ok())
        .collect();
    let (Some(terms), [port, threads, seconds]) = (Terms::parse(version, kind), &numbers[..])
    else {
        return Err("handshakes: terms and three numbers, please".to_owned());
    };
    let port = u16::try_from(*port).map_err(|_| format!("{port} is no port"))?;
    let began = Instant::now();
    let end = began + Duration::from_secs((*seconds).into());
    let threads: Vec<_> = (0..*threads)
        .map(|_| thread::spawn(move || handshakes(terms, port, end)))
        .collect();
    let mut times = Vec::new();
    for thread in threads {
        times.extend(
            thread
                .join()
                .map_err(|_| "a thread of the client ended badly")??,
        );
    }
    let elapsed = began.elapsed();
    times.sort_unstable();
    let last = times.len().checked_sub(1).ok_or("void: no handshake")?;
    let milliseconds = |part: f64| times[(last as f64 * part) as usize].as_secs_f64() * 1e3;
    let load = Load {
        requests: times.len() as u64,
        per_second: times.len() as f64 / elapsed.as_secs_f64(),
        p50_ms: milliseconds(0.5),
        p99_ms: milliseconds(0.99),
        received: None,
    };
    println!("{}", load.tell());
    Ok(())
}

/// How long each took, from the connection's start to its end.
fn handshakes(terms: Terms, port: u16, end: Instant) -> Result<Vec<Duration>, String> {
    let client = Client::new(terms)?;
    let told = |error: io::Error| format!("void: {error}");
    if terms.kind == HandshakeKind::Resumed {
        // There has to be a ticket before one can be used.
        client.connect(port).and_then(take_leave).map_err(told)?;
    }
    let mut times = Vec::new();
    while Instant::now() < end {
        let began = Instant::now();
        let connection = client.connect(port).map_err(told)?;
        let kind = connection.conn.handshake_kind();
        if kind != Some(terms.kind) {
            return Err(format!("void: {kind:?} and not {:?}", terms.kind));
        }
        take_leave(connection).map_err(told)?;
        times.push(began.elapsed());
    }
    Ok(times)
}
