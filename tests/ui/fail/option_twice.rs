//! A list of middlewares twice.

use cloudgate::{Next, Request, Response, route};

fn trace(request: &mut Request<'_>, next: Next<'_>) -> Response {
    next.run(request)
}

#[route("/orders", wrap(trace), wrap(trace))]
fn orders() {}

fn main() {}
