//! How is a file opened so that it certainly lies in the folder?
//!
//! Relative to the folder's own descriptor, and by the kernel's word where it has `openat2`: links
//! may lead anywhere beneath the folder and nowhere else. Without it no link is followed at all.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, open, openat, statat};
use rustix::io::Errno;

use super::listing::{Item, Items, MOST_ITEMS};
use super::resolve::is_shown;

/// An open folder that files are opened beneath.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

/// Nonblocking, or opening a FIFO would wait for its writer.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::RDONLY)
    .union(OFlags::CLOEXEC);

/// The most entries of a folder that are looked at for those that are shown.
const MOST_ENTRIES: usize = 200_000;

impl Root {
    /// Opens the folder.
    ///
    /// # Errors
    /// When it is not there, is no folder, or may not be read.
    pub(super) fn open(folder: &Path) -> io::Result<Root> {
        Ok(Root(open(folder, FOLDER, Mode::empty())?))
    }

    /// Opens a file by its path relative to the folder. May block: to be called off the workers.
    ///
    /// # Errors
    /// What the system says; a link that leads out of the folder is `CrossesDevices`.
    pub(super) fn open_beneath(&self, path: &str) -> io::Result<File> {
        self.open_as(path, FLAGS).map(File::from)
    }

    /// Opens what is at this path, with these flags.
    fn open_as(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.0, path, flags, Mode::empty(), rules) {
                // Before Linux 5.6, or where a sandbox forbids the call.
                Err(Errno::NOSYS | Errno::PERM) => {}
                other => return opened(other),
            }
        }
        self.open_without_links(path, flags)
    }

    fn open_without_links(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let mut folder = None;
        let (folders, name) = path
            .rsplit_once('/')
            .map_or(("", path), |(folders, name)| (folders, name));
        for segment in folders.split('/').filter(|segment| !segment.is_empty()) {
            folder = Some(openat(
                folder.as_ref().unwrap_or(&self.0),
                segment,
                FOLDER | OFlags::NOFOLLOW,
                Mode::empty(),
            )?);
        }
        opened(openat(
            folder.as_ref().unwrap_or(&self.0),
            name,
            flags | OFlags::NOFOLLOW,
            Mode::empty(),
        ))
    }

    /// What is to be seen in the folder at this path, which is empty for the root: files and folders that a
    /// request can name, and links to such beneath the root. May block: to be called off the workers.
    ///
    /// Of a folder with more than [`MOST_ITEMS`] of them so many are given, and of one with a great many
    /// entries of other kinds those among the first [`MOST_ENTRIES`].
    ///
    /// # Errors
    /// What the system says; `NotADirectory` for a file.
    #[allow(dead_code, reason = "`Files` shows no folders yet")]
    pub(super) fn list(&self, path: &str) -> io::Result<Items> {
        self.list_at_most(path, MOST_ITEMS, MOST_ENTRIES)
    }

    fn list_at_most(&self, path: &str, most: usize, most_entries: usize) -> io::Result<Items> {
        let folder = self.open_as(if path.is_empty() { "." } else { path }, FOLDER)?;
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
            if !is_shown(name) {
                continue;
            }
            let Some(stat) = self.stat(&folder, path, name) else {
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
    fn stat(&self, folder: &OwnedFd, path: &str, name: &str) -> Option<Stat> {
        let mut stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            // From the root, because a link may lead up from here and stay beneath it.
            let whole = if path.is_empty() {
                name.to_owned()
            } else {
                format!("{path}/{name}")
            };
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            stat = fstat(self.open_as(&whole, flags).ok()?).ok()?;
        }
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, FileType::RegularFile | FileType::Directory).then_some(stat)
    }
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

/// Gives names to errors that the standard library has none for.
fn opened(result: Result<OwnedFd, Errno>) -> io::Result<OwnedFd> {
    match result {
        Ok(file) => Ok(file),
        // A link that may not be followed, or a ring of links.
        Err(Errno::LOOP) => Err(io::ErrorKind::CrossesDevices.into()),
        // A socket, or a device that is not there.
        Err(Errno::NXIO | Errno::NODEV) => Err(io::ErrorKind::InvalidInput.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_beneath_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/file"), "file").unwrap();
        symlink(outside.path().join("secret"), at("absolute")).unwrap();
        symlink(outside.path(), at("out")).unwrap();
        symlink("../../../../../../../../etc/passwd", at("sub/relative")).unwrap();
        symlink("sub/file", at("inside")).unwrap();

        let root = Root::open(folder.path()).unwrap();
        for opened in [
            root.open_beneath("sub/file"),
            root.open_without_links("sub/file", FLAGS).map(File::from),
            root.open_beneath("inside"),
        ] {
            assert_eq!(io::read_to_string(opened.unwrap()).unwrap(), "file");
        }
        for path in ["absolute", "out/secret", "sub/relative"] {
            assert!(root.open_beneath(path).is_err(), "{path}");
            assert!(root.open_without_links(path, FLAGS).is_err(), "{path}");
        }
        assert!(root.open_without_links("inside", FLAGS).is_err());
        assert_eq!(
            root.open_beneath("nothing").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            root.open_without_links("nothing", FLAGS)
                .unwrap_err()
                .kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_folder_that_is_none_cannot_be_served() {
        assert!(Root::open(Path::new("/nowhere/at/all")).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Root::open(file.path()).is_err());
    }

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

        let root = Root::open(folder.path()).unwrap();
        let items = root.list("").unwrap();
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
        assert_eq!(names(&root.list("sub").unwrap()), ["deep/", "file", "up"]);
        assert_eq!(
            names(&root.list("to-folder").unwrap()),
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
        assert_eq!(root.list("sub/deep").unwrap(), Items::default());

        for path in ["out", "magic", "absolute", "sub/relative"] {
            assert!(root.list(path).is_err(), "{path}");
        }
        for (path, want) in [
            ("a.txt", io::ErrorKind::NotADirectory),
            ("fifo", io::ErrorKind::NotADirectory),
            ("nothing", io::ErrorKind::NotFound),
        ] {
            assert_eq!(root.list(path).unwrap_err().kind(), want, "{path}");
        }
    }

    #[test]
    fn so_many_items_are_shown_and_one_more_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        for name in 0..MOST_ITEMS {
            fs::write(folder.path().join(name.to_string()), "").unwrap();
        }
        // What is hidden does not count.
        fs::write(folder.path().join(".hidden"), "").unwrap();
        let items = root.list("").unwrap();
        assert_eq!((items.shown.len(), items.has_more), (MOST_ITEMS, false));
        fs::write(folder.path().join("more"), "").unwrap();
        let items = root.list("").unwrap();
        assert_eq!((items.shown.len(), items.has_more), (MOST_ITEMS, true));
    }

    #[test]
    fn so_many_entries_are_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        for name in [".a", ".b", ".c", ".d"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert!(!root.list_at_most("", 10, 4).unwrap().has_more);
        assert!(root.list_at_most("", 10, 3).unwrap().has_more);
    }
}
