//! How is nginx set up to serve the same files?

use crate::cases::{Case, GZIP_LEVEL};
use crate::harness::child::Running;
use crate::harness::nginx;
use crate::site::Site;

/// Whether nginx hands files to the kernel or reads and writes them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sendfile {
    On,
    Off,
}

pub(crate) fn start(
    case: Case,
    sendfile: Sendfile,
    site: &Site,
    connections: u32,
) -> Result<Running, String> {
    if case == Case::GzipKept && !nginx::has_module(STATIC) {
        return Err("this nginx was built without `gzip_static`".to_owned());
    }
    nginx::start(site.folder(), |port| {
        let http = http(port, case, sendfile, &site.dir().display().to_string());
        Ok(nginx::config(site.folder(), connections, &http))
    })
}

const STATIC: &str = "http_gzip_static_module";

fn http(port: u16, case: Case, sendfile: Sendfile, dir: &str) -> String {
    let sendfile = match sendfile {
        Sendfile::On => "on",
        Sendfile::Off => "off",
    };
    let coding = match case {
        Case::Gzip => format!(
            "gzip on; gzip_comp_level {GZIP_LEVEL}; gzip_types application/json; gzip_vary on;"
        ),
        Case::GzipKept => "gzip_static on; gzip_vary on;".to_owned(),
        _ => String::new(),
    };
    let root = if case == Case::GzipKept {
        "nginx"
    } else {
        "public"
    };
    format!(
        r"sendfile {sendfile};
    tcp_nopush on;
    open_file_cache max=20000 inactive=60s;
    open_file_cache_valid 30s;
    open_file_cache_min_uses 1;
    types {{ text/html html; image/png png; text/javascript js; application/json json; }}
    default_type application/octet-stream;
    {coding}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {dir}/{root};
    }}"
    )
}

/// What a reader of the table has to know about these rows.
pub(crate) fn note() -> String {
    "nginx: `sendfile on; tcp_nopush on`, a second row with `sendfile off`, which is faster for small files; `open_file_cache` with room for all files, looked at every 30 s (cloudgate: every second); no access log.".to_owned()
}
