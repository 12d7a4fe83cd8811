//! Which file goes where, and which files of the user stay?
//!
//! Decided before anything is written, by looking only.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::next_steps::quoted;
use crate::target::Target;

/// What to do when the folder has files already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Only into a folder without anything of weight in it.
    Careful,
    /// Write what is missing, keep what is there.
    Merge,
    /// Overwrite files of the same name.
    Force,
}

/// One file to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Its path in the template.
    pub(crate) from: PathBuf,
    /// Its path in the app.
    pub(crate) to: PathBuf,
    pub(crate) replaces: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) writes: Vec<Placement>,
    /// Files of the template that are not written, because the user has them.
    pub(crate) kept: Vec<PathBuf>,
}

/// How many conflicts are named.
const LISTED: usize = 10;

impl Plan {
    pub(crate) fn new(target: &Target, files: &[PathBuf], mode: Mode) -> Result<Plan, Failure> {
        if target.exists && mode == Mode::Careful {
            refuse_a_full_folder(target)?;
        }
        let mut plan = Plan::default();
        for file in files {
            let taken = target.exists && is_taken(&target.folder, file, mode)?;
            let own_name = Placement {
                from: file.clone(),
                to: file.clone(),
                replaces: taken,
            };
            match mode {
                _ if !taken => plan.writes.push(own_name),
                Mode::Force => plan.writes.push(own_name),
                Mode::Careful if file == Path::new("README.md") => {
                    plan.add_beside(&target.folder, file)?;
                }
                Mode::Careful | Mode::Merge => plan.kept.push(file.clone()),
            }
        }
        Ok(plan)
    }

    /// The user's README stays; ours stands beside it.
    fn add_beside(&mut self, folder: &Path, readme: &Path) -> Result<(), Failure> {
        let beside = PathBuf::from("README.cloudgate.md");
        self.kept.push(readme.to_owned());
        if is_taken(folder, &beside, Mode::Careful)? {
            self.kept.push(beside);
        } else {
            self.writes.push(Placement {
                from: readme.to_owned(),
                to: beside,
                replaces: false,
            });
        }
        Ok(())
    }
}

fn refuse_a_full_folder(target: &Target) -> Result<(), Failure> {
    let folder = &target.folder;
    let unreadable = |error| Failure::io("look into", folder, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_harmless(&name) {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        found.push(if is_folder { format!("{name}/") } else { name });
    }
    if found.is_empty() {
        return Ok(());
    }
    found.sort();
    let mut list: String = found
        .iter()
        .take(LISTED)
        .map(|name| format!("\n  {name}"))
        .collect();
    if found.len() > LISTED {
        list.push_str(&format!("\n  … and {} more", found.len() - LISTED));
    }
    Err(Failure::could_not(format!(
        "{} is not empty, it holds{list}\n\
         --merge writes only the files that are missing; \
         --force overwrites files of the same name and deletes nothing else",
        folder.display()
    ))
    .with_advice(format!(
        "create-cloudgate-app {} --merge",
        quoted(&target.typed)
    )))
}

/// What a fresh repository holds before there is an app in it.
fn is_harmless(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), ".git" | ".gitignore" | ".github")
        || name.starts_with("license")
        || name.starts_with("readme")
}

/// Whether `file` is there already. Refuses whatever would lead out of the folder or hide a folder.
fn is_taken(folder: &Path, file: &Path, mode: Mode) -> Result<bool, Failure> {
    let mut path = folder.to_owned();
    let mut parts = file.components().peekable();
    while let Some(part) = parts.next() {
        path.push(part);
        let is_last = parts.peek().is_none();
        let there = match fs::symlink_metadata(&path) {
            Ok(there) => there,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Failure::io("look at", &path, error)),
        };
        let fits = if is_last {
            mode != Mode::Force || there.is_file()
        } else {
            there.is_dir()
        };
        if !fits {
            let kind = if there.is_symlink() {
                "a symbolic link"
            } else if there.is_dir() {
                "a folder"
            } else {
                "a file"
            };
            let wanted = if is_last { "file" } else { "folder" };
            return Err(Failure::could_not(format!(
                "{} is {kind}, and the app needs a {wanted} of that name; move it away first",
                path.display()
            )));
        }
    }
    Ok(true)
}
