//! Parameters as one value.

use cloudgate::{Event, route};

#[route("/greet", params = "name")]
fn greet(_event: Event) {}

fn main() {}
