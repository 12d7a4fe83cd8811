//! Times without a unit, or with another one.

use cloudgate::route;

#[route("/a", timeout = 5)]
fn number() {}

#[route("/b", timeout = "5 minutes")]
fn word() {}

#[route("/c", timeout = "0s")]
fn nothing() {}

fn main() {}
