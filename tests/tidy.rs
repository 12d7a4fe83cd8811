//! Do the sources keep to the layers and to the rules of the house?
//!
//! The table is the one of ARCHITECTURE.md; a file is held against it by what it mentions.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// The longest source file, in lines.
const MOST_LINES: usize = 600;

/// For each part of the library: what of `crate::` it may use, and words it must not hold.
const LAYERS: &[(&str, &[&str], &[&str])] = &[
    (
        "message",
        &["message"],
        &["may::", "std::net::Tcp", "httparse", "epoll"],
    ),
    (
        "proto",
        &["message", "proto"],
        &[
            "may::",
            "std::net::Tcp",
            "std::fs",
            "Instant::now",
            "SystemTime",
            "log::",
            "rustls",
            "native_tls",
        ],
    ),
    (
        "net",
        &["message", "net", "proto::pipe"],
        &["httparse", "StatusCode", "RouteEntry"],
    ),
    (
        "server",
        &["message", "proto", "net", "server", "error"],
        &["may::", "crate::app", "crate::services"],
    ),
    (
        "app",
        &["message", "proto::ws", "net::home", "app", "error", "disk"],
        &["may::", "TcpStream", "TcpListener"],
    ),
    (
        "services",
        &["message", "net::home", "services", "error", "disk"],
        &["may::", "TcpStream", "TcpListener"],
    ),
    // A client of other servers, and so the one service that knows bytes and sockets.
    (
        "services/gateway",
        &["message", "net", "proto", "services", "error"],
        &["may::", "TcpStream", "TcpListener"],
    ),
    (
        "test",
        &["message", "proto", "net::home", "server", "error", "test"],
        &["may::", "crate::app", "crate::services"],
    ),
    (
        "disk",
        &["message", "net::home", "disk"],
        &["may::", "StatusCode"],
    ),
    (
        "config",
        &["config", "error", "message::network"],
        &["may::", "std::fs", "TcpListener"],
    ),
    // Assembly: it may use every part of the library, and of nothing else than that.
    (
        "cli",
        &[
            "message", "net", "server", "app", "services", "config", "error", "disk", "run",
            "logger", "cli",
        ],
        &["may::"],
    ),
    (
        "run",
        &[
            "message", "net", "server", "app", "services", "config", "error", "logger", "run",
        ],
        &["may::"],
    ),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust source below `folder`, links and build output left out.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && name != "target" && name != "wip" && name != ".git" {
                folders.push(entry.path());
            } else if kind.is_file()
                && entry
                    .path()
                    .extension()
                    .is_some_and(|ending| ending == "rs")
            {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// A source without its comments, for words in them break no rule.
fn code(text: &str) -> String {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The code before the tests of a file: tests may use other layers to drive their own.
fn code_of_library(path: &Path) -> String {
    let code = code(&read(path));
    let is_test = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs";
    if path.iter().any(is_test) {
        return String::new();
    }
    code.split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or("")
        .to_owned()
}

fn report(broken: &[String]) {
    assert!(
        broken.is_empty(),
        "{} broken rules:\n{}",
        broken.len(),
        broken.join("\n")
    );
}

#[test]
fn each_layer_uses_only_what_lies_below_it() {
    let source = root().join("cloudgate/src");
    let mut broken = Vec::new();
    for (layer, allowed, forbidden) in LAYERS {
        for path in sources(&source.join(layer)) {
            // A row for a folder counts for what is in it, and that of the folder around does not.
            let inner = |other: &str| {
                other.len() > layer.len()
                    && other.starts_with(layer)
                    && path.starts_with(source.join(other))
            };
            if LAYERS.iter().any(|(other, ..)| inner(other)) {
                continue;
            }
            let code = code_of_library(&path);
            for (at, _) in code.match_indices("crate::") {
                let used = &code[at + "crate::".len()..];
                let fits = allowed.iter().any(|part| {
                    used.strip_prefix(part).is_some_and(|rest| {
                        rest.is_empty() || rest.starts_with([':', ';', ' ', ')'])
                    })
                });
                let end = used
                    .find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
                    .unwrap_or(used.len());
                if !fits {
                    broken.push(format!(
                        "{}: crate::{} is not for {layer}",
                        shown(&path),
                        &used[..end]
                    ));
                }
            }
            let home = path.to_string_lossy().contains("net/home/");
            for word in forbidden.iter().filter(|word| code.contains(**word)) {
                broken.push(format!("{}: {word} is not for {layer}", shown(&path)));
            }
            if !home && (code.contains("may::") || code.contains("generator::")) {
                broken.push(format!("{}: only net::home names may", shown(&path)));
            }
        }
    }
    report(&broken);
}

#[test]
fn every_folder_of_the_library_is_a_layer_of_the_table() {
    for entry in fs::read_dir(root().join("cloudgate/src")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            assert!(
                LAYERS.iter().any(|(layer, ..)| *layer == name),
                "{name} is in no row of the table of layers"
            );
        }
    }
}

#[test]
fn files_are_short_and_open_with_their_question() {
    let mut broken = Vec::new();
    for path in sources(root()) {
        // The faulty programs of the compile tests show what users write.
        if path.starts_with(root().join("tests/ui")) {
            continue;
        }
        let text = read(&path);
        let lines = text.lines().count();
        if lines > MOST_LINES {
            broken.push(format!(
                "{}: {lines} lines, more than {MOST_LINES}",
                shown(&path)
            ));
        }
        if !text.starts_with("//! ") && !path.ends_with("build.rs") {
            broken.push(format!(
                "{}: does not open with //! and its question",
                shown(&path)
            ));
        }
    }
    report(&broken);
}

#[test]
fn coroutines_are_never_stopped_by_a_thread_that_waits() {
    // Threads of their own may sleep and wait; these files run on them, or say where they do not.
    let on_threads = [
        "net/home/timer.rs",
        "net/home/blocking.rs",
        "net/deadline.rs",
        "net/park.rs",
        "disk/content.rs",
        "disk/watch.rs",
        "run/mod.rs",
        "run/gateway/mod.rs",
        "net/resolve.rs",
        "services/gateway/keeper.rs",
        "net/tls/keeper.rs",
        "net/tls/issue.rs",
        "cli/cert/show.rs",
        "services/access_log/writer.rs",
        "cli/compress/memory.rs",
    ];
    let mut broken = Vec::new();
    for path in sources(&root().join("cloudgate/src")) {
        let name = shown(&path);
        if on_threads.iter().any(|file| name.ends_with(file)) {
            continue;
        }
        let code = code_of_library(&path);
        for word in [
            "thread::sleep",
            "std::sync::mpsc",
            "thread_local!",
            "to_socket_addrs",
            "Condvar",
        ] {
            let allowed = match name.as_str() {
                "cloudgate/src/net/home/mod.rs" => word == "thread_local!",
                // Binding happens once on the thread of main, and shutting down waits on a plain thread.
                "cloudgate/src/server/mod.rs" => {
                    word == "to_socket_addrs" || word == "thread::sleep"
                }
                "cloudgate/src/proto/pipe.rs" => word == "Condvar",
                _ => false,
            };
            if code.contains(word) && !allowed {
                broken.push(format!("{name}: {word} would stop a whole worker"));
            }
        }
    }
    report(&broken);
}

#[test]
fn unsafe_code_is_forbidden_everywhere() {
    let manifest = read(&root().join("Cargo.toml"));
    assert!(manifest.contains("unsafe_code = \"forbid\""));
    for package in ["cloudgate", "cloudgate-macros", "create-app"] {
        let manifest = read(&root().join(package).join("Cargo.toml"));
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{package} does not take the workspace's lints"
        );
    }
}
