//! Which request lines are lines of HTTP/1.1?

use super::Sent::{Line, Made, Wire};
use super::{Row, check, row};

#[test]
fn rows() {
    check(ROWS);
}

const LINE: &str = "400 close; Refused(InvalidRequestLine)";
const END: &str = "400 close; Refused(InvalidLineEnd)";
const VERSION: &str = "505 close; Refused(UnsupportedVersion)";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Methods
    row("an unregistered method", "9110 9.1", Line("PURGE /a HTTP/1.1"), "200 PURGE /a; open"),
    row("a method with a hyphen", "9110 9.1", Line("M-SEARCH /a HTTP/1.1"), "200 M-SEARCH /a; open"),
    row("a method of every kind of token character", "9110 5.6.2",
        Line("!#$%&'*+-.^_`|~09azAZ /a HTTP/1.1"), "200 !#$%&'*+-.^_`|~09azAZ /a; open"),
    row("a method that begins with a hyphen", "9110 5.6.2", Line("-GET /a HTTP/1.1"), "200 -GET /a; open")
        .because("gunicorn refuses it; it is a token"),
    row("a method of one letter", "9110 9.1", Line("A /a HTTP/1.1"), "200 A /a; open"),
    row("a known method in lower case is another one", "9110 9.1", Line("get /a HTTP/1.1"), "200 get /a; open"),
    row("TRACE is for the service to refuse", "9110 9.3.8", Line("TRACE /a HTTP/1.1"), "200 TRACE /a; open"),
    row("a method with an at sign", "9110 5.6.2", Line("GE@T /a HTTP/1.1"), LINE),
    row("a method with a colon inside", "9110 5.6.2", Line("GE:T /a HTTP/1.1"), LINE),
    row("a method that ends like a field name", "9110 5.6.2", Line("GET: /a HTTP/1.1"), LINE),
    row("a method in quotes", "9110 5.6.2", Line("\"GET\" /a HTTP/1.1"), LINE),
    row("a method in brackets", "9110 5.6.2", Line("[GET] /a HTTP/1.1"), LINE),
    row("a method with a slash", "9110 5.6.2", Line("GE/T /a HTTP/1.1"), LINE),
    row("a NUL inside a method", "9110 5.6.2", Line("GET\0POST /a HTTP/1.1"), LINE),
    row("a NUL behind a method", "9110 5.6.2", Line("GET\0 /a HTTP/1.1"), LINE),
    row("a DEL in a method", "9110 5.6.2", Line("GE\x7fT /a HTTP/1.1"), LINE),
    row("a method with a letter of Latin-1", "9110 5.6.2", Line("GET\u{df} /a HTTP/1.1"), LINE),
    row("a method with a letter of UTF-8", "9110 5.6.2", Line("GET\u{c3}\u{bf} /a HTTP/1.1"), LINE),
    row("no method", "9112 3.1", Line(" /a HTTP/1.1"), LINE),
    row("a method with its limit's length", "", Made(|| format!("{} /a HTTP/1.1\r\nHost: h\r\n\r\n", "A".repeat(8 << 10))), "200 8195 bytes; open"),
    row("a method one past its limit", "", Made(|| format!("{} /a HTTP/1.1\r\nHost: h\r\n\r\n", "A".repeat((8 << 10) + 1))), LINE),

    // Between the parts
    row("a space in front of the line", "9112 3", Line(" GET /a HTTP/1.1"), LINE),
    row("a tab in front of the line", "9112 3", Line("\tGET /a HTTP/1.1"), LINE),
    row("a space behind the version", "9112 3", Line("GET /a HTTP/1.1 "), END),
    row("a tab behind the version", "9112 3", Line("GET /a HTTP/1.1\t"), END),
    row("two spaces behind the method", "9112 3", Line("GET  /a HTTP/1.1"), LINE),
    row("two spaces behind the target", "9112 3", Line("GET /a  HTTP/1.1"), LINE),
    row("tabs between the parts", "9112 3", Line("GET\t/a\tHTTP/1.1"), LINE),
    row("a tab behind the target", "9112 3", Line("GET /a\tHTTP/1.1"), LINE),
    row("a vertical tab between the parts", "9112 3", Line("GET\x0b/a HTTP/1.1"), LINE),
    row("a form feed behind the target", "9112 3", Line("GET /a\x0cHTTP/1.1"), LINE),
    row("bare CRs between the parts", "9112 3", Line("GET\r/a\rHTTP/1.1"), LINE),
    row("bare LFs between the parts", "9112 3", Line("GET\n/a\nHTTP/1.1"), LINE),
    row("a non-breaking space between the parts", "9112 3", Line("GET\u{a0}/a HTTP/1.1"), LINE),
    row("a fourth part", "9112 3", Line("GET /a HTTP/1.1 HTTP/1.1"), END),
    row("a line folded in front of the version", "9112 3", Wire("GET /a\r\n HTTP/1.1\r\nHost: h\r\n\r\n"), LINE),
    row("a line without a target", "9112 3", Line("GET HTTP/1.1"), LINE),
    row("a line with an empty target", "9112 3", Line("GET  HTTP/1.1"), LINE),
    row("a line of a method alone", "9112 3", Line("GET"), LINE),
    row("a line of one space", "9112 3", Line(" "), LINE),

    // Versions
    row("HTTP/1.2 is 1.1 to us", "9110 2.5", Line("GET /a HTTP/1.2"), "200 GET /a; open"),
    row("HTTP/1.9 is 1.1 to us", "9110 2.5", Line("GET /a HTTP/1.9"), "200 GET /a; open"),
    row("HTTP/2.0 as text", "9110 2.5", Line("GET /a HTTP/2.0"), VERSION),
    row("HTTP/3.0 as text", "9110 2.5", Line("GET /a HTTP/3.0"), VERSION),
    row("a major version that nobody has", "9110 2.5", Line("GET /a HTTP/5.6"), VERSION),
    row("the preface of HTTP/2", "9113 3.4", Wire("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), VERSION),
    row("the preface of HTTP/2 that says 1.1", "9113 3.4", Line("PRI * HTTP/1.1"), "400 close; Refused(InvalidTarget)"),
    row("HTTP/0.9 by name", "9112 2.3", Line("GET /a HTTP/0.9"), VERSION),
    row("HTTP/0.9 as it was: no version", "9112 3", Wire("GET /a\r\n\r\n"), LINE)
        .because("llhttp takes it; nobody sends it but scanners"),
    row("a minor version with two digits", "9112 2.3", Line("GET /a HTTP/1.10"), END),
    row("version 0.99", "9112 2.3", Line("GET /a HTTP/0.99"), LINE),
    row("a major version with a leading zero", "9112 2.3", Line("GET /a HTTP/01.1"), LINE),
    row("a version with leading zeros", "9112 2.3", Line("GET /a HTTP/01.01"), LINE),
    row("a minor version with a leading zero", "9112 2.3", Line("GET /a HTTP/1.01"), END),
    row("a version without a dot", "9112 2.3", Line("GET /a HTTP/11"), LINE),
    row("a version without a dot, long", "9112 2.3", Line("GET /a HTTP/111"), LINE),
    row("a version with a comma", "9112 2.3", Line("GET /a HTTP/1,1"), LINE),
    row("a version without a minor one", "9112 2.3", Line("GET /a HTTP/1."), LINE),
    row("a major version alone", "9112 2.3", Line("GET /a HTTP/2"), LINE),
    row("a version with three parts", "9112 2.3", Line("GET /a HTTP/1.1.1"), END),
    row("a version with a letter behind", "9112 2.3", Line("GET /a HTTP/1.1x"), END),
    row("a later version with a letter behind", "9112 2.3", Line("GET /a HTTP/1.2x"), LINE),
    row("a later version with a space behind", "9112 2.3", Line("GET /a HTTP/1.2 "), LINE),
    row("a later version and an earlier one behind", "9112 2.3", Line("GET /a HTTP/1.2 HTTP/1.1"), LINE),
    row("a version with a space inside", "9112 2.3", Line("GET /a HTTP/ 1.1"), LINE),
    row("a version with a space in front of the slash", "9112 2.3", Line("GET /a HTTP /1.1"), LINE),
    row("a version with a sign", "9112 2.3", Line("GET /a HTTP/-1.1"), LINE),
    row("a version in lower case", "9112 2.3", Line("GET /a http/1.1"), LINE),
    row("a version in mixed case", "9112 2.3", Line("GET /a Http/1.1"), LINE),
    row("a protocol of another letter", "9112 2.3", Line("GET /a XTTP/1.1"), LINE),
    row("a protocol with a letter more", "9112 2.3", Line("GET /a HTTPS/1.1"), LINE),
    row("the protocol RTSP", "9112 2.3", Line("OPTIONS /a RTSP/1.0"), LINE).because("llhttp speaks RTSP too"),
    row("the protocol ICE", "9112 2.3", Line("SOURCE /a ICE/1.0"), LINE).because("llhttp speaks ICE too"),
    row("a version of full-width digits", "9112 2.3", Line("GET /a HTTP/\u{ef}\u{bc}\u{91}.1"), LINE),
    row("a NUL behind the version", "9112 2.3", Line("GET /a HTTP/1.1\0"), END),
    row("a major version of 100 digits", "9112 2.3", Made(|| format!("GET /a HTTP/{}.1\r\nHost: h\r\n\r\n", "1".repeat(100))), LINE),

    // Line ends
    row("an empty line in front", "9112 2.2", Wire("\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n"), "200 GET /a; open"),
    row("four empty lines in front", "9112 2.2", Wire("\r\n\r\n\r\n\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n"), "200 GET /a; open"),
    row("five empty lines in front", "", Wire("\r\n\r\n\r\n\r\n\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n"), LINE),
    row("an empty line that ends with a bare LF", "9112 2.2", Wire("\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n"), END),
    row("a bare LF behind an empty line", "9112 2.2", Wire("\r\n\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n"), END),
    row("a bare CR in front", "9112 2.2", Wire("\rGET /a HTTP/1.1\r\nHost: h\r\n\r\n"), END),
    row("CR CR LF in front", "9112 2.2", Wire("\r\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n"), END),
    row("a request line that ends with a bare LF", "9112 2.2", Wire("GET /a HTTP/1.1\nHost: h\r\n\r\n"), END),
    row("a later version's line that ends with a bare LF", "9112 2.2", Wire("GET /a HTTP/1.2\nHost: h\r\n\r\n"), END),
    row("a request line that ends with a bare CR", "9112 2.2", Wire("GET /a HTTP/1.1\rHost: h\r\n\r\n"), END),
    row("a request line that ends with CR CR LF", "9112 2.2", Wire("GET /a HTTP/1.1\r\r\nHost: h\r\n\r\n"), END),
    row("a request line that ends with LF CR", "9112 2.2", Wire("GET /a HTTP/1.1\n\rHost: h\r\n\r\n"), END),
    row("bare LFs only", "9112 2.2", Wire("GET /a HTTP/1.1\nHost: h\n\n"), END),

    // Other protocols
    row("a TLS hello", "", Wire("\x16\x03\x01\0\u{a5}\x01\0\0\u{a1}\x03\x03\r\n\r\n"), LINE),
    row("bytes above ASCII", "", Wire("\u{80}\u{90}\u{a0}\u{b0}\u{c0}\u{d0}\u{e0}\u{f0}\u{ff}\r\n\r\n"), LINE),
    row("a NUL", "", Wire("\0"), LINE),
    row("the banner of SSH", "", Wire("SSH-2.0-OpenSSH_9.9\r\n"), LINE),
    row("the greeting of SMTP", "", Wire("EHLO h\r\n"), LINE),
    row("a status line", "9112 4", Wire("HTTP/1.1 200 OK\r\n\r\n"), LINE),
    row("a PROXY header where none is awaited", "", Wire("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n"), LINE),
    row("a binary PROXY header where none is awaited", "", Wire("\r\n\r\n\0\r\nQUIT\n!\x11\0\x0c"), LINE),
    row("a JSON text", "", Wire("{\"a\": 1}\r\n\r\n"), LINE),
];
