//! How does a server get a certificate that nobody has made for it?

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::identity::{Material, is_pkcs12, parse_pem, read};
use super::identity_error::IdentityError;
use super::issue::{
    Issued, OWN_NAMES, RENEWED_BEFORE, VALID, is_made_here, issue, lock, machine, names,
    write_secret,
};
use super::local_ca::{self, LocalCa};
#[cfg(feature = "pkcs12")]
use super::pkcs12;
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
#[derive(Clone, PartialEq, Eq)]
pub struct GeneratedKey {
    path: PathBuf,
    common_name: String,
    names: Vec<String>,
    password: String,
}

impl GeneratedKey {
    /// A key in this file; the folder is made as well, for its owner alone.
    pub fn new(path: impl Into<PathBuf>) -> GeneratedKey {
        GeneratedKey {
            path: path.into(),
            common_name: "localhost".to_owned(),
            names: Vec::new(),
            password: String::new(),
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

    /// The password of a file in PKCS#12 form, which one that ends with `.p12` or `.pfx` has (with the feature `pkcs12`);
    /// a PEM file has none.
    #[must_use]
    pub fn password(mut self, password: &str) -> GeneratedKey {
        password.clone_into(&mut self.password);
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
        match write_secret(&self.path, &self.encode(&issued)?, replace) {
            Ok(()) => Ok(issued.material),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && !replace => {
                // By somebody who knows of no lock.
                let there = self.there()?.map(|there| there.material);
                there.ok_or_else(|| unwritable(error))
            }
            Err(error) => Err(unwritable(error)),
        }
    }

    #[cfg(feature = "pkcs12")]
    fn parse(&self, bytes: &[u8], place: &str) -> Result<Material, IdentityError> {
        if is_pkcs12(&self.path) {
            return pkcs12::read_whole(bytes, &self.password, place);
        }
        parse_pem(bytes, place, bytes, place)
    }

    #[cfg(feature = "pkcs12")]
    fn encode(&self, issued: &Issued) -> Result<Vec<u8>, IdentityError> {
        if is_pkcs12(&self.path) {
            let Material { chain, key } = &issued.material;
            return pkcs12::write(chain, key.secret_der(), &self.common_name, &self.password);
        }
        Ok(issued.pem.clone().into_bytes())
    }

    #[cfg(not(feature = "pkcs12"))]
    fn parse(&self, bytes: &[u8], place: &str) -> Result<Material, IdentityError> {
        self.refuse_pkcs12()?;
        parse_pem(bytes, place, bytes, place)
    }

    #[cfg(not(feature = "pkcs12"))]
    fn encode(&self, issued: &Issued) -> Result<Vec<u8>, IdentityError> {
        self.refuse_pkcs12()?;
        Ok(issued.pem.clone().into_bytes())
    }

    #[cfg(not(feature = "pkcs12"))]
    fn refuse_pkcs12(&self) -> Result<(), IdentityError> {
        if !is_pkcs12(&self.path) {
            return Ok(());
        }
        Err(IdentityError::Malformed {
            place: self.path.display().to_string(),
            reason: "PKCS#12 is read and written with cloudgate's feature pkcs12".to_owned(),
        })
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
        let there = self.parse(&pem, &place).and_then(|material| {
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

/// The password is not shown.
impl fmt::Debug for GeneratedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratedKey")
            .field("path", &self.path)
            .field("common_name", &self.common_name)
            .field("names", &self.names)
            .finish_non_exhaustive()
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
mod tests;
