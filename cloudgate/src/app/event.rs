//! What is the one object that an API function of the original server got?

use std::cell::OnceCell;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::extract::{FromRequest, essence, is_json};
use super::multipart::{self, PartHead, UploadedFile, boundary_of};
use super::params::Params;
use super::rejection::Rejection;
use crate::message::{Headers, Request, RequestHead};

/// Everything about a request in one value: method, path, address, query, headers, body.
///
/// It owns what it holds, so it can be kept, stored and sent to other threads' code; parameters are
/// parsed when they are first asked for. It serializes to the object that functions of the Node.js
/// server got: `method`, `path`, `ip`, `query`, `queryStringParameters`, `headers` (names in lower
/// case), a map named after the method (`GET`, `POST`, …), `body`, and `FILES`.
///
/// ```
/// # use cloudgate::{App, Event, Request, route};
/// #[route(GET, POST, "/greet")]
/// fn greet(event: Event) -> String {
///     format!("Hello {}!", event.params().get("name").unwrap_or("World"))
/// }
/// # let app = App::gather();
/// # assert_eq!(app.call(&mut Request::get("/greet?name=Ada")).text(), "Hello Ada!");
/// # let mut post = Request::post("/greet").with_json(&serde_json::json!({"name": "Bob"}));
/// # assert_eq!(app.call(&mut post).text(), "Hello Bob!");
/// ```
#[derive(Debug)]
pub struct Event {
    head: Arc<RequestHead>,
    ip: IpAddr,
    body: Option<Bytes>,
    // Boxed: most handlers ask for neither, and the event is moved a few times.
    query: OnceCell<Box<Params>>,
    posted: OnceCell<Box<Posted>>,
}

/// What the body of a request holds, parsed.
#[derive(Debug, Default)]
struct Posted {
    params: Params,
    files: Vec<UploadedFile>,
}

impl Event {
    /// The method, in upper case.
    pub fn method(&self) -> &str {
        self.head.method().as_str()
    }

    /// The path, percent-encoded.
    pub fn path(&self) -> &str {
        self.head.path()
    }

    /// The address of the other end of the connection.
    pub fn ip(&self) -> IpAddr {
        self.ip
    }

    /// The text behind the `?`; empty if there is none.
    pub fn query(&self) -> &str {
        self.head.query()
    }

    /// The query, parsed: a name that comes more than once has a list.
    pub fn query_string_parameters(&self) -> &Params {
        self.query
            .get_or_init(|| Box::new(Params::with_lists(self.query().as_bytes())))
    }

    /// The header fields.
    pub fn headers(&self) -> &Headers {
        self.head.headers()
    }

    /// The first value of a header field, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers().get(name)
    }

    /// The parameters, which the original named after the method: for GET and HEAD those of the
    /// query, the last value counting; for others those of the body, a form or a JSON object. What
    /// is neither has none.
    pub fn params(&self) -> &Params {
        &self.posted().params
    }

    /// The body as it was sent; `None` if there was none.
    pub fn body(&self) -> Option<&Bytes> {
        self.body.as_ref()
    }

    /// The files of a `multipart/form-data` body, which share the memory of [`Event::body`]. A form with
    /// large ones is better taken as [`Multipart`](crate::Multipart), which keeps them on disk.
    pub fn files(&self) -> &[UploadedFile] {
        &self.posted().files
    }

    fn posted(&self) -> &Posted {
        self.posted
            .get_or_init(|| Box::new(self.parse_parameters()))
    }

    fn parse_parameters(&self) -> Posted {
        if matches!(*self.head.method(), Method::GET | Method::HEAD) {
            return Posted {
                params: Params::with_last(self.query().as_bytes()),
                files: Vec::new(),
            };
        }
        self.body
            .as_ref()
            .map(|body| self.parse(body))
            .unwrap_or_default()
    }

    fn parse(&self, body: &Bytes) -> Posted {
        let content_type = self.header("content-type").unwrap_or("");
        let essence = essence(content_type);
        if essence.eq_ignore_ascii_case("multipart/form-data") {
            return boundary_of(content_type)
                .and_then(|boundary| multipart::parse(body, &boundary).ok())
                .map(Posted::from)
                .unwrap_or_default();
        }
        let form = essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
            && !is_json(content_type);
        // As the original did, a body of any other type is tried as JSON.
        let params = if form {
            Params::with_last(body)
        } else {
            Params::from_json(body)
        };
        Posted {
            params,
            files: Vec::new(),
        }
    }
}

impl From<Vec<(PartHead, Bytes)>> for Posted {
    fn from(parts: Vec<(PartHead, Bytes)>) -> Posted {
        let mut posted = Posted::default();
        let mut fields = Vec::new();
        for (head, data) in parts {
            if head.filename.is_some() {
                posted.files.push(UploadedFile::in_memory(head, data));
            } else {
                let text = String::from_utf8_lossy(&data).into_owned();
                fields.push((head.name, Value::String(text)));
            }
        }
        posted.params = fields.into_iter().collect();
        posted
    }
}

impl FromRequest for Event {
    type Rejection = Rejection;

    fn from_request(request: &mut Request<'_>) -> Result<Event, Rejection> {
        let body = match request.body().length() {
            Some(0) => None,
            _ => Some(request.body().read_all()?),
        };
        Ok(Event {
            head: request.shared_head(),
            ip: request.peer().ip().to_canonical(),
            body,
            query: OnceCell::new(),
            posted: OnceCell::new(),
        })
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(9))?;
        map.serialize_entry("method", self.method())?;
        map.serialize_entry("path", self.path())?;
        map.serialize_entry("ip", &self.ip)?;
        map.serialize_entry("query", self.query())?;
        map.serialize_entry("queryStringParameters", self.query_string_parameters())?;
        map.serialize_entry("headers", &headers_object(self.headers()))?;
        map.serialize_entry(self.method(), self.params())?;
        map.serialize_entry("body", &self.body.as_deref().map(String::from_utf8_lossy))?;
        map.serialize_entry("FILES", self.files())?;
        map.end()
    }
}

/// The fields with names in lower case; repeated ones joined as RFC 9110 section 5.3 says, and
/// cookies by `; ` (RFC 6265 section 5.4).
fn headers_object(headers: &Headers) -> Map<String, Value> {
    let mut object = Map::new();
    for (name, value) in headers.iter() {
        let name = name.to_ascii_lowercase();
        let text = String::from_utf8_lossy(value);
        match object.get_mut(&name) {
            Some(Value::String(known)) => {
                known.push_str(if name == "cookie" { "; " } else { ", " });
                known.push_str(&text);
            }
            _ => {
                object.insert(name, Value::String(text.into_owned()));
            }
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(mut request: Request<'_>) -> Event {
        Event::from_request(&mut request).unwrap()
    }

    #[test]
    fn serializes_to_the_object_of_the_original() {
        let request = Request::get("/api/tests/simple?myParam1=123&a=1&a=2")
            .with_header("Host", "localhost:3000")
            .with_header("Cookie", "a=b")
            .with_header("COOKIE", "c=d")
            .with_header("Accept", "x")
            .with_header("Accept", "y");
        assert_eq!(
            json!(event(request)),
            json!({
                "method": "GET",
                "path": "/api/tests/simple",
                "ip": "127.0.0.1",
                "query": "myParam1=123&a=1&a=2",
                "queryStringParameters": {"myParam1": "123", "a": ["1", "2"]},
                "headers": {"host": "localhost:3000", "cookie": "a=b; c=d", "accept": "x, y"},
                "GET": {"myParam1": "123", "a": "2"},
                "body": null,
                "FILES": []
            })
        );
    }

    #[test]
    fn bodies_are_parsed_by_their_type() {
        for (content_type, body, want) in [
            ("application/json", r#"{"a": 1}"#, json!({"a": 1})),
            ("application/vnd.x+json", r#"{"a": 1}"#, json!({"a": 1})),
            (
                "application/x-www-form-urlencoded; charset=utf-8",
                "a=1&b=%20",
                json!({"a": "1", "b": " "}),
            ),
            ("text/plain", r#"{"a": 1}"#, json!({"a": 1})),
            ("text/plain", "hello", json!({})),
            ("application/json", "{", json!({})),
            ("multipart/form-data", "x", json!({})),
        ] {
            let request = Request::post("/?q=1")
                .with_header("Content-Type", content_type)
                .with_body(body);
            let event = event(request);
            assert_eq!(json!(event.params()), want, "{content_type} {body}");
            assert_eq!(json!(event)["POST"], want);
            assert_eq!(json!(event)["body"], body);
        }
    }

    #[test]
    fn files_of_a_form_are_apart_from_its_fields() {
        let body = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
            --x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\nContent-Type: text/plain\r\n\r\ndata\r\n--x--\r\n";
        let request = Request::post("/")
            .with_header("Content-Type", "multipart/form-data; boundary=x")
            .with_body(body);
        let event = event(request);
        assert_eq!(json!(event.params()), json!({"a": "1"}));
        assert_eq!(event.files().len(), 1);
        assert_eq!(event.files()[0].bytes().unwrap(), "data");
        assert_eq!(
            json!(event)["FILES"],
            json!([{"name": "f", "filename": "n.txt", "type": "text/plain", "size": 4}])
        );
    }
}
