//! Two arguments that read the body, one of them perhaps.

use cloudgate::{Bytes, Json, route};

#[route(POST, "/orders")]
fn order(_json: Option<Json<u64>>, _bytes: Bytes) {}

fn main() {}
