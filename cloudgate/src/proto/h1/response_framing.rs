//! Where does a response's body end, and can its connection be used again?
//!
//! As strict as for requests: what could be read in two ways is refused, for a second answer hidden in the body of the
//! first would be given to somebody else's request.

use http::{Method, StatusCode};

use super::framing::{once, parse_length};
use super::response_head::ResponseHead;
use crate::message::Version;
use crate::proto::error::ParseError;

/// How the end of a response's body is known (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEnd {
    /// No body.
    None,
    /// This many bytes, never zero.
    Sized(u64),
    /// Chunks up to the last one.
    Chunked,
    /// The end of the connection.
    UntilClose,
}

/// What the fields of a response say about its message and connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseFraming {
    /// The response's body.
    pub body: ResponseEnd,
    /// The Content-Length, also where there is no body.
    pub length: Option<u64>,
    /// Whether the server allows further requests on the connection.
    pub keep_alive: bool,
}

impl ResponseFraming {
    /// Reads the framing of the answer to a request of this method.
    ///
    /// # Errors
    /// [`ParseError`] naming the rule when the framing is invalid or ambiguous.
    pub fn of(head: &ResponseHead, method: &Method) -> Result<ResponseFraming, ParseError> {
        let (mut length, mut coding) = (None, None);
        let (mut close, mut keep_alive) = (false, false);
        for (name, value) in head.headers.fields() {
            match name.len() {
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    let value = parse_length(value)?;
                    once(&mut length, value, ParseError::RepeatedContentLength)?;
                }
                17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                    once(&mut coding, value, ParseError::UnsupportedTransferCoding)?;
                }
                10 if name.eq_ignore_ascii_case(b"connection") => {
                    for member in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                        close |= member.eq_ignore_ascii_case(b"close");
                        keep_alive |= member.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                _ => {}
            }
        }
        if coding.is_some_and(|value| !value.eq_ignore_ascii_case(b"chunked")) {
            return Err(ParseError::UnsupportedTransferCoding);
        }
        if coding.is_some() && head.version == Version::Http10 {
            return Err(ParseError::TransferCodingInHttp10);
        }
        if coding.is_some() && length.is_some() {
            return Err(ParseError::AmbiguousFraming);
        }
        let status = head.status;
        let never = status.is_informational()
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED;
        let body = if never || *method == Method::HEAD {
            ResponseEnd::None
        } else {
            match (length, coding) {
                (_, Some(_)) => ResponseEnd::Chunked,
                (Some(0), None) => ResponseEnd::None,
                (Some(length), None) => ResponseEnd::Sized(length),
                (None, None) => ResponseEnd::UntilClose,
            }
        };
        let keep_alive = !close
            && (head.version == Version::Http11 || keep_alive)
            && body != ResponseEnd::UntilClose
            // A server that announces a body here may well send one, and it would be taken for the next answer.
            && !(status == StatusCode::NO_CONTENT && (coding.is_some() || length.unwrap_or(0) > 0));
        Ok(ResponseFraming {
            body,
            length,
            keep_alive,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::h1::parse_response;
    use crate::proto::limits::Limits;

    #[track_caller]
    fn check(
        method: Method,
        start: &str,
        fields: &str,
        want: Result<(ResponseEnd, bool), ParseError>,
    ) {
        let text = format!("{start}\r\n{fields}\r\n");
        let (_, head) = parse_response(text.as_bytes(), &Limits::DEFAULT)
            .unwrap()
            .expect("a complete head");
        let got = ResponseFraming::of(&head, &method).map(|f| (f.body, f.keep_alive));
        assert_eq!(got, want, "{method} {start} {fields:?}");
    }

    #[test]
    fn ends_of_bodies() {
        use ResponseEnd::*;
        let ok = "HTTP/1.1 200 OK";
        let get = |fields, want| check(Method::GET, ok, fields, want);
        get("Content-Length: 5\r\n", Ok((Sized(5), true)));
        get("Content-Length: 0\r\n", Ok((None, true)));
        get("Transfer-Encoding: Chunked\r\n", Ok((Chunked, true)));
        get("", Ok((UntilClose, false)));
        get(
            "Content-Length: 5\r\nConnection: x, Close\r\n",
            Ok((Sized(5), false)),
        );
        for (fields, want) in [
            (
                "Content-Length: 5\r\nContent-Length: 5\r\n",
                ParseError::RepeatedContentLength,
            ),
            ("Content-Length: 5x\r\n", ParseError::InvalidContentLength),
            (
                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                ParseError::AmbiguousFraming,
            ),
            (
                "Transfer-Encoding: gzip, chunked\r\n",
                ParseError::UnsupportedTransferCoding,
            ),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                ParseError::UnsupportedTransferCoding,
            ),
        ] {
            get(fields, Err(want));
        }
    }

    #[test]
    fn statuses_methods_and_versions_without_a_body() {
        use ResponseEnd::*;
        let length = "Content-Length: 5\r\n";
        check(Method::HEAD, "HTTP/1.1 200 OK", length, Ok((None, true)));
        check(
            Method::GET,
            "HTTP/1.1 304 Not Modified",
            length,
            Ok((None, true)),
        );
        check(Method::GET, "HTTP/1.1 204 No Content", "", Ok((None, true)));
        check(
            Method::GET,
            "HTTP/1.1 204 No Content",
            length,
            Ok((None, false)),
        );
        check(
            Method::GET,
            "HTTP/1.1 103 Early Hints",
            "",
            Ok((None, true)),
        );
        check(
            Method::GET,
            "HTTP/1.0 200 OK",
            length,
            Ok((Sized(5), false)),
        );
        let kept = "Content-Length: 5\r\nConnection: keep-alive\r\n";
        check(Method::GET, "HTTP/1.0 200 OK", kept, Ok((Sized(5), true)));
        check(
            Method::GET,
            "HTTP/1.0 200 OK",
            "Transfer-Encoding: chunked\r\n",
            Err(ParseError::TransferCodingInHttp10),
        );
    }
}
