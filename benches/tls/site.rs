//! What do the servers of one run read?

use std::path::Path;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};

use crate::cases::Case;
use crate::content;
use crate::harness::folder::Folder;
use crate::harness::load;
use crate::harness::options::Named;

/// A server's key, with a certificate that it signed itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    P256,
    Rsa2048,
}

impl Key {
    pub(crate) const ALL: [Self; 2] = [Self::P256, Self::Rsa2048];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::P256 => "p256",
            Self::Rsa2048 => "rsa2048",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    pub(crate) fn certificate_file(self) -> String {
        format!("{}.pem", self.name())
    }

    pub(crate) fn key_file(self) -> String {
        format!("{}.key", self.name())
    }

    fn generate(self) -> Result<KeyPair, rcgen::Error> {
        match self {
            Self::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            Self::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        }
    }
}

/// A temporary folder with keys, `public`, and what tells wrk how to speak TLS.
pub(crate) struct Site(Folder);

impl Site {
    pub(crate) fn lay_out() -> Result<Self, String> {
        let site = Self(Folder::fresh()?);
        for key in Key::ALL {
            site.make(key)?;
        }
        for &case in Case::ALL {
            if let Some(body) = file(case) {
                site.0.write(&format!("public{}", case.target()), &body)?;
            }
        }
        site.0.write("wrk.cnf", load::OVER_TLS.as_bytes())?;
        Ok(site)
    }

    fn make(&self, key: Key) -> Result<(), String> {
        let told = |error: rcgen::Error| format!("cannot make a key: {error}");
        let names = vec!["localhost".to_owned()];
        let pair = key.generate().map_err(told)?;
        let certificate = CertificateParams::new(names)
            .and_then(|params| params.self_signed(&pair))
            .map_err(told)?;
        let (certificate, secret) = (certificate.pem(), pair.serialize_pem());
        self.0
            .write(&key.certificate_file(), certificate.as_bytes())?;
        self.0.write(&key.key_file(), secret.as_bytes()).map(drop)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.0
    }
}

/// What the case asks for, where that is a file.
pub(crate) fn file(case: Case) -> Option<Vec<u8>> {
    match case {
        Case::Page => Some(content::page("over TLS", 2_000)),
        Case::Png15k => Some(content::pattern(0, 15_000)),
        Case::File1m => Some(content::pattern(0, 1 << 20)),
        _ => None,
    }
}
