//! Does any spelling of a path lead out of the folder?
//!
//! Thousands of them, made of parts: ways to write `..`, to separate, to begin and to end.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use cloudgate::{Files, Running};
use cloudgate_suite::{Answer, Wire, get, start};
use tempfile::TempDir;

const SECRET: &[u8] = b"what lies beside the folder";

/// What may be had, and its content.
const FILES: [(&str, &str); 5] = [
    ("index.html", "<h1>root</h1>"),
    ("page.html", "a page"),
    ("static/app.js", "1"),
    ("static/index.html", "<h1>static</h1>"),
    ("docs/deep/file.txt", "deep"),
];

/// `..`, or what some decoder, trimmer or file system takes for it.
const DOTS: [&str; 24] = [
    "..",
    "%2e%2e",
    "%2E.",
    ".%2e",
    "%252e%252e",
    "%25252e%25252e",
    "%c0%ae%c0%ae",
    "%e0%80%ae%e0%80%ae",
    "%f0%80%80%ae%f0%80%80%ae",
    "%u002e%u002e",
    "..;",
    "..;a=b",
    "...",
    "....",
    ".%20.",
    "..%20",
    "..%00",
    "..%09",
    "%ef%bc%8e%ef%bc%8e",
    "%e2%80%a5",
    "\u{ff0e}\u{ff0e}",
    ". .",
    "..%0d%0a",
    "..::$INDEX_ALLOCATION",
];

/// `/`, or what somebody takes for it.
const SEPARATORS: [&str; 20] = [
    "/",
    "%2f",
    "%2F",
    "\\",
    "%5c",
    "%255c",
    "%252f",
    "//",
    "/./",
    "/%2e/",
    "%c0%af",
    "%c1%9c",
    "%e0%80%af",
    "%u2215",
    "%ef%bc%8f",
    ";/",
    "/;/",
    "\\/",
    "/\\",
    "%00/",
];

/// What is worth having. Beside the folder lie `secret.txt`, and a folder whose name begins as its own does.
const TARGETS: [&str; 7] = [
    "secret.txt",
    "public-old/secret.txt",
    "public.secret.txt",
    "etc/passwd",
    "windows/win.ini",
    "public/.env",
    "public/../secret.txt",
];

const PREFIXES: [&str; 8] = [
    "/",
    "/static/",
    "/docs/deep/",
    "/page.html/",
    "/nothing/",
    "/mounted/",
    "/mounted/static/",
    "//",
];

const SUFFIXES: [&str; 11] = [
    "",
    "%00",
    "%00.html",
    "?",
    "?a=/../..",
    "%20",
    ".",
    "/",
    "%3f.html",
    "::$DATA",
    ";.js",
];

fn site() -> (TempDir, Running) {
    let outer = tempfile::tempdir().expect("a folder");
    let write = |name: &str, data: &[u8]| {
        let path = outer.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, data).expect("a file");
    };
    for (name, text) in FILES {
        write(&format!("public/{name}"), text.as_bytes());
    }
    for name in [
        "secret.txt",
        "public-old/secret.txt",
        "public.secret.txt",
        "etc/passwd",
        "windows/win.ini",
        "public/.env",
        "public/.git/config",
    ] {
        write(name, SECRET);
    }
    let folder = outer.path().join("public");
    let app = cloudgate::App::new()
        .mount("/mounted", Files::new(&folder))
        .files(&folder);
    (outer, start(app))
}

/// Each way to write `..` with each separator at each depth; prefixes, targets and endings take turns so that
/// each pair of parts meets.
fn attacks() -> Vec<String> {
    let mut attacks = Vec::new();
    let mut turn = 0;
    for dots in DOTS {
        for separator in SEPARATORS {
            for depth in 1..=8 {
                for _ in 0..2 {
                    let prefix = PREFIXES[turn % PREFIXES.len()];
                    let target = TARGETS[turn % TARGETS.len()].replace('/', separator);
                    let suffix = SUFFIXES[turn % SUFFIXES.len()];
                    let climb = format!("{dots}{separator}").repeat(depth);
                    attacks.push(format!("{prefix}{climb}{target}{suffix}"));
                    turn += 1;
                }
            }
        }
    }
    // The plain ways with everything.
    for dots in ["..", "%2e%2e", "..;"] {
        for prefix in PREFIXES {
            for target in TARGETS {
                for suffix in SUFFIXES {
                    attacks.push(format!("{prefix}{dots}/{target}{suffix}"));
                    attacks.push(format!("{prefix}x/{dots}/{dots}/{target}{suffix}"));
                }
            }
        }
    }
    for absolute in [
        "/etc/passwd",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/file:///etc/passwd",
        "file:///etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/secret.txt",
        "/dev/fd/3",
        "/C:/windows/win.ini",
        "/C:%5cwindows%5cwin.ini",
        "/c%3a/windows/win.ini",
        "C:\\windows\\win.ini",
        "/\\\\localhost\\c$\\windows\\win.ini",
        "//localhost/c$/windows/win.ini",
        "/%5c%5c.%5cC:%5cwindows%5cwin.ini",
        "/%5c%5c%3f%5cC:%5cwindows%5cwin.ini",
        "/~root/secret.txt",
        "/~/secret.txt",
        "*",
        "http://h/../secret.txt",
        "http://h/%2e%2e/secret.txt",
        "http://h@public-old/secret.txt",
        "/page.html::$DATA",
        "/page.html:stream",
        "/page.html:%24DATA",
        "/static::$INDEX_ALLOCATION/app.js",
        "/PAGE~1.HTM",
        "/.env",
        "/%2eenv",
        "/.env%20",
        "/.git/config",
        "/static/..%2f.env",
    ] {
        attacks.push(absolute.to_owned());
    }
    for device in [
        "CON", "PRN", "AUX", "NUL", "COM1", "LPT9", "con.txt", "nul.html", "aux.a.b", "CON%20",
        "NUL.", "CONIN$", "CLOCK$",
    ] {
        for prefix in PREFIXES {
            attacks.push(format!("{prefix}{device}"));
        }
    }
    attacks
}

/// Asks for all of them, many at once, and gives each answer to `check`.
fn ask_all(server: &Running, targets: &[String], check: impl Fn(&str, &Answer)) {
    const AT_ONCE: usize = 32;
    let mut rest = targets;
    let mut many = AT_ONCE;
    while !rest.is_empty() {
        let batch = &rest[..many.min(rest.len())];
        let mut requests = Vec::new();
        for target in batch {
            requests
                .extend_from_slice(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes());
        }
        let mut wire = Wire::open(server.addr());
        wire.send(requests);
        let mut answered = 0;
        for target in batch {
            let answer = wire.answer();
            check(target, &answer);
            answered += 1;
            if answer.header("connection") == Some("close") {
                break;
            }
        }
        rest = &rest[answered..];
        // What ends the connection is likely to come again.
        many = if answered == batch.len() {
            AT_ONCE
        } else {
            (answered * 2).max(2)
        };
    }
}

#[test]
fn no_spelling_of_a_path_leads_out_of_the_folder() {
    let (_outer, server) = site();
    let known: HashSet<&[u8]> = FILES.iter().map(|(_, text)| text.as_bytes()).collect();
    let attacks = attacks();
    assert!(attacks.len() > 8000, "{}", attacks.len());
    ask_all(&server, &attacks, |target, answer| {
        assert!(
            matches!(answer.status, 200 | 308 | 400 | 404),
            "{target}: {}",
            answer.head
        );
        let has = |part: &[u8]| answer.body.windows(part.len()).any(|piece| piece == part);
        assert!(
            !has(SECRET) && !has(b"root:"),
            "{target}: {}",
            answer.text()
        );
        match answer.status {
            200 => assert!(known.contains(&*answer.body), "{target}: {}", answer.text()),
            308 => {
                let to = answer.header("location").expect("a location");
                let local = to.starts_with('/') && !to.starts_with("//") && !to.contains('\\');
                assert!(local, "{target}: {to}");
            }
            _ => {}
        }
    });
    // It still serves.
    for (name, text) in FILES {
        assert_eq!(get(server.addr(), &format!("/{name}")).text(), text);
        assert_eq!(get(server.addr(), &format!("/mounted/{name}")).text(), text);
    }
}

#[test]
fn links_that_lead_out_and_what_is_no_file_cannot_be_had() {
    let (outer, server) = site();
    let folder = outer.path().join("public");
    let link = |target: &Path, name: &str| symlink(target, folder.join(name)).expect("a link");
    let secret = outer.path().join("secret.txt");
    for (target, name) in [
        (&*secret, "absolute"),
        (Path::new("../secret.txt"), "relative"),
        (Path::new("../../secret.txt"), "static/relative"),
        (Path::new(".."), "out"),
        (outer.path(), "out-absolute"),
        (Path::new("../public-old"), "sibling"),
        (Path::new("absolute"), "chain1"),
        (Path::new("chain1"), "chain2"),
        (Path::new("static/relative"), "chain3"),
        // Out, and back in: what lies between is nobody's business.
        (Path::new("../public/page.html"), "there-and-back"),
        (&*folder.join("page.html"), "absolute-inside"),
        (Path::new("/proc/self/root"), "magic"),
        (Path::new("/proc/self/cwd"), "magic-cwd"),
        (Path::new("/proc/self/fd"), "magic-fd"),
        (Path::new("/dev/null"), "null"),
        (Path::new("/dev/zero"), "zero"),
        (Path::new("ring1"), "ring2"),
        (Path::new("ring2"), "ring1"),
        (Path::new("nothing"), "dangling"),
        (Path::new("fifo"), "to-fifo"),
    ] {
        link(target, name);
    }
    let mkfifo = std::process::Command::new("mkfifo")
        .arg(folder.join("fifo"))
        .status();
    assert!(mkfifo.is_ok_and(|status| status.success()), "a FIFO");
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).expect("a socket");
    // Takes root; where there is none there is one name less.
    let _ = std::process::Command::new("mknod")
        .arg(folder.join("device"))
        .args(["c", "1", "5"])
        .stderr(std::process::Stdio::null())
        .status();

    let secret_path = secret.to_str().expect("a path of text");
    let by_root = format!("magic{secret_path}");
    for name in [
        "absolute",
        "relative",
        "static/relative",
        "out/secret.txt",
        "out/public/page.html",
        "out-absolute/secret.txt",
        "sibling/secret.txt",
        "chain1",
        "chain2",
        "chain3",
        "there-and-back",
        "absolute-inside",
        "magic/etc/passwd",
        &by_root,
        "magic-cwd/Cargo.toml",
        "magic-fd/0",
        "magic-fd/3",
        "null",
        "zero",
        "ring1",
        "ring2",
        "dangling",
        "fifo",
        "to-fifo",
        "socket",
        "device",
    ] {
        for path in [
            format!("/{name}"),
            format!("/mounted/{name}"),
            format!("/{name}/"),
        ] {
            let answer = get(server.addr(), &path);
            assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        }
    }

    // What stays beneath the folder may be linked as one likes; a hard link is the file.
    link(Path::new("static/app.js"), "inside");
    link(Path::new("../page.html"), "static/up");
    link(Path::new("static"), "folder");
    link(Path::new("inside"), "chain-inside");
    fs::hard_link(folder.join("page.html"), folder.join("hard")).expect("a hard link");
    for (path, want) in [
        ("/inside", "1"),
        ("/static/up", "a page"),
        ("/folder/app.js", "1"),
        ("/folder/", "<h1>static</h1>"),
        ("/chain-inside", "1"),
        ("/hard", "a page"),
    ] {
        let answer = get(server.addr(), path);
        assert_eq!(
            (answer.status, answer.text()),
            (200, want.to_owned()),
            "{path}"
        );
    }
}
