//! The smallest route: `GET /api/tests/simple`.

use cloudgate::{Event, Response, route};

#[route("/api/tests/simple")]
fn simple(_event: Event) -> Response {
    Response::html("Hello World!")
}
