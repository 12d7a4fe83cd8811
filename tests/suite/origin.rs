//! Does a folder answer as RFC 9110 has it, and as people are used to from other servers?
//!
//! The tables stand in `rows`.

mod rows;

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use cloudgate::{App, Compression, Files, ResponseCache, Running};
use cloudgate_suite::{Answer, Wire, get, start};
use rows::{CONDITIONS, NAMES_METHODS_AND_FIELDS, RANGES};
use tempfile::TempDir;

/// `10 ` bytes, and what is larger than what is kept in memory.
const TEN: &str = "0123456789";
const LARGE: usize = (1 << 20) + 7;

const PAST: &str = "Sat, 01 Jan 2000 00:00:00 GMT";
const FUTURE: &str = "Fri, 01 Jan 2100 00:00:00 GMT";

fn large() -> Vec<u8> {
    (0..LARGE).map(|at| (at % 251) as u8).collect()
}

fn fill(folder: &Path) {
    for name in ["docs/caf\u{e9}", "bare"] {
        fs::create_dir_all(folder.join(name)).expect("a folder");
    }
    let words = "words and words\n".repeat(500);
    for (name, content) in [
        ("index.html", "<h1>root</h1>".as_bytes()),
        ("ten.bin", TEN.as_bytes()),
        ("ten.txt", TEN.as_bytes()),
        ("empty.bin", b""),
        ("words.txt", words.as_bytes()),
        ("missing.html", b"<h1>nothing here</h1>"),
        ("docs/index.html", b"<h1>docs</h1>"),
        ("docs/caf\u{e9}/index.html", b"<h1>menu</h1>"),
        ("bare/file.txt", b"bare"),
        ("a b.txt", b"space"),
        ("a+b.txt", b"plus"),
        ("a%20b.txt", b"percent"),
        ("a;b=c,d.txt", b"semicolon"),
        ("a?b#c.txt", b"question"),
        ("na\u{ef}ve-\u{65e5}.txt", b"utf-8"),
        ("~a'(b)!@$&*=.txt", b"sub-delims"),
        ("large.bin", &large()),
    ] {
        fs::write(folder.join(name), content).expect("a file");
        let file = File::options().write(true).open(folder.join(name));
        let hour_ago = SystemTime::now() - Duration::from_secs(3600);
        let set = file.and_then(|file| file.set_modified(hour_ago));
        set.expect("a time");
    }
}

fn site() -> (TempDir, Running) {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let server = start(Files::new(folder.path()).not_found("missing.html"));
    (folder, server)
}

fn fetch(server: &Running, method: &str, target: &str, fields: &str) -> Answer {
    let mut wire = Wire::open(server.addr());
    wire.send(format!(
        "{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"
    ));
    if method == "HEAD" {
        wire.answer_to_head()
    } else {
        wire.answer()
    }
}

/// Lets each row be true.
#[track_caller]
fn check(server: &Running, table: &str) {
    for row in table.lines().filter(|row| row.contains(" :: ")) {
        let parts: Vec<&str> = row.split("::").map(str::trim).collect();
        let [_, line, fields, want] = parts[..] else {
            unreachable!("a row has four parts: {row}");
        };
        let line = line
            .replace("{longer}", &"a/".repeat(2500))
            .replace("{long}", &"a".repeat(300));
        let (method, target) = line.split_once(' ').expect("a request line");
        let plain = fetch(server, "GET", target, "");
        let fill = |text: &str| {
            text.replace("{tag}", plain.header("etag").unwrap_or("\"none\""))
                .replace("{date}", plain.header("last-modified").unwrap_or(PAST))
                .replace("{past}", PAST)
                .replace("{future}", FUTURE)
        };
        let sent: String = fields
            .split('|')
            .map(str::trim)
            .filter(|field| !field.is_empty())
            .map(|field| fill(field) + "\r\n")
            .collect();
        let answer = fetch(server, method, target, &sent);
        let mut wanted = want.split('|').map(str::trim);
        let status = wanted.next().expect("a status");
        let told = format!("{row}\n{sent:?}\n{}", answer.head);
        assert_eq!(answer.status.to_string(), status, "{told}");
        for field in wanted {
            if let Some(name) = field.strip_prefix('!') {
                assert_eq!(answer.header(name), None, "{told}");
            } else if let Some(body) = field.strip_prefix('=') {
                assert_eq!(answer.text(), body.trim(), "{told}");
            } else {
                let (name, value) = field.split_once(": ").expect("a field");
                assert_eq!(answer.header(name), Some(&*fill(value)), "{told}");
            }
        }
    }
}

#[test]
fn conditions() {
    let (_folder, server) = site();
    check(&server, CONDITIONS);
}

#[test]
fn ranges() {
    let (_folder, server) = site();
    check(&server, RANGES);
}

#[test]
fn names_methods_and_fields() {
    let (_folder, server) = site();
    check(&server, NAMES_METHODS_AND_FIELDS);
}

/// All fields but the date, in their order.
fn fields(answer: &Answer) -> Vec<&str> {
    let lines = answer.head.lines();
    lines.filter(|line| !line.starts_with("Date:")).collect()
}

// RFC 9110 section 9.3.2.
#[test]
fn head_is_get_without_the_body() {
    let (_folder, server) = site();
    for target in [
        "/",
        "/ten.txt",
        "/words.txt",
        "/large.bin",
        "/empty.bin",
        "/docs",
        "/none.html",
        "/bare/",
    ] {
        for sent in ["", "Accept-Encoding: gzip\r\n", "Accept: text/html\r\n"] {
            let get = fetch(&server, "GET", target, sent);
            let head = fetch(&server, "HEAD", target, sent);
            assert_eq!(fields(&head), fields(&get), "{target} {sent}");
        }
    }
}

#[test]
fn a_folder_sends_to_its_slash_wherever_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let files = || Files::new(folder.path());
    let app = App::new()
        .mount("/assets", files())
        .mount("/a%20b", files())
        .mount("/deep", App::new().mount("/er", files()));
    let by_host = App::new().host("h", App::new().mount("/host", files()));
    let (server, by_host) = (start(app), start(by_host));
    for (target, want) in [
        ("/assets", "/assets/"),
        ("/assets?x=1", "/assets/?x=1"),
        ("/assets/docs?x=1", "/assets/docs/?x=1"),
        ("/assets/docs/caf%C3%A9", "/assets/docs/caf%C3%A9/"),
        ("/deep/er/docs", "/deep/er/docs/"),
        ("/host", "/host/"),
        ("/host/docs?a", "/host/docs/?a"),
    ] {
        let server = if target.starts_with("/host") {
            &by_host
        } else {
            &server
        };
        let answer = get(server.addr(), target);
        let location = answer.header("location");
        assert_eq!((answer.status, location), (308, Some(want)), "{target}");
        assert_eq!(get(server.addr(), want).status, 200, "{want}");
    }
}

/// What a multipart body has, read by the rules of RFC 2046 section 5.1 and nothing of the library.
fn parts(answer: &Answer) -> Vec<(Vec<String>, Vec<u8>)> {
    let content_type = answer.header("content-type").expect("a type");
    let boundary = content_type
        .strip_prefix("multipart/byteranges; boundary=")
        .expect("a boundary")
        .trim_matches('"');
    let delimiter = format!("\r\n--{boundary}");
    // The first delimiter may stand at the very beginning.
    let body = [b"\r\n", &*answer.body].concat();
    let starts: Vec<usize> = body
        .windows(delimiter.len())
        .enumerate()
        .filter(|(_, window)| *window == delimiter.as_bytes())
        .map(|(at, _)| at)
        .collect();
    let last = *starts.last().expect("a delimiter");
    assert_eq!(&body[last + delimiter.len()..][..2], b"--");
    starts
        .windows(2)
        .map(|pair| {
            let part = &body[pair[0] + delimiter.len() + 2..pair[1]];
            let end = part.windows(4).position(|four| four == b"\r\n\r\n");
            let end = end.expect("the end of a head");
            let head = String::from_utf8(part[..end].to_vec()).expect("text");
            (
                head.lines().map(str::to_owned).collect(),
                part[end + 4..].to_vec(),
            )
        })
        .collect()
}

#[test]
fn several_ranges_come_in_parts_that_others_can_read() {
    let (_folder, server) = site();
    let words = "words and words\n".repeat(500).into_bytes();
    for (target, whole, content_type) in [
        ("/words.txt", words, "text/plain; charset=utf-8"),
        ("/large.bin", large(), "application/octet-stream"),
    ] {
        let plain = fetch(&server, "GET", target, "");
        let (tag, length) = (plain.header("etag").expect("a tag"), whole.len());
        // In the order that was asked for, and the last 5 bytes.
        let asked = "Range: bytes=3000-3009,0-99,5000-5999,-5\r\n";
        let answer = fetch(&server, "GET", target, asked);
        assert_eq!((answer.status, answer.header("etag")), (206, Some(tag)));
        // RFC 9110 section 15.3.7.2: MUST NOT stand in front of parts.
        assert_eq!(answer.header("content-range"), None);
        let want = [
            (3000, 3009),
            (0, 99),
            (5000, 5999),
            (length - 5, length - 1),
        ];
        let parts = parts(&answer);
        assert_eq!(parts.len(), want.len());
        for ((head, body), (first, last)) in parts.iter().zip(want) {
            let type_line = format!("Content-Type: {content_type}");
            let range_line = format!("Content-Range: bytes {first}-{last}/{length}");
            assert!(
                head.contains(&type_line) && head.contains(&range_line),
                "{head:?}"
            );
            assert!(*body == whole[first..=last], "{first}");
        }
        // Not more than the whole has (RFC 9110 section 14.2, CVE-2011-3192).
        let many = format!("Range: bytes={}\r\n", vec!["0-"; 200].join(","));
        assert!(fetch(&server, "GET", target, &many).body.len() <= length);
    }
}

#[test]
fn a_middleware_that_compresses_finds_nothing_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let app = |files: Files| start(App::new().wrap(Compression::new()).mount("/", files));
    let gzip = "Accept-Encoding: gzip\r\n";
    let server = app(Files::new(folder.path()));
    let coded = fetch(&server, "GET", "/words.txt", gzip);
    assert_eq!(coded.head.matches("gzip").count(), 1, "{}", coded.head);
    assert_eq!(coded.head.to_lowercase().matches("\nvary:").count(), 1);
    let tag = coded.header("etag").expect("a tag");
    assert!(tag.starts_with('"'), "{tag}");
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*coded.body), &mut plain)
        .expect("gzip once");
    assert_eq!(plain, fetch(&server, "GET", "/words.txt", "").body);
    let again = fetch(
        &server,
        "GET",
        "/words.txt",
        &format!("{gzip}If-None-Match: {tag}\r\n"),
    );
    assert_eq!((again.status, again.header("etag")), (304, Some(tag)));
    // Where it does the work, a part is one of the plain bytes, and says so.
    let server = app(Files::new(folder.path()).compress(false));
    let coded = fetch(&server, "GET", "/words.txt", gzip);
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    let tag = coded.header("etag").expect("a tag");
    assert!(tag.starts_with("W/"), "{tag}");
    let part = fetch(
        &server,
        "GET",
        "/words.txt",
        &format!("{gzip}Range: bytes=0-4\r\n"),
    );
    assert_eq!((part.status, part.header("content-encoding")), (206, None));
    assert_eq!(part.text(), "words");
    // A weak tag holds for no part (RFC 9110 section 13.1.5), and for a whole one it does.
    let sent = format!("{gzip}Range: bytes=0-4\r\nIf-Range: {tag}\r\n");
    assert_eq!(fetch(&server, "GET", "/words.txt", &sent).status, 200);
    let sent = format!("{gzip}If-None-Match: {tag}\r\n");
    assert_eq!(fetch(&server, "GET", "/words.txt", &sent).status, 304);
}

#[test]
fn a_cache_in_front_keeps_forms_and_parts_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    fill(folder.path());
    let app = App::new()
        .get("/hello", || "hello")
        .wrap(ResponseCache::for_seconds(60))
        .mount("/", Files::new(folder.path()));
    let server = start(app);
    for _ in 0..2 {
        let coded = fetch(&server, "GET", "/words.txt", "Accept-Encoding: gzip\r\n");
        assert_eq!(coded.header("content-encoding"), Some("gzip"));
        let plain = fetch(&server, "GET", "/words.txt", "");
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.body.len(), 8000);
        let part = fetch(&server, "GET", "/words.txt", "Range: bytes=0-4\r\n");
        assert_eq!((part.status, part.text()), (206, "words".to_owned()));
        let tag = plain.header("etag").expect("a tag");
        let sent = format!("If-None-Match: {tag}\r\n");
        assert_eq!(fetch(&server, "GET", "/words.txt", &sent).status, 304);
        assert_eq!(fetch(&server, "GET", "/large.bin", "").body.len(), LARGE);
        let head = fetch(&server, "HEAD", "/words.txt", "");
        assert_eq!(head.header("content-length"), Some("8000"));
        assert_eq!(fetch(&server, "GET", "/none.txt", "").status, 404);
    }
}
