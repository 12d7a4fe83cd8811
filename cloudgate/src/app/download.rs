//! How does a client get something as a file to keep?

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use http::{Method, StatusCode};
use rustix::fs::{Mode, OFlags};

use super::reply::IntoResponse;
use crate::disk::reader;
use crate::message::conditional::Validators;
use crate::message::response::Note;
use crate::message::{Body, FileRange, FileVersion, Request, Response, mime, partial};
use crate::net::home::blocking;

/// The longest file name that is sent, in bytes: what file systems take.
const LONGEST_NAME: usize = 255;

/// A reply that a browser saves as a file.
///
/// ```
/// use cloudgate::{Download, IntoResponse};
/// let response = Download::bytes("café.csv", "a;b\n").into_response();
/// assert_eq!(
///     response.headers().get("content-disposition"),
///     Some("attachment; filename=\"caf_.csv\"; filename*=UTF-8''caf%C3%A9.csv")
/// );
/// assert_eq!(response.headers().get("content-type"), Some("text/csv; charset=utf-8"));
/// ```
///
/// The name may be anything, for instance what a client called its upload: folders are cut off, and
/// characters that could break the field or deceive the reader are replaced.
///
/// A client whose download broke off gets the rest (RFC 9110 section 14), and one that has the file hears
/// that it has not changed: a file has an `ETag` and a `Last-Modified` for that. Bytes have them where the
/// handler sets one:
///
/// ```
/// use cloudgate::{App, Download, IntoResponse, Request, Response, Status, route};
///
/// #[route("/report")]
/// fn report() -> Response {
///     Download::bytes("report.csv", "a;b\n1;2\n").into_response().header("ETag", "\"2026-11\"")
/// }
///
/// let rest = Request::get("/report").with_header("Range", "bytes=4-").with_header("If-Range", "\"2026-11\"");
/// let response = App::gather().call(&mut { rest });
/// assert_eq!(response.status(), Status::PARTIAL_CONTENT);
/// assert_eq!(response.text(), "1;2\n");
/// ```
pub struct Download {
    name: String,
    content_type: Option<String>,
    source: Source,
}

enum Source {
    Bytes(Bytes),
    Path(PathBuf),
}

impl Download {
    /// A file of the disk, under its own name. It is opened when the reply is sent, while the worker
    /// serves others; one that is missing, or no regular file, is a 404.
    ///
    /// The path is the program's: what a client sends must not become a part of it, not even
    /// checked. To serve what is in a folder there is [`Files`](crate::Files).
    ///
    /// ```
    /// # use cloudgate::{App, Download, Request, route};
    /// #[route("/manifest")]
    /// fn manifest() -> Download {
    ///     Download::file("Cargo.toml").named("manifest.txt")
    /// }
    /// # let response = App::gather().call(&mut Request::get("/manifest"));
    /// # assert!(response.text().contains("[package]"));
    /// ```
    pub fn file(path: impl AsRef<Path>) -> Download {
        let path = path.as_ref();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Download {
            name: name.into_owned(),
            content_type: None,
            source: Source::Path(path.to_owned()),
        }
    }

    /// These bytes, under this name.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Bytes>) -> Download {
        Download {
            name: name.into(),
            content_type: None,
            source: Source::Bytes(bytes.into()),
        }
    }

    /// The same download under another name.
    pub fn named(mut self, name: impl Into<String>) -> Download {
        self.name = name.into();
        self
    }

    /// The same download with this media type instead of the one that its name stands for.
    pub fn of_type(mut self, media_type: impl Into<String>) -> Download {
        self.content_type = Some(media_type.into());
        self
    }
}

/// Opens a regular file; a pipe or a device is not waited for.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "this is no regular file",
        ));
    }
    Ok((file, metadata))
}

impl IntoResponse for Download {
    fn into_response(self) -> Response {
        let name = harmless(&self.name);
        let content_type = self
            .content_type
            .unwrap_or_else(|| mime::content_type(name.as_ref()));
        let mut validators = None;
        let body = match self.source {
            Source::Bytes(bytes) => Body::Bytes(bytes),
            Source::Path(path) => {
                let opened = blocking(move || {
                    open(&path)
                        .map_err(|error| (error.kind(), format!("{}: {error}", path.display())))
                });
                match opened {
                    Ok((file, metadata)) => {
                        let version = FileVersion::of(&metadata);
                        let tag = version.entity_tag(SystemTime::now());
                        validators = Some(Validators::new(tag, metadata.modified().ok()));
                        let range = FileRange::new(file, 0, version.length());
                        Body::File(range.of_version(version))
                    }
                    Err((io::ErrorKind::NotFound | io::ErrorKind::NotADirectory, text)) => {
                        log::debug!("there is nothing to download: {text}");
                        return Response::error(StatusCode::NOT_FOUND);
                    }
                    Err((_, text)) => {
                        log::error!("a download could not be opened: {text}");
                        return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
                    }
                }
            }
        };
        let mut response = Response::of_type(&content_type, body)
            .header("Content-Disposition", &disposition(&name))
            .header("X-Content-Type-Options", "nosniff");
        if let Some(validators) = validators {
            response = response.header("ETag", validators.tag());
            if let Some(date) = validators.date() {
                response = response.header("Last-Modified", date);
            }
        }
        response.note = Note::Whole;
        response
    }
}

/// Leaves of a download what the request asks for.
#[cold]
pub(super) fn finish(request: &Request<'_>, response: &mut Response) {
    response.note = Note::None;
    let headers = response.headers();
    let tag = headers.get("etag").unwrap_or_default();
    let date = headers.get("last-modified");
    let modified = date.and_then(|text| httpdate::parse_http_date(text).ok());
    // Two answers need not be the same where nothing tells them apart. And what came of a method that
    // changes something is not what its conditions were about.
    if response.status() != StatusCode::OK
        || (tag.is_empty() && modified.is_none())
        || !matches!(*request.method(), Method::GET | Method::HEAD)
    {
        return;
    }
    let validators = Validators::new(tag.to_owned(), modified);
    let whole = std::mem::take(response).header("Accept-Ranges", "bytes");
    *response = partial::answer(request, &validators, whole, reader::open);
}

impl From<Download> for Response {
    fn from(download: Download) -> Response {
        download.into_response()
    }
}

/// The last part of a name, without what could deceive the reader or the client's disk.
fn harmless(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or("");
    let mut harmless: String = last
        .chars()
        .map(|character| match character {
            // These turn the direction of the text, so that `exe.txt` may be shown for `txt.exe`.
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '_',
            _ if character.is_control() => '_',
            _ => character,
        })
        .collect();
    let mut end = LONGEST_NAME.min(harmless.len());
    while !harmless.is_char_boundary(end) {
        end -= 1;
    }
    harmless.truncate(end);
    if harmless.trim_matches(['.', ' ']).is_empty() {
        return "download".to_owned();
    }
    harmless
}

/// The value of Content-Disposition (RFC 6266): the name in ASCII for every client, and in full for
/// those that read `filename*` (RFC 8187), which wins.
fn disposition(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|character| match character {
            // Quotes and backslashes are read differently by each client, and some decode a `%`
            // (RFC 6266 appendix D).
            '"' | '\\' | '%' => '_',
            ' '..='~' => character,
            _ => '_',
        })
        .collect();
    let mut value = format!("attachment; filename=\"{plain}\"");
    if plain != name {
        value.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            // RFC 8187 section 3.2.1: attr-char.
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                value.push(byte as char);
            } else {
                value.push_str(percent_encoding::percent_encode_byte(byte));
            }
        }
    }
    value
}

impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Download");
        shown.field("name", &self.name);
        match &self.source {
            Source::Bytes(bytes) => shown.field("bytes", &bytes.len()),
            Source::Path(path) => shown.field("path", path),
        };
        shown.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(name: &str) -> String {
        let response = Download::bytes(name, "x").into_response();
        assert_eq!(response.status(), 200, "{name:?}");
        let value = response.headers().get("content-disposition");
        value
            .unwrap()
            .strip_prefix("attachment; ")
            .unwrap()
            .to_owned()
    }

    #[test]
    fn names_are_sent_in_both_spellings_where_they_need_it() {
        for (name, want) in [
            ("a.txt", r#"filename="a.txt""#),
            ("a b, c; d='e'.txt", r#"filename="a b, c; d='e'.txt""#),
            (
                "caf\u{e9} \u{20ac}.txt",
                r#"filename="caf_ _.txt"; filename*=UTF-8''caf%C3%A9%20%E2%82%AC.txt"#,
            ),
            (
                "100%.txt",
                r#"filename="100_.txt"; filename*=UTF-8''100%25.txt"#,
            ),
            (
                "a\"b.txt",
                r#"filename="a_b.txt"; filename*=UTF-8''a%22b.txt"#,
            ),
        ] {
            assert_eq!(sent(name), want);
        }
    }

    #[test]
    fn hostile_names_become_harmless() {
        for (name, want) in [
            ("../../etc/passwd", r#"filename="passwd""#),
            ("C:\\Windows\\a.dll", r#"filename="a.dll""#),
            ("..", r#"filename="download""#),
            ("a/", r#"filename="download""#),
            ("", r#"filename="download""#),
            (" . ", r#"filename="download""#),
            ("a\r\nSet-Cookie: b=c", r#"filename="a__Set-Cookie: b=c""#),
            ("a\0\u{7f}\u{85}.txt", r#"filename="a___.txt""#),
            ("gpj.\u{202e}exe", r#"filename="gpj._exe""#),
            (
                "a\"; filename=\"b",
                r#"filename="a_; filename=_b"; filename*=UTF-8''a%22%3B%20filename%3D%22b"#,
            ),
        ] {
            assert_eq!(sent(name), want, "{name:?}");
        }
    }

    #[test]
    fn a_name_of_255_bytes_is_sent_whole_and_a_longer_one_cut_at_a_character() {
        let name = "x".repeat(255);
        assert_eq!(harmless(&name), name);
        assert_eq!(harmless(&(name.clone() + "y")), name);
        assert_eq!(harmless(&("x".repeat(254) + "\u{e9}")), "x".repeat(254));
    }

    fn finished(response: Response, method: Method, fields: &[(&str, &str)]) -> Response {
        let mut response = response;
        let request = fields
            .iter()
            .fold(Request::new(method, "/"), |request, (name, value)| {
                request.with_header(name, value)
            });
        crate::app::core::finish(&request, &mut response);
        response
    }

    #[test]
    fn a_file_can_be_gone_on_with_and_need_not_come_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "0123456789").unwrap();
        let date = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(784_111_777);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(date).unwrap();
        let whole = || Download::file(&path).into_response();
        let tag = whole().headers().get("etag").unwrap().to_owned();
        let response = finished(whole(), Method::GET, &[]);
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers().get("accept-ranges"), Some("bytes"));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(response.headers().get("last-modified"), Some(date));
        let rest = [("Range", "bytes=8-"), ("If-Range", date)];
        let response = finished(whole(), Method::GET, &rest);
        assert_eq!(response.status(), 206);
        assert_eq!(
            response.headers().get("content-range"),
            Some("bytes 8-9/10")
        );
        assert!(response.headers().contains("content-disposition"));
        assert_eq!(response.text(), "89");
        for method in [Method::GET, Method::HEAD] {
            let response = finished(whole(), method, &[("If-None-Match", &tag)]);
            assert_eq!(response.status(), 304);
            assert_eq!(response.headers().get("etag"), Some(&*tag));
        }
        // An answer to a form is not what conditions are about.
        let response = finished(whole(), Method::POST, &[("If-None-Match", &tag)]);
        assert_eq!(response.status(), 200);
        let response = finished(whole(), Method::GET, &[("Range", "bytes=10-")]);
        assert_eq!(response.status(), 416);
        // Another body, or another status, is not the file any more.
        let other = finished(
            whole().with_body("other"),
            Method::GET,
            &[("Range", "bytes=1-1")],
        );
        assert_eq!(other.text(), "other");
        let made = whole().with_status(StatusCode::CREATED);
        assert_eq!(
            finished(made, Method::GET, &[("Range", "bytes=1-1")]).status(),
            201
        );
    }

    #[test]
    fn bytes_come_in_parts_where_something_tells_their_version() {
        let fields = [("Range", "bytes=1-2")];
        let whole = || Download::bytes("a", "0123456789").into_response();
        let response = finished(whole(), Method::GET, &fields);
        assert_eq!(response.headers().get("accept-ranges"), None);
        assert_eq!(response.text(), "0123456789");
        let named = whole().header("ETag", "\"a\"");
        assert_eq!(finished(named, Method::GET, &fields).text(), "12");
    }

    #[test]
    fn what_is_missing_or_no_regular_file_is_a_404() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        for path in [
            folder.path().join("missing"),
            folder.path().to_owned(),
            pipe,
        ] {
            let response = Download::file(&path).into_response();
            assert_eq!(response.status(), 404, "{}", path.display());
        }
        let file = folder.path().join("a.html");
        std::fs::write(&file, "<p>").unwrap();
        let response = Download::file(&file).of_type("text/x").into_response();
        assert_eq!(response.headers().get("content-type"), Some("text/x"));
        assert_eq!(response.text(), "<p>");
        let below = Download::file(file.join("b")).into_response();
        assert_eq!(below.status(), 404);
    }

    proptest::proptest! {
        #[test]
        fn any_name_makes_a_field_of_two_parts_at_most(name in "\\PC{0,20}|[ -~]{0,20}|.{0,300}") {
            let value = sent(&name);
            let (plain, full) = value.split_once("\"; ").map_or((&*value, None), |(plain, full)| (plain, Some(full)));
            let plain = plain.strip_prefix("filename=\"").unwrap().trim_end_matches('"');
            proptest::prop_assert!(!plain.is_empty() && !plain.contains(['"', '\\', '/']));
            if let Some(full) = full {
                let full = full.strip_prefix("filename*=UTF-8''").unwrap();
                proptest::prop_assert!(!full.contains([';', '"', ' ', '/', '\'']));
            }
        }
    }
}
