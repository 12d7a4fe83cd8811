//! Does a folder behave as a web site should?

use std::fs;

use http::Method;

use super::*;
use crate::message::Body;

mod forms;
mod pages;

/// The answer to a GET with these fields.
fn ask(files: &Files, path: &str, fields: &[(&str, &str)]) -> Response {
    let request = fields
        .iter()
        .fold(Request::get(path), |request, (name, value)| {
            request.with_header(name, value)
        });
    files.call(&mut { request })
}

fn field<'r>(response: &'r Response, name: &str) -> Option<&'r str> {
    response.headers().get(name)
}

fn set_modified(path: &Path, to: std::time::SystemTime) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(to).unwrap();
}

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
    fs::write(at("big.bin"), vec![7; (1 << 20) + 1]).unwrap();
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
    assert!(matches!(response.body(), Body::File(range) if range.length == (1 << 20) + 1));
    assert_eq!(response.bytes(), vec![7; (1 << 20) + 1]);
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

#[test]
fn caches_are_told_to_ask_again_but_for_names_that_hold_a_hash() {
    let (folder, files) = site();
    fs::create_dir(folder.path().join("assets")).unwrap();
    fs::write(folder.path().join("assets/app.3f9a1c2b.js"), "1").unwrap();
    let value = |files: &Files, path: &str| {
        field(&ask(files, path, &[]), "cache-control").map(str::to_owned)
    };
    let for_ever = Some("public, max-age=31536000, immutable".to_owned());
    assert_eq!(value(&files, "/assets/app.3f9a1c2b.js"), for_ever);
    assert_eq!(value(&files, "/").as_deref(), Some("no-cache"));
    let tag = field(&ask(&files, "/", &[]), "etag").unwrap().to_owned();
    let again = ask(&files, "/", &[("If-None-Match", &tag)]);
    assert_eq!(field(&again, "cache-control"), Some("no-cache"));
    let files =
        Files::new(folder.path()).cache_control(CacheControl::by_type().path("sub/**", "no-store"));
    assert_eq!(value(&files, "/").as_deref(), Some("public, max-age=5"));
    assert_eq!(value(&files, "/sub/script.js").as_deref(), Some("no-store"));
    let files = Files::new(folder.path()).cache_control(CacheControl::none());
    assert_eq!(value(&files, "/"), None);
}

#[test]
fn of_several_folders_the_first_that_has_the_file_is_taken() {
    let (_first, files) = site();
    let second = tempfile::tempdir().unwrap();
    fs::create_dir(second.path().join("bare")).unwrap();
    for (name, text) in [
        ("index.html", "second"),
        ("more.txt", "more"),
        ("bare/index.html", "bare"),
    ] {
        fs::write(second.path().join(name), text).unwrap();
    }
    let files = files.also(second.path());
    assert_eq!(ask(&files, "/", &[]).text(), "<h1>root</h1>");
    assert_eq!(ask(&files, "/more.txt", &[]).text(), "more");
    assert_eq!(ask(&files, "/bare/", &[]).text(), "bare");
    assert_eq!(ask(&files, "/none.txt", &[]).status(), 404);
    let error = files.also("no-such-folder").start().unwrap_err();
    assert!(error.to_string().contains("no-such-folder"), "{error}");
}

#[test]
fn types_can_be_set_and_dot_names_and_links_let_in() {
    let (folder, files) = site();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("far.txt"), "far").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).unwrap();
    fs::write(folder.path().join("a.GMI"), "gemini").unwrap();
    assert_eq!(status(&files, Method::GET, "/out/far.txt"), 404);
    let files = Files::new(folder.path())
        .content_type(".gmi", "text/gemini")
        .dot_files(true)
        .follow_links(true);
    assert_eq!(
        field(&ask(&files, "/a.GMI", &[]), "content-type"),
        Some("text/gemini")
    );
    assert_eq!(ask(&files, "/.secret", &[]).text(), "secret");
    assert_eq!(ask(&files, "/out/far.txt", &[]).text(), "far");
    assert_eq!(status(&files, Method::GET, "/../x"), 400);
}

#[test]
fn tags_of_small_files_are_of_their_bytes_and_those_of_large_ones_of_their_version() {
    let (folder, files) = site();
    let tag = |files: &Files, path: &str| field(&ask(files, path, &[]), "etag").unwrap().to_owned();
    fs::write(folder.path().join("copy.html"), "<h1>root</h1>").unwrap();
    assert_eq!(tag(&files, "/copy.html"), tag(&files, "/"));
    assert_ne!(tag(&files, "/a%20b.txt"), tag(&files, "/"));
    assert!(tag(&files, "/").starts_with('"'));
    // It was written just now, so another version may have the same times.
    assert!(tag(&files, "/big.bin").starts_with("W/\""));
}

#[test]
fn a_file_that_may_not_be_read_is_not_there() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, files) = site();
    let path = folder.path().join("closed.txt");
    fs::write(&path, "closed").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Root reads it all the same.
    let want = if rustix::process::geteuid().is_root() {
        200
    } else {
        404
    };
    assert_eq!(status(&files, Method::GET, "/closed.txt"), want);
}

#[test]
fn mistakes_in_the_rules_are_start_errors() {
    let (_folder, files) = site();
    let error = files.spa("../index.html").start().unwrap_err().to_string();
    assert!(
        error.contains("Files::spa") && error.contains("../index.html"),
        "{error}"
    );
}

#[cfg(feature = "embed")]
mod embedded {
    use super::*;

    #[test]
    fn what_is_part_of_the_program_is_served_as_a_folder_is() {
        let folder = crate::include_files!("$CARGO_MANIFEST_DIR/src/services/files");
        let inside = Files::embedded(folder.clone())
            .index(["mod.rs"])
            .listing(true);
        let outside = Files::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/services/files"))
            .index(["mod.rs"])
            .listing(true);
        inside.start().unwrap();
        for (path, fields) in [
            ("/", &[][..]),
            ("/root.rs", &[]),
            ("/root.rs", &[("Accept-Encoding", "gzip")]),
            ("/root.rs", &[("Range", "bytes=0-9")]),
            ("/root.rs", &[("Range", "bytes=-5")]),
            ("/root.rs", &[("If-None-Match", "*")]),
            ("/tests", &[]),
            ("/tests/", &[]),
            ("/tests/forms.rs?a", &[]),
            ("/nothing", &[]),
            ("/root.rs/", &[]),
            ("/..", &[]),
        ] {
            let (one, other) = (ask(&inside, path, fields), ask(&outside, path, fields));
            assert_eq!(one.status(), other.status(), "{path}");
            for name in [
                "content-type",
                "etag",
                "content-encoding",
                "vary",
                "cache-control",
                "location",
                "content-range",
            ] {
                assert_eq!(field(&one, name), field(&other, name), "{path} {name}");
            }
            // Of a list the times differ.
            if path != "/tests/" {
                assert_eq!(one.bytes(), other.bytes(), "{path}");
            }
        }
        let over = Files::new(tempfile::tempdir().unwrap().path()).also_embedded(folder);
        assert_eq!(status(&over, Method::GET, "/root.rs"), 500);
    }
}
