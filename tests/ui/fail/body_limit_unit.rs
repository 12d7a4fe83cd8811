//! Sizes in units that do not exist.

use cloudgate::route;

#[route(POST, "/a", body_limit = "10 mib")]
fn lower_case() {}

#[route(POST, "/b", body_limit = "10")]
fn no_unit() {}

#[route(POST, "/c", body_limit = 10MB)]
fn no_quotes() {}

fn main() {}
