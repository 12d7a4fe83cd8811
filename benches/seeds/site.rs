//! Which files do all servers serve?

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::harness::folder::Folder;

/// A temporary copy of the template's files, as the generator would have written them.
pub(crate) struct Site {
    folder: Folder,
    html: Vec<u8>,
    png: Vec<u8>,
    png_target: String,
}

const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/template");

/// What the generator replaces, and by what for `create-cloudgate-app my-app-1`.
const PLACEHOLDER: &str = "{{project-name}}";
const NAME: &str = "my-app-1";

impl Site {
    pub(crate) fn lay_out() -> Result<Self, String> {
        let own = Folder::fresh()?;
        let dir = own.path();
        for folder in ["public", "templates"] {
            let from = Path::new(TEMPLATE).join(folder);
            if from.is_dir() {
                copy(&from, &dir.join(folder)).map_err(|error| {
                    format!(
                        "cannot copy {} to {}: {error}",
                        from.display(),
                        dir.display()
                    )
                })?;
            }
        }
        let read = |path: &Path| {
            fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let public = dir.join("public");
        let html = read(&public.join("index.html"))?;
        let picture = largest_png(&public).ok_or_else(|| {
            format!("there is no .png below {TEMPLATE}/public; the png case needs one")
        })?;
        let png = read(&picture)?;
        let name = picture.strip_prefix(&public).unwrap_or(&picture);
        let png_target = format!("/{}", name.display());
        Ok(Self {
            html,
            png,
            png_target,
            folder: own,
        })
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(crate) fn dir(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn public(&self) -> PathBuf {
        self.dir().join("public")
    }

    pub(crate) fn html(&self) -> &[u8] {
        &self.html
    }

    pub(crate) fn png(&self) -> &[u8] {
        &self.png
    }

    pub(crate) fn png_target(&self) -> &str {
        &self.png_target
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        self.folder.write(name, bytes)
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::File::create(&target)?.write_all(&filled_in(fs::read(entry.path())?))?;
        }
    }
    Ok(())
}

fn filled_in(bytes: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) => text.replace(PLACEHOLDER, NAME).into_bytes(),
        Err(binary) => binary.into_bytes(),
    }
}

fn largest_png(dir: &Path) -> Option<PathBuf> {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "png") {
                found.push((entry.metadata().map_or(0, |metadata| metadata.len()), path));
            }
        }
    }
    found.into_iter().max().map(|(_, path)| path)
}
