//! A return type that is no reply.

use cloudgate::route;

struct Order;

#[route("/orders/1")]
fn order() -> Vec<Order> {
    Vec::new()
}

fn main() {}
