//! Which templates does a folder hold, and are they still what they were?

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest template, in bytes.
pub(super) const LARGEST: u64 = 1 << 20;

/// The most templates.
pub(super) const MOST: usize = 4096;

/// How many folders are in each other.
pub(super) const DEEPEST: usize = 32;

/// The templates of a folder by their names, which are paths with `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents(BTreeMap<String, String>);

impl Contents {
    /// Reads a folder.
    ///
    /// # Errors
    /// The path that could not be read, and why.
    pub(super) fn of(folder: &Path) -> Result<Contents, (PathBuf, io::Error)> {
        let mut contents = Contents::default();
        contents.add(folder, "", DEEPEST)?;
        Ok(contents)
    }

    /// Name and text of each template.
    pub(super) fn templates(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    fn add(
        &mut self,
        folder: &Path,
        before: &str,
        levels: usize,
    ) -> Result<(), (PathBuf, io::Error)> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| (path, error)
        };
        let too_much = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
        for entry in fs::read_dir(folder).map_err(at(folder))? {
            let path = entry.map_err(at(folder))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                let error = too_much("the name of a template is UTF-8".to_owned());
                return Err((path, error));
            };
            // Editors keep copies and locks there.
            if name.starts_with(['.', '#']) || name.ends_with('~') {
                continue;
            }
            let name = format!("{before}{name}");
            let metadata = match fs::metadata(&path) {
                // It went while the folder was read, or is a link to nothing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata.map_err(at(&path))?,
            };
            if metadata.is_dir() {
                if levels == 1 {
                    let text = format!("folders of templates are at most {DEEPEST} deep");
                    return Err((path, too_much(text)));
                }
                self.add(&path, &format!("{name}/"), levels - 1)?;
            } else if metadata.is_file() {
                if self.0.len() == MOST {
                    let text = format!("there are at most {MOST} templates");
                    return Err((path, too_much(text)));
                }
                let text = read(&path).map_err(at(&path))?;
                self.0.insert(name, text);
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)?;
    let wrong = |text| io::Error::new(io::ErrorKind::InvalidData, text);
    if bytes.len() as u64 > LARGEST {
        return Err(wrong("a template has at most 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| wrong("a template is UTF-8 text"))
}
