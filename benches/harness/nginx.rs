//! How is nginx started, whatever it is to serve?

use std::net::TcpListener;
use std::process::Command;
use std::thread;

use super::child::Running;
use super::folder::Folder;

/// Starts it with the configuration that is made for a port.
pub(crate) fn start(
    folder: &Folder,
    config: impl Fn(u16) -> Result<String, String>,
) -> Result<Running, String> {
    version_output("-v").ok_or(MISSING)?;
    // Another process may take the free port before nginx does.
    start_once(folder, &config).or_else(|_| start_once(folder, &config))
}

const MISSING: &str = "nginx is not installed: apt-get install nginx";

/// Whether this nginx was built with the module of this name, such as `http_sub_module`.
pub(crate) fn has_module(name: &str) -> bool {
    version_output("-V").is_some_and(|text| text.contains(&format!("--with-{name}")))
}

/// What `nginx -v` or `-V` says, or `None` if there is no nginx.
pub(crate) fn version_output(flag: &str) -> Option<String> {
    let output = Command::new(PROGRAM).arg(flag).output().ok()?;
    Some(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

const PROGRAM: &str = "nginx";

fn start_once(
    folder: &Folder,
    config: &impl Fn(u16) -> Result<String, String>,
) -> Result<Running, String> {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no free port: {error}"))?
        .port();
    let config = folder.write("nginx.conf", config(port)?.as_bytes())?;
    let prefix = format!("{}/", folder.path().display());
    let program = [PROGRAM, "-p", &prefix, "-c", &config.display().to_string()].map(str::to_owned);
    Running::start_guarded(&program, port, folder.path())
}

/// A whole configuration around what its `http` block is to hold besides paths and time limits.
pub(crate) fn config(folder: &Folder, connections: u32, http: &str) -> String {
    let dir = folder.path().display();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    // nginx sets memory aside for each; one worker may get all connections of a run.
    let places = (connections + 64).max(1024);
    // A root master would make its workers `nobody`, who cannot read the temporary folder.
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    format!(
        r"daemon off;
{user}
worker_processes {workers};
pid {dir}/nginx.pid;
error_log {dir}/nginx.log error;
events {{ worker_connections {places}; }}
http {{
    access_log off;
    tcp_nodelay on;
    keepalive_timeout 75s;
    keepalive_requests 1000000000;
    client_body_temp_path {dir}/nginx-body;
    proxy_temp_path {dir}/nginx-proxy;
    fastcgi_temp_path {dir}/nginx-fastcgi;
    uwsgi_temp_path {dir}/nginx-uwsgi;
    scgi_temp_path {dir}/nginx-scgi;
    charset utf-8;
    {http}
}}
"
    )
}
