//! Where do browsers and other programs on this machine look for whom to trust?

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cli::say;

/// Where Debian and those like it take more authorities from.
const DEBIAN: &str = "/usr/local/share/ca-certificates";

/// Where Fedora and those like it do.
const FEDORA: &str = "/etc/pki/ca-trust/source/anchors";

const WANTS_ROOT: &str = "it is the system's, and wants root";

/// How often one certificate after another of the same name is taken out of a store: an authority that was made anew has
/// the name of the one before.
const MOST_REMOVED: usize = 16;

/// What the file is called there.
const FILE: &str = "cloudgate-local-ca.crt";

/// What is to be done in one place, as a person could do it.
#[derive(Debug)]
pub(super) struct Step {
    /// What the place is called.
    pub(super) place: String,
    /// Each a program and its arguments.
    pub(super) commands: Vec<Vec<String>>,
    /// Why it is left to the person, if it is.
    pub(super) left: Option<String>,
}

/// What the authority is, and whether it comes or goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change<'c> {
    /// The file of its certificate.
    pub(super) certificate: &'c Path,
    /// What it is called in browsers.
    pub(super) name: &'c str,
    pub(super) remove: bool,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A program in the search path.
fn finds(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The databases of Chromium and Firefox of the user with this home.
fn databases(home: &Path) -> Vec<PathBuf> {
    let mut found = vec![home.join(".pki/nssdb")];
    found.push(home.join("snap/chromium/current/.pki/nssdb"));
    for firefox in [
        ".mozilla/firefox",
        "snap/firefox/common/.mozilla/firefox",
        ".config/mozilla/firefox",
        ".var/app/org.mozilla.firefox/.mozilla/firefox",
    ] {
        let profiles = fs::read_dir(home.join(firefox)).into_iter().flatten();
        found.extend(profiles.flatten().map(|profile| profile.path()));
    }
    found.retain(|folder| folder.join("cert9.db").is_file());
    found.sort();
    found
}

/// What browsers of the user with this home need.
pub(super) fn browsers(home: &Path, change: Change<'_>) -> Vec<Step> {
    let mut folders = databases(home);
    let usual = home.join(".pki/nssdb");
    let make = !change.remove && !folders.contains(&usual);
    if make {
        folders.insert(0, usual.clone());
    }
    let has_certutil = finds("certutil");
    let certificate = change.certificate.display().to_string();
    let steps = folders.into_iter().map(|folder| {
        let database = format!("sql:{}", folder.display());
        let mut commands = Vec::new();
        if make && folder == usual {
            commands.push(words(&["mkdir", "-p", &folder.display().to_string()]));
            commands.push(words(&["certutil", "-N", "--empty-password", "-d", &database]));
        }
        commands.push(match change.remove {
            true => words(&["certutil", "-D", "-d", &database, "-n", change.name]),
            false => words(&[
                "certutil", "-A", "-d", &database, "-t", "C,,", "-n", change.name, "-i",
                &certificate,
            ]),
        });
        Step {
            place: format!("the browser's store in {}", say::path(&folder)),
            commands,
            left: (!has_certutil).then(|| {
                "certutil is missing: it is in the package libnss3-tools (Debian) or nss-tools (Fedora)"
                    .to_owned()
            }),
        }
    });
    steps.collect()
}

/// What curl and most other programs need.
pub(super) fn system(change: Change<'_>) -> Step {
    let certificate = change.certificate.display().to_string();
    if cfg!(target_os = "macos") {
        let command = match change.remove {
            true => words(&["security", "remove-trusted-cert", "-d", &certificate]),
            false => words(&[
                "security",
                "add-trusted-cert",
                "-d",
                "-r",
                "trustRoot",
                &certificate,
            ]),
        };
        return Step {
            place: "the keychain of the system".to_owned(),
            commands: vec![command],
            left: Some("it asks for a password".to_owned()),
        };
    }
    if !Path::new(FEDORA).is_dir() && !Path::new(DEBIAN).is_dir() && finds("trust") {
        // Arch and openSUSE, by p11-kit.
        let what = if change.remove { "--remove" } else { "--store" };
        return Step {
            place: "the system's store, by p11-kit".to_owned(),
            commands: vec![words(&["trust", "anchor", what, &certificate])],
            left: (!rustix::process::geteuid().is_root()).then(|| WANTS_ROOT.to_owned()),
        };
    }
    let (folder, update) = match Path::new(FEDORA).is_dir() {
        true => (FEDORA, "update-ca-trust"),
        false => (DEBIAN, "update-ca-certificates"),
    };
    let file = format!("{folder}/{FILE}");
    let commands = match change.remove {
        true => vec![words(&["rm", "-f", &file]), words(&[update, "--fresh"])],
        false => vec![
            words(&["install", "-m", "644", &certificate, &file]),
            words(&[update]),
        ],
    };
    let left = if !Path::new(folder).is_dir() {
        Some(format!(
            "{folder} is missing: install the package ca-certificates"
        ))
    } else if !rustix::process::geteuid().is_root() {
        Some(WANTS_ROOT.to_owned())
    } else {
        None
    };
    Step {
        place: format!("the system's store in {folder}"),
        commands,
        left,
    }
}

/// Runs one command; says why it failed.
fn execute(command: &[String]) -> Result<(), String> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(());
    };
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} says: {}", errors.trim()))
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    Done,
    /// It was not there to be taken away.
    Absent,
}

/// Does all that one step needs.
pub(super) fn perform(step: &Step, change: Change<'_>) -> Result<Done, String> {
    for command in &step.commands {
        if change.remove && command.first().is_some_and(|word| word == "certutil") {
            return remove_all(command);
        }
        execute(command)?;
    }
    Ok(Done::Done)
}

fn remove_all(command: &[String]) -> Result<Done, String> {
    for removed in 0..MOST_REMOVED {
        match execute(command) {
            Ok(()) => {}
            Err(error) if error.contains("could not find cert") => {
                return Ok(if removed == 0 {
                    Done::Absent
                } else {
                    Done::Done
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Done::Done)
}

/// A command as it can be copied into a shell.
pub(super) fn shell(command: &[String], root: bool) -> String {
    let quoted = command.iter().map(|word| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,@=%+".contains(&byte);
        if !word.is_empty() && word.bytes().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    let sudo = root.then(|| "sudo".to_owned());
    sudo.into_iter().chain(quoted).collect::<Vec<_>>().join(" ")
}

/// The home of the user.
pub(super) fn home() -> Option<PathBuf> {
    env::var_os("HOME")
        .filter(|home| home != OsStr::new(""))
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_copied_into_a_shell() {
        let command = words(&["certutil", "-n", "it's mine", "", "sql:/a-b_c"]);
        assert_eq!(
            shell(&command, false),
            "certutil -n 'it'\\''s mine' '' sql:/a-b_c"
        );
        assert!(shell(&command, true).starts_with("sudo certutil"));
    }

    #[test]
    fn databases_are_found_where_browsers_have_them() {
        let home = tempfile::tempdir().unwrap();
        let change = Change {
            certificate: Path::new("/ca.pem"),
            name: "CA",
            remove: false,
        };
        let places = |change| {
            let steps = browsers(home.path(), change);
            let commands = steps.iter().map(|step| step.commands.len());
            commands.collect::<Vec<_>>()
        };
        // The usual one is made, and taken from only where it is.
        assert_eq!(places(change), [3]);
        let gone = Change {
            remove: true,
            ..change
        };
        assert_eq!(places(gone), [0; 0]);
        for folder in [
            ".pki/nssdb",
            ".mozilla/firefox/abc.default",
            ".mozilla/firefox/empty",
        ] {
            fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        for folder in [".pki/nssdb", ".mozilla/firefox/abc.default"] {
            fs::write(home.path().join(folder).join("cert9.db"), "").unwrap();
        }
        assert_eq!(places(change), [1, 1]);
        assert_eq!(places(gone), [1, 1]);
    }
}
