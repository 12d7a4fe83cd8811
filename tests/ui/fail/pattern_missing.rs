//! A route without a pattern.

use cloudgate::route;

#[route(POST)]
fn create() {}

fn main() {}
