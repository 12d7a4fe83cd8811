//! Who is asking?

mod api_key;
mod base64;
mod basic;

use std::fmt;
use std::sync::Arc;

pub use api_key::ApiKeyAuth;
pub use basic::BasicAuth;

use crate::message::{Headers, Request};

/// Who signed in, as [`BasicAuth`] left it on the request: a handler takes it as
/// [`Extension<AuthUser>`](crate::Extension).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuthUser(Arc<str>);

impl AuthUser {
    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AuthUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The query parameters of a request that hold secrets: the access log leaves their values out.
#[derive(Clone, Debug, Default)]
pub(super) struct SecretParameters(pub(super) Vec<Arc<str>>);

/// Notes that this query parameter holds a secret.
fn keep_secret(request: &mut Request<'_>, name: &Arc<str>) {
    let known = request
        .extensions_mut()
        .get_or_insert_default::<SecretParameters>();
    if !known.0.contains(name) {
        known.0.push(Arc::clone(name));
    }
}

/// What `Authorization` says behind a scheme's name, where there is one such field and no other.
///
/// Of two fields nobody could say which one another program looks at.
fn credentials<'h>(headers: &'h Headers, scheme: &str) -> Option<&'h [u8]> {
    let mut fields = headers.get_all("authorization");
    let value = fields.next().filter(|_| fields.next().is_none())?;
    let (name, rest) = value.split_at_checked(scheme.len())?;
    if !name.eq_ignore_ascii_case(scheme.as_bytes()) || rest.first() != Some(&b' ') {
        return None;
    }
    Some(rest.trim_ascii())
}

/// A text as a quoted-string (RFC 9110 section 5.6.4).
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        if matches!(char, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(char);
    }
    quoted.push('"');
    quoted
}

/// Whether a realm can stand in a field of every browser.
fn is_realm(realm: &str) -> bool {
    !realm.is_empty()
        && realm
            .chars()
            .all(|char| char.is_ascii_graphic() || char == ' ')
}
