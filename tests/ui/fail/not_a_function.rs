//! The attribute on a type.

use cloudgate::route;

#[route("/orders")]
struct Order;

fn main() {}
