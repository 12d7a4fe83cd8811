//! Parameters as variables.

use cloudgate::{Event, route};

#[route("/greet", params(name, "age", "age"))]
fn greet(_event: Event) {}

fn main() {}
