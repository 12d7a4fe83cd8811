//! A method in lower case.

use cloudgate::route;

#[route(post, "/orders")]
fn create() {}

fn main() {}
