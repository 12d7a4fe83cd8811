//! Is a folder served as a web site should be, and nothing outside of it?

use std::fs;
use std::os::unix::fs::symlink;

use cloudgate::{App, Files, Request, Running};
use cloudgate_suite::{Answer, Wire, ask, get, start, wait_for};
use tempfile::TempDir;

const SECRET: &str = "the secret beside the folder";

/// A folder `outer/public` with a secret beside it, and a server of it.
fn site() -> (TempDir, Running) {
    let outer = tempfile::tempdir().expect("a folder");
    let write = |name: &str, data: &[u8]| {
        let path = outer.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, data).expect("a file");
    };
    write("secret.txt", SECRET.as_bytes());
    write("public/.env", SECRET.as_bytes());
    write("public/.git/config", SECRET.as_bytes());
    write("public/index.html", b"<h1>root</h1>");
    write("public/style.css", b"a{}");
    write("public/app.js", b"1");
    write("public/logo.png", b"\x89PNG");
    write("public/data.json", b"{}");
    write("public/a b caf\u{e9}.txt", b"text");
    write("public/empty.txt", b"");
    write("public/docs/index.html", b"<h1>docs</h1>");
    write("public/bare/file.txt", b"file");
    write("public/big.bin", &big());
    symlink("../secret.txt", outer.path().join("public/link.txt")).expect("a link");
    symlink("..", outer.path().join("public/out")).expect("a link");
    let server = start(crate::app().files(outer.path().join("public")));
    (outer, server)
}

fn big() -> Vec<u8> {
    (0..3 << 20).map(|at: u32| (at % 251) as u8).collect()
}

#[test]
fn files_have_their_type_and_length() {
    let (_outer, server) = site();
    for (target, content_type, body) in [
        ("/", "text/html; charset=utf-8", &b"<h1>root</h1>"[..]),
        (
            "/index.html?a=b",
            "text/html; charset=utf-8",
            b"<h1>root</h1>",
        ),
        ("/docs/", "text/html; charset=utf-8", b"<h1>docs</h1>"),
        ("/style.css", "text/css; charset=utf-8", b"a{}"),
        ("/app.js", "text/javascript; charset=utf-8", b"1"),
        ("/logo.png", "image/png", b"\x89PNG"),
        ("/data.json", "application/json", b"{}"),
        (
            "/a%20b%20caf%C3%A9.txt",
            "text/plain; charset=utf-8",
            b"text",
        ),
        ("/empty.txt", "text/plain; charset=utf-8", b""),
    ] {
        for _ in 0..2 {
            let answer = get(server.addr(), target);
            assert_eq!(
                (answer.status, answer.header("content-type"), &*answer.body),
                (200, Some(content_type), body),
                "{target}"
            );
            let length = body.len().to_string();
            assert_eq!(answer.header("content-length"), Some(&*length));
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        }
    }
    // Routes win over files, and the application's own 404 is the folder's.
    assert_eq!(get(server.addr(), "/routes/get").text(), "get");
    assert_eq!(get(server.addr(), "/nothing.html").status, 404);
    assert_eq!(get(server.addr(), "/bare/").status, 404);
}

fn ask_with(server: &Running, line: &str, fields: &str) -> Answer {
    ask(
        server.addr(),
        format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"),
    )
}

/// A tag without the word that it is weak, which that of a large file is for the first seconds.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[test]
fn what_the_client_has_already_is_not_sent_again() {
    let (_outer, server) = site();
    for target in ["/style.css", "/big.bin"] {
        let line = &format!("GET {target}");
        let first = ask_with(&server, line, "");
        let (tag, date) = (first.header("etag"), first.header("last-modified"));
        let (tag, date) = (tag.expect("a tag"), date.expect("a date"));
        for fields in [
            format!("If-None-Match: {tag}\r\n"),
            format!("If-None-Match: \"x\", W/{}\r\n", opaque(tag)),
            format!("If-Modified-Since: {date}\r\n"),
        ] {
            let mut wire = Wire::open(server.addr());
            let answer = wire
                .send(format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"))
                .answer();
            assert_eq!(
                (answer.status, answer.header("etag").map(opaque)),
                (304, Some(opaque(tag))),
                "{fields}"
            );
            // Nothing stands between this answer and the next.
            assert_eq!(wire.send_get("/app.js").answer().text(), "1");
        }
        let other = ask_with(&server, line, "If-None-Match: \"other\"\r\n");
        assert_eq!(other.body, first.body);
        let head = Wire::open(server.addr())
            .send(format!("HEAD {target} HTTP/1.1\r\nHost: h\r\n\r\n"))
            .answer_to_head();
        assert_eq!(
            head.header("content-length"),
            first.header("content-length")
        );
        assert_eq!(head.header("etag").map(opaque), Some(opaque(tag)));
    }
    let answer = ask_with(&server, "GET /style.css", "If-Match: \"other\"\r\n");
    assert_eq!(answer.status, 412);
}

#[test]
fn nothing_outside_of_the_folder_and_nothing_hidden_can_be_had() {
    let (_outer, server) = site();
    // RFC 3986 section 5.2.4, OWASP path traversal, CVE-2021-41773, and names only other systems
    // would misread.
    for target in [
        "/../secret.txt",
        "/docs/../../secret.txt",
        "/docs/../../../../../../etc/passwd",
        "/./../secret.txt",
        "/..%2fsecret.txt",
        "/..%2Fsecret.txt",
        "/%2e%2e/secret.txt",
        "/%2E%2E/secret.txt",
        "/%2e%2e%2fsecret.txt",
        "/.%2e/secret.txt",
        "/%2e./secret.txt",
        "/docs/.%2e/.%2e/secret.txt",
        "/..%5csecret.txt",
        "/..\\secret.txt",
        "/%5c..%5c..%5csecret.txt",
        "/%252e%252e/secret.txt",
        "/%%32%65%%32%65/secret.txt",
        "/..%00/secret.txt",
        "/index.html%00.png",
        "/..;/secret.txt",
        "/....//secret.txt",
        "/%c0%ae%c0%ae/secret.txt",
        "/%e0%80%ae%e0%80%ae/secret.txt",
        "/%uff0e%uff0e/secret.txt",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/etc/passwd",
        "/file:///etc/passwd",
        "http://h/../secret.txt",
        "http://h/%2e%2e/secret.txt",
        "/out/secret.txt",
        "/link.txt",
        "/.env",
        "/%2eenv",
        "/.git/config",
        "/docs/../.env",
        "/index.html/../../secret.txt",
        "../secret.txt",
        "secret.txt",
    ] {
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            let mut wire = Wire::open(server.addr());
            let received = wire
                .send(format!(
                    "{method} {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
                ))
                .rest();
            let text = String::from_utf8_lossy(&received);
            let status = text.get(9..12).expect("a status");
            assert!(matches!(status, "400" | "404"), "{method} {target}: {text}");
            assert!(
                !text.contains("secret") && !text.contains("root:"),
                "{target}: {text}"
            );
        }
    }
}

#[test]
fn a_folder_without_its_slash_is_sent_there() {
    let (_outer, server) = site();
    for (target, want) in [("/docs", "/docs/"), ("/docs?a=b&c", "/docs/?a=b&c")] {
        let answer = get(server.addr(), target);
        assert_eq!(
            (answer.status, answer.header("location")),
            (308, Some(want))
        );
    }
    // Never to another host (CVE-2018-14574).
    for target in ["//docs", "///docs", "//h/docs"] {
        let answer = get(server.addr(), target);
        assert!(
            answer.header("location").is_none(),
            "{target}: {}",
            answer.head
        );
    }
}

#[test]
fn a_folder_can_be_mounted_below_a_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("sub")).expect("a folder");
    for name in ["index.html", "a.txt", "sub/index.html"] {
        std::fs::write(at(name), name).expect("a file");
    }
    let inner = App::new().mount("/deep", Files::new(folder.path()));
    let app = App::new()
        .mount("/assets", Files::new(folder.path()))
        .mount("/outer", inner);
    for (path, status, want) in [
        ("/assets/", 200, "index.html"),
        ("/assets/a.txt", 200, "a.txt"),
        ("/assets/sub/", 200, "sub/index.html"),
        ("/outer/deep/a.txt", 200, "a.txt"),
        ("/assets", 308, "/assets/"),
        ("/assets?a=b", 308, "/assets/?a=b"),
        ("/assets/sub", 308, "/assets/sub/"),
        ("/outer/deep", 308, "/outer/deep/"),
        ("/assets/assets/a.txt", 404, ""),
        ("/a.txt", 404, ""),
    ] {
        let response = app.call(&mut Request::get(path));
        assert_eq!(response.status(), status, "{path}");
        let location = response.headers().get("location").map(str::to_owned);
        match status {
            200 => assert_eq!(response.text(), want, "{path}"),
            308 => assert_eq!(location.as_deref(), Some(want), "{path}"),
            _ => assert_eq!(location, None, "{path}"),
        }
    }
}

#[test]
fn other_methods_hear_which_are_right() {
    let (_outer, server) = site();
    for (method, status) in [("POST", 405), ("DELETE", 405), ("OPTIONS", 204)] {
        let answer = ask_with(&server, &format!("{method} /index.html"), "");
        assert_eq!(
            (answer.status, answer.header("allow")),
            (status, Some("GET, HEAD, OPTIONS"))
        );
    }
}

#[test]
fn a_big_file_arrives_byte_by_byte_also_when_it_is_read_slowly() {
    let (_outer, server) = site();
    let want = big();
    let mut slow = Wire::open(server.addr());
    let head = slow.send_get("/big.bin").answer_to_head();
    assert_eq!(head.header("content-length"), Some("3145728"));
    for (number, piece) in want.chunks(96 << 10).enumerate() {
        assert!(slow.take(piece.len()) == piece, "the file differs");
        // Meanwhile others get it whole.
        if number % 8 == 0 {
            assert!(
                get(server.addr(), "/big.bin").body == want,
                "the file differs"
            );
        }
        assert_eq!(get(server.addr(), "/app.js").text(), "1");
    }
    assert_eq!(slow.send_get("/app.js").answer().text(), "1");
}

#[test]
fn a_file_that_changes_is_served_anew_within_seconds() {
    let (outer, server) = site();
    let path = outer.path().join("public/style.css");
    let before = get(server.addr(), "/style.css");
    fs::write(&path, "b{color:red}").expect("a file");
    wait_for("the new file", || {
        let answer = get(server.addr(), "/style.css");
        let is_new = answer.text() == "b{color:red}";
        assert_eq!(is_new, answer.header("etag") != before.header("etag"));
        is_new
    });
    fs::remove_file(&path).expect("a file");
    wait_for("the file's end", || {
        get(server.addr(), "/style.css").status == 404
    });
}
