//! A `&mut` reference to something other than the request.

use cloudgate::{Event, route};

#[route("/")]
fn page(_event: &mut Event) {}

fn main() {}
