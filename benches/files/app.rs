//! How does cloudgate serve the files, and the JSON that is compressed?

use std::fs;
use std::thread;

use cloudgate::{App, Bytes, Compression, Response, Server};

use crate::cases::GZIP_LEVEL;
use crate::harness::child;

/// The child's side; the current folder holds `public`. With the argument `coded` it compresses, else it serves files alone.
pub(crate) fn serve(arguments: &[String]) -> Result<(), String> {
    let app = match arguments.first().map(String::as_str) {
        Some("coded") => coded()?,
        _ => App::new(),
    };
    let running = Server::bind("127.0.0.1:0")
        .and_then(|server| server.serve(app.files("public")))
        .map_err(|error| error.to_string())?;
    child::announce(running.addr().port())?;
    loop {
        thread::park();
    }
}

/// `/fly` has a handler whose answer is compressed each time; below `/kept` are files.
fn coded() -> Result<App, String> {
    let json = fs::read("public/fly/data.json")
        .map(Bytes::from)
        .map_err(|error| format!("cannot read the JSON: {error}"))?;
    Ok(App::new()
        .get("/fly/data.json", move || {
            Response::of_type("application/json", json.clone())
        })
        .wrap_at("/fly", Compression::new().level(GZIP_LEVEL))
        .wrap_at("/kept", Compression::new().level(GZIP_LEVEL)))
}
