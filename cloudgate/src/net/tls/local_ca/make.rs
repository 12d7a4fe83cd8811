//! How is the local authority made, and where does its certificate lie?

use std::env;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rcgen::KeyPair;

use super::super::identity_error::IdentityError;
use super::super::issue::{lock, machine, write_secret};
use super::{KEY_FILE, LocalCa, ORGANIZATION, params};

/// The certificate, for everybody.
const CERTIFICATE_FILE: &str = "ca.pem";

/// Domains that are nobody's on the Internet (RFC 6761, RFC 6762, RFC 8375, and ICANN for `internal`), each with all that is
/// below it.
const DOMAINS: [&str; 5] = ["localhost", "test", "local", "internal", "home.arpa"];

/// Where the certificate of the authority in this folder lies, without its key.
pub(crate) fn certificate_file(folder: &Path) -> PathBuf {
    folder.join(CERTIFICATE_FILE)
}

impl LocalCa {
    /// The one that is there and has some time left, or a new one.
    ///
    /// # Errors
    /// [`IdentityError`] where what is there cannot be used, or none can be written.
    pub(crate) fn find_or_make(folder: &Path, now: SystemTime) -> Result<LocalCa, IdentityError> {
        let path = folder.join(KEY_FILE);
        let unwritable = |source: io::Error| IdentityError::Unwritable {
            path: path.clone(),
            source,
        };
        let _lock = lock(&path).map_err(unwritable)?;
        let there = LocalCa::find(folder)?;
        if there.as_ref().is_none_or(|there| !there.lasts(now)) {
            let failed = |error: rcgen::Error| unwritable(io::Error::other(error));
            let key = KeyPair::generate().map_err(failed)?;
            let made = params(&name(), &domains(), now)
                .self_signed(&key)
                .map_err(failed)?;
            let text = format!("{}{}", key.serialize_pem(), made.pem());
            write_secret(&path, text.as_bytes(), there.is_some()).map_err(unwritable)?;
        }
        let there = LocalCa::find(folder)?;
        let there = there.ok_or_else(|| unwritable(ErrorKind::NotFound.into()))?;
        there.write_certificate(folder).map_err(unwritable)?;
        Ok(there)
    }

    /// Writes the file that others read, where it is missing or that of another authority.
    fn write_certificate(&self, folder: &Path) -> io::Result<()> {
        let path = certificate_file(folder);
        if fs::read(&path).is_ok_and(|there| there == self.pem.as_bytes()) {
            return Ok(());
        }
        write_secret(&path, self.pem.as_bytes(), true)?;
        fs::set_permissions(&path, Permissions::from_mode(0o644))
    }

    /// The domains that it may sign for, with all that is below each.
    pub(crate) fn domains(&self) -> &[String] {
        &self.domains
    }
}

/// The domains that a new one may sign for.
pub(crate) fn domains() -> Vec<String> {
    let domains = DOMAINS.map(str::to_owned).into_iter();
    domains.chain(machine()).collect()
}

/// What it is called, so that a person with several machines knows which it is.
pub(crate) fn name() -> String {
    let user = env::var("USER").or_else(|_| env::var("LOGNAME"));
    let user = user.unwrap_or_else(|_| "user".to_owned());
    let machine = machine().unwrap_or_else(|| "machine".to_owned());
    let name = format!("{ORGANIZATION} {user}@{machine}");
    name.chars()
        .filter(|letter| !letter.is_control())
        .take(64)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;
    use crate::net::tls::issue::{RENEWED_BEFORE, VALID, issue, names};
    use crate::net::tls::serving::provider;

    #[test]
    fn it_is_made_once_and_its_key_is_for_its_owner_alone() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path().join("cloudgate/ca");
        assert!(LocalCa::find(&folder).unwrap().is_none());
        let now = SystemTime::now();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let folder = folder.clone();
                std::thread::spawn(move || LocalCa::find_or_make(&folder, now).unwrap().der)
            })
            .collect();
        let made: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(made.iter().all(|other| *other == made[0]));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join(KEY_FILE)), 0o600);
        assert_eq!(mode(&certificate_file(&folder)), 0o644);
        let text = fs::read_to_string(certificate_file(&folder)).unwrap();
        assert!(text.starts_with("-----BEGIN CERTIFICATE-----\n") && !text.contains("KEY"));
        // The file for others comes back.
        fs::remove_file(certificate_file(&folder)).unwrap();
        LocalCa::find_or_make(&folder, now).unwrap();
        assert_eq!(fs::read_to_string(certificate_file(&folder)).unwrap(), text);
        // The key was taken away, so that there is another authority.
        fs::remove_file(folder.join(KEY_FILE)).unwrap();
        let other = LocalCa::find_or_make(&folder, now).unwrap();
        let text = fs::read_to_string(certificate_file(&folder)).unwrap();
        assert_eq!(text, other.pem());
        // As there is when this one comes to its end.
        let end = other.certificate().valid_until() - RENEWED_BEFORE;
        let second = Duration::from_secs(1);
        let last = LocalCa::find_or_make(&folder, end - second).unwrap();
        assert_eq!(last.der(), other.der());
        let next = LocalCa::find_or_make(&folder, end).unwrap();
        assert!(next.lasts(end) && next.der() != other.der());
        // A key and a certificate that are not each other's.
        let key = KeyPair::generate().unwrap().serialize_pem();
        fs::write(folder.join(KEY_FILE), key + next.pem()).unwrap();
        assert!(LocalCa::find(&folder).is_err());
        fs::write(folder.join(KEY_FILE), "my diary").unwrap();
        assert!(LocalCa::find_or_make(&folder, now).is_err());
        assert_eq!(
            fs::read_to_string(folder.join(KEY_FILE)).unwrap(),
            "my diary"
        );
    }

    #[test]
    fn what_it_signs_is_trusted_for_names_of_ones_own_and_for_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let authority = LocalCa::find_or_make(folder.path(), now).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        let verifier = verifier.unwrap();
        let trusted = |name: &str| {
            let name = names([name]).unwrap();
            let issued = issue(&name, now, VALID, Some(&authority)).unwrap();
            let chain = &issued.material.chain;
            let asked = ServerName::try_from(name[0].replace('*', "a")).unwrap();
            let now = UnixTime::now();
            let seen = verifier.verify_server_cert(&chain[0], &[], &asked, &[], now);
            (
                seen.is_ok(),
                authority.may_sign(&name[0], SystemTime::now()),
            )
        };
        for name in [
            "localhost",
            "app.localhost",
            "app.test",
            "*.app.test",
            "printer.local",
            "db.internal",
            "nas.home.arpa",
            "127.0.0.1",
            "10.1.2.3",
            "172.31.255.255",
            "192.168.0.7",
            "::1",
            "fd00::1",
        ] {
            assert_eq!(trusted(name), (true, true), "{name}");
        }
        for name in [
            "example.com",
            "test.example",
            "atest",
            "notlocalhost",
            "*.com",
            "8.8.8.8",
            "172.32.0.1",
            "2001:db8::1",
        ] {
            assert_eq!(trusted(name), (false, false), "{name}");
        }
        let machine: Vec<_> = machine().into_iter().collect();
        assert!(authority.domains().ends_with(&machine));
        let end = authority.certificate().valid_until();
        assert!(authority.may_sign("localhost", end - Duration::from_secs(1)));
        assert!(!authority.may_sign("localhost", end));
    }
}
