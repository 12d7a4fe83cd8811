//! A closure whose arguments have no types.

use cloudgate::route;

#[route("/orders", wrap(|request, next| next.run(request)))]
fn orders() {}

fn main() {}
