//! A middleware that returns something else.

use cloudgate::{Next, Request, route};

fn greet(_request: &mut Request<'_>, _next: Next<'_>) -> &'static str {
    "hello"
}

#[route("/orders", wrap(greet))]
fn orders() {}

fn main() {}
