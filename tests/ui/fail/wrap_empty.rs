//! An empty list of middlewares.

use cloudgate::route;

#[route("/orders", wrap())]
fn orders() {}

fn main() {}
