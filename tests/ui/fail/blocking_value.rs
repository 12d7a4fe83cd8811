//! The option with a value.

use cloudgate::route;

#[route("/", blocking = true)]
fn page() {}

fn main() {}
