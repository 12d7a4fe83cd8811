//! What do the servers of one run need of files?

use std::path::Path;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};

use crate::cases::Case;
use crate::harness::folder::Folder;
use crate::harness::load;
use crate::harness::options::Named;

pub(crate) const CERTIFICATE: &str = "cert.pem";
pub(crate) const KEY: &str = "key.pem";

/// HAProxy wants both in one file.
pub(crate) const BOTH: &str = "both.pem";

/// A temporary folder with a key, the answers of the server behind, and what tells wrk how to speak TLS.
pub(crate) struct Site(Folder);

impl Site {
    pub(crate) fn lay_out() -> Result<Self, String> {
        let folder = Folder::fresh()?;
        let told = |error: rcgen::Error| format!("cannot make a key: {error}");
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(told)?;
        let certificate = CertificateParams::new(vec!["localhost".to_owned()])
            .and_then(|params| params.self_signed(&pair))
            .map_err(told)?;
        let (certificate, key) = (certificate.pem(), pair.serialize_pem());
        folder.write(CERTIFICATE, certificate.as_bytes())?;
        folder.write(KEY, key.as_bytes())?;
        folder.write(BOTH, format!("{certificate}{key}").as_bytes())?;
        folder.write("wrk.cnf", load::OVER_TLS.as_bytes())?;
        folder.write("counting.lua", load::COUNTING.as_bytes())?;
        for &case in Case::ALL {
            folder.write(&answer(case), &case.answer())?;
        }
        Ok(Self(folder))
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.0
    }
}

/// The file with the answer to a case.
pub(crate) fn answer(case: Case) -> String {
    format!("{}.answer", case.name())
}
