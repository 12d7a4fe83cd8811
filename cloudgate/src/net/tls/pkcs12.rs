//! What is in a PKCS#12 file (RFC 7292)?
//!
//! Keys are derived from its password for a good part of a second, so none of this runs on a worker. A file that wants
//! more than a million rounds for that is refused.

use p12_keystore::error::Error;
use p12_keystore::{
    Certificate, KeyStore, KeyStoreEntry, Pkcs12Archive, PrivateKey, PrivateKeyChain,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use super::identity::Material;
use super::identity_error::IdentityError;
use super::serving::provider;

/// The longest chain that is sent, which no client would follow further.
const LONGEST_CHAIN: usize = 10;

/// Takes a chain and its key out of a file, without the root, which clients have themselves.
///
/// # Errors
/// [`IdentityError`] with the place.
pub(crate) fn read(bytes: &[u8], password: &str, place: &str) -> Result<Material, IdentityError> {
    let mut material = read_whole(bytes, password, place)?;
    let is_root = |der: &CertificateDer<'_>| {
        Certificate::from_der(der).is_ok_and(|read| read.issuer() == read.subject())
    };
    if material.chain.len() > 1 && material.chain.last().is_some_and(is_root) {
        material.chain.pop();
    }
    Ok(material)
}

/// As [`read`], with the root, if it is there.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_whole(
    bytes: &[u8],
    password: &str,
    place: &str,
) -> Result<Material, IdentityError> {
    let refuse = |reason: String| IdentityError::Malformed {
        place: place.to_owned(),
        reason,
    };
    let archive = Pkcs12Archive::from_pkcs12(bytes, password).map_err(|error| match error {
        Error::MacError(_) => IdentityError::WrongPassword {
            place: place.to_owned(),
        },
        // Without a MAC, which tells that one is the right one.
        Error::Pkcs5Error(_) | Error::UnpadError => refuse(
            "it cannot be decrypted; most likely its password is another".to_owned(),
        ),
        Error::InvalidParameters => refuse(
            "it wants more than a million rounds for its password, or a way of encryption that is not done here; `openssl pkcs12 -export` writes another".to_owned(),
        ),
        // One wrong password in 256 decrypts what has no MAC to something, which is then no DER.
        other => refuse(format!(
            "it is no PKCS#12, or of an unknown kind ({other}); or it has no MAC, and its password is another"
        )),
    })?;
    let key = match &*archive.keys {
        [key] => PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.key.as_der().to_vec())),
        [] => return Err(refuse("it holds no private key".to_owned())),
        keys => {
            return Err(refuse(format!(
                "it holds {} private keys, and one is wanted",
                keys.len()
            )));
        }
    };
    let certificates: Vec<_> = archive.certs.iter().map(|bag| &bag.cert).collect();
    let provider = provider();
    let owns = |certificate: &Certificate| {
        let chain = vec![CertificateDer::from(certificate.as_der().to_vec())];
        CertifiedKey::from_der(chain, key.clone_key(), &provider)
    };
    let mut own = None;
    for certificate in &certificates {
        match owns(certificate) {
            Ok(_) => own = own.or(Some(*certificate)),
            // Of the others of the chain.
            Err(rustls::Error::InconsistentKeys(_) | rustls::Error::InvalidCertificate(_)) => {}
            Err(error) => return Err(refuse(error.to_string())),
        }
    }
    let Some(own) = own else {
        return Err(refuse(match certificates.len() {
            0 => "it holds no certificate".to_owned(),
            _ => "none of its certificates is the one of its key".to_owned(),
        }));
    };
    let chain = chain(own, &certificates);
    Ok(Material {
        chain: chain
            .iter()
            .map(|certificate| CertificateDer::from(certificate.as_der().to_vec()))
            .collect(),
        key,
    })
}

/// The server's own certificate and who has signed which, up to a root.
fn chain<'c>(own: &'c Certificate, all: &[&'c Certificate]) -> Vec<&'c Certificate> {
    let mut chain = vec![own];
    let mut last = own;
    while last.issuer() != last.subject() && chain.len() < LONGEST_CHAIN {
        let issuer = all
            .iter()
            .find(|other| other.subject() == last.issuer() && !chain.contains(*other));
        match issuer {
            Some(issuer) => chain.push(issuer),
            None => break,
        }
        last = chain[chain.len() - 1];
    }
    chain
}

/// Writes a chain and its key, PKCS#8 in DER form, as OpenSSL 3 and Java read it: AES-256 and HMAC-SHA-256.
///
/// # Errors
/// [`IdentityError::Malformed`] where that is none.
pub(crate) fn write(
    chain: &[CertificateDer<'_>],
    key: &[u8],
    name: &str,
    password: &str,
) -> Result<Vec<u8>, IdentityError> {
    let written = || -> p12_keystore::Result<Vec<u8>> {
        let certificates: Vec<_> = chain
            .iter()
            .map(|der| Certificate::from_der(der))
            .collect::<Result<_, _>>()?;
        // What ties the key and its certificate together inside the file.
        let entry = PrivateKeyChain::new("1", PrivateKey::from_der(key)?, certificates);
        let mut store = KeyStore::new();
        store.add_entry(name, KeyStoreEntry::PrivateKeyChain(entry));
        store.writer(password).write()
    };
    written().map_err(|error| IdentityError::Malformed {
        place: "the PKCS#12 file to be written".to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, Issuer, KeyPair,
    };

    use super::*;
    use crate::net::tls::identity::Identity;

    fn authority(name: &str) -> CertificateParams {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        params
    }

    /// A key, its certificate, the one who signed that, and the root.
    fn made() -> (Vec<u8>, [CertificateDer<'static>; 3]) {
        let root =
            CertifiedIssuer::self_signed(authority("root"), KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let between = CertifiedIssuer::signed_by(authority("between"), key, &root).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, "a.example");
        let own = params
            .signed_by(&key, &between as &Issuer<'_, KeyPair>)
            .unwrap();
        let chain = [own.der(), between.der(), root.der()].map(Clone::clone);
        (key.serialize_der(), chain)
    }

    #[test]
    fn what_is_written_is_read_again_with_its_chain_and_without_the_root() {
        let (key, chain) = made();
        let file = write(&chain, &key, "a", "p\u{e4}ss word").unwrap();
        let material = read(&file, "p\u{e4}ss word", "a.p12").unwrap();
        assert_eq!(material.key.secret_der(), key);
        assert_eq!(material.chain, chain[..2]);
        let identity = Identity::from_pkcs12(&file, "p\u{e4}ss word").unwrap();
        assert_eq!(identity.certificate().names(), ["a.example"]);
        for wrong in ["", "p\u{e4}ss", "p\u{e4}ss word "] {
            let error = read(&file, wrong, "a.p12").err().unwrap().to_string();
            assert_eq!(error, "the password of a.p12 is another");
        }
    }

    #[test]
    fn a_wrong_password_is_told_without_a_mac_as_well() {
        let (key, chain) = made();
        let file = write(&chain, &key, "a", "x").unwrap();
        // A sequence of the version, what is kept, and the MAC (RFC 7292 section 4), all longer than 255 bytes.
        assert_eq!(
            (&file[..2], &file[4..9]),
            (&b"\x30\x82"[..], &b"\x02\x01\x03\x30\x82"[..])
        );
        let kept = 4 + usize::from(u16::from_be_bytes([file[9], file[10]]));
        let length = u16::try_from(3 + kept).unwrap().to_be_bytes();
        let bare = [&[0x30, 0x82], &length[..], &file[4..7 + kept]].concat();
        assert_eq!(read(&bare, "x", "a.p12").unwrap().chain, chain[..2]);
        let error = read(&bare, "y", "a.p12").err().unwrap().to_string();
        assert!(error.ends_with("its password is another"), "{error}");
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let error = |bytes: &[u8]| read(bytes, "x", "a.p12").err().unwrap().to_string();
        assert!(error(b"").starts_with("a.p12 cannot be understood: it is no PKCS#12"));
        assert!(error(b"-----BEGIN").starts_with("a.p12 cannot be understood"));
        assert!(error(b"\x30\x03\x02\x01\x03").ends_with("its password is another"));
        let (key, chain) = made();
        let file = write(&chain, &key, "a", "x").unwrap();
        for length in (0..file.len()).step_by(37) {
            assert!(read(&file[..length], "x", "a.p12").is_err(), "{length}");
        }
        let file = write(&chain[1..], &key, "a", "x").unwrap();
        assert!(error(&file).ends_with("none of its certificates is the one of its key"));
        let file = write(&[], &key, "a", "x").unwrap();
        assert!(error(&file).ends_with("it holds no certificate"));
        let (other_key, other) = made();
        let mut store = KeyStore::new();
        for (name, key, chain) in [("a", &key, &chain), ("b", &other_key, &other)] {
            let chain: Vec<_> = chain
                .iter()
                .map(|der| Certificate::from_der(der).unwrap())
                .collect();
            let key = PrivateKey::from_der(key).unwrap();
            let entry = PrivateKeyChain::new(name, key, chain);
            store.add_entry(name, KeyStoreEntry::PrivateKeyChain(entry));
        }
        let file = store.writer("x").write().unwrap();
        assert!(error(&file).ends_with("it holds 2 private keys, and one is wanted"));
        let mut store = KeyStore::new();
        let certificate = Certificate::from_der(&chain[0]).unwrap();
        store.add_entry("a", KeyStoreEntry::Certificate(certificate));
        let file = store.writer("x").write().unwrap();
        assert!(error(&file).ends_with("it holds no private key"));
    }
}
