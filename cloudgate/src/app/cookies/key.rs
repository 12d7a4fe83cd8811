//! What signs and encrypts cookies?
//!
//! Two keys are derived from the secret (HKDF-SHA256, RFC 5869): one signs (HMAC-SHA256), from the
//! other each encrypted cookie gets a key of its own (AES-256-GCM), so that no number of cookies
//! wears it out. The name of the cookie is signed with it: the value of one does not count for another.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use aws_lc_rs::{hkdf, hmac};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use crate::error::{Error, Result};

/// The least bytes of a secret.
const LEAST_BYTES: usize = 64;

/// What makes the key of one encrypted cookie differ from others, in bytes.
const SALT: usize = 20;

/// The bytes of a signature.
const TAG: usize = 32;

/// What a text of a key must be.
const WANTED: &str = "at least 64 random bytes in hex or base64, as `openssl rand -hex 64` prints them; several keys are separated by commas";

/// The secret behind [`SignedCookies`](crate::SignedCookies) and
/// [`PrivateCookies`](crate::PrivateCookies): a state of the application.
///
/// ```no_run
/// use cloudgate::{App, Config, CookieKey};
///
/// fn main() -> cloudgate::Result<()> {
///     App::gather()
///         .state(CookieKey::from_env("COOKIE_KEY")?)
///         .run(Config::from_env()?)
/// }
/// ```
///
/// To change it, put the new one in front of the old one, `COOKIE_KEY=new,old`: the first key seals,
/// all of them open. Leave the old one out when the last cookie of it has ended.
#[derive(Clone)]
pub struct CookieKey {
    /// The first one seals.
    keys: Vec<Derived>,
}

#[derive(Clone)]
struct Derived {
    signing: hmac::Key,
    encrypting: hkdf::Prk,
}

impl CookieKey {
    /// The key in this environment variable, in hex or base64; several are separated by commas.
    ///
    /// # Errors
    /// When the variable is not set or holds no key of at least 64 bytes. The error does not show it.
    pub fn from_env(variable: &str) -> Result<CookieKey> {
        let place = format!("environment variable {variable}");
        match std::env::var(variable) {
            Ok(text) => CookieKey::from_text_of(&text, place),
            Err(_) => Err(refusal(place, "(not set)".to_owned())),
        }
    }

    /// The key in this text, in hex or base64; several are separated by commas. The first one seals,
    /// all of them open.
    ///
    /// # Errors
    /// When one of them is neither, or has fewer than 64 bytes. The error does not show it.
    pub fn from_text(text: &str) -> Result<CookieKey> {
        CookieKey::from_text_of(text, "the cookie key".to_owned())
    }

    fn from_text_of(text: &str, place: String) -> Result<CookieKey> {
        let keys: Option<Vec<Derived>> = text
            .split(',')
            .map(|one| Derived::new(&decode(one.trim_ascii())?))
            .collect();
        match keys {
            Some(keys) => Ok(CookieKey { keys }),
            None => Err(refusal(
                place,
                format!("({} characters, not shown)", text.len()),
            )),
        }
    }

    /// The key with these random bytes, at least 64 of them.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn from_bytes(secret: &[u8]) -> Result<CookieKey> {
        match Derived::new(secret) {
            Some(key) => Ok(CookieKey { keys: vec![key] }),
            None => Err(Error::Setting {
                place: "the cookie key".to_owned(),
                value: format!("({} bytes, not shown)", secret.len()),
                wanted: "at least 64 random bytes",
            }),
        }
    }

    /// A random key that nobody else knows: cookies end with the process, and those of one process
    /// mean nothing to another. For development and tests.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> Result<CookieKey> {
        let mut secret = [0; LEAST_BYTES];
        random(&mut secret).ok_or_else(|| Error::System {
            wanted: "random bytes for a cookie key",
            source: std::io::ErrorKind::Other.into(),
        })?;
        CookieKey::from_bytes(&secret)
    }

    /// The same key, which also opens what `old` has sealed.
    pub fn with_old(mut self, old: CookieKey) -> CookieKey {
        self.keys.extend(old.keys);
        self
    }

    /// The text as the value of a signed cookie, which opens until `expiry` (seconds since 1970).
    pub(super) fn sign(&self, name: &str, text: &str, expiry: u64) -> Option<String> {
        let payload = payload(text, expiry);
        let key = &self.keys.first()?.signing;
        let mut sealed = hmac::sign(key, &signed(name, &payload)).as_ref().to_vec();
        sealed.extend_from_slice(&payload);
        Some(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// The text that was signed under this name, if one of the keys has signed it.
    pub(super) fn verify(&self, name: &str, value: &str, now: u64) -> Option<String> {
        let sealed = URL_SAFE_NO_PAD.decode(value).ok()?;
        let (tag, payload) = sealed.split_at_checked(TAG)?;
        let message = signed(name, payload);
        self.keys
            .iter()
            .any(|key| hmac::verify(&key.signing, &message, tag).is_ok())
            .then(|| open_payload(payload, now))?
    }

    /// The text as the value of an encrypted cookie; `None` if the system gives no random bytes.
    pub(super) fn encrypt(&self, name: &str, text: &str, expiry: u64) -> Option<String> {
        let mut sealed = vec![0; SALT + NONCE_LEN];
        random(&mut sealed)?;
        let (key, nonce) = self.keys.first()?.for_cookie(&sealed)?;
        let mut payload = payload(text, expiry);
        key.seal_in_place_append_tag(nonce, Aad::from(name), &mut payload)
            .ok()?;
        sealed.extend_from_slice(&payload);
        Some(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// The text that was encrypted under this name, if one of the keys has encrypted it.
    pub(super) fn decrypt(&self, name: &str, value: &str, now: u64) -> Option<String> {
        let sealed = URL_SAFE_NO_PAD.decode(value).ok()?;
        let (front, ciphertext) = sealed.split_at_checked(SALT + NONCE_LEN)?;
        self.keys.iter().find_map(|key| {
            let (key, nonce) = key.for_cookie(front)?;
            let mut ciphertext = ciphertext.to_vec();
            let payload = key
                .open_in_place(nonce, Aad::from(name), &mut ciphertext)
                .ok()?;
            open_payload(payload, now)
        })
    }
}

impl Derived {
    /// `None` if the secret is too short.
    fn new(secret: &[u8]) -> Option<Derived> {
        if secret.len() < LEAST_BYTES {
            return None;
        }
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"cloudgate cookies 1").extract(secret);
        let signing = root.expand(&[b"sign"], hmac::HMAC_SHA256).ok()?.into();
        let encrypting = root.expand(&[b"encrypt"], hkdf::HKDF_SHA256).ok()?.into();
        Some(Derived {
            signing,
            encrypting,
        })
    }

    /// The key and the nonce of the cookie with this salt and nonce in front.
    fn for_cookie(&self, front: &[u8]) -> Option<(LessSafeKey, Nonce)> {
        let (salt, nonce) = front.split_at_checked(SALT)?;
        let key: UnboundKey = self.encrypting.expand(&[salt], &AES_256_GCM).ok()?.into();
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        Some((LessSafeKey::new(key), nonce))
    }
}

fn random(bytes: &mut [u8]) -> Option<()> {
    SystemRandom::new().fill(bytes).ok()
}

fn refusal(place: String, value: String) -> Error {
    Error::Setting {
        place,
        value,
        wanted: WANTED,
    }
}

/// Text of hex digits alone is hex: by chance a key in base64 looks like that in one of 10^39 cases,
/// and hex that lost a digit must not pass for base64.
fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16);
    if text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        return rest.is_empty().then(|| {
            pairs
                .iter()
                .map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8))
                .collect()
        })?;
    }
    [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD]
        .iter()
        .find_map(|engine| engine.decode(text).ok())
}

/// What is signed. A name holds no `=`, so where it ends is certain.
fn signed(name: &str, payload: &[u8]) -> Vec<u8> {
    [name.as_bytes(), b"=", payload].concat()
}

/// The end of its time and the text. A browser forgets a cookie when it is told to; who has copied
/// one does not.
fn payload(text: &str, expiry: u64) -> Vec<u8> {
    [&expiry.to_be_bytes()[..], text.as_bytes()].concat()
}

fn open_payload(payload: &[u8], now: u64) -> Option<String> {
    let (expiry, text) = payload.split_first_chunk()?;
    if now >= u64::from_be_bytes(*expiry) {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

impl fmt::Debug for CookieKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CookieKey({} keys, not shown)", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = u64::MAX;

    fn key(byte: u8) -> CookieKey {
        CookieKey::from_bytes(&[byte; 64]).unwrap()
    }

    type Seal = fn(&CookieKey, &str, &str, u64) -> Option<String>;
    type Open = fn(&CookieKey, &str, &str, u64) -> Option<String>;
    const KINDS: [(Seal, Open); 2] = [
        (CookieKey::sign, CookieKey::verify),
        (CookieKey::encrypt, CookieKey::decrypt),
    ];

    #[test]
    fn any_text_comes_back_under_its_own_name_and_key_only() {
        for (seal, open) in KINDS {
            for text in ["", "7", "caf\u{e9}; \r\n\0", &"x".repeat(5000)] {
                let value = seal(&key(1), "user", text, NEVER).unwrap();
                assert!(
                    value
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
                );
                assert_eq!(open(&key(1), "user", &value, 0).as_deref(), Some(text));
                assert_eq!(open(&key(1), "users", &value, 0), None);
                assert_eq!(open(&key(2), "user", &value, 0), None);
            }
        }
        let signed = key(1).sign("a", "x", NEVER).unwrap();
        assert_eq!(key(1).decrypt("a", &signed, 0), None);
        let encrypted = key(1).encrypt("a", "x", NEVER).unwrap();
        assert_eq!(key(1).verify("a", &encrypted, 0), None);
    }

    #[test]
    fn a_value_with_any_bit_changed_or_cut_off_does_not_open() {
        for (seal, open) in KINDS {
            let value = seal(&key(1), "user", "admin=0", NEVER).unwrap();
            let bytes = URL_SAFE_NO_PAD.decode(&value).unwrap();
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let changed = URL_SAFE_NO_PAD.encode(changed);
                assert_eq!(open(&key(1), "user", &changed, 0), None, "bit {bit}");
            }
            for length in 0..value.len() {
                assert_eq!(open(&key(1), "user", &value[..length], 0), None);
            }
            for other in [
                format!("{value}A"),
                format!("{value}="),
                format!(" {value}"),
                "\u{e9}".into(),
            ] {
                assert_eq!(open(&key(1), "user", &other, 0), None, "{other}");
            }
        }
    }

    #[test]
    fn encrypted_text_cannot_be_read_and_is_another_each_time() {
        let value = key(1).encrypt("a", "the secret word", NEVER).unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(&value).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"secret"));
        assert_ne!(
            key(1).encrypt("a", "the secret word", NEVER).unwrap(),
            value
        );
    }

    #[test]
    fn the_time_of_a_sealed_value_ends_on_the_server_too() {
        for (seal, open) in KINDS {
            let value = seal(&key(1), "a", "x", 100).unwrap();
            assert_eq!(open(&key(1), "a", &value, 99).as_deref(), Some("x"));
            assert_eq!(open(&key(1), "a", &value, 100), None);
        }
    }

    #[test]
    fn the_first_key_seals_and_all_of_them_open() {
        let text = format!("{}, {}", "02".repeat(64), "01".repeat(64));
        let both = CookieKey::from_text(&text).unwrap();
        let same = key(2).with_old(key(1));
        for (seal, open) in KINDS {
            for rotated in [&both, &same] {
                let old = seal(&key(1), "a", "x", NEVER).unwrap();
                assert_eq!(open(rotated, "a", &old, 0).as_deref(), Some("x"));
                let new = seal(rotated, "a", "x", NEVER).unwrap();
                assert_eq!(open(&key(2), "a", &new, 0).as_deref(), Some("x"));
                assert_eq!(open(&key(1), "a", &new, 0), None);
                assert_eq!(
                    open(rotated, "a", &seal(&key(3), "a", "x", NEVER).unwrap(), 0),
                    None
                );
            }
        }
    }

    #[test]
    fn keys_are_read_from_hex_and_base64_of_64_bytes_and_more() {
        let secret: Vec<u8> = (0..64_u8).map(|at| (at * 3).wrapping_add(190)).collect();
        let value = CookieKey::from_bytes(&secret)
            .unwrap()
            .sign("a", "x", NEVER)
            .unwrap();
        let hex: String = secret.iter().map(|byte| format!("{byte:02X}")).collect();
        for text in [
            hex.clone(),
            hex.to_lowercase(),
            format!(" {hex}\n"),
            STANDARD.encode(&secret),
            STANDARD_NO_PAD.encode(&secret),
            URL_SAFE.encode(&secret),
            URL_SAFE_NO_PAD.encode(&secret),
        ] {
            let key = CookieKey::from_text(&text).unwrap();
            assert_eq!(key.verify("a", &value, 0).as_deref(), Some("x"), "{text}");
        }
        for text in [
            "",
            ",",
            &hex[2..],
            &hex[1..],
            &format!("{hex},"),
            "a secret",
            &STANDARD.encode(&secret[1..]),
        ] {
            let error = CookieKey::from_text(text).unwrap_err().to_string();
            assert!(error.contains("openssl rand -hex 64"), "{error}");
            assert!(text.len() < 2 || !error.contains(text), "{error}");
        }
        assert!(CookieKey::from_bytes(&secret[1..]).is_err());
        let error = CookieKey::from_env("CLOUDGATE_NO_SUCH_VARIABLE")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("environment variable CLOUDGATE_NO_SUCH_VARIABLE is \"(not set)\""),
            "{error}"
        );
    }

    #[test]
    fn generated_keys_differ_and_none_is_printed() {
        let (one, other) = (
            CookieKey::generate().unwrap(),
            CookieKey::generate().unwrap(),
        );
        let value = one.sign("a", "x", NEVER).unwrap();
        assert_eq!(other.verify("a", &value, 0), None);
        assert_eq!(format!("{one:?}"), "CookieKey(1 keys, not shown)");
    }
}
