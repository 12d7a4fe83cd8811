//! Which files of the template go into the binary?
//!
//! All of `template/` but what a build or an editor left there. `template` in this folder is a link
//! to the one at the top, because `cargo package` takes no file from outside the package; where a
//! checkout could not make the link, the top folder itself is read.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let template = [here.join("template"), here.join("../template")]
        .into_iter()
        .find(|folder| folder.is_dir())
        .ok_or_else(|| io::Error::other("no folder `template` beside the package"))?;

    let copy = out.join("template");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    copy_folder(&template.canonicalize()?, &copy)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", from.display());
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let target = to.join(&name);
        if is_litter(&name.to_string_lossy()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            println!("cargo::rerun-if-changed={}", entry.path().display());
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn is_litter(name: &str) -> bool {
    matches!(name, "target" | ".git" | ".DS_Store" | "Cargo.lock")
        || name.ends_with('~')
        || name.ends_with(".swp")
}
