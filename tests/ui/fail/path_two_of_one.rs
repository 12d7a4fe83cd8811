//! Two values, where the pattern has one parameter.

use cloudgate::{Path, route};

#[route("/items/{item}")]
fn item(Path((_item, _size)): Path<(u64, String)>) {}

fn main() {}
