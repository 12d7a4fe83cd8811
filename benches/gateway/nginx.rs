//! How is nginx set up to pass requests on?

use std::fmt::Write as _;

use crate::harness::child::Running;
use crate::harness::nginx;
use crate::site::{CERTIFICATE, KEY, Site};

/// What it tells the server behind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Nothing.
    None,
    /// What its guides have it tell: the client's address and scheme, and the name that was asked for.
    AsInGuides,
}

pub(crate) const NOTE: &str = "nginx: `proxy_http_version 1.1`, `keepalive 128` to the servers behind, no access log; `nginx-guide` also sets Host, X-Real-IP, X-Forwarded-For and X-Forwarded-Proto, as guides have it, and so does about what cloudgate does.";

pub(crate) fn start(
    site: &Site,
    fields: Fields,
    tls: bool,
    behind: &[String],
    connections: u32,
) -> Result<Running, String> {
    if tls && !nginx::has_module("http_ssl_module") {
        return Err("this nginx was built without TLS".to_owned());
    }
    nginx::start(site.folder(), |port| {
        let http = http(port, fields, tls, behind, &site.dir().display().to_string());
        // It has one connection to its client and one to the server behind.
        Ok(nginx::config(site.folder(), connections * 2, &http))
    })
}

fn http(port: u16, fields: Fields, tls: bool, behind: &[String], dir: &str) -> String {
    let mut servers = String::new();
    for address in behind {
        let _ = write!(servers, "server {address}; ");
    }
    let fields = match fields {
        Fields::None => "",
        Fields::AsInGuides => {
            "proxy_set_header Host $host;
            proxy_set_header X-Real-IP $remote_addr;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;"
        }
    };
    let (ssl, key) = if tls {
        let key = format!(
            "ssl_certificate {dir}/{CERTIFICATE};
        ssl_certificate_key {dir}/{KEY};
        ssl_protocols TLSv1.2 TLSv1.3;"
        );
        (" ssl", key)
    } else {
        ("", String::new())
    };
    format!(
        r#"upstream behind {{
        {servers}
        keepalive 128;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port}{ssl} backlog=4096;
        {key}
        location / {{
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            {fields}
        }}
    }}"#
    )
}
