//! A part of the path, where the pattern has none.

use cloudgate::{Path, route};

#[route("/orders")]
fn order(Path(_id): Path<u64>) {}

fn main() {}
