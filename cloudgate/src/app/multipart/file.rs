//! What can a handler do with a file that was uploaded?

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::head::PartHead;
use super::name;
use crate::net::home;

/// How much of a file on disk is read or copied at once, in bytes.
const PIECE: usize = 256 << 10;

/// A file of a `multipart/form-data` body.
///
/// Small ones are in memory, larger ones wait on disk under no name: they are gone with the last value
/// that tells of them, and what is to stay is put in its place by [`UploadedFile::persist`]. Everything
/// that may touch the disk runs on a thread that may block, while the handler's worker serves others.
#[derive(Clone, Debug)]
pub struct UploadedFile {
    /// The name of the form's field.
    pub name: String,
    /// The name that the client's file had. It is the client's word: never use it as a path, see
    /// [`UploadedFile::safe_filename`].
    pub filename: String,
    /// The media type that the client gave.
    pub content_type: String,
    content: Content,
}

/// Where the bytes of an uploaded file are.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Memory(Bytes),
    Disk {
        file: Arc<Unnamed>,
        offset: u64,
        length: u64,
    },
}

/// A file without a name, which holds the large files of one form, one behind the other.
#[derive(Debug)]
pub(super) struct Unnamed(Option<File>);

impl Unnamed {
    pub(super) fn new(file: File) -> Unnamed {
        Unnamed(Some(file))
    }

    pub(super) fn file(&self) -> io::Result<&File> {
        self.0
            .as_ref()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        // Closing frees the blocks of the file, which takes a while for a large one.
        if let Some(file) = self.0.take() {
            home::drop_elsewhere(file);
        }
    }
}

impl UploadedFile {
    pub(super) fn new(head: PartHead, content: Content) -> UploadedFile {
        UploadedFile {
            name: head.name,
            filename: head.filename.unwrap_or_default(),
            content_type: head.content_type,
            content,
        }
    }

    /// A file whose bytes are in memory already.
    pub(crate) fn in_memory(head: PartHead, bytes: Bytes) -> UploadedFile {
        UploadedFile::new(head, Content::Memory(bytes))
    }

    /// Whether it waits on disk.
    #[cfg(test)]
    pub(super) fn is_on_disk(&self) -> bool {
        matches!(self.content, Content::Disk { .. })
    }

    /// The length in bytes.
    pub fn len(&self) -> u64 {
        self.content.length()
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of it, in memory: cheap for a small file. Read a large one by [`UploadedFile::reader`].
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub fn bytes(&self) -> io::Result<Bytes> {
        match &self.content {
            Content::Memory(bytes) => Ok(bytes.clone()),
            disk @ Content::Disk { length, .. } => {
                let length = usize::try_from(*length).map_err(|_| io::ErrorKind::OutOfMemory)?;
                disk.read(0, length)
            }
        }
    }

    /// Reads it from the start, a piece at a time.
    ///
    /// ```
    /// # use cloudgate::{HttpError, Multipart, Response, Status, Body, route};
    /// #[route(POST, "/mirror")]
    /// fn mirror(form: Multipart) -> Result<Response, HttpError> {
    ///     let Some(file) = form.file("photo") else {
    ///         return Err(HttpError::new(Status::BAD_REQUEST, "send a photo"));
    ///     };
    ///     let body = Body::Reader { reader: Box::new(file.reader()), length: Some(file.len()) };
    ///     Ok(Response::new(Status::OK).with_body(body))
    /// }
    /// ```
    pub fn reader(&self) -> FileReader {
        FileReader {
            content: self.content.clone(),
            at: 0,
            piece: Bytes::new(),
        }
    }

    /// The last component of the client's file name, if it can safely be the name of a file: neither
    /// empty nor longer than 255 bytes, no dot or space at the start, none at the end, no control
    /// character or colon in it, and no name of a device of Windows.
    ///
    /// It is still the client's choice: two uploads may have the same, and `index.html` is one.
    ///
    /// ```
    /// # use cloudgate::{Event, Request, App, route};
    /// #[route(POST, "/names")]
    /// fn names(event: Event) -> String {
    ///     let names = event.files().iter().map(|file| file.safe_filename().unwrap_or("unnamed"));
    ///     names.collect::<Vec<_>>().join(" ")
    /// }
    /// # let mut body = String::new();
    /// # for name in ["../../etc/passwd", "..", "C:/dir/a.txt"] {
    /// #     body += &format!("--x\r\nContent-Disposition: form-data; name=f; filename=\"{name}\"\r\n\r\n1\r\n");
    /// # }
    /// # let mut request = Request::post("/names").with_header("Content-Type", "multipart/form-data; boundary=x");
    /// # assert_eq!(App::gather().call(&mut request.with_body(body + "--x--")).text(), "passwd unnamed a.txt");
    /// ```
    pub fn safe_filename(&self) -> Option<&str> {
        name::safe(&self.filename)
    }

    /// Puts the file at `path`: it is written beside it, under another name, and gets its own when it is
    /// complete and on the disk. So nobody ever sees half of it.
    ///
    /// It can be read and written by whom any file that this program creates can be.
    ///
    /// ```no_run
    /// # use cloudgate::{HttpError, Multipart, Status, route};
    /// #[route(POST, "/album")]
    /// fn keep(form: Multipart) -> Result<Status, HttpError> {
    ///     for file in form.files() {
    ///         let name = file.safe_filename().ok_or(HttpError::new(Status::BAD_REQUEST, "another name, please"))?;
    ///         file.persist(format!("photos/{name}"))?;
    ///     }
    ///     Ok(Status::CREATED)
    /// }
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists` when there is something at `path`, which stays as it is; else what the system
    /// says, such as a folder that is not there or a full disk.
    pub fn persist(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.content.put(path.as_ref(), Existing::Kept)
    }

    /// As [`UploadedFile::persist`], in the place of a file that is there already.
    ///
    /// # Errors
    /// What the system says.
    pub fn persist_over(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.content.put(path.as_ref(), Existing::Replaced)
    }
}

/// What becomes of a file that is in the place of another.
#[derive(Clone, Copy)]
enum Existing {
    Kept,
    Replaced,
}

impl Content {
    fn length(&self) -> u64 {
        match self {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::Disk { length, .. } => *length,
        }
    }

    /// Up to `most` bytes from `at`.
    fn read(&self, at: u64, most: usize) -> io::Result<Bytes> {
        let left = self.length().saturating_sub(at);
        let count = usize::try_from(left).map_or(most, |left| left.min(most));
        match self {
            Content::Memory(bytes) => {
                let start = bytes.len() - left as usize;
                Ok(bytes.slice(start..start + count))
            }
            Content::Disk { file, offset, .. } => {
                let (file, from) = (Arc::clone(file), offset + at);
                home::blocking(move || {
                    let mut piece = vec![0; count];
                    file.file()?.read_exact_at(&mut piece, from)?;
                    Ok(piece.into())
                })
            }
        }
    }

    fn put(&self, path: &Path, existing: Existing) -> io::Result<()> {
        let (content, path) = (self.clone(), path.to_owned());
        home::blocking(move || content.put_here(&path, existing))
    }

    /// On a thread that may block.
    fn put_here(&self, path: &Path, existing: Existing) -> io::Result<()> {
        let told = |error: io::Error| {
            let text = format!("the upload cannot be put at {}: {error}", path.display());
            io::Error::new(error.kind(), text)
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        // Gone again with this value, unless it gets its name.
        let mut beside = tempfile::Builder::new()
            .prefix(".upload-")
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(told)?;
        let mut at = 0;
        while at < self.length() {
            let piece = self.read(at, PIECE).map_err(told)?;
            beside.write_all(&piece).map_err(told)?;
            at += piece.len() as u64;
        }
        beside.as_file().sync_all().map_err(told)?;
        let placed = match existing {
            Existing::Kept => beside.persist_noclobber(path),
            Existing::Replaced => beside.persist(path),
        };
        placed.map(drop).map_err(|error| told(error.error))
    }
}

/// In the shape of the original's `FILES`, with the size for the bytes.
impl Serialize for UploadedFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("filename", &self.filename)?;
        map.serialize_entry("type", &self.content_type)?;
        // JSON has no bytes; the original's array buffer came out as {} here.
        map.serialize_entry("size", &self.len())?;
        map.end()
    }
}

/// Reads an [`UploadedFile`] from start to end; see [`UploadedFile::reader`].
#[derive(Debug)]
pub struct FileReader {
    content: Content,
    at: u64,
    piece: Bytes,
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            self.piece = self.content.read(self.at, PIECE)?;
            self.at += self.piece.len() as u64;
        }
        let count = self.piece.len().min(buffer.len());
        self.piece.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}
