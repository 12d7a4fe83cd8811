//! A wildcard with more behind it.

use cloudgate::route;

#[route("/files/{*path}/edit")]
fn edit() {}

fn main() {}
