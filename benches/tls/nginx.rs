//! How is nginx set up to give the same answers over TLS?

use crate::cases::SIMPLE_BODY;
use crate::harness::child::Running;
use crate::harness::nginx;
use crate::site::{Key, Site};

pub(crate) fn start(site: &Site, key: Key, connections: u32) -> Result<Running, String> {
    if !nginx::has_module(MODULE) {
        return Err("this nginx was built without TLS".to_owned());
    }
    nginx::start(site.folder(), |port| {
        let http = http(port, key, &site.dir().display().to_string());
        Ok(nginx::config(site.folder(), connections, &http))
    })
}

const MODULE: &str = "http_ssl_module";

fn http(port: u16, key: Key, dir: &str) -> String {
    let (certificate, key) = (key.certificate_file(), key.key_file());
    format!(
        r"sendfile off;
    open_file_cache max=1000 inactive=60s;
    open_file_cache_valid 30s;
    open_file_cache_min_uses 1;
    types {{ text/html html; image/png png; }}
    server {{
        listen 127.0.0.1:{port} ssl backlog=4096;
        root {dir}/public;
        ssl_certificate {dir}/{certificate};
        ssl_certificate_key {dir}/{key};
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_tickets on;
        ssl_session_cache off;
        location = /simple {{
            default_type text/html;
            return 200 '{SIMPLE_BODY}';
        }}
        location = /agreed {{
            default_type text/plain;
            return 200 '$ssl_protocol $ssl_cipher $ssl_session_reused';
        }}
    }}"
    )
}

/// What a reader of the table has to know about these rows.
pub(crate) fn note() -> String {
    let built = nginx::version_output("-V").unwrap_or_default();
    let library = built
        .lines()
        .find_map(|line| line.strip_prefix("built with "))
        .unwrap_or("an unknown library of TLS");
    format!(
        "nginx: {library}; session tickets as by default, no session cache; `open_file_cache`, no access log, no sendfile (TLS has no use for it)."
    )
}
