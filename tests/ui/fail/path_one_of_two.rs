//! One value, where the pattern has two parameters.

use cloudgate::{Path, route};

#[route("/shops/{shop}/items/{item}")]
fn item(Path(_shop): Path<String>, Path(_item): Path<u64>) {}

fn main() {}
