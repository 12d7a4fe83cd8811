//! A limit that no 64 bits hold.

use cloudgate::route;

#[route(POST, "/orders", body_limit = "20000000000 GiB")]
fn order() {}

fn main() {}
