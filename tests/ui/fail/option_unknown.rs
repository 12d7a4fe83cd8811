//! An option that does not exist.

use cloudgate::route;

#[route("/orders", name = "orders")]
fn orders() {}

fn main() {}
