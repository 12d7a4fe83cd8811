//! What does a certificate say (RFC 5280)?

use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// What an X.509 certificate says of whom it is for (RFC 5280).
///
/// A handler has the one that a client has shown, where the server asks for one: see
/// [`Request::client_certificate`](crate::Request::client_certificate).
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate(Arc<Said>);

/// What was read of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    subject: String,
    common_name: Option<String>,
    issuer: String,
    names: Vec<String>,
    emails: Vec<String>,
    uris: Vec<String>,
    serial: String,
    /// Seconds since 1970.
    valid_from: u64,
    valid_until: u64,
    fingerprint: String,
    der: Vec<u8>,
}

impl Certificate {
    /// Reads a certificate (section 4.1). Its signature is not looked at: who shows it proves nothing by that.
    ///
    /// # Errors
    /// [`InvalidCertificate`] where it cannot be understood.
    pub fn from_der(der: &[u8]) -> Result<Certificate, InvalidCertificate> {
        let certificate = x509_cert::Certificate::from_der(der)
            .map_err(|error| InvalidCertificate(error.to_string()))?;
        let body = certificate.tbs_certificate();
        let mut said = Said {
            subject: body.subject().to_string(),
            common_name: None,
            issuer: body.issuer().to_string(),
            names: Vec::new(),
            emails: Vec::new(),
            uris: Vec::new(),
            serial: serial(body.serial_number().as_bytes()),
            valid_from: body.validity().not_before.to_unix_duration().as_secs(),
            valid_until: body.validity().not_after.to_unix_duration().as_secs(),
            fingerprint: hex(digest(&SHA256, der).as_ref()),
            der: der.to_vec(),
        };
        // One in an encoding that nobody uses any more is shown in the subject, in hexadecimal.
        if let Ok(Some(name)) = body.subject().common_name() {
            said.common_name = Some(name.value().into_owned());
        }
        let names = body.get_extension::<SubjectAltName>().map_err(|error| {
            InvalidCertificate(format!("its alternative names are malformed: {error}"))
        })?;
        for name in names.into_iter().flat_map(|(_, names)| names.0) {
            match name {
                GeneralName::DnsName(name) => said.names.push(name.as_str().to_ascii_lowercase()),
                GeneralName::IpAddress(bytes) => said.names.extend(address(bytes.as_bytes())),
                GeneralName::Rfc822Name(mail) => said.emails.push(mail.as_str().to_owned()),
                GeneralName::UniformResourceIdentifier(uri) => {
                    said.uris.push(uri.as_str().to_owned());
                }
                _ => {}
            }
        }
        Ok(Certificate(Arc::new(said)))
    }

    /// Whom it is for, as `CN=alice,O=Example` (RFC 4514).
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The common name of the subject, which is how most people name a client.
    pub fn common_name(&self) -> Option<&str> {
        self.0.common_name.as_deref()
    }

    /// Who has signed it, as [`Certificate::subject`].
    pub fn issuer(&self) -> &str {
        &self.0.issuer
    }

    /// The hosts and IP addresses that it is for: `example.com`, `*.example.com`, `::1` (section 4.2.1.6).
    pub fn names(&self) -> &[String] {
        &self.0.names
    }

    /// The mail addresses that it is for.
    pub fn emails(&self) -> &[String] {
        &self.0.emails
    }

    /// The URIs that it is for, such as a workload's `spiffe://example.org/billing`.
    pub fn uris(&self) -> &[String] {
        &self.0.uris
    }

    /// Its number among those of its issuer, in lower-case hexadecimal without leading zeros.
    pub fn serial(&self) -> &str {
        &self.0.serial
    }

    /// From when it is valid.
    pub fn valid_from(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0.valid_from)
    }

    /// Until when it is valid.
    pub fn valid_until(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0.valid_until)
    }

    /// The SHA-256 of [`Certificate::der`], in lower-case hexadecimal: what to compare in order to know one
    /// certificate again.
    pub fn fingerprint(&self) -> &str {
        &self.0.fingerprint
    }

    /// The certificate itself.
    pub fn der(&self) -> &[u8] {
        &self.0.der
    }
}

/// What is no certificate, or one that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCertificate(String);

impl fmt::Display for InvalidCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a certificate is malformed: {}", self.0)
    }
}

impl std::error::Error for InvalidCertificate {}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("subject", &self.0.subject)
            .field("names", &self.0.names)
            .field("valid_until", &httpdate::fmt_http_date(self.valid_until()))
            .finish_non_exhaustive()
    }
}

/// An IP address as text (section 4.2.1.6); `None` where it has another length.
fn address(bytes: &[u8]) -> Option<String> {
    let address: IpAddr = if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        Ipv4Addr::from(bytes).into()
    } else {
        Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()
    };
    Some(address.to_string())
}

fn serial(bytes: &[u8]) -> String {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let text = hex(&bytes[zeros..]);
    text.strip_prefix('0').unwrap_or(&text).to_owned()
}

/// Bytes in lower-case hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType, SerialNumber, date_time_ymd};

    use super::*;

    #[test]
    fn what_it_says_is_read() {
        let mut params = CertificateParams::new(["A.example".to_owned(), "*.b.example".to_owned()])
            .expect("names");
        params
            .distinguished_name
            .push(DnType::OrganizationName, "Example, Inc.");
        params.distinguished_name.push(DnType::CommonName, "alice");
        params.subject_alt_names.extend([
            SanType::IpAddress("::1".parse().unwrap()),
            SanType::IpAddress("127.0.0.1".parse().unwrap()),
            SanType::Rfc822Name("a@example.org".try_into().unwrap()),
            SanType::URI("spiffe://example.org/a".try_into().unwrap()),
        ]);
        params.serial_number = Some(SerialNumber::from_slice(&[0x0a, 0xbc]));
        params.not_before = date_time_ymd(1999, 1, 1);
        params.not_after = date_time_ymd(2051, 1, 1);
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let read = Certificate::from_der(made.der()).unwrap();
        assert_eq!(read.common_name(), Some("alice"));
        assert_eq!(
            (read.subject(), read.issuer()),
            ("O=Example\\, Inc.,CN=alice", "O=Example\\, Inc.,CN=alice")
        );
        assert_eq!(
            read.names(),
            ["a.example", "*.b.example", "::1", "127.0.0.1"]
        );
        assert_eq!(
            (read.emails(), read.uris()),
            (
                &["a@example.org".to_owned()][..],
                &["spiffe://example.org/a".to_owned()][..]
            )
        );
        assert_eq!(read.serial(), "abc");
        assert_eq!(
            read.valid_from(),
            UNIX_EPOCH + Duration::from_secs(915_148_800)
        );
        assert_eq!(
            read.valid_until(),
            UNIX_EPOCH + Duration::from_secs(2_556_144_000)
        );
        assert_eq!(read.fingerprint().len(), 64);
        assert_eq!(read.der(), &made.der()[..]);
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let whole = made.cert.der();
        for length in 0..whole.len() {
            assert!(Certificate::from_der(&whole[..length]).is_err(), "{length}");
        }
        assert!(Certificate::from_der(&[&whole[..], b"x"].concat()).is_err());
        assert!(Certificate::from_der(b"-----BEGIN CERTIFICATE-----").is_err());
    }
}
