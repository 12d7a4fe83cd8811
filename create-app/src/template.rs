//! Which templates are in the binary, and which files do they make?

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use serde_json::json;

pub(crate) const NAMES: [&str; 1] = [DEFAULT];
pub(crate) const DEFAULT: &str = "full";
const ABOUT: &str =
    "static files, API routes with shared state, a server-side page, tests, Dockerfile";

static FULL: Dir<'_> = include_dir!("$OUT_DIR/template");

pub(crate) fn list(as_json: bool) -> String {
    if as_json {
        return format!("{:#}", json!([{ "name": DEFAULT, "about": ABOUT }]));
    }
    format!("{DEFAULT}   {ABOUT}")
}

/// The files of the finished app, relative to its folder, sorted.
pub(crate) fn files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(&FULL, &mut files);
    files.sort();
    files
}

/// Writes the template as it is, placeholders and all.
pub(crate) fn unpack(into: &Path) -> io::Result<()> {
    fs::create_dir(into)?;
    FULL.extract(into)
}

fn collect(folder: &Dir<'_>, files: &mut Vec<PathBuf>) {
    for file in folder.files() {
        // cargo-generate keeps its own file to itself and drops the ending .liquid.
        match file.path().to_str() {
            Some("cargo-generate.toml") => {}
            Some(path) => files.push(path.strip_suffix(".liquid").unwrap_or(path).into()),
            None => files.push(file.path().to_owned()),
        }
    }
    for inner in folder.dirs() {
        collect(inner, files);
    }
}
