//! A handler as in async frameworks.

use cloudgate::{Event, route};

#[route("/")]
async fn page(_event: Event) {}

fn main() {}
