//! How does a handler get a whole form with its files?

use std::sync::Arc;

use super::error::MultipartError;
use super::file::UploadedFile;
use super::limits::MultipartLimits;
use super::reader::MultipartReader;
use super::spool::Spool;
use crate::app::extract::FromRequest;
use crate::app::rejection::Rejection;
use crate::message::Request;

/// A `multipart/form-data` body (RFC 7578), read to its end before the handler runs: what a page's
/// `<form method="post" enctype="multipart/form-data">` sends.
///
/// Fields are in memory, and so are small files; large ones wait on disk, so a form takes little memory
/// whatever its size. [`MultipartLimits`] says how much of each is taken, and the route's limit how large
/// the body may be in all. What is not such a form is refused with 415, a malformed one with 400 and the
/// place where it is wrong, one that is too large with 413. [`MultipartReader`] gives the parts as they
/// come instead.
///
/// ```
/// # use cloudgate::{App, HttpError, Multipart, Request, Status, route};
/// #[route(POST, "/photos")]
/// fn photo(form: Multipart) -> Result<String, HttpError> {
///     let title = form.text("title").unwrap_or("untitled");
///     let Some(file) = form.file("photo") else {
///         return Err(HttpError::new(Status::BAD_REQUEST, "choose a photo"));
///     };
///     Ok(format!("{title}: {} bytes of {}", file.len(), file.content_type))
/// }
/// # let body = "--x\r\nContent-Disposition: form-data; name=title\r\n\r\nMoon\r\n\
/// #     --x\r\nContent-Disposition: form-data; name=photo; filename=a.png\r\nContent-Type: image/png\r\n\r\n1234\r\n--x--";
/// # let request = Request::post("/photos").with_header("Content-Type", "multipart/form-data; boundary=x");
/// # assert_eq!(App::gather().call(&mut request.with_body(body)).text(), "Moon: 4 bytes of image/png");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Multipart {
    fields: Vec<(String, String)>,
    files: Vec<UploadedFile>,
}

impl Multipart {
    /// The text of the first field of this name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields()
            .find(|(known, _)| *known == name)
            .map(|(_, text)| text)
    }

    /// The texts of all fields of this name, in order.
    pub fn texts<'f>(&'f self, name: &str) -> impl Iterator<Item = &'f str> {
        self.fields()
            .filter_map(move |(known, text)| (known == name).then_some(text))
    }

    /// Names and texts of all fields that are no files, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The first file of the field of this name. A field in which no file was chosen has none, though
    /// browsers send it.
    pub fn file(&self, name: &str) -> Option<&UploadedFile> {
        self.files.iter().find(|file| file.name == name)
    }

    /// All files, in order; one field may have several.
    pub fn files(&self) -> &[UploadedFile] {
        &self.files
    }

    /// The files, to keep them.
    pub fn into_files(self) -> Vec<UploadedFile> {
        self.files
    }

    pub(super) fn read(
        mut form: MultipartReader<'_>,
        limits: Arc<MultipartLimits>,
    ) -> Result<Multipart, MultipartError> {
        let mut whole = Multipart::default();
        let mut spool = Spool::new(limits);
        while let Some(mut part) = form.next_part()? {
            if part.filename().is_none() {
                let name = part.name().to_owned();
                whole.fields.push((name, part.text()?));
                continue;
            }
            loop {
                match part.chunk()? {
                    [] => break,
                    piece => spool.write(piece)?,
                }
            }
            let file = UploadedFile::new(part.into_head(), spool.finish()?);
            if !(file.filename.is_empty() && file.is_empty()) {
                whole.files.push(file);
            }
        }
        Ok(whole)
    }
}

impl FromRequest for Multipart {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Multipart, Rejection> {
        let limits = MultipartLimits::of(request);
        let form = MultipartReader::begin(request, Arc::clone(&limits))?;
        Ok(Multipart::read(form, limits)?)
    }
}

#[cfg(test)]
mod tests;
