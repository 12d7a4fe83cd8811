//! Which modules do the files below a folder make, and which of them cannot be one?

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::Ident;
use syn::Item;
use syn::ext::IdentExt;

pub(crate) const MAX_DEPTH: usize = 16;

/// A folder that holds at least one module, itself or further down.
#[derive(Default)]
pub(crate) struct Folder {
    /// By the module's name without `r#`, which is the file's name without `.rs` too.
    pub(crate) modules: BTreeMap<String, Module>,
    /// `mod.rs`.
    pub(crate) has_own_file: bool,
}

pub(crate) struct Module {
    pub(crate) name: Ident,
    /// `name.rs` is there.
    pub(crate) file: bool,
    /// `name/` is there.
    pub(crate) folder: Option<Folder>,
}

impl Folder {
    /// `shown` is the path as the user writes it, from the package on. Beside the problems stands all that is without one.
    pub(crate) fn read(path: &Path, shown: &Path) -> (Self, Vec<String>) {
        let mut reader = Reader {
            root: PathBuf::new(),
            open: Vec::new(),
            problems: Vec::new(),
        };
        let root = reader.read_root(path, shown).unwrap_or_else(|problem| {
            reader.problems.push(problem);
            Self::default()
        });
        (root, reader.problems)
    }

    fn is_empty(&self) -> bool {
        self.modules.is_empty() && !self.has_own_file
    }
}

struct Reader {
    /// Resolved: no link may lead out of it.
    root: PathBuf,
    /// The folders from the root to the current one, resolved: no link may lead back to one of them.
    open: Vec<PathBuf>,
    problems: Vec<String>,
}

impl Reader {
    fn read_root(&mut self, path: &Path, shown: &Path) -> Result<Folder, String> {
        let looked_at = || format!("modules! looked for the folder {}", path.display());
        self.root = fs::canonicalize(path)
            .map_err(|error| format!("{}: {error}; create it, or correct the name", looked_at()))?;
        if !self.root.is_dir() {
            return Err(format!("{}, and it is a file", looked_at()));
        }
        for own in ["main.rs", "lib.rs"] {
            if path.join(own).is_file() {
                return Err(format!(
                    "{} is the crate's own source folder, which holds {own}: make a folder for the modules alone, such as \"api\"",
                    shown.display()
                ));
            }
        }
        let root = self.read_folder(path, shown);
        if root.is_empty() && self.problems.is_empty() {
            return Err(format!(
                "the folder {} holds no .rs file: add one, such as {}/hello.rs",
                path.display(),
                shown.display()
            ));
        }
        Ok(root)
    }

    fn read_folder(&mut self, path: &Path, shown: &Path) -> Folder {
        let mut folder = Folder::default();
        if self.open.len() > MAX_DEPTH {
            self.problems.push(format!(
                "{} is nested more than {MAX_DEPTH} folders deep: move it further up",
                shown.display()
            ));
            return folder;
        }
        let entries = fs::canonicalize(path).and_then(|resolved| {
            self.open.push(resolved);
            fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()
        });
        match entries {
            Ok(mut entries) => {
                entries.sort_by_key(fs::DirEntry::file_name);
                for entry in &entries {
                    self.read_entry(entry, shown, &mut folder);
                }
            }
            Err(error) => self
                .problems
                .push(format!("{} cannot be read: {error}", path.display())),
        }
        self.open.pop();
        self.check_own_files(path, shown, &folder);
        folder
    }

    fn read_entry(&mut self, entry: &fs::DirEntry, parent: &Path, folder: &mut Folder) {
        let file_name = entry.file_name();
        let shown = parent.join(&file_name);
        let text = file_name.to_string_lossy();
        if text.starts_with('.') {
            return;
        }
        let path = entry.path();
        let is_folder = path.is_dir();
        let stem = if is_folder {
            Some(&*text)
        } else {
            text.strip_suffix(".rs")
        };
        let Some(stem) = stem else { return };
        if let Err(problem) = self.check_link(entry, &path, &shown) {
            self.problems.push(problem);
            return;
        }
        if stem == "mod" && !is_folder {
            folder.has_own_file = true;
            return;
        }
        let inner = if is_folder {
            let inner = self.read_folder(&path, &shown);
            if inner.is_empty() {
                return;
            }
            Some(inner)
        } else {
            None
        };
        let Some(name) = module_name(stem) else {
            self.problems.push(bad_name(
                &shown.display().to_string(),
                stem,
                if is_folder { "" } else { ".rs" },
            ));
            return;
        };
        let module = folder.modules.entry(stem.to_owned()).or_insert(Module {
            name,
            file: false,
            folder: None,
        });
        match inner {
            Some(inner) => module.folder = Some(inner),
            None => module.file = true,
        }
    }

    fn check_link(&self, entry: &fs::DirEntry, path: &Path, shown: &Path) -> Result<(), String> {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if !is_link {
            return Ok(());
        }
        let shown = shown.display();
        let target = fs::canonicalize(path)
            .map_err(|error| format!("the link {shown} leads nowhere: {error}"))?;
        if !target.starts_with(&self.root) {
            return Err(format!(
                "the link {shown} leads out of the folder, to {}: put the file itself there",
                target.display()
            ));
        }
        if self.open.contains(&target) {
            return Err(format!(
                "the link {shown} leads back to a folder that holds it: remove it"
            ));
        }
        Ok(())
    }

    /// An own file in the style of hand-written trees, with `mod users;` in it, would compile that file a second time,
    /// and each of its routes would be there twice.
    fn check_own_files(&mut self, path: &Path, shown: &Path, folder: &Folder) {
        if folder.has_own_file {
            self.check_declarations(&path.join("mod.rs"), &shown.join("mod.rs"), folder);
        }
        for (stem, module) in &folder.modules {
            let Some(inner) = module.folder.as_ref().filter(|_| module.file) else {
                continue;
            };
            let file = format!("{stem}.rs");
            self.check_declarations(&path.join(&file), &shown.join(&file), inner);
            if inner.has_own_file {
                let shown = shown.display();
                self.problems.push(format!("{shown}/{stem}.rs and {shown}/{stem}/mod.rs are the same module: keep one of them"));
            }
        }
    }

    fn check_declarations(&mut self, path: &Path, shown: &Path, folder: &Folder) {
        // A file that cannot be read or parsed is reported by the compiler, and better.
        let Some(file) = fs::read_to_string(path)
            .ok()
            .and_then(|text| syn::parse_file(&text).ok())
        else {
            return;
        };
        for item in &file.items {
            let Item::Mod(item) = item else { continue };
            let name = item.ident.unraw().to_string();
            if item.content.is_none() && folder.modules.contains_key(&name) {
                self.problems.push(format!(
                    "{} declares `mod {name};`, and modules! declares every file of the folder itself: remove that line",
                    shown.display()
                ));
            }
        }
    }
}

/// A keyword becomes a raw identifier: `type.rs` is the module `r#type`.
pub(crate) fn module_name(stem: &str) -> Option<Ident> {
    let ident = syn::parse_str::<Ident>(stem)
        .or_else(|_| syn::parse_str::<Ident>(&format!("r#{stem}")))
        .ok()?;
    // The parser skips white space and comments, and it normalizes Unicode, and then the compiler would look for another file.
    (ident.unraw() == stem).then_some(ident)
}

pub(crate) fn bad_name(shown: &str, stem: &str, extension: &str) -> String {
    let replaced: String = stem
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect();
    let mut better = replaced.trim_matches('_').to_owned();
    if better.starts_with(|first: char| first.is_ascii_digit()) {
        better.insert(0, '_');
    }
    let rule = "letters, digits and `_`, not starting with a digit";
    if module_name(&better).is_some() {
        format!(
            "{shown} cannot be a module, whose name is made of {rule}: rename it to {better}{extension}"
        )
    } else {
        format!("{shown} cannot be a module, whose name is made of {rule}: rename it")
    }
}
