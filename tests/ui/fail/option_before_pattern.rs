//! An option with a value in front of the pattern.

use cloudgate::route;

#[route(POST, timeout = "5s", "/orders")]
fn order() {}

fn main() {}
