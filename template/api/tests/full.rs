//! Everything the server knows about a request: `/api/tests/full`, as a page or as JSON.

use std::sync::atomic::{AtomicU64, Ordering};

use cloudgate::{Event, Response, State, escape_html, route};
use serde::Serialize;

/// How often this route was asked, by all clients together.
#[derive(Default)]
pub struct Visits(AtomicU64);

#[derive(Serialize)]
struct Answer<'a> {
    visits: u64,
    #[serde(flatten)]
    event: &'a Event,
}

#[route(GET, POST, PUT, PATCH, DELETE, "/api/tests/full")]
fn full(event: Event, State(visits): State<Visits>) -> Response {
    let visits = visits.0.fetch_add(1, Ordering::Relaxed) + 1;
    let answer = if prefers_json(event.header("accept").unwrap_or("")) {
        Response::json(&Answer {
            visits,
            event: &event,
        })
    } else {
        Response::html(page(&event, visits))
    };
    answer.header("vary", "accept")
}

fn page(event: &Event, visits: u64) -> String {
    let mut page = String::with_capacity(4096);
    page.push_str(HEAD);
    row(&mut page, "Method", event.method());
    row(&mut page, "Path", event.path());
    row(&mut page, "Source address", &event.ip().to_string());
    row(&mut page, "Visits", &visits.to_string());
    row(&mut page, "Query", event.query());
    row(
        &mut page,
        "Query, parsed",
        &json(event.query_string_parameters()),
    );
    if event.method() != "GET" {
        row(&mut page, "Posted data", &json(event.params()));
    }
    page.push_str("</table>\n<h2>Headers</h2>\n<table>\n");
    for (name, value) in event.headers().iter() {
        row(&mut page, name, &String::from_utf8_lossy(value));
    }
    page.push_str("</table>\n</html>\n");
    page
}

fn row(page: &mut String, name: &str, value: &str) {
    // Text of a stranger must not become HTML.
    page.push_str("<tr><th scope=\"row\">");
    page.push_str(&escape_html(name));
    page.push_str("</th><td>");
    page.push_str(&escape_html(value));
    page.push_str("</td></tr>\n");
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A browser asks for HTML first; `curl` takes anything and gets the page too.
fn prefers_json(accept: &str) -> bool {
    quality(accept, "application/json") > quality(accept, "text/html")
}

/// The weight that an `Accept` header gives to a media type: the most specific range wins.
fn quality(accept: &str, wanted: &str) -> f32 {
    let family = wanted.split('/').next().unwrap_or_default();
    let mut best = (0, 0.0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let specific = match media.split_once('/') {
            _ if media.eq_ignore_ascii_case(wanted) => 3,
            Some((kind, "*")) if kind.eq_ignore_ascii_case(family) => 2,
            Some(("*", "*")) => 1,
            _ => continue,
        };
        let weight = parts
            .find_map(|part| part.strip_prefix("q="))
            .map_or(Some(1.0), |q| q.parse().ok())
            .unwrap_or(0.0);
        if specific > best.0 {
            best = (specific, weight);
        }
    }
    best.1
}

const HEAD: &str = r#"<!doctype html>
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
"#;
