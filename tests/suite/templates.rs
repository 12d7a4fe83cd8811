//! Are templates rendered on a coroutine, down to the deepest that is allowed, in whatever profile?

use cloudgate::{App, Html, HttpError, Request, Templates};
use cloudgate_suite::{get, start};
use serde_json::{Value, json};

/// How deep the JSON that a handler reads can be.
const DEEPEST_JSON: usize = 127;

/// Renders the template of the path, with the depth in the query.
fn page(request: &mut Request<'_>) -> Result<Html<String>, HttpError> {
    use cloudgate::FromRequest;
    let pages = Templates::from_request(request)?;
    let depth: usize = request.query().parse()?;
    let nested = (1..depth.min(DEEPEST_JSON)).fold(json!([]), |inner, _| Value::Array(vec![inner]));
    let values = json!({ "nested": nested, "depth": depth, "text": "<&>" });
    Ok(pages.render(request.parameter("name").unwrap_or_default(), values)?)
}

/// Pages that go deep, each by another means.
const PAGES: [(&str, &str); 7] = [
    ("text.html", "{{ text }} {{ depth }}"),
    ("value.html", "{{ nested }}"),
    ("json.html", "{{ nested|tojson }}"),
    (
        "include.html",
        "{% set depth = depth - 1 %}{% if depth > 0 %}{% include 'include.html' %}{% else %}end{% endif %}",
    ),
    (
        "macro.html",
        "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{% else %}end{% endif %}{% endmacro %}{{ m(depth) }}",
    ),
    (
        "loop.html",
        "{% for i in nested recursive %}{% if i %}{{ loop(i)|lower }}{% else %}end{% endif %}{% endfor %}",
    ),
    (
        "block.html",
        "{% block b %}{{ self.b()|upper }}{% endblock %}",
    ),
];

#[test]
fn the_deepest_page_fits_the_stack() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in PAGES {
        std::fs::write(folder.path().join(name), text).expect("a file");
    }
    let app = App::new().get("/{name}", page).templates(folder.path());
    let server = start(app);
    let page = |name: &str, depth: usize| get(server.addr(), &format!("/{name}?{depth}"));
    assert_eq!(page("text.html", 1).text(), "&lt;&amp;&gt; 1");
    let nested = "[".repeat(DEEPEST_JSON) + &"]".repeat(DEEPEST_JSON);
    for name in ["value.html", "json.html"] {
        assert_eq!(page(name, DEEPEST_JSON).text(), nested, "{name}");
    }
    for (name, allowed) in [("include.html", 7), ("macro.html", 10), ("loop.html", 70)] {
        let answer = page(name, allowed);
        assert_eq!((answer.status, &*answer.text()), (200, "end"), "{name}");
        assert_eq!(page(name, allowed + 1).status, 500, "{name}");
        assert_eq!(page(name, 100_000).status, 500, "{name}");
    }
    assert_eq!(page("block.html", 1).status, 500);
    assert_eq!(page("none.html", 1).status, 500);
    assert_eq!(page("text.html", 2).text(), "&lt;&amp;&gt; 2");
}
