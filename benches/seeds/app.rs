//! How does the benchmark serve the app that the generator would have written?

// Handlers take their arguments by value, and what they share with the app's `main.rs` is public.
#![allow(clippy::needless_pass_by_value, unreachable_pub)]

#[path = "../../template/api/tests/full.rs"]
mod full;
#[path = "../../template/api/tests/simple.rs"]
mod simple;
#[path = "../../template/api/tests/template.rs"]
mod template;

use std::thread;

use cloudgate::{App, Server};

use crate::harness::child;

/// The child's side: what the template's `main.rs` builds, on a free port; the current folder holds its files.
pub(crate) fn serve(_arguments: &[String]) -> Result<(), String> {
    let app = App::gather()
        .state(full::Visits::default())
        .templates("templates")
        .files("public");
    let running = Server::bind("127.0.0.1:0")
        .and_then(|server| server.serve(app))
        .map_err(|error| error.to_string())?;
    child::announce(running.addr().port())?;
    loop {
        thread::park();
    }
}
