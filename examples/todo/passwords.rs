//! How is a password kept so that a stolen database does not tell it?
//!
//! PBKDF2-HMAC-SHA256 with a salt for each, in as many rounds as OWASP advises. Argon2id would make
//! guessing dearer still; PBKDF2 is here because `ring`, which seals our cookies, has it, and it is quick
//! enough in a debug build. The number of rounds is kept with each hash, so it can be raised later.

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2::{self, PBKDF2_HMAC_SHA256};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use cloudgate::{HttpError, Status};

/// A good part of a second of work. Tests have no secrets.
const ROUNDS: NonZeroU32 = NonZeroU32::new(if cfg!(test) { 1_000 } else { 600_000 }).unwrap();

const SALT: usize = 16;

/// What the database keeps of a password: rounds, salt, hash.
pub fn hash(password: &str) -> Result<Vec<u8>, HttpError> {
    let (mut salt, mut hash) = ([0; SALT], [0; 32]);
    if SystemRandom::new().fill(&mut salt).is_err() {
        let text = "the system gives no random bytes"; // for the log: a 5xx tells its client nothing
        return Err(HttpError::new(Status::INTERNAL_SERVER_ERROR, text));
    }
    pbkdf2::derive(
        PBKDF2_HMAC_SHA256,
        ROUNDS,
        &salt,
        password.as_bytes(),
        &mut hash,
    );
    Ok([&ROUNDS.get().to_be_bytes()[..], &salt, &hash].concat())
}

/// Whether `kept` was made of this password. How long it takes does not tell how much of it fits.
pub fn fits(password: &str, kept: &[u8]) -> bool {
    let Some((rounds, rest)) = kept.split_first_chunk() else {
        return false;
    };
    let (Some(rounds), Some((salt, hash))) = (
        NonZeroU32::new(u32::from_be_bytes(*rounds)),
        rest.split_at_checked(SALT),
    ) else {
        return false;
    };
    pbkdf2::verify(PBKDF2_HMAC_SHA256, rounds, salt, password.as_bytes(), hash).is_ok()
}
