//! A key where the application's keys count.

use cloudgate::route;

#[route("/accounts", private = "secret")]
fn accounts() {}

fn main() {}
