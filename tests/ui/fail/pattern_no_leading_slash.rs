//! A pattern that does not start with a slash.

use cloudgate::route;

#[route("orders")]
fn orders() {}

fn main() {}
