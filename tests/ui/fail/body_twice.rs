//! Two arguments that read the body.

use cloudgate::{Event, Json, route};

#[route(POST, "/orders")]
fn order(_event: Event, Json(_count): Json<u64>) {}

fn main() {}
