//! How does a server get a certificate that nobody has made for it?

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::identity::{Material, parse_pem, read};
use super::identity_error::IdentityError;
use super::issue::{VALID, is_made_here, issue, lock, names, names_of_machine, write_secret};
use super::local_ca::{self, LocalCa};
use crate::message::Certificate;

/// How long before its end another takes its place.
const RENEWED_BEFORE: Duration = Duration::from_secs(30 * 86_400);

/// A key and a certificate that are made where there are none yet: for development, and for servers that only those reach
/// who know the certificate.
///
/// ```
/// use cloudgate::{GeneratedKey, Identity};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("certs/localhost.pem");
/// let identity = Identity::generated(&GeneratedKey::new(&path).common_name("app.test"))?;
/// assert!(identity.certificate().names().contains(&"app.test".to_owned()));
/// assert!(identity.certificate().names().contains(&"::1".to_owned()));
/// # Ok::<(), cloudgate::Error>(())
/// ```
///
/// The file holds both in PEM form, and only its owner can read it. It is used again for as long as it is good, and made
/// anew 30 days before its end, also while a server runs, or when another name is asked for. Of several processes that
/// start at once one makes it, and the others take that. A file that was not made here is used as it is, and never
/// written to.
///
/// The key is an ECDSA one of P-256; the certificate is for the common name, for further [names](GeneratedKey::name), for
/// `localhost`, `127.0.0.1`, `::1` and the machine's own name. Where the user has an authority of their own, made by the
/// program's `cloudgate cert trust`, and all names are among those that it signs for, it is signed by that one, and
/// browsers on this machine trust it. Otherwise it is signed by itself: a browser trusts it only after a question, and
/// `curl` by `--cacert`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedKey {
    path: PathBuf,
    common_name: String,
    names: Vec<String>,
}

impl GeneratedKey {
    /// A key in this file; the folder is made as well, for its owner alone.
    pub fn new(path: impl Into<PathBuf>) -> GeneratedKey {
        GeneratedKey {
            path: path.into(),
            common_name: "localhost".to_owned(),
            names: Vec::new(),
        }
    }

    /// Whom the certificate is for, a host or an IP address; `localhost` unless this says otherwise.
    #[must_use]
    pub fn common_name(mut self, name: &str) -> GeneratedKey {
        name.clone_into(&mut self.common_name);
        self
    }

    /// Another host, `*.` and a host, or an IP address that it is for.
    #[must_use]
    pub fn name(mut self, name: &str) -> GeneratedKey {
        self.names.push(name.to_owned());
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file holds, once it is there and good.
    ///
    /// # Errors
    /// [`IdentityError`] where it cannot be read, made or renewed.
    pub(crate) fn ensure(&self, now: SystemTime) -> Result<Material, IdentityError> {
        self.ensure_with(local_ca::folder().as_deref(), now)
    }

    /// As [`GeneratedKey::ensure`], with a local authority in this folder, if there is one.
    fn ensure_with(
        &self,
        authority: Option<&Path>,
        now: SystemTime,
    ) -> Result<Material, IdentityError> {
        let given = std::iter::once(&self.common_name).chain(&self.names);
        let given = names(given.map(String::as_str))?;
        // One that cannot be read is not this server's business: the certificate signs itself then.
        let authority = authority.and_then(|folder| LocalCa::find(folder).ok().flatten());
        let authority =
            authority.filter(|authority| given.iter().all(|name| authority.may_sign(name, now)));
        let mut own = names_of_machine();
        if let Some(authority) = &authority {
            // The machine may have been called something else when the authority was made.
            own.retain(|name| authority.may_sign(name, now));
        }
        let all = names(given.iter().chain(&own).map(String::as_str))?;
        let is_good = |there: &There| there.is_good(&all, authority.as_ref(), now);
        if let Some(there) = self.there()?
            && is_good(&there)
        {
            return Ok(there.material);
        }
        let unwritable = |source: io::Error| IdentityError::Unwritable {
            path: self.path.clone(),
            source,
        };
        let _lock = lock(&self.path).map_err(unwritable)?;
        // Somebody else may have made it meanwhile.
        let replace = match self.there()? {
            Some(there) if is_good(&there) => return Ok(there.material),
            there => there.is_some(),
        };
        let issued = issue(&all, now, VALID, authority.as_ref())?;
        match write_secret(&self.path, issued.pem.as_bytes(), replace) {
            Ok(()) => Ok(issued.material),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && !replace => {
                // By somebody who knows of no lock.
                let there = self.there()?.map(|there| there.material);
                there.ok_or_else(|| unwritable(error))
            }
            Err(error) => Err(unwritable(error)),
        }
    }

    /// What is in the file, if it is there.
    fn there(&self) -> Result<Option<There>, IdentityError> {
        let place = self.path.display().to_string();
        let pem = match read(&self.path) {
            Ok(pem) => pem,
            Err(IdentityError::Unreadable { source, .. })
                if source.kind() == ErrorKind::NotFound =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let there = parse_pem(&pem, &place, &pem, &place).and_then(|material| {
            let certificate = Certificate::from_der(&material.chain[0]).map_err(|error| {
                IdentityError::Malformed {
                    place,
                    reason: error.to_string(),
                }
            })?;
            Ok(There {
                material,
                certificate,
            })
        });
        there
            .map(Some)
            .map_err(|error| IdentityError::NotGenerated {
                path: self.path.clone(),
                reason: error.to_string(),
            })
    }
}

/// What is in the file already.
struct There {
    material: Material,
    certificate: Certificate,
}

impl There {
    /// Whether it stays: it is somebody else's, or for long enough, for all names, and signed by whom people trust.
    fn is_good(&self, names: &[String], authority: Option<&LocalCa>, now: SystemTime) -> bool {
        if !is_made_here(&self.certificate) {
            return true;
        }
        let known = self.certificate.names();
        let signed_by = self.material.chain.get(1);
        !is_due(&self.certificate, now)
            && names.iter().all(|name| known.contains(name))
            && signed_by == authority.map(LocalCa::der)
    }
}

/// Whether one that was made here is to be made anew.
pub(crate) fn is_due(certificate: &Certificate, now: SystemTime) -> bool {
    is_made_here(certificate) && certificate.valid_until() <= now + RENEWED_BEFORE
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::net::tls::identity::Identity;
    use std::thread;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn generated(key: &GeneratedKey, now: SystemTime) -> Certificate {
        let material = key.ensure_with(None, now).unwrap();
        Certificate::from_der(&material.chain[0]).unwrap()
    }

    #[test]
    fn it_is_made_for_its_owner_and_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/key.pem");
        let key = GeneratedKey::new(&path)
            .common_name("App.test")
            .name("*.app.test")
            .name("10.1.2.3")
            .name("localhost");
        let now = SystemTime::now();
        let made = generated(&key, now);
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(
            made.names()[..6],
            [
                "app.test",
                "*.app.test",
                "10.1.2.3",
                "localhost",
                "127.0.0.1",
                "::1"
            ]
        );
        assert_eq!(made.common_name(), Some("app.test"));
        let length = made.valid_until().duration_since(made.valid_from());
        assert_eq!(length.unwrap(), VALID);
        assert!(made.valid_from() < now - Duration::from_secs(86_399));
        assert_eq!(generated(&key, now), made);
        // This machine may have an authority, which signs it anew.
        let identity = Identity::generated(&key).unwrap();
        assert_eq!(identity.certificate().names(), made.names());
        // No half-written file was left.
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn it_is_made_anew_thirty_days_before_its_end_and_for_other_names() {
        let folder = tempfile::tempdir().unwrap();
        let key = GeneratedKey::new(folder.path().join("key.pem"));
        let now = SystemTime::now();
        let first = generated(&key, now);
        let second = Duration::from_secs(1);
        let last = first.valid_until() - RENEWED_BEFORE - second;
        assert_eq!(generated(&key, last), first);
        let renewed = generated(&key, last + second);
        assert_ne!(renewed, first);
        assert!(renewed.valid_until() > first.valid_until());
        assert_eq!(mode(key.path()), 0o600);
        let more = generated(&key.clone().name("more.test"), last);
        assert!(more.names().contains(&"more.test".to_owned()));
        // One that is for more than is asked for stays.
        assert_eq!(generated(&key, last), more);
    }

    #[test]
    fn it_is_signed_by_the_authority_of_this_machine_while_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let authority = folder.path().join("ca");
        let key = GeneratedKey::new(folder.path().join("key.pem"));
        let now = SystemTime::now();
        let chain = |key: &GeneratedKey| key.ensure_with(Some(&authority), now).unwrap().chain;
        assert_eq!(chain(&key).len(), 1);
        let made = LocalCa::find_or_make(&authority, now).unwrap();
        let signed = chain(&key);
        assert_eq!(signed[1..], [made.der().clone()]);
        assert_eq!(chain(&key), signed);
        // Not for names that it may not sign for.
        let public = GeneratedKey::new(folder.path().join("public.pem")).name("example.com");
        assert_eq!(chain(&public).len(), 1);
        // Another one has taken its place, and then there is none.
        std::fs::remove_dir_all(&authority).unwrap();
        let other = LocalCa::find_or_make(&authority, now).unwrap();
        assert_eq!(chain(&key)[1..], [other.der().clone()]);
        std::fs::remove_dir_all(&authority).unwrap();
        assert_eq!(chain(&key).len(), 1);
    }

    #[test]
    fn what_was_not_made_here_is_never_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        let key = GeneratedKey::new(&path);
        let now = SystemTime::now();
        for text in [
            "",
            "my diary",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            fs::write(&path, text).unwrap();
            let error = key.ensure_with(None, now).err().unwrap().to_string();
            assert!(
                error.contains("key.pem was not made here") && error.contains("move it away"),
                "{error}"
            );
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let own = rcgen::generate_simple_self_signed(["mine".to_owned()]).unwrap();
        let pem = format!("{}{}", own.cert.pem(), own.signing_key.serialize_pem());
        fs::write(&path, &pem).unwrap();
        assert_eq!(generated(&key, now).names(), ["mine"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), pem);
    }

    #[test]
    fn of_many_that_start_at_once_all_have_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let key = GeneratedKey::new(folder.path().join("certs/key.pem"));
        let now = SystemTime::now();
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let key = key.clone();
                thread::spawn(move || generated(&key, now))
            })
            .collect();
        let made: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(made.iter().all(|other| *other == made[0]));
    }

    #[test]
    fn what_cannot_be_made_is_told() {
        let error = |key: GeneratedKey| {
            key.ensure_with(None, SystemTime::now())
                .err()
                .unwrap()
                .to_string()
        };
        let missing = error(GeneratedKey::new("/proc/no/key.pem"));
        assert!(
            missing.starts_with("no key can be written to /proc/no/key.pem: "),
            "{missing}"
        );
        let name = error(GeneratedKey::new("/proc/no/key.pem").common_name("a b"));
        assert!(name.contains("\"a b\" is no name"), "{name}");
    }
}
