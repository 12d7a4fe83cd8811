//! A limit that refuses every body.

use cloudgate::route;

#[route(POST, "/orders", body_limit = 0)]
fn order() {}

fn main() {}
