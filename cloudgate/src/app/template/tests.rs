//! Are pages made as their templates say, mistakes told with their place, and depth and steps bounded?

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::message::Service;
use serde_json::json;
use tempfile::TempDir;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn fixed(files: &[(&str, &str)]) -> Templates {
    Templates::load(folder(files).path(), false).unwrap()
}

#[track_caller]
fn renders(text: &str, values: serde_json::Value, want: &str) {
    let templates = fixed(&[("page.html", text)]);
    assert_eq!(templates.render("page.html", values).unwrap().0, want);
}

#[test]
fn values_are_escaped_as_the_name_says() {
    let values = || json!({ "v": "<a href='/x'>&\"" });
    let html = "&lt;a href=&#39;/x&#39;&gt;&amp;&quot;";
    for (name, want) in [
        ("a.html", html),
        ("a.htm", html),
        ("a.xml", html),
        ("a.svg", html),
        ("a", html),
        ("a.html.j2", html),
        ("a.txt", "<a href='/x'>&\""),
        ("a.json", r#""<a href='/x'>&\"""#),
    ] {
        let templates = fixed(&[(name, "{{ v }}")]);
        assert_eq!(
            templates.render_text(name, values()).unwrap(),
            want,
            "{name}"
        );
        assert_eq!(
            templates.render(name, values()).is_ok(),
            want == html,
            "{name}"
        );
    }
    renders("{{ v|safe }}\n", json!({ "v": "<b>" }), "<b>\n");
    renders(
        "{{ n }} {{ b }} {{ l }}",
        json!({ "n": 1.5, "b": true, "l": ["<"] }),
        "1.5 True [&#39;&lt;&#39;]",
    );
    renders(
        "<a href=\"?q={{ v|urlencode }}\">",
        json!({ "v": "a&b=c d" }),
        "<a href=\"?q=a%26b%3Dc%20d\">",
    );
    renders(
        "<script>x = {{ v|tojson }}</script>",
        json!({ "v": "</script>" }),
        "<script>x = \"\\u003c/script\\u003e\"</script>",
    );
}

#[test]
fn templates_are_made_of_each_other() {
    let templates = fixed(&[
        (
            "base.html",
            "<h1>{% block title %}none{% endblock %}</h1>{% include 'parts/foot.html' %}",
        ),
        ("parts/foot.html", "<p>{{ foot }}</p>"),
        (
            "page.html",
            "{% extends 'base.html' %}{% block title %}{{ super() }} {% for i in list %}{{ i }},{% endfor %}{% endblock %}",
        ),
        (".hidden.html", "{% mistake"),
        ("page.html~", "{% mistake"),
    ]);
    let page = templates.render("page.html", json!({ "foot": "<", "list": [1, 2] }));
    assert_eq!(page.unwrap().0, "<h1>none 1,2,</h1><p>&lt;</p>");
}

#[test]
fn mistakes_are_errors_at_start_with_file_and_line() {
    let bad = folder(&[("ok.html", "x"), ("in/bad.html", "1\n2\n{% if %}\n")]);
    let app = App::new().get("/", || "x").templates(bad.path());
    let error = app.start().unwrap_err().to_string();
    let place = format!(
        "{}/in/bad.html:3 cannot be used: syntax error",
        bad.path().display()
    );
    assert!(error.contains(&place), "{error}");

    let missing = Templates::folder("no/such/folder").unwrap_err().to_string();
    assert!(
        missing.contains("no/such/folder") && missing.contains("start the program in"),
        "{missing}"
    );

    fs::write(bad.path().join("in/bad.html"), b"\xff").unwrap();
    let error = Templates::folder(bad.path()).unwrap_err().to_string();
    assert!(
        error.contains("in/bad.html") && error.contains("UTF-8"),
        "{error}"
    );
}

#[test]
fn an_error_while_rendering_names_templates_and_lines() {
    let files = folder(&[
        ("page.html", "1\n{% include 'part.html' %}"),
        ("part.html", "1\n2\n{{ titel }}"),
    ]);
    let templates = Templates::load(files.path(), false).unwrap();
    let error = templates
        .render("page.html", json!({}))
        .unwrap_err()
        .to_string();
    let at = |name: &str| format!("{}/{name}: ", files.path().display());
    assert!(error.starts_with(&at("page.html:2")), "{error}");
    assert!(
        error.contains(&at("part.html:3")) && error.contains("titel"),
        "{error}"
    );
    let missing = templates
        .render("none.html", json!({}))
        .unwrap_err()
        .to_string();
    assert!(missing.contains("none.html"), "{missing}");
    let response = templates.render("page.html", json!({})).into_response();
    assert_eq!(response.status(), 500);
    assert_eq!(response.text(), "500 Internal Server Error\n");
}

#[test]
fn a_watched_folder_is_compared_with_the_disk_once_its_second_is_over() {
    let files = folder(&[("page.html", "one")]);
    let templates = Templates::load(files.path(), true).unwrap();
    let page = || templates.render("page.html", json!({})).map(|page| page.0);
    let write = |text: &str| fs::write(files.path().join("page.html"), text).unwrap();
    assert_eq!(page().unwrap(), "one");
    write("two");
    assert_eq!(page().unwrap(), "one");
    templates.age();
    assert_eq!(page().unwrap(), "two");
    write("1\n{% mistake");
    templates.age();
    for _ in 0..2 {
        let error = page().unwrap_err().to_string();
        assert!(error.contains("page.html:2"), "{error}");
    }
    write("three");
    templates.age();
    assert_eq!(page().unwrap(), "three");
    fs::remove_file(files.path().join("page.html")).unwrap();
    fs::write(files.path().join("other.html"), "other").unwrap();
    templates.age();
    assert!(page().is_err());
    assert_eq!(
        templates.render("other.html", json!({})).unwrap().0,
        "other"
    );
    drop(files);
    templates.age();
    assert!(page().is_err());
}

#[test]
fn a_fixed_folder_is_not_looked_at_again() {
    let files = folder(&[("page.html", "one")]);
    let templates = Templates::load(files.path(), false).unwrap();
    drop(files);
    templates.age();
    assert_eq!(templates.render("page.html", json!({})).unwrap().0, "one");
}

#[test]
fn one_page_takes_a_limited_number_of_steps() {
    let templates = fixed(&[("page.html", "{% for i in range(n) %}{{ i }}{% endfor %}")]);
    let page = |templates: &Templates, n: u64| templates.render("page.html", json!({ "n": n }));
    assert!(page(&templates, 100_000).is_ok());
    let error = page(&templates.clone().with_fuel(10_000), 10_000)
        .unwrap_err()
        .to_string();
    assert!(error.contains("more than 10000 steps"), "{error}");
    assert!(page(&templates.with_fuel(10_000), 100).is_ok());
    let watched = Templates::load(
        folder(&[("page.html", "{% for i in range(n) %}{% endfor %}")]).path(),
        true,
    )
    .unwrap();
    assert!(page(&watched.with_fuel(100), 1000).is_err());
    // Two nested loops over ten thousand each would run for minutes.
    let endless = fixed(&[(
        "page.html",
        "{% for i in range(n) %}{% for j in range(n) %}x{% endfor %}{% endfor %}",
    )]);
    assert!(page(&endless, 10_000).is_err());
}

#[test]
fn a_folder_has_limits() {
    let exact = "x".repeat(folder::LARGEST as usize);
    assert!(Templates::load(self::folder(&[("a.html", &exact)]).path(), false).is_ok());
    let error = Templates::load(
        self::folder(&[("a.html", &format!("{exact}x"))]).path(),
        false,
    );
    assert!(error.unwrap_err().to_string().contains("1 MiB"));

    let deep = |levels: usize| format!("{}a.html", "d/".repeat(levels - 1));
    assert!(Templates::load(self::folder(&[(&deep(folder::DEEPEST), "x")]).path(), false).is_ok());
    let error = Templates::load(
        self::folder(&[(&deep(folder::DEEPEST + 1), "x")]).path(),
        false,
    );
    assert!(error.unwrap_err().to_string().contains("32 deep"));

    let many = self::folder(&[]);
    for number in 0..folder::MOST {
        fs::write(many.path().join(number.to_string()), "").unwrap();
    }
    assert!(Templates::load(many.path(), false).is_ok());
    fs::write(many.path().join("more"), "").unwrap();
    let error = Templates::load(many.path(), false).unwrap_err().to_string();
    assert!(error.contains("at most 4096"), "{error}");
}

/// The kinds of nesting that the engine answers with its own stack, each without end.
const ENDLESS: [(&str, &str); 9] = [
    ("include", "{{ here() }}{% include 'page.html' %}"),
    (
        "include in loops",
        "{% for i in [1] %}{% with x = i %}{{ here() }}{% include 'page.html' %}{% endwith %}{% endfor %}",
    ),
    ("import", "{{ here() }}{% import 'page.html' as other %}"),
    (
        "macro",
        "{% macro m(n) %}{{ here() }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
    ),
    (
        "macro with a body",
        "{% macro m() %}{{ here() }}{{ caller() }}{% call m() %}x{% endcall %}{% endmacro %}{% call m() %}y{% endcall %}",
    ),
    (
        "body of a macro",
        "{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{{ here() }}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}",
    ),
    (
        "loop in itself",
        "{% for i in tree recursive %}{{ here() }}{{ loop(tree) }}{% endfor %}",
    ),
    (
        "loop in itself, in an expression",
        "{% for i in tree recursive %}{{ here() }}{{ 'x' ~ loop(tree) }}{% endfor %}",
    ),
    (
        "block in itself",
        "{% block b %}{{ here() }}{{ self.b() }}{% endblock %}",
    ),
];

/// Renders the template of a folder with a function that notes how deep the stack is, and gives how many bytes
/// below the caller it was at most.
fn deepest(files: &[(String, String)]) -> (usize, String) {
    static LOWEST: AtomicUsize = AtomicUsize::new(usize::MAX);
    fn here() -> &'static str {
        let mark = 0_u8;
        LOWEST.fetch_min(
            std::ptr::from_ref(std::hint::black_box(&mark)).addr(),
            Ordering::Relaxed,
        );
        ""
    }
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let folder = folder(&files);
    let contents = Contents::of(folder.path()).unwrap();
    let mut compiled = compile(folder.path(), &contents, FUEL).unwrap();
    compiled.add_function("here", here);
    let top = 0_u8;
    let top = std::ptr::from_ref(std::hint::black_box(&top)).addr();
    LOWEST.store(usize::MAX, Ordering::Relaxed);
    let page = compiled.get_template("page.html").unwrap();
    let error = page.render(Value::from(Serde(json!({ "tree": [1] }))));
    let error = explain(folder.path(), &error.unwrap_err(), FUEL);
    (top.saturating_sub(LOWEST.load(Ordering::Relaxed)), error)
}

#[test]
fn no_nesting_takes_more_than_half_a_stack() {
    let half = if cfg!(debug_assertions) {
        DEBUG_STACK / 2
    } else {
        256 << 10
    };
    let mut all: Vec<_> = ENDLESS
        .iter()
        .map(|(kind, text)| (*kind, vec![("page.html".to_owned(), (*text).to_owned())]))
        .collect();
    all.push(("super", chain_of_super()));
    // With room to fail by the assertion below and not by an overflow.
    let measure = || -> Vec<_> {
        let measured = all.into_iter().map(|(kind, files)| (kind, deepest(&files)));
        measured.collect()
    };
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let all = thread.spawn(measure).unwrap().join().unwrap();
    for (kind, (bytes, error)) in &all {
        let first = error.get(..300).unwrap_or(error);
        assert!(
            error.contains("recursion limit exceeded"),
            "{kind}: {first}"
        );
        assert!(
            *bytes > 1 << 10 && *bytes < half,
            "{kind}: {bytes} of {half} bytes"
        );
    }
}

/// Templates that each extend the next, one more than there may be.
fn chain_of_super() -> Vec<(String, String)> {
    let name = |level: usize| match level {
        0 => "page.html".to_owned(),
        level => format!("{level}.html"),
    };
    let block = "{% block b %}{{ here() }}{{ super() }}{% endblock %}";
    let last = DEEPEST + 2;
    let mut files: Vec<_> = (0..last)
        .map(|level| {
            let text = format!("{{% extends '{}' %}}{block}", name(level + 1));
            (name(level), text)
        })
        .collect();
    files.push((name(last), "{% block b %}end{% endblock %}".to_owned()));
    files
}
