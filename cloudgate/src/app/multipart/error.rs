//! Why could a form not be taken?

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use http::StatusCode;
use rustix::io::Errno;

use super::parser::ParserError;
use crate::message::BodyError;

/// Why a `multipart/form-data` body could not be taken. All but `Storage` is the client's doing.
///
/// | variant | status |
/// |---|---|
/// | `NotMultipart` | 415 |
/// | `NoBoundary`, `Malformed`, `NotText` | 400 |
/// | `FileTooLarge`, `FieldsTooLarge`, `TooManyParts`, `PartHeadTooLarge` | 413 |
/// | `Body` | 413, 400 or 408 as [`BodyError::status`] says |
/// | `Storage` | 507 where the disk is full, else 500 |
#[derive(Debug)]
#[non_exhaustive]
pub enum MultipartError {
    /// The body is said to be something other than `multipart/form-data`.
    NotMultipart,
    /// Its Content-Type names no boundary of 1 to 70 printable characters (RFC 2046 section 5.1.1).
    NoBoundary,
    /// It breaks the format (RFC 7578, RFC 2046 section 5.1).
    Malformed {
        /// Where, in bytes from the start of the body.
        at: u64,
        /// What stands there.
        reason: &'static str,
    },
    /// A field that is to be text is not UTF-8.
    NotText {
        /// The field.
        name: String,
    },
    /// A file is larger than [`MultipartLimits::file_bytes`](crate::MultipartLimits::file_bytes).
    FileTooLarge {
        /// The field that it came in.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The fields are together larger than [`MultipartLimits::field_bytes`](crate::MultipartLimits::field_bytes).
    FieldsTooLarge {
        /// The field that went past the limit.
        name: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// There are more parts than [`MultipartLimits::parts`](crate::MultipartLimits::parts).
    TooManyParts {
        /// The limit.
        limit: usize,
    },
    /// The header fields of a part are larger than
    /// [`MultipartLimits::part_head_bytes`](crate::MultipartLimits::part_head_bytes).
    PartHeadTooLarge {
        /// Where the part begins, in bytes from the start of the body.
        at: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// The body could not be read.
    Body(BodyError),
    /// A file could not be kept on disk.
    Storage {
        /// The folder where files wait.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl MultipartError {
    /// The status that tells the client what went wrong.
    pub fn status(&self) -> StatusCode {
        match self {
            MultipartError::NotMultipart => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            MultipartError::NoBoundary
            | MultipartError::Malformed { .. }
            | MultipartError::NotText { .. } => StatusCode::BAD_REQUEST,
            MultipartError::FileTooLarge { .. }
            | MultipartError::FieldsTooLarge { .. }
            | MultipartError::TooManyParts { .. }
            | MultipartError::PartHeadTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            MultipartError::Body(error) => error.status(),
            MultipartError::Storage { source, .. } if is_full(source) => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            MultipartError::Storage { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The error inside an [`io::Error`] that reading a [`FormPart`](crate::FormPart) gave, if it is one.
    pub fn within(error: &io::Error) -> Option<&MultipartError> {
        error.get_ref()?.downcast_ref()
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

fn lacks_descriptors(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::MFILE | Errno::NFILE)
    )
}

/// A field's name for a message: escaped, and not longer than people read.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(60) {
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
            None => write!(f, "{:?}", self.0),
        }
    }
}

impl fmt::Display for MultipartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MultipartError::NotMultipart => {
                f.write_str("the body must be a form with Content-Type: multipart/form-data")
            }
            MultipartError::NoBoundary => f.write_str(
                "the Content-Type multipart/form-data names no boundary of 1 to 70 printable characters",
            ),
            MultipartError::Malformed { at, reason } => {
                write!(f, "the form is malformed at byte {at}: {reason}")
            }
            MultipartError::NotText { name } => {
                write!(f, "the form's field {} is not UTF-8 text", Shown(name))
            }
            MultipartError::FileTooLarge { name, limit } => write!(
                f,
                "the file in the form's field {} is larger than the {limit} bytes that MultipartLimits::file_bytes allows",
                Shown(name)
            ),
            MultipartError::FieldsTooLarge { name, limit } => write!(
                f,
                "with the field {} the form's fields are larger than the {limit} bytes that MultipartLimits::field_bytes allows",
                Shown(name)
            ),
            MultipartError::TooManyParts { limit } => write!(
                f,
                "the form has more than the {limit} parts that MultipartLimits::parts allows"
            ),
            MultipartError::PartHeadTooLarge { at, limit } => write!(
                f,
                "the header fields of the part at byte {at} of the form are larger than the {limit} bytes that MultipartLimits::part_head_bytes allows"
            ),
            MultipartError::Body(error) => error.fmt(f),
            MultipartError::Storage { folder, source } => {
                let advice = if is_full(source) {
                    "make room there, or set another folder by MultipartLimits::folder or TMPDIR"
                } else if lacks_descriptors(source) {
                    "each form with a large file takes a descriptor: allow the program more (ulimit -n), or fewer connections (Settings::max_connections)"
                } else {
                    "make it a folder that this program may write to, or set another by MultipartLimits::folder or TMPDIR"
                };
                write!(
                    f,
                    "an uploaded file cannot be kept in {}: {source}; {advice}",
                    folder.display()
                )
            }
        }
    }
}

impl Error for MultipartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            MultipartError::Body(error) => Some(error),
            MultipartError::Storage { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<ParserError> for MultipartError {
    fn from(error: ParserError) -> MultipartError {
        match error {
            ParserError::Malformed { at, reason } => MultipartError::Malformed { at, reason },
            ParserError::HeadTooLarge { at, limit } => {
                MultipartError::PartHeadTooLarge { at, limit }
            }
            ParserError::TooManyParts { limit } => MultipartError::TooManyParts { limit },
        }
    }
}

impl From<MultipartError> for io::Error {
    fn from(error: MultipartError) -> io::Error {
        let kind = match error {
            MultipartError::Body(error) => return error.into(),
            MultipartError::Storage { ref source, .. } => source.kind(),
            _ => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}
