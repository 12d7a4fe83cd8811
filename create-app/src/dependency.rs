//! Where does the new app take cloudgate from?

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::failure::Failure;

pub(crate) enum Dependency {
    /// The folder of the crate.
    Path(String),
    /// The release that this generator belongs to.
    Version(&'static str),
}

impl Dependency {
    /// What was asked for, else the checkout that this program was built from, else the release.
    pub(crate) fn choose(asked: Option<&Path>) -> Result<Dependency, Failure> {
        let Some(asked) = asked else {
            let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cloudgate");
            return match crate_folder(&beside) {
                Some(folder) => Dependency::path(&folder),
                None => Ok(Dependency::Version(env!("CARGO_PKG_VERSION"))),
            };
        };
        // The root of a checkout is meant as well as the crate in it.
        let folder = crate_folder(asked)
            .or_else(|| crate_folder(&asked.join("cloudgate")))
            .ok_or_else(|| {
                Failure::usage(format!(
                    "--path-dep: {} holds no Cargo.toml of the package cloudgate",
                    asked.display()
                ))
            })?;
        Dependency::path(&folder)
    }

    fn path(folder: &Path) -> Result<Dependency, Failure> {
        let folder = folder
            .canonicalize()
            .map_err(|error| Failure::io("find", folder, error))?;
        match folder.into_os_string().into_string() {
            Ok(text) => Ok(Dependency::Path(text)),
            Err(name) => Err(Failure::could_not(format!(
                "Cargo.toml cannot hold the path {}: it is not UTF-8",
                name.to_string_lossy()
            ))),
        }
    }

    /// As it stands between the braces of `cloudgate = { … }`.
    pub(crate) fn toml(&self) -> String {
        match self {
            Dependency::Path(folder) => format!("path = {}", toml_string(folder)),
            Dependency::Version(version) => format!("version = {}", toml_string(version)),
        }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Dependency::Path(folder) => json!({ "path": folder }),
            Dependency::Version(version) => json!({ "version": version }),
        }
    }
}

fn crate_folder(folder: &Path) -> Option<PathBuf> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
    is_cloudgate(&manifest).then(|| folder.to_owned())
}

fn is_cloudgate(manifest: &str) -> bool {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[package]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .any(|(key, value)| {
            key.trim() == "name" && value.trim().trim_matches(['"', '\'']) == "cloudgate"
        })
}

fn toml_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crate_is_known_by_its_package_name() {
        assert!(is_cloudgate("# c\n[package]\nname = \"cloudgate\"\n"));
        assert!(!is_cloudgate(
            "[package]\nname = \"other\"\n[[bin]]\nname = \"cloudgate\"\n"
        ));
        assert!(!is_cloudgate("[workspace]\nname = \"cloudgate\"\n"));
    }

    #[test]
    fn any_path_is_written_so_that_toml_reads_it_back() {
        let odd = "/a b/\"q\"\\\n{{x}}/é";
        assert_eq!(toml_string(odd), "\"/a b/\\\"q\\\"\\\\\\u000A{{x}}/é\"");
    }
}
