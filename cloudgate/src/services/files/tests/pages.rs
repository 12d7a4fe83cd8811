//! Which page answers where a path names no file?

use std::fs;

use http::Method;

use super::super::*;
use super::{ask, field};

const BROWSER: (&str, &str) = (
    "Accept",
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
);

fn site() -> (tempfile::TempDir, Files) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for folder in ["sub", "both", "empty"] {
        fs::create_dir(at(folder)).unwrap();
    }
    for (name, text) in [
        ("index.html", "root"),
        ("404.html", "lost"),
        ("about.html", "about"),
        ("both.html", "file"),
        ("both/index.html", "folder"),
        ("sub/index.htm", "old name"),
        ("sub/page.html", "page"),
        ("sub/a<b.txt", "a"),
    ] {
        fs::write(at(name), text).unwrap();
    }
    let files = Files::new(folder.path());
    (folder, files)
}

#[test]
fn an_application_in_the_browser_has_its_own_paths() {
    let (_folder, files) = site();
    let files = files.spa("index.html");
    for (path, accept, want) in [
        ("/users/7", BROWSER.1, 200),
        ("/users/7/", BROWSER.1, 200),
        ("/v1.2", BROWSER.1, 200),
        ("/users/ada@example.org", BROWSER.1, 200),
        ("/hosts/example.com", BROWSER.1, 200),
        ("/robots.txt", BROWSER.1, 404),
        ("/a.tar.gz", BROWSER.1, 404),
        ("/page.html", BROWSER.1, 200),
        ("/users/7", "text/html;q=0.1", 200),
        ("/users/7", "*/*", 404),
        ("/users/7", "application/json", 404),
        ("/users/7", "text/html;q=0, */*", 404),
        ("/users/7", "text/*", 404),
        ("/missing.js", BROWSER.1, 404),
        ("/assets/missing.css", BROWSER.1, 404),
        ("/missing.png", BROWSER.1, 404),
        ("/missing.json", BROWSER.1, 404),
        ("/missing.js.map", BROWSER.1, 404),
        ("/.env", BROWSER.1, 404),
        ("/../x", BROWSER.1, 400),
    ] {
        let response = ask(&files, path, &[("Accept", accept)]);
        assert_eq!(response.status(), want, "{path} {accept}");
        if want == 200 {
            assert_eq!(field(&response, "cache-control"), Some("no-cache"));
            assert_eq!(response.text(), "root", "{path}");
        }
    }
    assert_eq!(ask(&files, "/users/7", &[]).status(), 404);
    let head = Request::new(Method::HEAD, "/users/7").with_header(BROWSER.0, BROWSER.1);
    assert_eq!(files.call(&mut { head }).status(), 200);
    for method in [Method::POST, Method::DELETE, Method::OPTIONS] {
        let request = Request::new(method, "/users/7").with_header(BROWSER.0, BROWSER.1);
        assert_eq!(files.call(&mut { request }).status(), 404);
    }
    // Conditions and parts are those of the page.
    let tag = field(&ask(&files, "/", &[]), "etag").unwrap().to_owned();
    let again = ask(&files, "/users/7", &[BROWSER, ("If-None-Match", &tag)]);
    assert_eq!(again.status(), 304);
}

#[test]
fn the_page_for_what_is_not_there_is_no_page_of_its_own() {
    let (_folder, files) = site();
    let files = files.not_found("404.html");
    for path in ["/nothing", "/nothing.js", "/.env", "/empty/", "/sub/"] {
        let response = ask(&files, path, &[BROWSER]);
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(
            field(&response, "content-type"),
            Some("text/html; charset=utf-8")
        );
        assert_eq!(field(&response, "cache-control"), Some("no-cache"));
        for absent in ["etag", "last-modified", "accept-ranges"] {
            assert_eq!(field(&response, absent), None, "{path} {absent}");
        }
        assert_eq!(response.text(), "lost");
    }
    // Neither conditions nor ranges are about the page that was not asked for.
    let odd = [("If-None-Match", "*"), ("Range", "bytes=0-1")];
    assert_eq!(ask(&files, "/nothing", &odd).text(), "lost");
    let json = ask(&files, "/nothing", &[("Accept", "application/json")]);
    assert_eq!(json.text(), "404 Not Found\n");
    assert_eq!(
        files.call(&mut Request::post("/nothing")).text(),
        "404 Not Found\n"
    );
    // At its own path it is a page.
    assert_eq!(ask(&files, "/404.html", &[BROWSER]).status(), 200);
    let files = files.not_found("gone.html");
    assert_eq!(
        ask(&files, "/nothing", &[BROWSER]).text(),
        "404 Not Found\n"
    );
}

#[test]
fn clean_urls_leave_the_ending_out() {
    let (_folder, files) = site();
    let files = files.clean_urls(true);
    for (path, want) in [
        ("/about", Ok("about")),
        ("/about?a=b", Ok("about")),
        ("/about.html", Err("/about")),
        ("/about.html?a=b&c", Err("/about?a=b&c")),
        ("/about/", Err("/about")),
        ("/index.html", Err("/")),
        ("/both/index.html", Err("/both/")),
        ("/both/", Ok("folder")),
        ("/both", Err("/both/")),
        ("/sub/page", Ok("page")),
        ("/sub/page.html", Err("/sub/page")),
        ("/", Ok("root")),
    ] {
        let response = ask(&files, path, &[]);
        match want {
            Ok(text) => assert_eq!(response.text(), text, "{path}"),
            Err(location) => {
                assert_eq!(response.status(), 308, "{path}");
                assert_eq!(field(&response, "location"), Some(location), "{path}");
            }
        }
    }
    for path in ["/nothing", "/sub", "/sub/", "/about.htm", "/abou"] {
        assert_eq!(ask(&files, path, &[]).status(), 404, "{path}");
    }
    let (_folder, files) = site();
    assert_eq!(ask(&files, "/about", &[]).status(), 404);
    assert_eq!(ask(&files, "/about.html", &[]).status(), 200);
}

#[test]
fn the_names_of_the_index_are_tried_in_order() {
    let (_folder, files) = site();
    assert_eq!(ask(&files, "/sub/", &[]).status(), 404);
    let files = files.index(["index.html", "index.htm"]);
    assert_eq!(ask(&files, "/sub/", &[]).text(), "old name");
    assert_eq!(field(&ask(&files, "/sub", &[]), "location"), Some("/sub/"));
    assert_eq!(ask(&files, "/", &[]).text(), "root");
    let files = files.index([]);
    assert_eq!(ask(&files, "/", &[]).status(), 404);
}

#[test]
fn a_folder_is_listed_where_that_is_asked_for() {
    let (_folder, files) = site();
    let files = files.listing(true);
    let page = ask(&files, "/sub/", &[BROWSER]);
    assert_eq!(page.status(), 200);
    assert_eq!(field(&page, "cache-control"), Some("no-cache"));
    assert_eq!(field(&page, "x-content-type-options"), Some("nosniff"));
    assert!(field(&page, "content-security-policy").is_some());
    let page = page.text();
    assert!(page.contains("page.html") && page.contains("a&lt;b.txt") && !page.contains("a<b.txt"));
    let json = ask(&files, "/sub/", &[("Accept", "application/json")]);
    assert_eq!(field(&json, "content-type"), Some("application/json"));
    assert!(json.text().contains("\"page.html\""));
    assert_eq!(
        field(&ask(&files, "/sub?a", &[]), "location"),
        Some("/sub/?a")
    );
    // A folder with an index is that page, an empty one is an empty list, a file is no folder.
    assert_eq!(ask(&files, "/both/", &[]).text(), "folder");
    assert_eq!(ask(&files, "/empty/", &[]).status(), 200);
    assert_eq!(ask(&files, "/about.html/", &[]).status(), 404);
    assert_eq!(ask(&files, "/nothing/", &[]).status(), 404);
    let posted = files.call(&mut Request::post("/sub/"));
    assert_eq!(
        (posted.status().as_u16(), field(&posted, "allow")),
        (405, Some("GET, HEAD, OPTIONS"))
    );
}

#[test]
fn a_redirect_never_leads_to_another_host() {
    let (folder, files) = site();
    fs::create_dir(folder.path().join("evil.example")).unwrap();
    fs::write(folder.path().join("evil.example/index.html"), "x").unwrap();
    let files = files.clean_urls(true);
    for path in [
        "//evil.example",
        "//evil.example/index.html",
        "/\\evil.example",
    ] {
        let response = ask(&files, path, &[]);
        if let Some(location) = field(&response, "location") {
            assert!(
                location.starts_with('/') && !location.starts_with("//"),
                "{location}"
            );
            assert!(!location.starts_with("/\\"), "{location}");
        }
    }
    let response = ask(&files, "/evil.example", &[]);
    assert_eq!(field(&response, "location"), Some("/evil.example/"));
}
