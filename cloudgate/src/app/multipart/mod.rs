//! How does a `multipart/form-data` body become fields and files (RFC 7578)?
//!
//! ```text
//!  body ─▶ reader ─▶ parser ─▶ head            parser, head   bytes to events; they keep and read nothing
//!             │                                reader         part by part, for handlers that stream
//!             └─▶ extract ─▶ spool ─▶ file     extract        the whole form; large files wait on disk
//! ```

mod error;
mod extract;
mod file;
mod head;
mod limits;
mod name;
mod parser;
mod reader;
mod spool;

use bytes::Bytes;

pub use error::MultipartError;
pub use extract::Multipart;
pub use file::{FileReader, UploadedFile};
pub(crate) use head::{PartHead, boundary_of};
pub use limits::MultipartLimits;
pub(crate) use parser::{Event, Parser};
pub use reader::{FormPart, MultipartReader};

/// The parser for a body whose Content-Type names this boundary, with the default limits.
pub(crate) fn parser(boundary: &str) -> Parser {
    Parser::new(boundary, MultipartLimits::new().parser())
}

/// The parts of a body that is in memory already, which share its bytes.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn parse(
    body: &Bytes,
    boundary: &str,
) -> Result<Vec<(PartHead, Bytes)>, MultipartError> {
    let mut parser = parser(boundary);
    let mut parts: Vec<(PartHead, Bytes)> = Vec::new();
    let mut at = 0;
    loop {
        let step = parser.step(&body[at..])?;
        match step.event {
            Some(Event::Head(head)) => parts.push((head, Bytes::new())),
            Some(Event::Data(range)) => {
                // The whole body is there, so the content of a part comes in one piece.
                if let Some((_, data)) = parts.last_mut() {
                    *data = body.slice(at + range.start..at + range.end);
                }
            }
            Some(Event::PartEnd | Event::End) => {}
            None => {
                parser.finish(&body[at + step.consumed..])?;
                return Ok(parts);
            }
        }
        at += step.consumed;
    }
}
