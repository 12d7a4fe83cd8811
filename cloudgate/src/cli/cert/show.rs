//! What is in a certificate, in a file or at a server?

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::BasicConstraints;

use super::{Outcome, password};
use crate::cli::say;
use crate::message::Certificate;
use crate::net::tls::client::TlsClient;
use crate::net::tls::engine::Engine;
use crate::net::tls::identity::{
    Identity, Material, is_pkcs12, parse_certificates, parse_pem, read,
};
use crate::net::tls::identity_error::{IdentityError, span};
use crate::net::tls::local_ca::{self, LocalCa};
use crate::net::tls::pkcs12;
use crate::net::tls::serving::provider;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Tells what is in a certificate: for whom it is, by whom, until when, and whether its key fits.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file in PEM or PKCS#12 form, or HOST:PORT of a server
    what: String,

    /// The file of the private key, where it is another one
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// For a server: the file of those who are trusted, in place of whom the system trusts
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// For a server: the name to ask for, in place of its host
    #[arg(long)]
    name: Option<String>,

    /// For a server: a certificate and its key in one PEM file, to show if it asks who comes
    #[arg(long, value_name = "FILE")]
    client_cert: Option<PathBuf>,

    /// A file whose first line is the password of a PKCS#12 file; - reads it from standard input (default: SSL_PASSWORD)
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Outcome {
    let path = Path::new(&args.what);
    let address = args.what.rsplit_once(':').and_then(|(host, port)| {
        let port: u16 = port.parse().ok()?;
        (!host.is_empty()).then_some((host, port))
    });
    match address {
        Some((host, port)) if !path.exists() => server(host, port, args),
        _ => file(path, args),
    }
}

fn file(path: &Path, args: &Args) -> Outcome {
    let told = |error: IdentityError| error.to_string();
    let place = path.display().to_string();
    let bytes = read(path).map_err(told)?;
    let (chain, key) = if is_pkcs12(path) {
        let password = password(args.password_file.as_deref())?;
        let Material { chain, key } = pkcs12::read(&bytes, &password, &place).map_err(told)?;
        (chain, Ok(key))
    } else {
        let chain = parse_certificates(&bytes, &place).map_err(told)?;
        let (secret, key_place) = match &args.key {
            Some(path) => (read(path).map_err(told)?, path.display().to_string()),
            None => (bytes.clone(), place.clone()),
        };
        let both = parse_pem(&bytes, &place, &secret, &key_place);
        (chain, both.map(|material| material.key))
    };
    let mut text = certificates(&chain, SystemTime::now())?;
    let own = chain[..1].to_vec();
    text += &match key {
        Ok(key) => match CertifiedKey::from_der(own, key, &provider()) {
            Ok(_) => "private key       there, and the one of the first certificate\n".to_owned(),
            Err(rustls::Error::InconsistentKeys(_)) => {
                "private key       there, but NOT the one of the first certificate\n".to_owned()
            }
            Err(error) => format!("private key       there, but of no use: {error}\n"),
        },
        Err(IdentityError::NoKey { .. }) => "private key       not in this file\n".to_owned(),
        Err(error) => format!("private key       {error}\n"),
    };
    Ok(text)
}

fn server(host: &str, port: u16, args: &Args) -> Outcome {
    let told = |error: &dyn std::fmt::Display| format!("{host}:{port}: {error}");
    let client = client(args).map_err(|error| error.to_string())?;
    let by = match &args.ca {
        Some(file) => format!("by {}", say::path(file)),
        None => "by this system".to_owned(),
    };
    let (engine, trust) = match connect(&client, host, port) {
        Ok(engine) => (engine, by),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            let anybody = client.dangerously_trust_anybody();
            let engine = connect(&anybody, host, port).map_err(|_| told(&error))?;
            (engine, format!("NOT {by}: {error}"))
        }
        Err(error) => return Err(told(&error)),
    };
    let chain: Vec<_> = engine.peer_chain();
    if chain.is_empty() {
        return Err(told(&"it shows no certificate"));
    }
    let agreed = engine.agreed();
    let mut text = certificates(&chain, SystemTime::now())?;
    text += &format!(
        "trusted           {trust}\nspeaks            {} {}\n",
        agreed.version(),
        agreed.cipher()
    );
    Ok(text)
}

/// Whom a server is to be, and who comes.
fn client(args: &Args) -> Result<TlsClient, IdentityError> {
    let mut client = TlsClient::new();
    if let Some(file) = &args.ca {
        client = client.trust_file(file)?;
    }
    if let Some(name) = &args.name {
        client = client.server_name(name);
    }
    if let Some(file) = &args.client_cert {
        client = client.identity(Identity::from_pem_files(file, file)?);
    }
    Ok(client)
}

/// Connects and agrees on keys.
fn connect(client: &TlsClient, host: &str, port: u16) -> io::Result<Box<dyn Engine>> {
    let connector = client.connector().map_err(io::Error::other)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut last = io::Error::new(ErrorKind::NotFound, "it has no address");
    for address in (bare, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return handshake(connector.begin(host)?, stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn handshake(
    mut engine: Box<dyn Engine>,
    mut stream: impl Read + Write,
) -> io::Result<Box<dyn Engine>> {
    loop {
        while engine.wants_write() {
            engine.send(&mut stream)?;
        }
        if !engine.is_handshaking() {
            return Ok(engine);
        }
        if engine.receive(&mut stream)? == 0 {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                "it ended the connection: perhaps it speaks no TLS there",
            ));
        }
    }
}

fn certificates(chain: &[CertificateDer<'_>], now: SystemTime) -> Outcome {
    let mut text = String::new();
    for der in chain {
        let certificate = Certificate::from_der(der).map_err(|error| error.to_string())?;
        text += &described(&certificate, now);
        text.push('\n');
    }
    Ok(text)
}

fn described(certificate: &Certificate, now: SystemTime) -> String {
    let date = |time| httpdate::fmt_http_date(time);
    let until = certificate.valid_until();
    let left = if now < certificate.valid_from() {
        "NOT yet valid".to_owned()
    } else if let Ok(left) = until.duration_since(now) {
        format!("{} left", span(left))
    } else {
        let ago = now.duration_since(until).unwrap_or_default();
        format!("EXPIRED {} ago", span(ago))
    };
    let issuer = match certificate.issuer() == certificate.subject() {
        true => "itself".to_owned(),
        false => format!("{}{}", certificate.issuer(), local(certificate)),
    };
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // What a certificate says is not ours, and a terminal does what it is told.
        let value = say::path(Path::new(value));
        text += &format!("{name:<17} {value}\n");
    };
    line("certificate for", &whom(certificate));
    line("subject", certificate.subject());
    line("signed by", &issuer);
    line("valid from", &date(certificate.valid_from()));
    line("valid until", &format!("{} ({left})", date(until)));
    line("key", &kind(certificate));
    line("serial number", certificate.serial());
    line("SHA-256", certificate.fingerprint());
    text
}

fn whom(certificate: &Certificate) -> String {
    let all = [
        certificate.names(),
        certificate.emails(),
        certificate.uris(),
    ];
    let all = all.concat();
    match all.is_empty() {
        true if signs(certificate) => "no host: it signs for others".to_owned(),
        true => "no name (browsers want one; the subject does not count)".to_owned(),
        false => all.join(", "),
    }
}

/// Whether it was signed by the authority of this user: by its key, not by somebody of that name.
fn local(certificate: &Certificate) -> &'static str {
    let authority = local_ca::folder().and_then(|folder| LocalCa::find(&folder).ok().flatten());
    let signed = authority.is_some_and(|authority| {
        is_signed_by(certificate.der(), authority.certificate().der()).unwrap_or(false)
    });
    if signed { " (the local CA)" } else { "" }
}

/// Whether a certificate was signed by an ECDSA key of P-256, as a local CA has it.
fn is_signed_by(der: &[u8], authority: &[u8]) -> x509_cert::der::Result<bool> {
    let read = x509_cert::Certificate::from_der(der)?;
    let authority = x509_cert::Certificate::from_der(authority)?;
    let body = read.tbs_certificate();
    let signer = authority.tbs_certificate();
    let key = signer
        .subject_public_key_info()
        .subject_public_key
        .raw_bytes();
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key);
    let signed = key.verify(&body.to_der()?, read.signature().raw_bytes());
    Ok(body.issuer() == signer.subject() && signed.is_ok())
}

/// Whether it is one that signs others.
fn signs(certificate: &Certificate) -> bool {
    let read = x509_cert::Certificate::from_der(certificate.der());
    read.is_ok_and(|read| {
        let constraints = read.tbs_certificate().get_extension::<BasicConstraints>();
        constraints.is_ok_and(|found| found.is_some_and(|(_, constraints)| constraints.ca))
    })
}

/// Of which kind its key is.
fn kind(certificate: &Certificate) -> String {
    let Ok(read) = x509_cert::Certificate::from_der(certificate.der()) else {
        return "unknown".to_owned();
    };
    let info = read.tbs_certificate().subject_public_key_info();
    let parameters = info.algorithm.parameters.as_ref();
    let curve = parameters.and_then(|any| any.decode_as::<ObjectIdentifier>().ok());
    match (info.algorithm.oid, curve) {
        (RSA, _) => {
            // The modulus and a few bytes around it (RFC 8017, appendix A.1.1).
            let bytes = info.subject_public_key.raw_bytes().len();
            format!("RSA {}", bytes * 8 / 256 * 256)
        }
        (EC, Some(P256)) => "ECDSA P-256".to_owned(),
        (EC, Some(P384)) => "ECDSA P-384".to_owned(),
        (EC, Some(P521)) => "ECDSA P-521".to_owned(),
        (ED25519, _) => "Ed25519".to_owned(),
        (other, _) => format!("of the kind {other}"),
    }
}
