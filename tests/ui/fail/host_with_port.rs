//! A host with a port.

use cloudgate::route;

#[route("/orders", host = "api.example.com:8080")]
fn orders() {}

fn main() {}
