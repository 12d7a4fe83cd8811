//! The option in front of the pattern.

use cloudgate::route;

#[route(blocking, "/")]
fn page() {}

fn main() {}
