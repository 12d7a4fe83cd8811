//! Are words about a handshake read rightly, and does every case have what it needs?
//!
//! A program without the test harness cannot hold `#[test]`s; `cargo test --benches` runs this instead.

use crate::cases::Case;
use crate::client::{Terms, Version};
use crate::harness::options::{Named, choose};
use crate::servers::{Server, are_terms};
use crate::site::{Key, file};

pub(crate) fn run() {
    for (said, version, right) in [
        ("TLSv1.3 TLS_AES_128_GCM_SHA256 .", Version::Tls13, true),
        ("TLSv1.3 TLS13_AES_128_GCM_SHA256 r", Version::Tls13, true),
        (
            "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 .",
            Version::Tls12,
            true,
        ),
        (
            "TLSv1.2 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 .",
            Version::Tls12,
            true,
        ),
        (
            "TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 .",
            Version::Tls13,
            false,
        ),
        ("TLSv1.3 TLS_AES_256_GCM_SHA384 .", Version::Tls13, false),
        ("", Version::Tls13, false),
    ] {
        assert_eq!(are_terms(said, version), right, "{said}");
    }
    for key in Key::ALL {
        assert_eq!(Key::named(key.name()), Some(key));
    }
    for &case in Case::ALL {
        let terms = case.terms();
        let words = terms.words();
        let again = Terms::parse(&words[0], &words[1]).expect("terms as they were written");
        assert_eq!(
            (again.version, again.kind),
            (terms.version, terms.kind),
            "{}",
            case.name()
        );
        assert_eq!(file(case).is_some(), case.target() != "/simple");
    }
    let (cases, servers) = choose::<Case, Server>(&["idle", "nginx"]).expect("a case and a server");
    assert_eq!((cases.len(), servers.len()), (1, 1));
}
