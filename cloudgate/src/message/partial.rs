//! How much of an answer does a request ask for: all, a part, or only to hear that nothing changed?
//!
//! ```text
//!  conditional::evaluate ─▶ 304, 412
//!                        └▶ conditional::range_holds ─▶ range::select ─▶ 200, 206, 416
//! ```

use http::{Method, StatusCode};

use super::byteranges::{self, OpenPiece};
use super::conditional::{self, Outcome, Validators};
use super::range::{self, Selection};
use super::{Request, Response};

/// What is left of `whole`, a 200 with all its fields and its whole body, for this request.
pub(crate) fn answer(
    request: &Request<'_>,
    validators: &Validators,
    whole: Response,
    open: OpenPiece,
) -> Response {
    match conditional::evaluate(request, validators) {
        Outcome::Send => part(request, validators, whole, open),
        Outcome::NotModified => not_modified(whole),
        Outcome::PreconditionFailed => Response::error(StatusCode::PRECONDITION_FAILED),
    }
}

/// The 304 that stands for this answer: without the fields that describe a body which is not sent
/// (RFC 9110 section 15.4.5).
pub(crate) fn not_modified(mut whole: Response) -> Response {
    for name in ["Content-Type", "Content-Disposition"] {
        whole.headers_mut().remove(name);
    }
    whole.with_body("").with_status(StatusCode::NOT_MODIFIED)
}

/// As [`answer`], for a request whose conditions hold. An answer whose body is neither in memory nor a
/// file stays whole.
pub(crate) fn part(
    request: &Request<'_>,
    validators: &Validators,
    whole: Response,
    open: OpenPiece,
) -> Response {
    let headers = request.headers();
    // Ranges are defined for GET alone (RFC 9110 section 14.2).
    if *request.method() != Method::GET
        || !headers.contains("range")
        || !conditional::range_holds(headers, validators)
    {
        return whole;
    }
    let Some(length) = whole.body().length() else {
        return whole;
    };
    let sliced = match range::select(headers, length) {
        Selection::Whole => None,
        Selection::One(range) => byteranges::slice(whole.body(), &range).map(|body| {
            (
                "Content-Range",
                byteranges::content_range(&range, length),
                body,
            )
        }),
        Selection::Many(ranges) => {
            let content_type = whole.headers().get("content-type");
            byteranges::body(whole.body(), content_type, &ranges, open)
                .map(|(content_type, body)| ("Content-Type", content_type, body))
        }
        Selection::Unsatisfiable => return unsatisfiable(length),
    };
    match sliced {
        Some((name, value, body)) => whole
            .header(name, &value)
            .with_body(body)
            .with_status(StatusCode::PARTIAL_CONTENT),
        None => whole,
    }
}

/// The answer to ranges that have no byte (RFC 9110 section 15.5.17).
fn unsatisfiable(length: u64) -> Response {
    Response::error(StatusCode::RANGE_NOT_SATISFIABLE)
        .header("Content-Range", &format!("bytes */{length}"))
        .header("Accept-Ranges", "bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Body, FileRange};
    use std::io::{self, Read, Write};
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};

    fn never(_: FileRange) -> Box<dyn Read + Send> {
        Box::new(io::empty())
    }

    fn whole() -> Response {
        Response::of_type("text/plain", "0123456789")
            .header("ETag", "\"a\"")
            .header("Content-Disposition", "attachment")
    }

    #[track_caller]
    fn answered(method: Method, fields: &[(&str, &str)]) -> Response {
        let request = fields
            .iter()
            .fold(Request::new(method, "/"), |request, (name, value)| {
                request.with_header(name, value)
            });
        let modified = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let validators = Validators::new("\"a\"".to_owned(), Some(modified));
        answer(&request, &validators, whole(), never)
    }

    #[test]
    fn each_request_gets_what_it_asks_for() {
        for (fields, want) in [
            (&[][..], "200 - 0123456789"),
            (&[("Range", "bytes=2-4")], "206 bytes 2-4/10 234"),
            (&[("Range", "bytes=-3")], "206 bytes 7-9/10 789"),
            (&[("Range", "bytes=0-")], "206 bytes 0-9/10 0123456789"),
            (&[("Range", "lines=2-4")], "200 - 0123456789"),
            (
                &[("Range", "bytes=10-")],
                "416 bytes */10 416 Range Not Satisfiable\n",
            ),
            (
                &[("Range", "bytes=2-4"), ("If-Range", "\"a\"")],
                "206 bytes 2-4/10 234",
            ),
            (
                &[("Range", "bytes=2-4"), ("If-Range", "\"b\"")],
                "200 - 0123456789",
            ),
            // A range of another version cannot be unsatisfiable in this one.
            (
                &[("Range", "bytes=10-"), ("If-Range", "\"b\"")],
                "200 - 0123456789",
            ),
            // Conditions come first (RFC 9110 section 13.2.2).
            (
                &[("Range", "bytes=10-"), ("If-None-Match", "\"a\"")],
                "304 - ",
            ),
            (
                &[("Range", "bytes=2-4"), ("If-Match", "\"b\"")],
                "412 - 412 Precondition Failed\n",
            ),
            // An If-Range without a Range is ignored (section 13.1.5).
            (&[("If-Range", "\"b\"")], "200 - 0123456789"),
        ] {
            let response = answered(Method::GET, fields);
            let range = response.headers().get("content-range").unwrap_or("-");
            let start = format!("{} {range} ", response.status().as_u16());
            assert_eq!(start + &response.text(), want, "{fields:?}");
        }
    }

    #[test]
    fn only_get_has_ranges() {
        for method in [Method::HEAD, Method::POST] {
            let response = answered(method, &[("Range", "bytes=2-4")]);
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers().get("content-range"), None);
            assert_eq!(response.body().length(), Some(10));
        }
    }

    #[test]
    fn fields_fit_the_status() {
        let response = answered(Method::GET, &[("Range", "bytes=2-4")]);
        assert_eq!(response.headers().get("content-type"), Some("text/plain"));
        assert_eq!(response.headers().get("etag"), Some("\"a\""));
        let response = answered(Method::GET, &[("If-None-Match", "*")]);
        assert_eq!(response.headers().get("etag"), Some("\"a\""));
        assert_eq!(response.headers().len(), 1);
        let response = answered(Method::GET, &[("Range", "bytes=10-")]);
        assert_eq!(response.headers().get("accept-ranges"), Some("bytes"));
        assert_eq!(response.headers().get("etag"), None);
    }

    #[test]
    fn several_ranges_of_a_long_answer_come_in_parts() {
        let request = Request::get("/").with_header("Range", "bytes=0-1, 500-501");
        let validators = Validators::new("\"a\"".to_owned(), None);
        let whole = Response::of_type("text/plain", "x".repeat(1000));
        let response = answer(&request, &validators, whole, never);
        assert_eq!(response.status(), 206);
        let fields = response.headers();
        assert_eq!((fields.len(), fields.get("content-range")), (1, None));
        let content_type = fields.get("content-type").unwrap();
        assert!(content_type.starts_with("multipart/byteranges; boundary="));
        let text = response.text();
        assert_eq!(text.matches("Content-Type: text/plain\r\n").count(), 2);
        assert!(text.contains("Content-Range: bytes 500-501/1000\r\n\r\nxx\r\n--"));
    }

    #[test]
    fn a_piece_of_a_file_stays_a_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"..0123456789").unwrap();
        let request = Request::get("/").with_header("Range", "bytes=2-4");
        let validators = Validators::new("\"a\"".to_owned(), None);
        let whole = Response::file(FileRange::new(Arc::new(file), 2, 10));
        let response = answer(&request, &validators, whole, never);
        assert!(matches!(response.body(), Body::File(range) if range.offset == 4));
        assert_eq!(response.text(), "234");
    }

    #[test]
    fn an_answer_of_unknown_pieces_stays_whole() {
        for ranges in ["bytes=0-1", "bytes=0-0,200-201"] {
            let request = Request::get("/").with_header("Range", ranges);
            let validators = Validators::new("\"a\"".to_owned(), None);
            let reader = Body::Reader {
                reader: Box::new(io::repeat(b'x')),
                length: Some(1000),
            };
            let whole = Response::default().with_body(reader);
            let response = answer(&request, &validators, whole, never);
            assert_eq!(
                (response.status().as_u16(), response.text().len()),
                (200, 1000)
            );
        }
    }
}
