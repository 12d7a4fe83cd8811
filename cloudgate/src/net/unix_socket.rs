//! Whose is the file of a Unix socket?
//!
//! A server that was killed leaves its file behind, and no other can bind the path. So a socket on
//! which nobody listens is replaced; one that answers, and anything that is no socket, is not.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Where a Unix socket is, and who may connect.
///
/// ```
/// use cloudgate::{App, Server, UnixSocket};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.sock");
/// // Everybody on this machine may connect; without `with_mode`, the owner and the group.
/// let server = Server::bind_unix(UnixSocket::new(&path).with_mode(0o666))?
///     .serve(App::new().get("/", || "ok"))?;
/// # server.shutdown(std::time::Duration::ZERO);
/// # Ok::<(), cloudgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    path: PathBuf,
    mode: u32,
}

impl UnixSocket {
    /// A socket at this path with mode 0660: the owner and the group may connect.
    pub fn new(path: impl Into<PathBuf>) -> UnixSocket {
        UnixSocket {
            path: path.into(),
            mode: 0o660,
        }
    }

    /// The same socket with another mode; who may write to it may connect. It is set before
    /// anybody can connect, and the umask does not count.
    pub fn with_mode(mut self, mode: u32) -> UnixSocket {
        self.mode = mode;
        self
    }

    /// The path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl<P: Into<PathBuf>> From<P> for UnixSocket {
    fn from(path: P) -> UnixSocket {
        UnixSocket::new(path)
    }
}

/// How often a server asks for its turn before it goes on without.
const TRIES: u32 = 10_000;

/// Lets servers that start at the same moment look at a folder and bind in it one after the other.
///
/// Others may hold the folder's lock for long, so it is not waited for without end; and without it
/// all that can go wrong is that the later server wins.
pub(super) fn turn(path: &Path) -> Option<File> {
    let folder = File::open(folder_of(path)).ok()?;
    for _ in 0..TRIES {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(folder),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::yield_now(),
            Err(_) => return None,
        }
    }
    None
}

/// The folder that a file is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Removes a socket on which nobody listens.
///
/// # Errors
/// `AddrInUse` when somebody does, `AlreadyExists` when the path is no socket.
pub(super) fn make_way(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    // Nonblocking: a server whose queue is full is there, and may never take us.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&probe, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED) => match fs::remove_file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        },
        Err(Errno::NOENT) => Ok(()),
        // Sockets of other types also belong to somebody; who may not connect cannot know.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE | Errno::ACCESS) => {
            Err(ErrorKind::AddrInUse.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// The file of a socket that was bound here; dropping it removes it, if it is still the same.
#[derive(Debug)]
pub(crate) struct SocketFile {
    /// Absolute, for the working directory may change.
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// Takes over the file that was bound just now, and sets its mode.
    ///
    /// # Errors
    /// When it cannot be looked at or changed.
    pub(super) fn claim(place: &UnixSocket) -> io::Result<SocketFile> {
        let found = fs::symlink_metadata(&place.path)?;
        let file = SocketFile {
            path: std::path::absolute(&place.path)?,
            device: found.dev(),
            inode: found.ino(),
        };
        fs::set_permissions(&file.path, Permissions::from_mode(place.mode))?;
        Ok(file)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let same = fs::symlink_metadata(&self.path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        if same && let Err(error) = fs::remove_file(&self.path) {
            log::warn!(
                "the socket {} could not be removed: {error}",
                self.path.display()
            );
        }
    }
}
