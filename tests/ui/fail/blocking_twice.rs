//! The option twice.

use cloudgate::route;

#[route("/", blocking, blocking)]
fn page() {}

fn main() {}
