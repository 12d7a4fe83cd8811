//! Whom does a browser on the developer's machine trust for a server on the same machine?
//!
//! An authority that is made for that, once, by a person who asks for it (`cloudgate cert trust`). Its key could sign for
//! any site that this person visits, and lies on a machine on which programs are tried out: so it says itself that it is
//! for names of machines and networks of one's own alone (RFC 5280 section 4.2.1.10), which browsers, OpenSSL and rustls
//! keep to.

#[cfg(any(test, feature = "cli"))]
pub(crate) mod make;

use std::env;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, GeneralSubtree,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints,
};
use rustls::pki_types::CertificateDer;
use rustls::sign::CertifiedKey;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::NameConstraints as ReadConstraints;
use x509_cert::ext::pkix::name::GeneralName;

use super::identity::{parse_pem, read};
use super::identity_error::IdentityError;
use super::issue::{RENEWED_BEFORE, begin};
use super::serving::provider;
use crate::message::{Certificate, Network};

/// The organization in its certificate.
const ORGANIZATION: &str = "cloudgate local CA";

/// Key and certificate, for its owner alone.
const KEY_FILE: &str = "ca-key.pem";

/// For how long it is good.
const VALID: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Networks of one's own (RFC 1122, RFC 1918, RFC 3927, RFC 4193, RFC 4291).
const NETWORKS: [&str; 8] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
];

/// An authority on this machine.
pub(crate) struct LocalCa {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    der: CertificateDer<'static>,
    certificate: Certificate,
    /// The domains that it may sign for.
    domains: Vec<String>,
}

/// Where the authority of this user lies; `None` where the environment does not tell.
pub(crate) fn folder() -> Option<PathBuf> {
    let given = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = given("CLOUDGATE_CA") {
        return Some(folder.into());
    }
    let data = match given("XDG_DATA_HOME") {
        Some(data) => PathBuf::from(data),
        None => PathBuf::from(given("HOME")?).join(".local/share"),
    };
    Some(data.join("cloudgate/ca"))
}

/// Where its key is, if there is one.
pub(crate) fn key_file() -> Option<PathBuf> {
    folder().map(|folder| folder.join(KEY_FILE))
}

impl LocalCa {
    /// The one that is there.
    ///
    /// # Errors
    /// [`IdentityError`] where what is there cannot be used.
    pub(crate) fn find(folder: &Path) -> Result<Option<LocalCa>, IdentityError> {
        let path = folder.join(KEY_FILE);
        let place = path.display().to_string();
        let pem = match read(&path) {
            Err(IdentityError::Unreadable { source, .. })
                if matches!(
                    source.kind(),
                    ErrorKind::NotFound | ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            other => other?,
        };
        let malformed = |reason: String| IdentityError::Malformed {
            place: place.clone(),
            reason,
        };
        let material = parse_pem(&pem, &place, &pem, &place)?;
        let der = material.chain[0].clone();
        let certificate =
            Certificate::from_der(&der).map_err(|error| malformed(error.to_string()))?;
        let key = KeyPair::try_from(material.key.secret_der())
            .map_err(|error| malformed(error.to_string()))?;
        CertifiedKey::from_der(vec![der.clone()], material.key, &provider())
            .map_err(|error| malformed(error.to_string()))?;
        let name = certificate.common_name().unwrap_or_default();
        let issuer = Issuer::new(params(name, &[], SystemTime::now()), key);
        if !certificate.subject().contains(ORGANIZATION) {
            return Err(malformed(
                "it is no authority that was made here".to_owned(),
            ));
        }
        Ok(Some(LocalCa {
            issuer,
            pem: encoded(&der),
            domains: domains_of(&der).map_err(malformed)?,
            der,
            certificate,
        }))
    }

    /// What its certificate says.
    pub(crate) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    pub(crate) fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    /// Its certificate in PEM form.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }

    /// Whether what it signs is not to be made anew at once.
    pub(crate) fn lasts(&self, now: SystemTime) -> bool {
        now >= self.certificate.valid_from()
            && self.certificate.valid_until() > now + RENEWED_BEFORE
    }

    /// Whether it may sign for this name, as [`issue::names`](super::issue::names) gives it, and still can.
    pub(crate) fn may_sign(&self, name: &str, now: SystemTime) -> bool {
        if now >= self.certificate.valid_until() {
            return false;
        }
        if let Ok(address) = name.parse::<IpAddr>() {
            return is_ones_own(address);
        }
        let host = name.strip_prefix("*.").unwrap_or(name);
        self.domains.iter().any(|domain| {
            host.strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }
}

/// Whether an address is in a network of one's own.
pub(crate) fn is_ones_own(address: IpAddr) -> bool {
    NETWORKS
        .iter()
        .filter_map(|text| text.parse::<Network>().ok())
        .any(|network| network.contains(address))
}

/// What its certificate says.
fn params(name: &str, domains: &[String], now: SystemTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    let named = &mut params.distinguished_name;
    *named = DistinguishedName::new();
    named.push(DnType::OrganizationName, ORGANIZATION);
    named.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let networks = NETWORKS.iter().filter_map(|text| {
        let (address, length) = text.split_once('/')?;
        let subnet = CidrSubnet::from_addr_prefix(address.parse().ok()?, length.parse().ok()?);
        Some(GeneralSubtree::IpAddress(subnet))
    });
    let hosts = domains.iter().cloned().map(GeneralSubtree::DnsName);
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: hosts.chain(networks).collect(),
        excluded_subtrees: Vec::new(),
    });
    params.not_before = begin(now).into();
    params.not_after = (now + VALID).into();
    params
}

/// The domains that a certificate's constraints permit.
fn domains_of(der: &[u8]) -> Result<Vec<String>, String> {
    let certificate = x509_cert::Certificate::from_der(der).map_err(|error| error.to_string())?;
    let constraints = certificate
        .tbs_certificate()
        .get_extension::<ReadConstraints>()
        .map_err(|error| error.to_string())?;
    let permitted = constraints.and_then(|(_, constraints)| constraints.permitted_subtrees);
    let domains = permitted.into_iter().flatten();
    Ok(domains
        .filter_map(|subtree| match subtree.base {
            GeneralName::DnsName(name) => Some(name.as_str().to_owned()),
            _ => None,
        })
        .collect())
}

fn encoded(der: &[u8]) -> String {
    let options = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new("CERTIFICATE", der), options)
}
