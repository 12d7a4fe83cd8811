//! Two parameters of one name.

use cloudgate::route;

#[route(GET, "/users/{id}/orders/{id}")]
fn order() {}

fn main() {}
