//! Several mistakes, all reported at once.

use cloudgate::{Event, Request, route};

#[route(get, POST, POST, "/orders")]
async fn orders<T>(_event: &Event, _request: &Request<'_>, _body: impl Into<T>) {}

fn main() {}
