//! Does a folder behave as a web site should?

use std::fs;

use super::*;

fn site() -> (tempfile::TempDir, Files) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("sub/deep")).unwrap();
    fs::create_dir(at("bare")).unwrap();
    fs::create_dir(at(".well-known")).unwrap();
    for (name, text) in [
        ("index.html", "<h1>root</h1>"),
        ("a b.txt", "text"),
        ("sub/index.html", "<h1>sub</h1>"),
        ("sub/script.js", "1"),
        (".secret", "secret"),
        (".well-known/x", "known"),
    ] {
        fs::write(at(name), text).unwrap();
    }
    fs::write(at("big.bin"), vec![7; 300 << 10]).unwrap();
    let files = Files::new(folder.path());
    files.start().unwrap();
    (folder, files)
}

fn status(files: &Files, method: Method, path: &str) -> u16 {
    files
        .call(&mut Request::new(method, path))
        .status()
        .as_u16()
}

#[test]
fn files_come_with_their_type_and_validators() {
    let (_folder, files) = site();
    for (path, content_type, text) in [
        ("/", "text/html; charset=utf-8", "<h1>root</h1>"),
        ("/index.html", "text/html; charset=utf-8", "<h1>root</h1>"),
        ("/a%20b.txt", "text/plain; charset=utf-8", "text"),
        ("/sub/", "text/html; charset=utf-8", "<h1>sub</h1>"),
        ("/sub/script.js?v=1", "text/javascript; charset=utf-8", "1"),
        ("/.well-known/x", "application/octet-stream", "known"),
    ] {
        let response = files.call(&mut Request::get(path));
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(
            response.headers().get("content-type"),
            Some(content_type),
            "{path}"
        );
        assert_eq!(
            response.headers().get("x-content-type-options"),
            Some("nosniff")
        );
        assert!(
            response
                .headers()
                .get("etag")
                .is_some_and(|tag| tag.starts_with('"') && tag.ends_with('"'))
        );
        assert!(
            httpdate::parse_http_date(response.headers().get("last-modified").unwrap()).is_ok()
        );
        assert_eq!(response.text(), text, "{path}");
    }
}

#[test]
fn a_large_file_is_sent_from_the_disk() {
    let (_folder, files) = site();
    let response = files.call(&mut Request::get("/big.bin"));
    assert!(matches!(response.body(), Body::File(range) if range.length == 300 << 10));
    assert_eq!(response.bytes(), vec![7; 300 << 10]);
}

#[test]
fn a_second_request_with_the_tag_is_304_without_a_body() {
    let (_folder, files) = site();
    let first = files.call(&mut Request::get("/"));
    let tag = first.headers().get("etag").unwrap().to_owned();
    let again = files.call(&mut Request::get("/").with_header("If-None-Match", &tag));
    assert_eq!(again.status(), 304);
    assert_eq!(again.headers().get("etag"), Some(&*tag));
    assert_eq!(again.text(), "");
}

#[test]
fn what_is_hidden_or_missing_is_404_and_what_tries_to_leave_is_400() {
    let (folder, files) = site();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
    for (path, want) in [
        ("/.secret", 404),
        ("/nothing", 404),
        ("/bare", 404),
        ("/bare/", 404),
        ("/index.html/", 404),
        ("/index.html/x", 404),
        ("/link", 404),
        ("/sub/nothing.js", 404),
        ("/../index.html", 400),
        ("/..%2findex.html", 400),
        ("/%2e%2e/index.html", 400),
        ("/sub%5C..%5Cindex.html", 400),
        ("/index.html%00", 400),
        ("/%ff", 400),
    ] {
        assert_eq!(status(&files, Method::GET, path), want, "{path}");
    }
    let long = format!("/{}", "a".repeat(5000));
    assert_eq!(status(&files, Method::GET, &long), 404);
    let name = format!("/{}", "a".repeat(300));
    assert_eq!(status(&files, Method::GET, &name), 404);
}

#[test]
fn a_folder_without_its_slash_is_sent_there_with_the_query() {
    let (_folder, files) = site();
    for (path, want) in [("/sub", "/sub/"), ("/sub?a=b", "/sub/?a=b")] {
        let response = files.call(&mut Request::get(path));
        assert_eq!(response.status(), 308);
        assert_eq!(response.headers().get("location"), Some(want));
    }
}

#[test]
fn other_methods_are_405_with_allow() {
    let (_folder, files) = site();
    let response = files.call(&mut Request::post("/index.html"));
    assert_eq!(response.status(), 405);
    assert_eq!(response.headers().get("allow"), Some("GET, HEAD, OPTIONS"));
    assert_eq!(status(&files, Method::OPTIONS, "/index.html"), 204);
    assert_eq!(status(&files, Method::DELETE, "/nothing"), 404);
    assert_eq!(status(&files, Method::HEAD, "/"), 200);
}

#[test]
fn special_files_are_not_served() {
    let (folder, files) = site();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        folder.path().join("fifo"),
        rustix::fs::Mode::RUSR,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    assert_eq!(status(&files, Method::GET, "/fifo"), 404);
    let answer = status(&files, Method::GET, "/socket");
    assert!(answer == 404, "{answer}");
}

#[test]
fn a_missing_folder_is_a_start_error_that_names_it() {
    let error = Files::new("no-such-folder")
        .start()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("no-such-folder") && error.contains("looked for it in"),
        "{error}"
    );
}
