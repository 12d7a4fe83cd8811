//! Which folder is meant, and what is there already?

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::name::Name;

/// Where the app goes.
pub(crate) struct Target {
    /// Absolute.
    pub(crate) folder: PathBuf,
    /// As it was typed, for commands that are printed.
    pub(crate) typed: PathBuf,
    pub(crate) name: Name,
    pub(crate) exists: bool,
}

impl Target {
    /// Finds the folder that `typed` means and its package name. Reads, never writes.
    pub(crate) fn resolve(typed: &Path) -> Result<Target, Failure> {
        let folder = absolute(typed)?;
        let Some(last) = folder.file_name() else {
            return Err(Failure::usage(format!(
                "{} is the root of the disk, not a folder for an app",
                folder.display()
            )));
        };
        let name = Name::new(&last.to_string_lossy()).map_err(|bad| {
            Failure::usage(format!(
                "{:?} is no name for an app: {}",
                last.to_string_lossy(),
                bad.rule
            ))
            .with_advice(format!(
                "create-cloudgate-app {}",
                advised(typed, &bad.suggestion)
            ))
        })?;
        let exists = match fs::symlink_metadata(&folder) {
            Ok(there) if there.is_dir() => true,
            Ok(there) if there.is_symlink() => {
                return Err(Failure::could_not(format!(
                    "{} is a symbolic link; give the folder that it points to, or another name",
                    folder.display()
                )));
            }
            Ok(_) => {
                return Err(Failure::could_not(format!(
                    "{} is a file; remove it or choose another name",
                    folder.display()
                )));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(Failure::io("look at", &folder, error)),
        };
        Ok(Target {
            folder,
            typed: typed.to_owned(),
            name,
            exists,
        })
    }

    /// Whether the app goes into the folder that the shell is in.
    pub(crate) fn is_here(&self) -> bool {
        std::env::current_dir().is_ok_and(|here| here == self.folder)
    }
}

fn absolute(typed: &Path) -> Result<PathBuf, Failure> {
    let path = std::path::absolute(typed).map_err(|error| Failure::io("find", typed, error))?;
    if path.ends_with("..") {
        return fs::canonicalize(&path).map_err(|error| Failure::io("find", typed, error));
    }
    // Without this, `link/` would be looked at as the folder behind the link.
    Ok(path.components().collect())
}

/// The typed path with a better last part, ready to paste into a shell.
fn advised(typed: &Path, suggestion: &str) -> String {
    let path = match (typed.file_name(), typed.parent()) {
        (Some(_), Some(parent)) => parent.join(suggestion),
        _ => PathBuf::from(suggestion),
    };
    crate::next_steps::quoted(&path)
}
