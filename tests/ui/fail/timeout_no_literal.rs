//! A time that is an expression.

use cloudgate::route;

#[route("/orders", timeout = std::time::Duration::from_secs(5))]
fn orders() {}

fn main() {}
