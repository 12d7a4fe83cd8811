//! How does cloudgate pass requests on?

use std::thread;

use cloudgate::{App, Gateway, Identity, Server};

use crate::harness::child;
use crate::site;

/// The child's side; the current folder holds the key. The arguments are `tls` or `plain`, and the servers behind.
pub(crate) fn serve(arguments: &[String]) -> Result<(), String> {
    let [mode, behind @ ..] = arguments else {
        return Err("app: `tls` or `plain`, and addresses, please".to_owned());
    };
    let told = |error: &dyn std::error::Error| error.to_string();
    let urls: Vec<String> = behind
        .iter()
        .map(|address| format!("http://{address}"))
        .collect();
    let gateway = Gateway::to(urls.iter().map(String::as_str)).map_err(|error| told(&error))?;
    let app = App::new().mount("/", gateway);
    let server = if mode == "tls" {
        Identity::from_pem_files(site::CERTIFICATE, site::KEY)
            .map_err(|error| told(&error))
            .and_then(|identity| {
                Server::bind_tls("127.0.0.1:0", &identity).map_err(|error| told(&error))
            })?
    } else {
        Server::bind("127.0.0.1:0").map_err(|error| told(&error))?
    };
    let running = server.serve(app).map_err(|error| told(&error))?;
    child::announce(running.addr().port())?;
    loop {
        thread::park();
    }
}
