//! What is to be seen in a folder?

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dir, FileType, Stat, fstat, statat};

use super::listing::{Item, Items, MOST_ITEMS};
use super::resolve::{DotNames, is_shown};
use super::root::Root;

/// The most entries of a folder that are looked at for those that are shown.
const MOST_ENTRIES: usize = 200_000;

/// The files and folders in the folder at this path, which is empty for the root: those that a request can
/// name, and links to such beneath the root. May block: to be called off the workers.
///
/// Of a folder with more than [`MOST_ITEMS`] of them so many are given, and of one with a great many
/// entries of other kinds those among the first [`MOST_ENTRIES`].
///
/// # Errors
/// What the system says; `NotADirectory` for a file.
pub(super) fn list(root: &Root, path: &str, dot_names: DotNames) -> io::Result<Items> {
    list_at_most(root, path, dot_names, MOST_ITEMS, MOST_ENTRIES)
}

fn list_at_most(
    root: &Root,
    path: &str,
    dot_names: DotNames,
    most: usize,
    most_entries: usize,
) -> io::Result<Items> {
    let folder = root.open_folder(path)?;
    let mut items = Items::default();
    for (count, entry) in Dir::read_from(&folder)?.enumerate() {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if matches!(name, "." | "..") {
            continue;
        }
        // The two of them count as entries too, so one more may be read than is told.
        if count >= most_entries.saturating_add(2) {
            items.has_more = true;
            break;
        }
        if !is_shown(name, dot_names) {
            continue;
        }
        let Some(stat) = stat(root, &folder, path, name) else {
            continue;
        };
        if items.shown.len() == most {
            items.has_more = true;
            break;
        }
        items.shown.push(item(name, &stat));
    }
    Ok(items)
}

/// What an entry of a folder is; `None` if it is neither a file nor a folder, leads out of the root, or
/// has just gone.
fn stat(root: &Root, folder: &OwnedFd, path: &str, name: &str) -> Option<Stat> {
    let mut stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        // From the root, because a link may lead up from here and stay beneath it.
        let whole = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}/{name}")
        };
        stat = fstat(root.look_beneath(&whole).ok()?).ok()?;
    }
    let kind = FileType::from_raw_mode(stat.st_mode);
    matches!(kind, FileType::RegularFile | FileType::Directory).then_some(stat)
}

fn item(name: &str, stat: &Stat) -> Item {
    let since = |seconds: i64| {
        u64::try_from(seconds)
            .ok()
            .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)))
    };
    let modified: Option<SystemTime> = since(stat.st_mtime);
    Item {
        name: name.to_owned(),
        is_folder: FileType::from_raw_mode(stat.st_mode) == FileType::Directory,
        length: u64::try_from(stat.st_size).unwrap_or(0),
        modified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::files::root::Links;
    use rustix::fs::Mode;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn names(items: &Items) -> Vec<String> {
        let mut names: Vec<String> = items
            .shown
            .iter()
            .map(|item| item.name.clone() + if item.is_folder { "/" } else { "" })
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_shows_what_can_be_asked_for() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("sub/deep")).unwrap();
        fs::create_dir(at(".git")).unwrap();
        fs::create_dir(at(".well-known")).unwrap();
        for name in [
            "a.txt",
            "b c\u{e9}.txt",
            ".env",
            "a:b",
            "CON",
            "nul.txt",
            "a.",
            "a ",
            "a\\b",
            "a\nb",
            "sub/file",
        ] {
            fs::write(at(name), "12345").unwrap();
        }
        let not_utf8 = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff.txt");
        fs::write(folder.path().join(not_utf8), "").unwrap();
        for (target, link) in [
            (outside.path().join("secret").to_str().unwrap(), "absolute"),
            (outside.path().to_str().unwrap(), "out"),
            ("../../../../../../../../etc/passwd", "sub/relative"),
            ("/proc/self/root", "magic"),
            ("nothing", "dangling"),
            ("ring", "ring"),
            ("fifo", "to-fifo"),
            ("a.txt", "to-file"),
            ("sub", "to-folder"),
            ("../a.txt", "sub/up"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), mode).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();

        let root = Root::open(folder.path(), Links::Beneath).unwrap();
        let items = list(&root, "", DotNames::Hidden).unwrap();
        assert_eq!(
            names(&items),
            [
                ".well-known/",
                "a.txt",
                "b c\u{e9}.txt",
                "sub/",
                "to-file",
                "to-folder/"
            ]
        );
        assert!(!items.has_more);
        assert_eq!(
            names(&list(&root, "sub", DotNames::Hidden).unwrap()),
            ["deep/", "file", "up"]
        );
        assert_eq!(
            names(&list(&root, "to-folder", DotNames::Hidden).unwrap()),
            ["deep/", "file", "up"]
        );
        let linked = items
            .shown
            .iter()
            .find(|item| item.name == "to-file")
            .unwrap();
        assert_eq!(linked.length, 5);
        let day = Duration::from_secs(86_400);
        assert!(
            linked
                .modified
                .is_some_and(|time| time + day > SystemTime::now())
        );
        assert_eq!(
            list(&root, "sub/deep", DotNames::Hidden).unwrap(),
            Items::default()
        );

        for path in ["out", "magic", "absolute", "sub/relative"] {
            assert!(list(&root, path, DotNames::Hidden).is_err(), "{path}");
        }
        for (path, want) in [
            ("a.txt", io::ErrorKind::NotADirectory),
            ("fifo", io::ErrorKind::NotADirectory),
            ("nothing", io::ErrorKind::NotFound),
        ] {
            assert_eq!(
                list(&root, path, DotNames::Hidden).unwrap_err().kind(),
                want,
                "{path}"
            );
        }
    }

    #[test]
    fn so_many_items_are_shown_and_one_more_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path(), Links::Beneath).unwrap();
        for name in 0..MOST_ITEMS {
            fs::write(folder.path().join(name.to_string()), "").unwrap();
        }
        // What is hidden does not count.
        fs::write(folder.path().join(".hidden"), "").unwrap();
        let items = list(&root, "", DotNames::Hidden).unwrap();
        assert_eq!((items.shown.len(), items.has_more), (MOST_ITEMS, false));
        fs::write(folder.path().join("more"), "").unwrap();
        let items = list(&root, "", DotNames::Hidden).unwrap();
        assert_eq!((items.shown.len(), items.has_more), (MOST_ITEMS, true));
    }

    #[test]
    fn so_many_entries_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path(), Links::Beneath).unwrap();
        for name in [".a", ".b", ".c", ".d"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert!(
            !list_at_most(&root, "", DotNames::Hidden, 10, 4)
                .unwrap()
                .has_more
        );
        assert!(
            list_at_most(&root, "", DotNames::Hidden, 10, 3)
                .unwrap()
                .has_more
        );
    }
}
