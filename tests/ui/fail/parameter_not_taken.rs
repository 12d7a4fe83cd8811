//! A parameter that no argument takes.

use cloudgate::{Json, route};

#[route(POST, "/orders/{id}")]
fn order(Json(_count): Json<u64>) {}

#[route("/shops/{shop}/files/{*path}")]
fn file() {}

fn main() {}
