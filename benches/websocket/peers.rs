//! How are the servers started that are not written in Rust?

use std::env;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::child::Running;
use crate::harness::folder::Folder;

/// Says where the packages are, for a benchmark installs nothing by itself.
const PLACE: &str = "WS_NODE_MODULES";

/// What a reader of the table has to know about these rows.
pub(crate) const WS_NOTE: &str = "ws: one thread of Node.js; for compression the settings that its documentation proposes, with threshold 0.";
pub(crate) const BUN_NOTE: &str =
    "bun: its server is uWebSockets, called from JavaScript on one thread.";

pub(crate) fn start_ws(folder: &Folder, compressed: bool) -> Result<Running, String> {
    let modules = package("ws")?;
    version("node", &["--version"]).ok_or("node is not installed: apt-get install nodejs")?;
    let script = folder.write("ws.js", include_bytes!("peers/ws.js"))?;
    start(folder, |port| {
        vec![
            "node".to_owned(),
            shown(&script),
            port,
            shown(&modules),
            coding(compressed),
        ]
    })
}

pub(crate) fn start_bun(folder: &Folder, compressed: bool) -> Result<Running, String> {
    let program = package("bun")?.join(BUN);
    let script = folder.write("bun.js", include_bytes!("peers/bun.js"))?;
    start(folder, |port| {
        vec![shown(&program), shown(&script), port, coding(compressed)]
    })
}

/// The program itself, whose name is the same on all systems.
const BUN: &str = "bun/bin/bun.exe";

/// What the packages call themselves, for the line about the machine.
pub(crate) fn versions() -> String {
    let ws = package("ws").ok().and_then(|modules| {
        let text = std::fs::read_to_string(modules.join("ws/package.json")).ok()?;
        let package: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(format!(
            "ws {} on node {}",
            package["version"].as_str()?,
            version("node", &["--version"])?
        ))
    });
    let bun = package("bun").ok().and_then(|modules| {
        let program = shown(&modules.join(BUN));
        Some(format!("bun {}", version(&program, &["--version"])?))
    });
    let missing = |name: &str| format!("no {name}");
    format!(
        "{}; {}",
        ws.unwrap_or_else(|| missing("ws")),
        bun.unwrap_or_else(|| missing("bun"))
    )
}

fn version(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The folder `node_modules` that has this package.
fn package(name: &str) -> Result<PathBuf, String> {
    let missing = || {
        format!("not installed: npm install {name}, and {PLACE}=…/node_modules for this benchmark")
    };
    let modules = env::var_os(PLACE).map(PathBuf::from).ok_or_else(missing)?;
    let modules = modules
        .canonicalize()
        .map_err(|error| format!("{PLACE} is {}: {error}", modules.display()))?;
    if modules.join(name).is_dir() {
        Ok(modules)
    } else {
        Err(missing())
    }
}

fn coding(compressed: bool) -> String {
    if compressed { "deflate" } else { "plain" }.to_owned()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Starts a program with a free port.
fn start(folder: &Folder, program: impl Fn(String) -> Vec<String>) -> Result<Running, String> {
    let once = || {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(|error| format!("no free port: {error}"))?
            .port();
        Running::start_guarded(&program(port.to_string()), port, folder.path())
    };
    // Another process may take the free port before this one does.
    once().or_else(|_| once())
}
