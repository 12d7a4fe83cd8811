//! An argument that no extractor makes.

use cloudgate::{Event, route};

#[route("/")]
fn page(_event: Event, _verbose: bool) {}

fn main() {}
