//! What do all modules of `api` share?
// An attribute of the whole file, which only a module of its own can have.
#![allow(clippy::redundant_pub_crate)]

pub(crate) fn shared() -> &'static str {
    "shared"
}

#[cloudgate::route("/api/own")]
fn own() -> &'static str {
    shared()
}
