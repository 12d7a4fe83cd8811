//! Which expectations are met, and which refused?
//!
//! That leave to send is given just when it is needed has a test in `bodies`; here a client sends
//! the body in any case.

use super::Sent::{Post, Wire};
use super::{Row, check, row};

#[test]
fn rows() {
    check(ROWS);
}

const UNKNOWN: &str = "417 close; Refused(UnknownExpectation)";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row("an expectation and a body", "9110 10.1.1", Post("Expect: 100-continue\r\nContent-Length: 5\r\n", "hello"), "200 hello; open"),
    row("an expectation and chunks", "9110 10.1.1", Post("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("an expectation in mixed case", "9110 10.1.1", Post("eXPECT: 100-Continue\r\nContent-Length: 5\r\n", "hello"), "200 hello; open"),
    row("an expectation, said twice", "9110 10.1.1", Post("Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 5\r\n", "hello"), "200 hello; open"),
    row("an expectation without a body", "9110 10.1.1", Post("Expect: 100-continue\r\n", ""), "200; open"),
    row("an expectation and a length of zero", "9110 10.1.1", Post("Expect: 100-continue\r\nContent-Length: 0\r\n", ""), "200; open"),
    row("an expectation of HTTP/1.0", "9110 10.1.1", Wire("POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello"), "200 close hello; Finished"),
    row("an expectation on a connection that closes", "9110 10.1.1", Post("Expect: 100-continue\r\nConnection: close\r\nContent-Length: 5\r\n", "hello"), "200 close hello; Finished"),
    row("an expectation and malformed chunks", "9112 7.1", Post("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "x\r\nhello\r\n0\r\n\r\n"), "400 close; Finished"),
    row("an expectation and a body past its limit", "9110 10.1.1", Post("Expect: 100-continue\r\nContent-Length: 2097153\r\n", ""), "413 close; Finished"),
    row("an expectation and a body that never comes", "9112 8", Post("Expect: 100-continue\r\nContent-Length: 5\r\n", ""), "400 close; Finished").ends(),
    row("an unknown expectation", "9110 10.1.1", Post("Expect: coffee\r\n", ""), UNKNOWN),
    row("an unknown expectation and a body", "9110 10.1.1", Post("Expect: 200-ok\r\nContent-Length: 5\r\n", "hello"), UNKNOWN),
    row("an unknown expectation beside a known one", "9110 10.1.1", Post("Expect: 100-continue\r\nExpect: coffee\r\nContent-Length: 5\r\n", "hello"), UNKNOWN),
    row("a list of a known expectation and an unknown one", "9110 10.1.1", Post("Expect: 100-continue, coffee\r\nContent-Length: 5\r\n", "hello"), UNKNOWN),
    row("a list of the known expectation twice", "9110 10.1.1", Post("Expect: 100-continue, 100-continue\r\nContent-Length: 5\r\n", "hello"), UNKNOWN)
        .because("a list is valid; nobody says it twice in one"),
    row("an empty expectation", "9110 10.1.1", Post("Expect:\r\nContent-Length: 5\r\n", "hello"), UNKNOWN)
        .because("an empty list is valid, and says nothing; no client sends it"),
    row("an unknown expectation of HTTP/1.0", "9110 10.1.1", Wire("POST /echo HTTP/1.0\r\nExpect: coffee\r\n\r\n"), UNKNOWN),
    row("an unknown expectation and an ambiguous framing", "9110 10.1.1",
        Post("Expect: coffee\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), UNKNOWN).because("400 would do as well: the connection ends in both cases"),
];
