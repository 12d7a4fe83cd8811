//! Does the connection live on, and what is still answered where it does not?

use super::Sent::{Get, Made, Post, Wire};
use super::{Row, check, row};

#[test]
fn rows() {
    check(ROWS);
}

macro_rules! ten {
    () => {
        "200 GET /a, 200 GET /a, 200 GET /a, 200 GET /a, 200 GET /a, \
         200 GET /a, 200 GET /a, 200 GET /a, 200 GET /a, 200 GET /a, "
    };
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // What the client wants
    row("Connection: close", "9112 9.6", Get("X: a\r\nConnection: close\r\n"), "200 close a; Finished"),
    row("Connection: close with a tab behind", "9112 9.6", Get("X: a\r\nConnection: close\t\r\n"), "200 close a; Finished"),
    row("Connection: Close, in mixed case", "9110 7.6.1", Get("X: a\r\ncONNECTION: CloSe\r\n"), "200 close a; Finished"),
    row("close in a list", "9110 7.6.1", Get("X: a\r\nConnection: foo, close\r\n"), "200 close a; Finished"),
    row("close in a list without spaces", "9110 7.6.1", Get("X: a\r\nConnection: foo,close,bar\r\n"), "200 close a; Finished"),
    row("close in a list with empty members", "9110 5.6.1", Get("X: a\r\nConnection: , ,close,\r\n"), "200 close a; Finished"),
    row("close in a second Connection field", "9110 5.3", Get("X: a\r\nConnection: foo\r\nConnection: close\r\n"), "200 close a; Finished"),
    row("close behind an empty Connection field", "9110 5.3", Get("X: a\r\nConnection:\r\nConnection: close\r\n"), "200 close a; Finished"),
    row("close wins over keep-alive", "9112 9.3", Get("X: a\r\nConnection: keep-alive, close\r\n"), "200 close a; Finished"),
    row("close wins over keep-alive behind it", "9112 9.3", Get("X: a\r\nConnection: close, keep-alive\r\n"), "200 close a; Finished"),
    row("Connection: keep-alive in HTTP/1.1", "9112 9.3", Get("X: a\r\nConnection: keep-alive\r\n"), "200 a; open"),
    row("an empty Connection field", "9112 9.3", Get("X: a\r\nConnection:\r\n"), "200 a; open"),
    row("a word that begins with close", "9110 7.6.1", Get("X: a\r\nConnection: closed\r\n"), "200 a; open"),
    row("a word that ends with close", "9110 7.6.1", Get("X: a\r\nConnection: do-not-close\r\n"), "200 a; open"),
    row("close in quotes", "9110 7.6.1", Get("X: a\r\nConnection: \"close\"\r\n"), "200 a; open"),
    row("close in another field", "9110 7.6.1", Get("X: close\r\nProxy-Connection: close\r\nKeep-Alive: close\r\n"), "200 close; open"),
    row("a space behind the name Connection", "9112 5.1", Get("Connection : close\r\n"), "400 close; Refused(InvalidFieldName)"),
    row("close with a bare CR in front", "9112 2.2", Get("X: a\rConnection: close\r\n"), "400 close; Refused(InvalidFieldValue)"),
    row("HTTP/1.0", "9112 9.3", Wire("GET /a HTTP/1.0\r\n\r\n"), "200 close GET /a; Finished"),
    row("HTTP/1.0 with keep-alive", "9112 C.2.2", Wire("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), "200 keep-alive GET /a; open"),
    row("HTTP/1.0 with Keep-Alive in mixed case", "9112 C.2.2", Wire("GET /a HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), "200 keep-alive GET /a; open"),
    row("HTTP/1.0 with keep-alive in a list", "9112 C.2.2", Wire("GET /a HTTP/1.0\r\nConnection: foo, keep-alive\r\n\r\n"), "200 keep-alive GET /a; open"),
    row("HTTP/1.0 with keep-alive and close", "9112 9.3", Wire("GET /a HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"), "200 close GET /a; Finished"),
    row("HTTP/1.0 with a Keep-Alive field alone", "9112 C.2.2", Wire("GET /a HTTP/1.0\r\nKeep-Alive: timeout=5\r\n\r\n"), "200 close GET /a; Finished"),
    row("HTTP/1.2 with close", "9110 2.5", Wire("GET /a HTTP/1.2\r\nHost: h\r\nConnection: close\r\n\r\n"), "200 close GET /a; Finished"),
    row("an unknown upgrade", "9110 7.8", Get("X: a\r\nConnection: upgrade\r\nUpgrade: foo/1\r\n"), "200 a; open"),
    row("an upgrade to h2c", "9113 3.1", Get("X: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"), "200 a; open"),
    row("an upgrade that the Connection field does not name", "9110 7.8", Get("X: a\r\nUpgrade: websocket\r\n"), "200 a; open"),
    row("an upgrade of HTTP/1.0", "9110 7.8", Wire("GET /a HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"), "200 close GET /a; Finished"),
    row("an unknown upgrade with a body", "9110 7.8", Post("Connection: upgrade\r\nUpgrade: foo/1\r\nContent-Length: 5\r\n", "hello"), "200 hello; open"),

    // Pipelines
    row("requests of several kinds", "9112 9.3.2", Wire("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n\
        POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloHEAD /2 HTTP/1.1\r\nHost: h\r\n\r\n\
        PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\nDELETE /3 HTTP/1.1\r\nHost: h\r\n\r\n"),
        "200 GET /1, 200 hello, 204, 200 hi, 200 DELETE /3; open"),
    row("line ends between requests", "9112 2.2", Wire("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na\r\n\
        POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nb\r\n\r\nGET /c HTTP/1.1\r\nHost: h\r\n\r\n"), "200 a, 200 b, 200 GET /c; open"),
    row("a NUL between requests", "9112 2.2", Wire("GET /a HTTP/1.1\r\nHost: h\r\n\r\n\0GET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200 GET /a, 400 close; Refused(InvalidRequestLine)"),
    row("a space between requests", "9112 2.2", Wire("GET /a HTTP/1.1\r\nHost: h\r\n\r\n GET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200 GET /a, 400 close; Refused(InvalidRequestLine)"),
    row("a bare LF between requests", "9112 2.2", Wire("GET /a HTTP/1.1\r\nHost: h\r\n\r\n\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200 GET /a, 400 close; Refused(InvalidLineEnd)"),
    row("a bare CR between requests", "9112 2.2", Wire("GET /a HTTP/1.1\r\nHost: h\r\n\r\n\rGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200 GET /a, 400 close; Refused(InvalidLineEnd)"),
    row("nothing is answered behind close", "9112 9.6", Wire("GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200 close GET /a; Finished"),
    row("nothing is answered behind a body with close", "9112 9.6", Wire("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nConnection: close\r\n\r\na\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200 close a; Finished"),
    row("nothing is answered behind HTTP/1.0", "9112 9.3", Wire("GET /a HTTP/1.0\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200 close GET /a; Finished"),
    row("HTTP/1.1 behind HTTP/1.0 with keep-alive", "9112 9.3", Wire("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200 keep-alive GET /a, 200 GET /b; open"),
    row("HTTP/1.0 behind HTTP/1.1", "9112 9.3", Wire("GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.0\r\n\r\n"), "200 GET /a, 200 close GET /b; Finished"),
    row("nothing is answered behind malformed chunks", "9112 7.1", Wire("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "400 close; Finished"),
    row("nothing is answered behind a body past its limit", "9110 15.5.14", Wire("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2097153\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "413 close; Finished"),
    row("nothing is answered behind CONNECT", "9110 9.3.6", Wire("GET /a HTTP/1.1\r\nHost: h\r\n\r\nCONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200 GET /a, 501 close; Refused(Connect)"),
    row("nothing is answered behind an unknown version", "9110 2.5", Wire("GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/2.0\r\nHost: h\r\n\r\nGET /c HTTP/1.1\r\nHost: h\r\n\r\n"), "200 GET /a, 505 close; Refused(UnsupportedVersion)"),
    row("nothing is answered behind an unknown expectation", "9110 10.1.1", Wire("GET /a HTTP/1.1\r\nHost: h\r\nExpect: b\r\n\r\nGET /c HTTP/1.1\r\nHost: h\r\n\r\n"), "417 close; Refused(UnknownExpectation)"),
    row("a chunked body that hides a request behind its end", "9112 7.1", Wire("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"), "200, 200 GET /b; open"),
    row("forty requests, and then an invalid one in front of others", "9112 9.3.2", Made(|| format!("{0}GET /b\r\n\r\n{0}", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n".repeat(40))), FORTY_AND_REFUSED),

    // What does not come
    row("half a request", "9112 8", Wire("GET /a HTTP/1.1\r\nHost: h\r\n"), "; open").pauses(),
    row("half a request line", "9112 8", Wire("GET /a HT"), "; open").pauses(),
    row("half an empty line in front", "9112 2.2", Wire("\r"), "; open").pauses(),
    row("a whole request and half of another", "9112 8", Wire("GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHo"), "200 GET /a; open").pauses(),
    row("a head that the client cuts off", "9112 8", Wire("GET /a HTTP/1.1\r\nHost: h\r\n"), "; Truncated").ends(),
    row("a request line that the client cuts off", "9112 8", Wire("GET /a HTTP/1.1"), "; Truncated").ends(),
    row("a field that the client cuts off", "9112 8", Wire("GET /a HTTP/1.0\r\nX"), "; Truncated").ends(),
    row("a client that ends behind its request", "9112 9.6", Wire("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"), "200 GET /a; Peer").ends(),
    row("a client that ends without a word", "", Wire(""), "; Peer").ends(),
    row("a client that ends behind an empty line", "9112 2.2", Wire("\r\n"), "; Truncated").ends(),
];

/// More than a turn takes.
const FORTY_AND_REFUSED: &str = concat!(
    ten!(),
    ten!(),
    ten!(),
    ten!(),
    "400 close; Refused(InvalidRequestLine)"
);
