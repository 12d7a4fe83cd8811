//! How are the other gateways set up that a package may have installed?

use std::fmt::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

use crate::harness::child::Running;
use crate::servers::Server;
use crate::site::{BOTH, CERTIFICATE, KEY, Site};

/// What a reader of the table has to know about their rows.
pub(crate) const NOTES: [(Server, &str); 2] = [
    (
        Server::Haproxy,
        "haproxy: one thread a core, `http-reuse always`, no log, and no fields for the server behind.",
    ),
    (
        Server::Caddy,
        "caddy: `reverse_proxy` as by default, no log; 128 idle connections to each server behind.",
    ),
];

pub(crate) fn haproxy(
    site: &Site,
    tls: bool,
    behind: &[String],
    connections: u32,
) -> Result<Running, String> {
    installed("haproxy", "-v")?;
    let port = free_port()?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let places = connections * 2 + 1_000;
    let ssl = if tls {
        format!(" ssl crt {}/{BOTH}", site.dir().display())
    } else {
        String::new()
    };
    let mut servers = String::new();
    for (number, address) in behind.iter().enumerate() {
        let _ = writeln!(servers, "    server s{number} {address}");
    }
    let config = format!(
        "global
    maxconn {places}
    nbthread {threads}
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout http-keep-alive 60s
    http-reuse always
frontend front
    bind 127.0.0.1:{port}{ssl} backlog 4096
    default_backend behind
backend behind
    balance roundrobin
{servers}"
    );
    let file = site.folder().write("haproxy.cfg", config.as_bytes())?;
    // `-db`: in the foreground.
    let program = ["haproxy", "-db", "-f", &file.display().to_string()].map(str::to_owned);
    Running::start_guarded(&program, port, site.dir())
}

pub(crate) fn caddy(site: &Site, tls: bool, behind: &[String]) -> Result<Running, String> {
    installed("caddy", "version")?;
    let port = free_port()?;
    let dir = site.dir().display();
    let (scheme, key) = if tls {
        ("https", format!("tls {dir}/{CERTIFICATE} {dir}/{KEY}"))
    } else {
        ("http", String::new())
    };
    let servers = behind.join(" ");
    let config = format!(
        "{{
    admin off
    auto_https off
    log {{
        output discard
    }}
}}
{scheme}://localhost:{port}, {scheme}://127.0.0.1:{port} {{
    {key}
    reverse_proxy {servers} {{
        lb_policy round_robin
        transport http {{
            keepalive_idle_conns_per_host 128
        }}
    }}
}}
"
    );
    let file = site.folder().write("Caddyfile", config.as_bytes())?;
    let file = file.display().to_string();
    // It writes into its home at the start.
    let home = format!("HOME={dir}");
    let program = [
        "env",
        &home,
        "caddy",
        "run",
        "--adapter",
        "caddyfile",
        "--config",
        &file,
    ]
    .map(str::to_owned);
    Running::start_guarded(&program, port, site.dir())
}

fn installed(program: &str, flag: &str) -> Result<(), String> {
    Command::new(program)
        .arg(flag)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map(drop)
        .map_err(|_| format!("missing: apt-get install {program}"))
}

fn free_port() -> Result<u16, String> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("no free port: {error}"))
}
