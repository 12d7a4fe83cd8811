//! How is nginx set up to give the same answers, at its best?

use std::fs;

use crate::cases::SIMPLE_BODY;
use crate::harness::child::Running;
use crate::harness::nginx;
use crate::site::Site;

pub(crate) fn start(site: &Site, connections: u32) -> Result<Running, String> {
    nginx::start(site.folder(), |port| {
        let filters = template_page(site, nginx::has_module(FILTER))?;
        let http = http(port, &site.dir().display().to_string(), &filters);
        Ok(nginx::config(site.folder(), connections, &http))
    })
}

/// The module that fills in the page of the template case.
const FILTER: &str = "http_sub_module";

fn http(port: u16, dir: &str, filters: &str) -> String {
    format!(
        r#"# Files of a few kilobytes: measured 5.7 µs with a read and one write, 7.3 µs with sendfile, 6.8 with tcp_nopush too.
    sendfile off;
    open_file_cache max=1000 inactive=60s;
    open_file_cache_valid 30s;
    open_file_cache_min_uses 1;
    types {{ text/html html; image/png png; }}
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
    }}"#
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

/// What a reader of the table has to know about this row.
pub(crate) fn note() -> String {
    let template = if nginx::has_module(FILTER) {
        "`sub_filter` over a file"
    } else {
        "the page filled in beforehand, for it was built without `sub_filter`"
    };
    format!(
        "nginx: full is a `return` of its variables (no shared counter), template is {template}; open_file_cache, no access log, no sendfile (faster so at these sizes)."
    )
}
