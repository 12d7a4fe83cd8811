//! How does a handler read a form part by part, without keeping it?

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use super::error::MultipartError;
use super::head::{PartHead, boundary_of};
use super::limits::MultipartLimits;
use super::name;
use super::parser::{Event, Parser};
use crate::app::extract::essence;
use crate::message::{BodyError, Request};

/// How much of the body is asked for at once, in bytes.
const PIECE: usize = 64 << 10;

/// Reads a `multipart/form-data` body (RFC 7578) part by part, as it arrives: nothing is kept but the
/// piece that is being read, and the client sends no faster than the handler reads.
///
/// [`Multipart`](crate::Multipart) is easier where everything is wanted at once.
///
/// ```
/// # use cloudgate::{App, HttpError, MultipartReader, Request, route};
/// use std::io::Read;
///
/// #[route(POST, "/measure")]
/// fn measure(request: &mut Request<'_>) -> Result<String, HttpError> {
///     request.body().set_limit(1 << 30);
///     let mut form = MultipartReader::new(request)?;
///     let mut text = String::new();
///     while let Some(mut part) = form.next_part()? {
///         let name = part.name().to_owned();
///         let size = std::io::copy(&mut part, &mut std::io::sink())?;
///         text += &format!("{name}: {size} bytes\n");
///     }
///     Ok(text)
/// }
/// # let body = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\nhello\r\n--x--";
/// # let mut request = Request::post("/measure").with_header("Content-Type", "multipart/form-data; boundary=x");
/// # assert_eq!(App::gather().call(&mut request.with_body(body)).text(), "a: 5 bytes\n");
/// ```
pub struct MultipartReader<'r> {
    source: &'r mut dyn Read,
    limits: Arc<MultipartLimits>,
    parser: Parser,
    buffer: Vec<u8>,
    /// What of the buffer holds bytes that the parser has not consumed.
    held: Range<usize>,
    /// What of the buffer is content that the handler has not read; behind it comes `held`.
    content: Range<usize>,
    part: Option<Open>,
    field_bytes: u64,
    ended: bool,
}

/// The part that is being read.
struct Open {
    name: String,
    is_file: bool,
    length: u64,
}

impl<'r> MultipartReader<'r> {
    /// Begins with the request's body, with the limits that the application has as a
    /// [`State`](crate::State), or the defaults.
    ///
    /// # Errors
    /// [`MultipartError::NotMultipart`] and [`MultipartError::NoBoundary`]. Nothing is read yet.
    pub fn new(request: &'r mut Request<'_>) -> Result<MultipartReader<'r>, MultipartError> {
        let limits = MultipartLimits::of(request);
        MultipartReader::begin(request, limits)
    }

    /// As [`MultipartReader::new`], with limits of its own.
    ///
    /// # Errors
    /// As [`MultipartReader::new`].
    pub fn with_limits(
        request: &'r mut Request<'_>,
        limits: MultipartLimits,
    ) -> Result<MultipartReader<'r>, MultipartError> {
        MultipartReader::begin(request, Arc::new(limits))
    }

    pub(super) fn begin(
        request: &'r mut Request<'_>,
        limits: Arc<MultipartLimits>,
    ) -> Result<MultipartReader<'r>, MultipartError> {
        let content_type = request.header("content-type").unwrap_or("");
        if !essence(content_type).eq_ignore_ascii_case("multipart/form-data") {
            return Err(MultipartError::NotMultipart);
        }
        let boundary = boundary_of(content_type).ok_or(MultipartError::NoBoundary)?;
        let announced = request.body().length().unwrap_or(u64::MAX);
        // One more than announced, so that the end is found by the read that brings the last bytes.
        let size = announced.saturating_add(1).clamp(1 << 10, PIECE as u64);
        Ok(MultipartReader::over(
            request.body(),
            &boundary,
            limits,
            size as usize,
        ))
    }

    pub(super) fn over(
        source: &'r mut dyn Read,
        boundary: &str,
        limits: Arc<MultipartLimits>,
        buffer: usize,
    ) -> MultipartReader<'r> {
        MultipartReader {
            source,
            parser: Parser::new(boundary, limits.parser()),
            limits,
            buffer: vec![0; buffer],
            held: 0..0,
            content: 0..0,
            part: None,
            field_bytes: 0,
            ended: false,
        }
    }

    /// The next part, or `None` behind the last one. What was not read of the part before is passed over.
    ///
    /// # Errors
    /// Whatever is wrong with the body up to here.
    pub fn next_part(&mut self) -> Result<Option<FormPart<'_, 'r>>, MultipartError> {
        while self.part.is_some() {
            self.content = 0..0;
            self.fill_content()?;
        }
        while !self.ended {
            match self.event()? {
                Some(Event::Head(head)) => {
                    self.part = Some(Open {
                        name: head.name.clone(),
                        is_file: head.filename.is_some(),
                        length: 0,
                    });
                    return Ok(Some(FormPart { form: self, head }));
                }
                // Read on: the body may be broken, and the connection is to live on if it is not.
                Some(_) => {}
                None => self.ended = true,
            }
        }
        Ok(None)
    }

    /// The next piece of the part's content; empty at its end.
    fn chunk(&mut self) -> Result<&[u8], MultipartError> {
        if self.content.is_empty() {
            self.fill_content()?;
        }
        Ok(&self.buffer[std::mem::take(&mut self.content)])
    }

    /// Looks for more content of the part, which may be over instead.
    fn fill_content(&mut self) -> Result<(), MultipartError> {
        if self.part.is_none() {
            return Ok(());
        }
        match self.event()? {
            Some(Event::Data(range)) => {
                self.count(range.len() as u64)?;
                self.content = range;
            }
            _ => self.part = None,
        }
        Ok(())
    }

    fn count(&mut self, bytes: u64) -> Result<(), MultipartError> {
        let Some(part) = &mut self.part else {
            return Ok(());
        };
        part.length += bytes;
        let name = || part.name.clone();
        if part.is_file {
            let limit = self.limits.file_bytes;
            if part.length > limit {
                return Err(MultipartError::FileTooLarge {
                    name: name(),
                    limit,
                });
            }
        } else {
            self.field_bytes += bytes;
            let limit = self.limits.field_bytes;
            if self.field_bytes > limit {
                return Err(MultipartError::FieldsTooLarge {
                    name: name(),
                    limit,
                });
            }
        }
        Ok(())
    }

    /// The parser's next event, its range in `buffer`; `None` at the end of the body.
    fn event(&mut self) -> Result<Option<Event>, MultipartError> {
        loop {
            let before = self.held.start;
            let step = self.parser.step(&self.buffer[self.held.clone()])?;
            self.held.start += step.consumed;
            match step.event {
                Some(Event::Data(range)) => {
                    return Ok(Some(Event::Data(before + range.start..before + range.end)));
                }
                Some(event) => return Ok(Some(event)),
                None if self.fill()? == 0 => {
                    self.parser.finish(&self.buffer[self.held.clone()])?;
                    return Ok(None);
                }
                None => {}
            }
        }
    }

    /// Puts more of the body behind what is held; 0 at its end.
    fn fill(&mut self) -> Result<usize, MultipartError> {
        // What is held now is the beginning of a head or of a boundary: little to move.
        self.buffer.copy_within(self.held.clone(), 0);
        self.held = 0..self.held.len();
        if self.held.end == self.buffer.len() {
            // The parser takes no more than a head and a boundary, so this ends.
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let count = self
            .source
            .read(&mut self.buffer[self.held.end..])
            .map_err(|error| {
                MultipartError::Body(error.downcast().unwrap_or_else(BodyError::Disconnected))
            })?;
        self.held.end += count;
        Ok(count)
    }
}

impl fmt::Debug for MultipartReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultipartReader")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// One part of a form while it is read; see [`MultipartReader`]. Its content is what [`Read`] gives; an
/// error holds a [`MultipartError`] or a [`BodyError`], which a handler's `?` turns into the right status.
pub struct FormPart<'p, 'r> {
    form: &'p mut MultipartReader<'r>,
    head: PartHead,
}

impl FormPart<'_, '_> {
    /// The name of the form's field.
    pub fn name(&self) -> &str {
        &self.head.name
    }

    /// The client's name of the file: its word, never a path; see [`FormPart::safe_filename`]. `None` for
    /// a field that is no file.
    pub fn filename(&self) -> Option<&str> {
        self.head.filename.as_deref()
    }

    /// As [`UploadedFile::safe_filename`](crate::UploadedFile::safe_filename).
    pub fn safe_filename(&self) -> Option<&str> {
        name::safe(self.filename()?)
    }

    /// The media type that the client gave, `text/plain` if it gave none.
    pub fn content_type(&self) -> &str {
        &self.head.content_type
    }

    /// What is left of the part, as text: for fields, whose size
    /// [`MultipartLimits::field_bytes`] limits.
    ///
    /// # Errors
    /// [`MultipartError::NotText`] for what is not UTF-8, and whatever is wrong with the body.
    pub fn text(self) -> Result<String, MultipartError> {
        let mut all = Vec::new();
        loop {
            match self.form.chunk()? {
                [] => break,
                piece => all.extend_from_slice(piece),
            }
        }
        String::from_utf8(all).map_err(|_| MultipartError::NotText {
            name: self.head.name,
        })
    }

    /// The next piece of the content; empty at its end.
    pub(super) fn chunk(&mut self) -> Result<&[u8], MultipartError> {
        self.form.chunk()
    }

    /// How much memory the reader's buffer has.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.form.buffer.capacity()
    }

    pub(super) fn into_head(self) -> PartHead {
        self.head
    }
}

impl Read for FormPart<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let form = &mut *self.form;
        if form.content.is_empty() {
            form.fill_content()?;
        }
        let count = form.content.len().min(buffer.len());
        let start = form.content.start;
        buffer[..count].copy_from_slice(&form.buffer[start..start + count]);
        form.content.start += count;
        Ok(count)
    }
}

impl fmt::Debug for FormPart<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.fmt(f)
    }
}
