//! A value that is no middleware.

use cloudgate::{Next, Request, Response, route};

struct Cors;

impl Cors {
    fn new() -> Cors {
        Cors
    }
}

fn trace(request: &mut Request<'_>, next: Next<'_>) -> Response {
    next.run(request)
}

#[route("/orders", wrap(trace, Cors::new()))]
fn orders() {}

fn main() {}
