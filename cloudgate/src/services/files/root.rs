//! How is a file opened so that it certainly lies in the folder?
//!
//! Relative to the folder's own descriptor, and by the kernel's word where it has `openat2`: links
//! may lead anywhere beneath the folder and nowhere else. Without it no link is followed at all.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;

/// An open folder that files are opened beneath.
#[derive(Debug)]
pub(super) struct Root(OwnedFd);

/// Nonblocking, or opening a FIFO would wait for its writer.
const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

impl Root {
    /// Opens the folder.
    ///
    /// # Errors
    /// When it is not there, is no folder, or may not be read.
    pub(super) fn open(folder: &Path) -> io::Result<Root> {
        Ok(Root(open(
            folder,
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )?))
    }

    /// Opens a file by its path relative to the folder. May block: to be called off the workers.
    ///
    /// # Errors
    /// What the system says; a link that leads out of the folder is `CrossesDevices`.
    pub(super) fn open_beneath(&self, path: &str) -> io::Result<File> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.0, path, FLAGS, Mode::empty(), rules) {
                // Before Linux 5.6, or where a sandbox forbids the call.
                Err(Errno::NOSYS | Errno::PERM) => {}
                other => return opened(other),
            }
        }
        self.open_without_links(path)
    }

    fn open_without_links(&self, path: &str) -> io::Result<File> {
        let mut folder = None;
        let (folders, name) = path
            .rsplit_once('/')
            .map_or(("", path), |(folders, name)| (folders, name));
        for segment in folders.split('/').filter(|segment| !segment.is_empty()) {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            folder = Some(openat(
                folder.as_ref().unwrap_or(&self.0),
                segment,
                flags,
                Mode::empty(),
            )?);
        }
        opened(openat(
            folder.as_ref().unwrap_or(&self.0),
            name,
            FLAGS | OFlags::NOFOLLOW,
            Mode::empty(),
        ))
    }
}

/// Gives names to errors that the standard library has none for.
fn opened(result: Result<OwnedFd, Errno>) -> io::Result<File> {
    match result {
        Ok(file) => Ok(File::from(file)),
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
            root.open_without_links("sub/file"),
            root.open_beneath("inside"),
        ] {
            assert_eq!(io::read_to_string(opened.unwrap()).unwrap(), "file");
        }
        for path in ["absolute", "out/secret", "sub/relative"] {
            assert!(root.open_beneath(path).is_err(), "{path}");
            assert!(root.open_without_links(path).is_err(), "{path}");
        }
        assert!(root.open_without_links("inside").is_err());
        assert_eq!(
            root.open_beneath("nothing").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            root.open_without_links("nothing").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_folder_that_is_none_cannot_be_served() {
        assert!(Root::open(Path::new("/nowhere/at/all")).is_err());
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Root::open(file.path()).is_err());
    }
}
