//! How are bytes in memory sent without copying them for each client?
//!
//! As a file that exists in memory alone and that nobody can change any more: the system sends it as it sends
//! files. For bodies of 442 KiB to 1,000 clients that took half the processor time of writing bytes.

use std::fs::File;
use std::io;
use std::sync::Arc;

use super::descriptors::Place;

/// A file in memory.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    file: Arc<File>,
    _place: Arc<Place>,
}

impl Sealed {
    /// A sealed file of these bytes; `None` where there are enough of them, or the system has none to give.
    #[cfg(target_os = "linux")]
    pub(crate) fn new(bytes: &[u8]) -> Option<Sealed> {
        let place = Place::take()?;
        match seal(bytes) {
            Ok(file) => Some(Sealed {
                file: Arc::new(file),
                _place: Arc::new(place),
            }),
            Err(error) => {
                log::debug!("there is no file in memory to be had: {error}");
                None
            }
        }
    }

    /// There are none but on Linux.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn new(_bytes: &[u8]) -> Option<Sealed> {
        None
    }

    /// The file, which is to be read by position.
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

#[cfg(target_os = "linux")]
fn seal(bytes: &[u8]) -> io::Result<File> {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use std::io::Write;

    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("cloudgate", flags)?);
    file.write_all(bytes)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn it_holds_the_bytes_and_takes_no_others() {
        let sealed = Sealed::new(b"content").unwrap();
        let mut bytes = [0; 7];
        sealed.file().read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"content");
        assert!((&**sealed.file()).write_all(b"other").is_err());
        assert!(sealed.file().set_len(3).is_err());
    }
}
