//! An option with a mistake in its name.

use cloudgate::route;

#[route("/orders", bodylimit = "10 MiB")]
fn orders() {}

fn main() {}
