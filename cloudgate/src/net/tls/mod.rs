//! How does TLS go over a connection (RFC 8446, RFC 5246)?
//!
//! ```text
//!  serving   what a server needs: identities, names, clients ──▶ Acceptor
//!  live      the one in use, changed while the server runs       keeper  the thread that does so
//!  identity  a certificate and its key, from where they lie      table   which one a client sees
//!  generated those that are made here: issue, local_ca             pkcs12  those in one file with a password
//!  clients   whose certificates are taken from clients            client  the other side of all this
//!  engine    what a library of TLS is to us: bytes in, bytes out
//!            rustls_engine · native_engine (feature `native-tls`)
//!  session   an engine on a connection, waiting outside of it     lane    how long handshakes compute at a stretch
//! ```

pub mod client;
pub mod clients;
pub(crate) mod engine;
pub mod generated;
pub mod identity;
pub mod identity_error;
pub(crate) mod issue;
pub(crate) mod keeper;
pub(crate) mod lane;
pub mod live;
pub(crate) mod local_ca;
#[cfg(feature = "native-tls")]
mod native_engine;
#[cfg(test)]
#[cfg(feature = "native-tls")]
#[allow(clippy::duplicate_mod, reason = "the same tests, by another library")]
#[path = "tests.rs"]
mod native_tests;
#[cfg(feature = "pkcs12")]
pub(crate) mod pkcs12;
mod rustls_engine;
pub mod serving;
pub(crate) mod session;
mod table;
#[cfg(test)]
mod tests;
