//! Is a key made once, renewed in time, and never written over something else?

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

#[cfg(feature = "pkcs12")]
#[test]
fn a_pkcs12_file_has_its_password_and_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca");
    let key = GeneratedKey::new(folder.path().join("key.p12")).password("secret");
    assert!(!format!("{key:?}").contains("secret"));
    let now = SystemTime::now();
    let chain = |key: &GeneratedKey| key.ensure_with(Some(&authority), now).unwrap().chain;
    let alone = chain(&key);
    assert_eq!((alone.len(), chain(&key)), (1, alone));
    assert_eq!(mode(key.path()), 0o600);
    LocalCa::find_or_make(&authority, now).unwrap();
    let signed = chain(&key);
    assert_eq!((signed.len(), chain(&key)), (2, signed));
    let wrong = key.password("other").ensure_with(None, now);
    let error = wrong.err().unwrap().to_string();
    assert!(error.contains("the password of"), "{error}");
}

#[cfg(not(feature = "pkcs12"))]
#[test]
fn a_pkcs12_file_wants_its_feature() {
    let folder = tempfile::tempdir().unwrap();
    let key = GeneratedKey::new(folder.path().join("key.p12"));
    let error = key.ensure_with(None, SystemTime::now()).err().unwrap();
    assert!(error.to_string().contains("feature pkcs12"), "{error}");
    assert!(!key.path().exists());
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
