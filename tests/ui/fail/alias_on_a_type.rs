//! An attribute of a method on a type.

use cloudgate::delete;

#[delete("/orders")]
struct Order;

fn main() {}
