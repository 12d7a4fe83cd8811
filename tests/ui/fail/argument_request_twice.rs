//! The request twice.

use cloudgate::{Request, route};

#[route("/")]
fn page(_first: &mut Request, _second: &mut Request) {}

fn main() {}
