//! An extractor that is taken by reference.

use cloudgate::{Event, route};

#[route("/")]
fn page(_event: &Event) {}

fn main() {}
