//! The request in a handler that runs on another thread.

use cloudgate::{Event, Request, route};

#[route(POST, "/", blocking)]
fn page(_event: Event, _request: &mut Request) {}

fn main() {}
