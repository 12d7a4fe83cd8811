//! How is nginx set up to give the same answers, at its best?

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::cases::SIMPLE_BODY;
use crate::child::Running;
use crate::site::Site;

pub(crate) fn start(site: &Site, connections: u32) -> Result<Running, String> {
    let compiled_with =
        version_output("-V").ok_or("nginx is not installed: apt-get install nginx")?;
    // Another process may take the free port before nginx does.
    start_once(site, connections, &compiled_with)
        .or_else(|_| start_once(site, connections, &compiled_with))
}

/// What `nginx -v` or `-V` says, or `None` if there is no nginx.
pub(crate) fn version_output(flag: &str) -> Option<String> {
    let output = Command::new(PROGRAM).arg(flag).output().ok()?;
    Some(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

const PROGRAM: &str = "nginx";

fn start_once(site: &Site, connections: u32, compiled_with: &str) -> Result<Running, String> {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no free port: {error}"))?
        .port();
    let filters = template_page(site, has_filter(compiled_with))?;
    let config = config(port, connections, site.dir(), &filters);
    let config = site.write("nginx.conf", config.as_bytes())?;
    let prefix = format!("{}/", site.dir().display());
    let program = [PROGRAM, "-p", &prefix, "-c", &config.display().to_string()].map(str::to_owned);
    Running::start_guarded(&program, port, site.dir())
}

fn config(port: u16, connections: u32, dir: &Path, filters: &str) -> String {
    let dir = dir.display();
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
        r#"daemon off;
{user}
worker_processes {workers};
pid {dir}/nginx.pid;
error_log {dir}/nginx.log error;
events {{ worker_connections {places}; }}
http {{
    access_log off;
    # Files of a few kilobytes: measured 5.7 µs with a read and one write, 7.3 µs with sendfile, 6.8 with tcp_nopush too.
    sendfile off;
    tcp_nodelay on;
    keepalive_timeout 75s;
    keepalive_requests 1000000000;
    open_file_cache max=1000 inactive=60s;
    open_file_cache_valid 30s;
    open_file_cache_min_uses 1;
    client_body_temp_path {dir}/nginx-body;
    proxy_temp_path {dir}/nginx-proxy;
    fastcgi_temp_path {dir}/nginx-fastcgi;
    uwsgi_temp_path {dir}/nginx-uwsgi;
    scgi_temp_path {dir}/nginx-scgi;
    types {{ text/html html; image/png png; }}
    charset utf-8;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {dir}/public;
        location = /api/tests/simple {{
            default_type text/html;
            return 200 '{SIMPLE_BODY}';
        }}
        location = /api/tests/full {{
            default_type text/html;
            return 200 '{FULL}';
        }}
        location = /api/tests/template {{
            default_type text/html;
            alias {dir}/template.html;
            {filters}
        }}
    }}
}}
"#
    )
}

/// The parts of a full answer that nginx can say by itself, on a page of about the size of ours.
const FULL: &str = r#"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Your request</title>
<style>
  :root { color-scheme: light dark }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  table { border-collapse: collapse; width: 100% }
  th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #8884 }
  th { width: 12rem; font-weight: 600 }
  td { font-family: ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere }
</style>
<h1>Your request</h1>
<table>
<tr><th scope="row">Method</th><td>$request_method</td></tr>
<tr><th scope="row">Path</th><td>$uri</td></tr>
<tr><th scope="row">Source address</th><td>$remote_addr</td></tr>
<tr><th scope="row">Requests on this connection</th><td>$connection_requests</td></tr>
<tr><th scope="row">Query</th><td>$args</td></tr>
<tr><th scope="row">Query, parsed</th><td>a: $arg_a</td></tr>
</table>
<h2>Headers</h2>
<table>
<tr><th scope="row">host</th><td>$http_host</td></tr>
<tr><th scope="row">user-agent</th><td>$http_user_agent</td></tr>
<tr><th scope="row">accept</th><td>$http_accept</td></tr>
</table>
</html>
"#;

/// The variables of `templates/page.html`, with what nginx puts there and what stands there if it cannot.
const VARIABLES: [(&str, &str, &str); 4] = [
    ("name", "World", "World"),
    ("path", "$uri", "/api/tests/template"),
    ("address", "$remote_addr", "127.0.0.1"),
    ("time", "$msec", "0"),
];

/// Writes the page of the template case and returns the directives that fill it in on each request, if nginx has them.
fn template_page(site: &Site, has_filter: bool) -> Result<String, String> {
    let path = site.dir().join("templates/page.html");
    let mut page = fs::read_to_string(&path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut filters = String::new();
    for (name, variable, constant) in VARIABLES {
        // A `$` in the text to look for would be a variable of nginx's, and slower.
        let mark = format!("@{name}@");
        page = page.replace(
            &format!("{{{{ {name} }}}}"),
            if has_filter { &mark } else { constant },
        );
        filters.push_str(&format!("sub_filter '{mark}' '{variable}'; "));
    }
    site.write("template.html", page.as_bytes())?;
    Ok(if has_filter {
        format!("{filters}sub_filter_once off;")
    } else {
        String::new()
    })
}

fn has_filter(compiled_with: &str) -> bool {
    compiled_with.contains("--with-http_sub_module")
}

/// What a reader of the table has to know about this row.
pub(crate) fn notes() -> Option<String> {
    let template = if has_filter(&version_output("-V")?) {
        "`sub_filter` over a file"
    } else {
        "the page filled in beforehand, for it was built without `sub_filter`"
    };
    Some(format!(
        "nginx: full is a `return` of its variables (no shared counter), template is {template}; open_file_cache, no access log, no sendfile (faster so at these sizes)."
    ))
}
