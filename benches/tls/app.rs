//! How does cloudgate answer over TLS?

use std::thread;

use cloudgate::{App, Identity, Request, Server};

use crate::cases::SIMPLE_BODY;
use crate::harness::child;
use crate::site::Key;

/// The child's side; the current folder holds `public` and the keys. The argument says which of them.
pub(crate) fn serve(arguments: &[String]) -> Result<(), String> {
    let key = match arguments {
        [name] => Key::named(name),
        _ => None,
    };
    let key = key.ok_or("app: the name of a key, please")?;
    let app = App::new()
        .get("/simple", || SIMPLE_BODY)
        .get("/agreed", |request: &mut Request<'_>| {
            let tls = request.tls();
            tls.map_or_else(String::new, |tls| {
                let reused = if tls.resumed() { "r" } else { "." };
                format!("{} {} {reused}", tls.version(), tls.cipher())
            })
        })
        .files("public");
    let running = Identity::from_pem_files(key.certificate_file(), key.key_file())
        .map_err(|error| error.to_string())
        .and_then(|identity| {
            Server::bind_tls("127.0.0.1:0", &identity)
                .and_then(|server| server.serve(app))
                .map_err(|error| error.to_string())
        })?;
    child::announce(running.addr().port())?;
    loop {
        thread::park();
    }
}
