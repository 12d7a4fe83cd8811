//! A parameter that is not closed.

use cloudgate::route;

#[route("/orders/{id")]
fn order() {}

fn main() {}
