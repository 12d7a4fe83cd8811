//! How is a file opened so that it certainly lies in the folder?
//!
//! Relative to the folder's own descriptor, and by the kernel's word where it has `openat2`: links may
//! lead anywhere beneath the folder and nowhere else. Without it the path is walked step by step under
//! the same rules. Where links may lead out of the folder, that is said in [`Links`].

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, Mode, OFlags, open, openat};
use rustix::io::Errno;

/// Where symbolic links may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// To what lies beneath the folder.
    Beneath,
    /// Anywhere.
    Anywhere,
}

/// A folder that files are opened beneath.
#[derive(Debug)]
pub(super) struct Root {
    /// Absolute, but not resolved: a link that leads to another folder later is followed there.
    path: PathBuf,
    links: Links,
    opened: Mutex<Opened>,
}

/// The folder that was there last.
#[derive(Clone, Debug)]
struct Opened {
    folder: Arc<OwnedFd>,
    identity: (u64, u64),
    /// Whether what its file system remembers of a file is in this machine's memory.
    answers_at_once: bool,
}

/// Nonblocking, or opening a FIFO would wait for its writer.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// To learn what is there without opening it: a device could take that for an order.
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// The most links on the way to one file: the kernel's own limit.
const MOST_LINKS: u32 = 40;

impl Root {
    /// Opens the folder.
    ///
    /// # Errors
    /// When it is not there, is no folder, or may not be read.
    pub(super) fn open(folder: &Path, links: Links) -> io::Result<Root> {
        let path = std::path::absolute(folder)?;
        let opened = Mutex::new(Opened::new(&path)?);
        Ok(Root {
            path,
            links,
            opened,
        })
    }

    /// The path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that is at its path now: an application is often brought up to date by putting a
    /// whole folder in the place of another.
    fn folder(&self) -> io::Result<Arc<OwnedFd>> {
        let now = rustix::fs::stat(&self.path)?;
        let known = self.opened().clone();
        if known.identity == (now.st_dev, now.st_ino) {
            return Ok(known.folder);
        }
        let opened = Opened::new(&self.path)?;
        *self.opened() = opened.clone();
        Ok(opened.folder)
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, Opened> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a regular file by its path relative to the folder. May block: to be called off the workers.
    ///
    /// # Errors
    /// What the system says; a link that leads out of the folder is `CrossesDevices`, a folder
    /// `IsADirectory`, and what is neither `InvalidInput`.
    pub(super) fn open_beneath(&self, path: &str) -> io::Result<File> {
        // What lies there is looked at before it is opened, and once more after, for it may have changed.
        match FileType::from_raw_mode(rustix::fs::fstat(self.look_beneath(path)?)?.st_mode) {
            FileType::RegularFile => self.open_with(path, FLAGS).map(File::from),
            FileType::Directory => Err(ErrorKind::IsADirectory.into()),
            _ => Err(ErrorKind::InvalidInput.into()),
        }
    }

    /// A descriptor to ask about what lies at this path, and for nothing else. May block.
    ///
    /// # Errors
    /// As [`Root::open_beneath`], whatever it is that lies there.
    pub(super) fn look_beneath(&self, path: &str) -> io::Result<OwnedFd> {
        self.open_with(path, LOOK)
    }

    /// As [`Root::look_beneath`], for a worker: answers only where the system knows the answer, and is
    /// `WouldBlock` where somebody would have to look at the disk.
    pub(super) fn look_at_once(&self, path: &str) -> io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        if self.opened().answers_at_once {
            use rustix::fs::{ResolveFlags, openat2};
            let mut rules =
                ResolveFlags::NO_MAGICLINKS | ResolveFlags::CACHED | ResolveFlags::NO_XDEV;
            if self.links == Links::Beneath {
                rules |= ResolveFlags::BENEATH;
            }
            let folder = self.folder()?;
            let path = if path.is_empty() { "." } else { path };
            return match openat2(&*folder, path, LOOK, Mode::empty(), rules) {
                // A link out, or a file system of another kind mounted in it: not for a worker to find out.
                Err(Errno::XDEV | Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
                    Err(ErrorKind::WouldBlock.into())
                }
                other => opened(other),
            };
        }
        let _ = path;
        Err(ErrorKind::WouldBlock.into())
    }

    /// Opens a folder beneath this one, to list it. May block.
    ///
    /// # Errors
    /// As [`Root::open_beneath`].
    pub(super) fn open_folder(&self, path: &str) -> io::Result<OwnedFd> {
        self.open_with(path, FLAGS | OFlags::DIRECTORY)
    }

    fn open_with(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let folder = self.folder()?;
        let path = if path.is_empty() { "." } else { path };
        if self.links == Links::Anywhere {
            return opened(openat(&*folder, path, flags, Mode::empty()));
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            // A rename somewhere on the way makes the kernel unsure, and it wants to be asked again.
            for _ in 0..8 {
                match openat2(&*folder, path, flags, Mode::empty(), rules) {
                    Err(Errno::AGAIN) => {}
                    // Before Linux 5.6, or where a sandbox forbids the call.
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    other => return opened(other),
                }
            }
        }
        opened(walk(folder.as_fd(), path, flags))
    }
}

impl Opened {
    fn new(path: &Path) -> io::Result<Opened> {
        let folder = open(
            path,
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let metadata = rustix::fs::fstat(&folder)?;
        Ok(Opened {
            answers_at_once: is_local(&folder),
            folder: Arc::new(folder),
            identity: (metadata.st_dev, metadata.st_ino),
        })
    }
}

/// Whether the folder lies on a file system of this machine's own disks or memory. Of what lies elsewhere even the
/// length of a known file may have to be asked for over a network.
#[cfg(target_os = "linux")]
fn is_local(folder: &OwnedFd) -> bool {
    /// ext2 to ext4, XFS, Btrfs, F2FS, tmpfs, overlayfs, ZFS, bcachefs, SquashFS, EROFS: linux/magic.h.
    const LOCAL: [u64; 10] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0xf2f5_2010,
        0x0102_1994,
        0x794c_7630,
        0x2fc1_2fc1,
        0xca45_1a4e,
        0x7371_7368,
        0xe0f5_e1e2,
    ];
    let kind = rustix::fs::fstatfs(folder).map(|system| system.f_type as u64);
    kind.is_ok_and(|kind| LOCAL.contains(&kind))
}

#[cfg(not(target_os = "linux"))]
fn is_local(_folder: &OwnedFd) -> bool {
    false
}

/// What `openat2` with `RESOLVE_BENEATH` does, in steps: each part of the path is opened in the folder
/// that was reached, no link is followed by the kernel, and `..` leads no further up than to `root`.
fn walk(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut reached: Vec<OwnedFd> = Vec::new();
    // The parts that are left, the next one last.
    let mut left: Vec<Vec<u8>> = parts(path.as_bytes());
    let mut links = 0;
    while let Some(part) = left.pop() {
        match &*part {
            b"" | b"." => continue,
            b".." => {
                reached.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            _ => {}
        }
        let here = reached.last().map_or(root, |folder| folder.as_fd());
        let last = left.iter().all(|part| matches!(&**part, b"" | b"."));
        let how = if last {
            flags
        } else {
            OFlags::DIRECTORY | LOOK
        };
        let looked = openat(here, &*part, LOOK | OFlags::NOFOLLOW, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(looked)?.st_mode) == FileType::Symlink {
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::LOOP);
            }
            let target = rustix::fs::readlinkat(here, &*part, Vec::new())?;
            if target.as_bytes().starts_with(b"/") {
                return Err(Errno::XDEV);
            }
            left.extend(parts(target.as_bytes()));
            continue;
        }
        let opened = openat(here, &*part, how | OFlags::NOFOLLOW, Mode::empty())?;
        if last {
            return Ok(opened);
        }
        reached.push(opened);
    }
    // The path ended in `.` or `..`, or is that of the folder itself.
    let here = reached.last().map_or(root, |folder| folder.as_fd());
    openat(here, ".", flags, Mode::empty())
}

/// The parts of a path, the first one last.
fn parts(path: &[u8]) -> Vec<Vec<u8>> {
    path.rsplit(|&byte| byte == b'/')
        .map(<[u8]>::to_vec)
        .collect()
}

/// Gives names to errors that the standard library has none for.
fn opened(result: Result<OwnedFd, Errno>) -> io::Result<OwnedFd> {
    match result {
        Ok(file) => Ok(file),
        // A link that may not be followed, or a ring of links.
        Err(Errno::LOOP) => Err(ErrorKind::CrossesDevices.into()),
        // A socket, or a device that is not there.
        Err(Errno::NXIO | Errno::NODEV) => Err(ErrorKind::InvalidInput.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_beneath_the_folder_by_the_kernel_and_by_steps() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("sub/deep")).unwrap();
        fs::write(at("sub/file"), "file").unwrap();
        fs::write(at("top"), "top").unwrap();
        for (target, link) in [
            ("sub/file", "inside"),
            ("inside", "twice"),
            ("sub", "folder"),
            ("../top", "sub/up"),
            ("../sub/../sub/./file", "sub/around"),
            ("deep/../../top", "sub/deeper"),
            ("../../../../../../../../etc/passwd", "sub/relative"),
            ("..", "sub/deep/up"),
            ("../..", "sub/root"),
            ("ring", "ring"),
            ("nothing", "dangling"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        symlink(outside.path().join("secret"), at("absolute")).unwrap();
        symlink(outside.path(), at("out")).unwrap();
        symlink("/proc/self/root/etc/passwd", at("magic")).unwrap();
        symlink(at("top"), at("absolute-inside")).unwrap();

        let root = Root::open(folder.path(), Links::Beneath).unwrap();
        let own = root.folder().unwrap();
        for (path, want) in [
            ("sub/file", Some("file")),
            ("inside", Some("file")),
            ("twice", Some("file")),
            ("folder/file", Some("file")),
            ("sub/up", Some("top")),
            ("sub/around", Some("file")),
            ("sub/deeper", Some("top")),
            ("sub/deep/up/file", Some("file")),
            ("absolute", None),
            ("absolute-inside", None),
            ("out/secret", None),
            ("magic", None),
            ("sub/relative", None),
            ("sub/root/top", None),
            ("ring", None),
            ("dangling", None),
            ("nothing", None),
            ("top/x", None),
        ] {
            let kernel = root.open_beneath(path);
            let steps = walk(own.as_fd(), path, FLAGS).map(File::from);
            assert_eq!(kernel.is_ok(), want.is_some(), "{path}: {kernel:?}");
            assert_eq!(steps.is_ok(), want.is_some(), "{path}: {steps:?}");
            if let Some(want) = want {
                assert_eq!(io::read_to_string(kernel.unwrap()).unwrap(), want);
                assert_eq!(io::read_to_string(steps.unwrap()).unwrap(), want);
            }
        }
        for path in ["", "sub", "sub/deep", "folder", "sub/deep/up"] {
            assert!(root.open_folder(path).is_ok(), "{path}");
            let flags = FLAGS | OFlags::DIRECTORY;
            let path = if path.is_empty() { "." } else { path };
            assert!(walk(own.as_fd(), path, flags).is_ok(), "{path}");
        }
        assert!(root.open_folder("top").is_err());

        let free = Root::open(folder.path(), Links::Anywhere).unwrap();
        for path in ["absolute", "out/secret"] {
            let text = io::read_to_string(free.open_beneath(path).unwrap()).unwrap();
            assert_eq!(text, "secret");
        }
    }

    #[test]
    fn a_chain_of_forty_links_is_followed_and_one_of_forty_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("0"), "end").unwrap();
        for link in 1..=41 {
            symlink((link - 1).to_string(), folder.path().join(link.to_string())).unwrap();
        }
        let root = Root::open(folder.path(), Links::Beneath).unwrap();
        let own = root.folder().unwrap();
        assert!(walk(own.as_fd(), "40", FLAGS).is_ok());
        assert_eq!(walk(own.as_fd(), "41", FLAGS).unwrap_err(), Errno::LOOP);
        assert!(root.open_beneath("40").is_ok());
        assert!(root.open_beneath("41").is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_worker_learns_what_the_system_knows_and_nothing_outside() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/file"), "file").unwrap();
        symlink(outside.path(), folder.path().join("out")).unwrap();
        let root = Root::open(folder.path(), Links::Beneath).unwrap();
        let look = |path| {
            root.look_at_once(path)
                .map(|_| ())
                .map_err(|error| error.kind())
        };
        if !root.opened().answers_at_once {
            assert_eq!(look("sub/file"), Err(ErrorKind::WouldBlock));
            return;
        }
        // It was looked at before, so the system remembers.
        root.look_beneath("sub/file").unwrap();
        let _ = root.look_beneath("sub/nothing");
        assert!(matches!(
            look("sub/file"),
            Ok(()) | Err(ErrorKind::WouldBlock)
        ));
        assert!(matches!(
            look("sub/nothing"),
            Err(ErrorKind::NotFound | ErrorKind::WouldBlock)
        ));
        assert_eq!(look("out/secret"), Err(ErrorKind::WouldBlock));
        assert_eq!(look("../x"), Err(ErrorKind::WouldBlock));
    }

    #[test]
    fn a_folder_that_takes_the_place_of_another_is_served() {
        let place = tempfile::tempdir().unwrap();
        let (one, two, current) = (
            place.path().join("one"),
            place.path().join("two"),
            place.path().join("current"),
        );
        for folder in [&one, &two] {
            fs::create_dir(folder).unwrap();
            fs::write(
                folder.join("name"),
                folder.file_name().unwrap().as_encoded_bytes(),
            )
            .unwrap();
        }
        symlink("one", &current).unwrap();
        let root = Root::open(&current, Links::Beneath).unwrap();
        let read = || root.open_beneath("name").and_then(io::read_to_string);
        assert_eq!(read().unwrap(), "one");
        fs::remove_file(&current).unwrap();
        assert_eq!(read().unwrap_err().kind(), ErrorKind::NotFound);
        symlink("two", &current).unwrap();
        assert_eq!(read().unwrap(), "two");
    }

    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        let root = Root::open(folder.path(), Links::Beneath).unwrap();
        for (name, want) in [
            ("fifo", ErrorKind::InvalidInput),
            ("socket", ErrorKind::InvalidInput),
            ("folder", ErrorKind::IsADirectory),
            ("", ErrorKind::IsADirectory),
        ] {
            assert_eq!(root.open_beneath(name).unwrap_err().kind(), want, "{name}");
        }
    }

    #[test]
    fn a_folder_that_is_none_cannot_be_served() {
        assert!(Root::open(Path::new("/nowhere/at/all"), Links::Beneath).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Root::open(file.path(), Links::Beneath).is_err());
    }
}
