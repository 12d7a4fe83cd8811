//! A page from a file with its values filled in: `GET /api/tests/template`.

use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use cloudgate::{Event, Html, TemplateError, Templates, route};
use serde::Serialize;

/// What `templates/page.html` wants to know.
#[derive(Serialize)]
struct Page<'a> {
    name: &'a str,
    path: &'a str,
    address: IpAddr,
    time: u64,
}

#[route("/api/tests/template")]
fn template(event: Event, pages: Templates) -> Result<Html<String>, TemplateError> {
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // Text of a stranger does not become HTML: the page writes it escaped.
    let page = Page {
        name: event
            .query_string_parameters()
            .get("name")
            .unwrap_or("World"),
        path: event.path(),
        address: event.ip(),
        time: since_1970.as_millis() as u64,
    };
    pages.render("page.html", page)
}
