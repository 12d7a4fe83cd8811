//! A handler with a type parameter.

use cloudgate::{Path, route};

#[route("/orders/{id}")]
fn order<T>(_id: Path<T>) {}

fn main() {}
