//! A function of other arguments.

use cloudgate::{Request, Response, Status, route};

fn refuse(_request: &mut Request<'_>) -> Response {
    Response::new(Status::FORBIDDEN)
}

#[route("/orders", wrap(refuse))]
fn orders() {}

fn main() {}
