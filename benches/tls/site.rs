//! What do the servers of one run read?

use std::path::Path;
use std::process::Command;

use crate::cases::Case;
use crate::content;
use crate::harness::folder::Folder;
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

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::P256 => &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
            Self::Rsa2048 => &["-newkey", "rsa:2048"],
        }
    }
}

/// Has wrk agree on what our own client agrees on.
const WRK_OPENSSL: &str = "openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = client
[client]
MinProtocol = TLSv1.3
Ciphersuites = TLS_AES_128_GCM_SHA256
Groups = X25519:P-256
";

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
        site.0.write("wrk.cnf", WRK_OPENSSL.as_bytes())?;
        Ok(site)
    }

    /// By OpenSSL: `ring` makes no RSA keys.
    fn make(&self, key: Key) -> Result<(), String> {
        let output = Command::new("openssl")
            .current_dir(self.dir())
            .args(["req", "-x509", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost"])
            .args(key.options())
            .args(["-out", &key.certificate_file()])
            .args(["-keyout", &key.key_file()])
            .output()
            .map_err(|error| format!("openssl, which makes the keys, does not start: {error}"))?;
        if output.status.success() {
            Ok(())
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("openssl makes no key: {}", said.trim()))
        }
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
