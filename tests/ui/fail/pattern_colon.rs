//! A parameter as other frameworks write it.

use cloudgate::route;

#[route("/orders/:id")]
fn order() {}

fn main() {}
