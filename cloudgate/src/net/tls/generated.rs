//! How does a server get a certificate that nobody has made for it?

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::identity::{Material, parse_pem, read};
use super::identity_error::IdentityError;
use super::issue::{
    Issued, OWN_NAMES, RENEWED_BEFORE, VALID, is_made_here, issue, lock, machine, names,
    write_secret,
};
use super::local_ca::{self, LocalCa};
use crate::message::Certificate;

/// The most names of others that stay in a certificate.
const MOST_KEPT: usize = 100;

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
/// anew 30 days before its end, also while a server runs, or when another name is asked for; names that it has already
/// stay until then, so that two servers can share it. Of several processes that start at once one makes it, and the others
/// take that. A file that was not made here is used as it is, and never written to.
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
        let own = OWN_NAMES.into_iter();
        let wanted = Wanted {
            names: names(given.map(String::as_str).chain(own))?,
            authority: Authority::of(authority),
            now,
        };
        if let Some(there) = self.there()?
            && wanted.is_met_by(&there)
        {
            return Ok(there.material);
        }
        let unwritable = |source: io::Error| IdentityError::Unwritable {
            path: self.path.clone(),
            source,
        };
        let _lock = lock(&self.path).map_err(unwritable)?;
        // Somebody else may have made it meanwhile.
        let there = match self.there()? {
            Some(there) if wanted.is_met_by(&there) => return Ok(there.material),
            there => there,
        };
        let issued = wanted.issue(there.as_ref())?;
        let replace = there.is_some();
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

/// Who could sign for this user.
enum Authority {
    /// Nobody knows: it cannot be read now, or the environment does not tell where it is. Then nothing that it may have
    /// signed is made anew for that reason.
    Unknown,
    None,
    One(Box<LocalCa>),
}

impl Authority {
    fn of(folder: Option<&Path>) -> Authority {
        let Some(folder) = folder else {
            return Authority::Unknown;
        };
        match LocalCa::find(folder) {
            Ok(None) => Authority::None,
            Ok(Some(authority)) => Authority::One(Box::new(authority)),
            Err(error) => {
                log::warn!("the local CA is of no use: {error}");
                Authority::Unknown
            }
        }
    }
}

/// What a certificate is to be.
struct Wanted {
    /// Whom it has to be for. The machine's own name is in it as well, but not wanted: it may change, as that of a
    /// container does each time, and be one that no local authority signs for.
    names: Vec<String>,
    authority: Authority,
    now: SystemTime,
}

impl Wanted {
    /// Whether what is there stays: it is somebody else's, or for long enough, for all names, and signed by whom people
    /// trust.
    fn is_met_by(&self, there: &There) -> bool {
        if !is_made_here(&there.certificate) {
            return true;
        }
        let known = there.certificate.names();
        let signed_by = there.material.chain.get(1);
        !is_due(&there.certificate, self.now)
            && self.names.iter().all(|name| known.contains(name))
            && (matches!(self.authority, Authority::Unknown)
                || signed_by == self.authority_for(known).map(LocalCa::der))
    }

    /// Who signs, where the certificate is for these names as well.
    fn authority_for(&self, others: &[String]) -> Option<&LocalCa> {
        let Authority::One(authority) = &self.authority else {
            return None;
        };
        // One without a dot may be what the machine was called once.
        let others = others.iter().filter(|name| name.contains(['.', ':']));
        let signs = |name: &String| authority.may_sign(name, self.now);
        (authority.lasts(self.now) && self.names.iter().chain(others).all(signs))
            .then_some(&**authority)
    }

    /// Makes one in place of this one.
    fn issue(&self, there: Option<&There>) -> Result<Issued, IdentityError> {
        let mut all = self.names.clone();
        all.extend(there.map_or(Vec::new(), |there| self.kept(there)));
        let authority = self.authority_for(&all);
        if let (Authority::One(known), None) = (&self.authority, authority) {
            let mut names = all.iter();
            match names.find(|name| name.contains(['.', ':']) && !known.may_sign(name, self.now)) {
                Some(name) => log::warn!(
                    "the local CA does not sign for {name}: browsers will not trust the certificate, which signs itself"
                ),
                None => log::warn!(
                    "the local CA is at its end, and signs no more: `cloudgate cert trust` makes another"
                ),
            }
        }
        all.extend(machine());
        if let Some(authority) = authority {
            all.retain(|name| authority.may_sign(name, self.now));
        }
        let all = names(all.iter().map(String::as_str))?;
        issue(&all, self.now, VALID, authority)
    }

    /// The names that stay when another one is added: two programs with one file would otherwise take it from each other
    /// in turn.
    fn kept(&self, there: &There) -> Vec<String> {
        let names = there.certificate.names();
        let signed_by = there.material.chain.get(1);
        let known = match &self.authority {
            Authority::One(authority) => Some(authority.der()),
            Authority::None | Authority::Unknown => None,
        };
        let anew = is_due(&there.certificate, self.now)
            || signed_by.is_some_and(|by| Some(by) != known)
            || names.len() > MOST_KEPT;
        if anew { Vec::new() } else { names.to_vec() }
    }
}

/// Whether one that was made here is to be made anew. One that is good only later was made while the clock was ahead.
pub(crate) fn is_due(certificate: &Certificate, now: SystemTime) -> bool {
    is_made_here(certificate)
        && (certificate.valid_until() <= now + RENEWED_BEFORE || now < certificate.valid_from())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::net::tls::identity::Identity;
    use std::thread;
    use std::time::{Duration, UNIX_EPOCH};

    const DAY: Duration = Duration::from_secs(86_400);

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
        assert_eq!(length.unwrap(), VALID + DAY);
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
    fn one_that_is_good_only_later_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let key = GeneratedKey::new(folder.path().join("key.pem"));
        let now = SystemTime::now();
        let ahead = generated(&key, now + 30 * DAY);
        let made = generated(&key, now);
        assert!(made != ahead && made.valid_from() < now);
        // A machine without a clock of its own begins in 1970.
        let other = GeneratedKey::new(folder.path().join("other.pem"));
        let early = generated(&other, UNIX_EPOCH + Duration::from_secs(60));
        assert_eq!(early.valid_from(), UNIX_EPOCH);
        assert_eq!(generated(&other, UNIX_EPOCH + DAY), early);
        assert_ne!(generated(&other, now), early);
    }

    #[test]
    fn two_with_one_file_come_to_agree() {
        let folder = tempfile::tempdir().unwrap();
        let authority = folder.path().join("ca");
        let now = SystemTime::now();
        LocalCa::find_or_make(&authority, now).unwrap();
        for (number, (one, other, signed)) in [
            ("a.test", "b.test", true),
            ("a.test", "b.example", false),
            ("a.test", "2001:db8::1", false),
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.path().join(format!("{number}.pem"));
            let keys = [one, other].map(|name| GeneratedKey::new(&path).common_name(name));
            let chain = |key: &GeneratedKey| key.ensure_with(Some(&authority), now).unwrap().chain;
            chain(&keys[0]);
            let agreed = chain(&keys[1]);
            for key in &keys {
                assert_eq!(chain(key), agreed, "{one} and {other}");
            }
            assert_eq!(agreed.len() == 2, signed, "{one} and {other}");
            let names = Certificate::from_der(&agreed[0]).unwrap();
            for name in [one, other] {
                assert!(names.names().contains(&name.to_owned()), "{name}");
            }
        }
    }

    #[test]
    fn names_of_others_stay_up_to_a_hundred_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        let with = |name: String| GeneratedKey::new(&path).common_name(&name);
        let now = SystemTime::now();
        let first = with("0.test".to_owned());
        let made = generated(&first, now).names().len();
        for number in 1..=MOST_KEPT - made {
            generated(&with(format!("{number}.test")), now);
        }
        let full = generated(&first, now);
        assert_eq!(full.names().len(), MOST_KEPT);
        let over = generated(&with("over.test".to_owned()), now);
        assert_eq!(over.names().len(), MOST_KEPT + 1);
        let anew = generated(&with("anew.test".to_owned()), now);
        assert_eq!(anew.names().len(), made);
        let renewed = generated(&first, anew.valid_until());
        assert!(!renewed.names().contains(&"anew.test".to_owned()));
    }

    #[test]
    fn an_authority_that_cannot_be_read_is_no_reason_to_make_it_anew() {
        let folder = tempfile::tempdir().unwrap();
        let authority = folder.path().join("ca");
        let key = GeneratedKey::new(folder.path().join("key.pem"));
        let now = SystemTime::now();
        let made = LocalCa::find_or_make(&authority, now).unwrap();
        let chain = |authority| key.ensure_with(authority, now).unwrap().chain;
        let signed = chain(Some(&*authority));
        assert_eq!(chain(None), signed);
        fs::write(authority.join("ca-key.pem"), "").unwrap();
        assert_eq!(chain(Some(&*authority)), signed);
        drop(made);
        // Nor is what there is without one.
        let other = GeneratedKey::new(folder.path().join("other.pem"));
        let chain = |authority| other.ensure_with(authority, now).unwrap().chain;
        assert_eq!(chain(Some(&*authority)), chain(None));
    }

    #[test]
    fn no_certificate_outlives_its_authority() {
        let folder = tempfile::tempdir().unwrap();
        let authority = folder.path().join("ca");
        let key = GeneratedKey::new(folder.path().join("key.pem"));
        let now = SystemTime::now();
        let made = LocalCa::find_or_make(&authority, now).unwrap();
        let end = made.certificate().valid_until();
        let second = Duration::from_secs(1);
        let at = |now| {
            let chain = key.ensure_with(Some(&authority), now).unwrap().chain;
            let own = Certificate::from_der(&chain[0]).unwrap();
            assert!(!is_due(&own, now));
            (chain.len(), own.valid_until())
        };
        assert_eq!(at(end - RENEWED_BEFORE - second), (2, end));
        assert_eq!(at(end - RENEWED_BEFORE).0, 1);
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
