//! Which certificate does a client see that names a host (RFC 6066 section 3)?

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Those for one name: of different kinds, such as one with an ECDSA key and one with an RSA key for old clients.
pub(crate) type Kinds = Vec<Arc<CertifiedKey>>;

/// Certificates by the names that clients ask for.
#[derive(Default)]
pub(crate) struct Table {
    exact: FxHashMap<String, Kinds>,
    /// Without the `*`, so that `.example.com` is what follows the first label.
    wildcard: FxHashMap<String, Kinds>,
    /// For who names nobody, or somebody else.
    default: Kinds,
}

impl Table {
    /// Shows these to who asks for a name that is not in the table.
    pub(crate) fn set_default(&mut self, default: Kinds) {
        self.default = default;
    }

    /// Shows a certificate to who asks for `name`, a host in lower case or `*.` and such a host, behind those that are
    /// shown for it already.
    pub(crate) fn add(&mut self, name: &str, certified: &Arc<CertifiedKey>) {
        let kinds = match name.strip_prefix('*') {
            Some(rest) => self.wildcard.entry(rest.to_owned()).or_default(),
            None => self.exact.entry(name.to_owned()).or_default(),
        };
        kinds.push(Arc::clone(certified));
    }

    /// All that go with `name`, as it stands there.
    pub(crate) fn of(&self, name: &str) -> Option<&Kinds> {
        match name.strip_prefix('*') {
            Some(rest) => self.wildcard.get(rest),
            None => self.exact.get(name),
        }
    }

    fn pick(&self, name: Option<&str>, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let kinds = name.and_then(|name| {
            // rustls has refused what is no name; case does not count (RFC 6066 section 3).
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            let label = name.find('.').unwrap_or(name.len());
            self.exact
                .get(&name)
                .or_else(|| self.wildcard.get(&name[label..]))
        });
        let kinds = kinds.unwrap_or(&self.default);
        let fitting = kinds
            .iter()
            .find(|certified| certified.key.choose_scheme(schemes).is_some());
        // Where none fits the client hears so by the first.
        fitting.or_else(|| kinds.first()).cloned()
    }
}

impl ResolvesServerCert for Table {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.pick(hello.server_name(), hello.signature_schemes())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("exact", &self.exact.keys())
            .field("wildcard", &self.wildcard.keys())
            .finish_non_exhaustive()
    }
}

/// What a name in a table is, in lower case.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn name(text: &str) -> Result<String, &'static str> {
    let name = text.trim_end_matches('.').to_ascii_lowercase();
    let host = name.strip_prefix("*.").unwrap_or(&name);
    if host.parse::<std::net::IpAddr>().is_ok() {
        return Err(
            "clients do not name IP addresses (RFC 6066 section 3): the first certificate is shown to who uses one",
        );
    }
    if host.contains('*') {
        return Err("a * stands for the whole first label alone, as in *.example.com");
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if host.len() > 253 || !host.split('.').all(label) {
        return Err("a host is wanted, such as example.com, in ASCII (xn--...)");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use rustls::crypto::aws_lc_rs;
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

    use super::*;

    const ECDSA: SignatureScheme = SignatureScheme::ECDSA_NISTP256_SHA256;
    const EDDSA: SignatureScheme = SignatureScheme::ED25519;

    fn certified(algorithm: &'static rcgen::SignatureAlgorithm) -> Arc<CertifiedKey> {
        let key = rcgen::KeyPair::generate_for(algorithm).unwrap();
        let made = rcgen::CertificateParams::new(["a".to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let secret = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let chain = vec![made.der().clone()];
        Arc::new(CertifiedKey::from_der(chain, secret, &aws_lc_rs::default_provider()).unwrap())
    }

    #[test]
    fn an_exact_name_counts_more_than_a_wildcard_and_that_more_than_the_default() {
        let [default, exact, wild, deep] =
            [(); 4].map(|()| certified(&rcgen::PKCS_ECDSA_P256_SHA256));
        let mut table = Table::default();
        table.set_default(vec![Arc::clone(&default)]);
        table.add("a.example", &exact);
        table.add("*.example", &wild);
        table.add("*.b.example", &deep);
        for (name, want) in [
            (Some("a.example"), &exact),
            (Some("A.Example"), &exact),
            (Some("a.example."), &exact),
            (Some("c.example"), &wild),
            (Some("b.example"), &wild),
            (Some("x.b.example"), &deep),
            // One label, not two and not none.
            (Some("x.c.example"), &default),
            (Some("example"), &default),
            (Some("other"), &default),
            (None, &default),
        ] {
            let picked = table.pick(name, &[ECDSA]).unwrap();
            assert!(Arc::ptr_eq(&picked, want), "{name:?}");
        }
    }

    #[test]
    fn of_two_kinds_the_first_that_the_client_takes_is_shown() {
        let ecdsa = certified(&rcgen::PKCS_ECDSA_P256_SHA256);
        let eddsa = certified(&rcgen::PKCS_ED25519);
        let mut table = Table::default();
        table.set_default(vec![Arc::clone(&ecdsa), Arc::clone(&eddsa)]);
        table.add("a", &ecdsa);
        table.add("a", &eddsa);
        for name in [None, Some("a")] {
            for (schemes, want) in [
                (&[ECDSA, EDDSA][..], &ecdsa),
                (&[EDDSA, ECDSA], &ecdsa),
                (&[EDDSA], &eddsa),
                (&[], &ecdsa),
            ] {
                let picked = table.pick(name, schemes).unwrap();
                assert!(Arc::ptr_eq(&picked, want), "{name:?} {schemes:?}");
            }
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for (text, want) in [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("*.A.b", "*.a.b"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("a_b", "a_b"),
        ] {
            assert_eq!(name(text).as_deref(), Ok(want));
        }
        let long = format!("{}.example", "a".repeat(64));
        let total = [
            "a".repeat(63),
            "b".repeat(63),
            "c".repeat(63),
            "d".repeat(62),
        ]
        .join(".");
        for (text, want) in [
            ("", "a host"),
            ("a..b", "a host"),
            (".a", "a host"),
            ("-a", "a host"),
            ("a b", "a host"),
            ("b\u{fc}cher.example", "a host"),
            ("https://a.example", "a host"),
            ("a.example:443", "a host"),
            (&long, "a host"),
            (&total, "a host"),
            ("*", "a *"),
            ("a*.example", "a *"),
            ("*.*.example", "a *"),
            ("127.0.0.1", "IP addresses"),
            ("::1", "IP addresses"),
        ] {
            assert!(name(text).unwrap_err().contains(want), "{text}");
        }
        assert!(name(&total[1..]).is_ok() && name(&long[1..]).is_ok());
    }
}
