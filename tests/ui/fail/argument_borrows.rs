//! An extractor that would borrow from the request.

use cloudgate::{Path, route};

#[route("/users/{name}")]
fn user(Path(_name): Path<&str>) {}

fn main() {}
