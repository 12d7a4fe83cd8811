//! A page from a file with its variables filled in: `GET /api/tests/template`.

use std::time::{SystemTime, UNIX_EPOCH};

use cloudgate::{Event, Html, HttpError, escape_html, route};

#[route("/api/tests/template")]
fn template(event: Event) -> Result<Html<String>, HttpError> {
    let page = cloudgate::read_cached("templates/page.html")?;
    let since_1970 = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let values = [
        (
            "name",
            event
                .query_string_parameters()
                .get("name")
                .unwrap_or("World")
                .to_owned(),
        ),
        ("address", event.ip().to_string()),
        ("path", event.path().to_owned()),
        ("time", since_1970.as_millis().to_string()),
    ];
    Ok(Html(fill(&String::from_utf8_lossy(&page), &values)))
}

/// Replaces each `${name}` once; what came from the client is never looked into again.
fn fill(page: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(page.len() + 256);
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            filled.push_str("${");
            rest = after;
            continue;
        };
        match values.iter().find(|(known, _)| *known == name) {
            // Text of a stranger must not become HTML.
            Some((_, value)) => filled.push_str(&escape_html(value)),
            // Not ours: leave it as it stands.
            None => {
                filled.push_str("${");
                rest = after;
                continue;
            }
        }
        rest = behind;
    }
    filled.push_str(rest);
    filled
}
