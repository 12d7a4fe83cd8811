//! How do the files reach their place: all of them, or none?
//!
//! A new folder is made under another name beside its place and renamed when it is complete. In a
//! folder that exists, each step is noted, and undone in reverse if a later one fails or Ctrl-C comes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::expand::Expanded;
use crate::failure::Failure;
use crate::git::{self, Repository, Wish};
use crate::interrupt::Interrupt;
use crate::plan::{Placement, Plan};
use crate::target::Target;

pub(crate) fn stamp(
    expanded: &Expanded,
    target: &Target,
    plan: &Plan,
    git: Wish,
    interrupt: &Interrupt,
) -> Result<Repository, Failure> {
    let mut undo = Undo::default();
    let repository = if target.exists {
        fill(expanded, &target.folder, plan, git, interrupt, &mut undo)?
    } else {
        create(expanded, &target.folder, plan, git, interrupt, &mut undo)?
    };
    undo.steps.clear();
    Ok(repository)
}

fn create(
    expanded: &Expanded,
    folder: &Path,
    plan: &Plan,
    git: Wish,
    interrupt: &Interrupt,
    undo: &mut Undo,
) -> Result<Repository, Failure> {
    let parent = folder.parent().unwrap_or(folder);
    undo.create_folders(parent)
        .map_err(|error| Failure::io("make the folder", parent, error))?;
    let beside = tempfile::Builder::new()
        .prefix(".create-cloudgate-app-")
        .tempdir_in(parent)
        .map_err(|error| Failure::io("make a folder in", parent, error))?;
    // The folder made by tempfile is for its owner alone; the one in it has the usual rights.
    let growing = beside.path().join("app");
    fs::create_dir(&growing).map_err(|error| Failure::io("make the folder", &growing, error))?;
    let repository = fill(expanded, &growing, plan, git, interrupt, undo)?;
    interrupt.check()?;
    fs::rename(&growing, folder).map_err(|error| Failure::io("make the folder", folder, error))?;
    Ok(repository)
}

fn fill(
    expanded: &Expanded,
    folder: &Path,
    plan: &Plan,
    git: Wish,
    interrupt: &Interrupt,
    undo: &mut Undo,
) -> Result<Repository, Failure> {
    for placement in &plan.writes {
        interrupt.check()?;
        let to = folder.join(&placement.to);
        place(&expanded.folder.join(&placement.from), &to, placement, undo)
            .map_err(|error| Failure::io("write", &to, error))?;
    }
    let written: Vec<&Path> = plan
        .writes
        .iter()
        .map(|placement| placement.to.as_path())
        .collect();
    let repository = git::start(folder, &written, git, interrupt, |made| {
        undo.steps.push(Step::Tree(made));
    })?;
    interrupt.check()?;
    Ok(repository)
}

fn place(from: &Path, to: &Path, placement: &Placement, undo: &mut Undo) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        undo.create_folders(parent)?;
    }
    if !placement.replaces {
        undo.steps.push(Step::File(to.to_owned()));
        return fs::copy(from, to).map(drop);
    }
    // Written beside and renamed: the old file is whole until the new one is.
    let old = fs::read(to)?;
    let rights = fs::metadata(to)?.permissions();
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let fresh = to.with_file_name(format!(".{name}.create-cloudgate-app"));
    undo.steps.push(Step::File(fresh.clone()));
    fs::copy(from, &fresh)?;
    fs::set_permissions(&fresh, rights)?;
    undo.steps.push(Step::Content(to.to_owned(), old));
    fs::rename(&fresh, to)
}

/// What was done so far, to be undone when this is dropped.
#[derive(Default)]
struct Undo {
    steps: Vec<Step>,
}

enum Step {
    File(PathBuf),
    Folder(PathBuf),
    Tree(PathBuf),
    Content(PathBuf, Vec<u8>),
}

impl Undo {
    /// Makes a folder and those above it, and remembers the ones that were not there.
    fn create_folders(&mut self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        if let Some(parent) = folder.parent() {
            self.create_folders(parent)?;
        }
        fs::create_dir(folder)?;
        self.steps.push(Step::Folder(folder.to_owned()));
        Ok(())
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        // Nothing more can be done about a step that cannot be undone: the failure that led here is
        // what the user needs to read.
        for step in self.steps.drain(..).rev() {
            let _ = match step {
                Step::File(path) => fs::remove_file(path),
                Step::Folder(path) => fs::remove_dir(path),
                Step::Tree(path) => fs::remove_dir_all(path),
                Step::Content(path, old) => fs::write(path, old),
            };
        }
    }
}
