//! Which targets are taken, in which form, and as what?

use super::Sent::{Line, Made, Wire};
use super::{Row, check, row};

#[test]
fn rows() {
    check(ROWS);
}

const TARGET: &str = "400 close; Refused(InvalidTarget)";
const LINE: &str = "400 close; Refused(InvalidRequestLine)";
const HOST: &str = "400 close; Refused(MissingHost)";
const CONNECT: &str = "501 close; Refused(Connect)";
const LONG: &str = "414 close; Refused(TargetTooLong)";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Origin form
    row("a query with question marks", "3986 3.4", Line("GET /a?b=c?d HTTP/1.1"), "200 GET /a?b=c?d; open"),
    row("an empty query", "3986 3.4", Line("GET /a? HTTP/1.1"), "200 GET /a?; open"),
    row("sub-delimiters", "3986 3.3", Line("GET /!$&'()*+,;=:@ HTTP/1.1"), "200 GET /!$&'()*+,;=:@; open"),
    row("characters that belong encoded and browsers send", "", Line("GET /\"<>[\\]^`{|}?\"<>[\\]^`{|} HTTP/1.1"),
        "200 GET /\"<>[\\]^`{|}?\"<>[\\]^`{|}; open"),
    row("an unreserved character, encoded", "3986 6.2.2.2", Line("GET /%61%2D%7e HTTP/1.1"), "200 GET /a-~; open"),
    row("hex digits in lower case", "3986 6.2.2.1", Line("GET /%c3%a9 HTTP/1.1"), "200 GET /%C3%A9; open"),
    row("an encoded slash stays encoded", "3986 2.2", Line("GET /a%2fb HTTP/1.1"), "200 GET /a%2Fb; open"),
    row("an encoded line end stays encoded", "3986 2.1", Line("GET /a%0d%0aX:%20y HTTP/1.1"), "200 GET /a%0D%0AX:%20y; open"),
    row("an encoded NUL stays encoded", "3986 2.1", Line("GET /a%00 HTTP/1.1"), "200 GET /a%00; open"),
    row("an encoded percent sign is decoded once at most", "3986 2.4", Line("GET /%2561 HTTP/1.1"), "200 GET /%2561; open"),
    row("dot segments are the service's matter", "3986 3.3", Line("GET /a/../b/./c HTTP/1.1"), "200 GET /a/../b/./c; open"),
    row("encoded dots are dots to every layer", "3986 6.2.2.2", Line("GET /%2e%2E/a HTTP/1.1"), "200 GET /../a; open"),
    row("two slashes are a path and no host", "9112 3.2.1", Line("GET //other/a HTTP/1.1"), "200 GET //other/a; open"),
    row("three slashes", "9112 3.2.1", Line("GET ///a HTTP/1.1"), "200 GET ///a; open"),
    row("a URL in the path", "9112 3.2.1", Line("GET /http://other/ HTTP/1.1"), "200 GET /http://other/; open"),
    row("a bare percent sign in the query", "", Line("GET /a?b=50%&c=%zz HTTP/1.1"), "200 GET /a?b=50%&c=%zz; open"),
    row("a percent sign without digits in the path", "3986 2.1", Line("GET /%zz HTTP/1.1"), TARGET),
    row("a percent sign with one digit at the end", "3986 2.1", Line("GET /a%4 HTTP/1.1"), TARGET),
    row("a percent sign of another standard", "3986 2.1", Line("GET /%u0041 HTTP/1.1"), TARGET),
    row("a fragment", "9112 3.2", Line("GET /a#b HTTP/1.1"), TARGET).because("gunicorn and llhttp take it; no client sends it"),
    row("a fragment behind a query", "9112 3.2", Line("GET /a?b#c HTTP/1.1"), TARGET),
    row("a space in the path", "9112 3.2", Line("GET /a b HTTP/1.1"), LINE),
    row("a space in the query", "9112 3.2", Line("GET /a?b c HTTP/1.1"), LINE),
    row("a letter of UTF-8", "9112 3.2", Line("GET /caf\u{c3}\u{a9} HTTP/1.1"), TARGET).because("gunicorn takes it"),
    row("a letter of UTF-8 in the query", "9112 3.2", Line("GET /a?\u{c3}\u{a9} HTTP/1.1"), TARGET),
    row("a letter of Latin-1", "9112 3.2", Line("GET /caf\u{e9} HTTP/1.1"), LINE),
    row("an overlong slash of UTF-8", "9112 3.2", Line("GET /a\u{c0}\u{af}b HTTP/1.1"), LINE),
    row("an overlong slash of UTF-8, encoded, is decoded by nobody", "3986 2.1", Line("GET /a%c0%afb HTTP/1.1"), "200 GET /a%C0%AFb; open"),
    row("a control byte in the path", "9112 3.2", Line("GET /a\x01b HTTP/1.1"), LINE),
    row("an escape byte in the query", "9112 3.2", Line("GET /a?\x1b[31m HTTP/1.1"), LINE),
    row("a NUL in the path", "9112 3.2", Line("GET /a\0b HTTP/1.1"), LINE),
    row("a DEL in the path", "9112 3.2", Line("GET /a\x7fb HTTP/1.1"), LINE),
    row("a bare CR in the path", "9112 2.2", Line("GET /a\rb HTTP/1.1"), LINE),
    row("a bare LF in the path", "9112 2.2", Line("GET /a\nb HTTP/1.1"), LINE),
    row("no slash at the start", "9112 3.2.1", Line("GET a/b HTTP/1.1"), TARGET),
    row("a query alone", "9112 3.2.1", Line("GET ?a HTTP/1.1"), TARGET),
    row("a backslash at the start", "9112 3.2.1", Line("GET \\a HTTP/1.1"), TARGET),
    row("a dot at the start", "9112 3.2.1", Line("GET ./a HTTP/1.1"), TARGET),
    row("an encoded slash at the start", "9112 3.2.1", Line("GET %2fa HTTP/1.1"), TARGET),
    row("a malformed target of HEAD", "9112 3.2.1", Line("HEAD a HTTP/1.1"), TARGET),

    // Absolute form
    row("an absolute target", "9112 3.2.2", Line("GET http://h/a?b=c HTTP/1.1"), "200 GET /a?b=c; open"),
    row("an absolute target with a port", "9112 3.2.2", Line("GET http://h:8080/a HTTP/1.1"), "200 GET /a; open"),
    row("an absolute target with an empty port", "3986 3.2.3", Line("GET http://h:/a HTTP/1.1"), "200 GET /a; open"),
    row("an absolute target of https", "9112 3.2.2", Line("GET https://h/a HTTP/1.1"), "200 GET /a; open"),
    row("an absolute target with an IPv6 address", "9112 3.2.2", Line("GET http://[::1]:8080/a HTTP/1.1"), "200 GET /a; open"),
    row("a scheme in upper case", "3986 3.1", Line("GET HTTP://h/a HTTP/1.1"), "200 GET /a; open"),
    row("an absolute target without a path", "9110 4.2.3", Line("GET http://h HTTP/1.1"), "200 GET /; open"),
    row("an absolute target with a port and no path", "9110 4.2.3", Line("GET http://h:80 HTTP/1.1"), "200 GET /; open"),
    row("an absolute target with a query and no path", "9110 4.2.3", Line("GET http://h?a=b HTTP/1.1"), "200 GET /?a=b; open"),
    row("an absolute target with a port, a query and no path", "9110 4.2.3", Line("GET http://h:80?a HTTP/1.1"), "200 GET /?a; open"),
    row("an absolute target is normalised like others", "3986 6.2.2", Line("GET http://h/%61%2f HTTP/1.1"), "200 GET /a%2F; open"),
    row("an absolute target with two slashes behind the host", "9112 3.2.2", Line("GET http://h//a HTTP/1.1"), "200 GET //a; open"),
    row("an absolute target of HTTP/1.0", "9112 3.2.2", Wire("GET http://h/a HTTP/1.0\r\n\r\n"), "200 close GET /a; Finished"),
    row("the authority of the target wins over Host", "9112 3.2.2", Line("GET http://other:81/host HTTP/1.1"), "200 other:81; open"),
    row("an absolute target does not stand in for Host", "9112 3.2", Wire("GET http://h/a HTTP/1.1\r\n\r\n"), HOST),
    row("an absolute target with a user", "9110 4.2.4", Line("GET http://u@h/ HTTP/1.1"), TARGET).because("gunicorn and llhttp take it"),
    row("an absolute target with a user and a password", "9110 4.2.4", Line("GET http://u:p@h:80/ HTTP/1.1"), TARGET),
    row("an absolute target with an at sign in its path", "3986 3.3", Line("GET http://h/@b HTTP/1.1"), "200 GET /@b; open"),
    row("an absolute target without a host", "9110 4.2.1", Line("GET http:///a HTTP/1.1"), TARGET),
    row("an absolute target with a port alone", "9110 4.2.1", Line("GET http://:80/a HTTP/1.1"), TARGET),
    row("an absolute target with a port past 65535", "9110 4.2.1", Line("GET http://h:65536/a HTTP/1.1"), TARGET),
    row("an absolute target with letters as port", "3986 3.2.3", Line("GET http://h:a/a HTTP/1.1"), TARGET),
    row("an absolute target with half an IPv6 address", "3986 3.2.2", Line("GET http://[::1/a HTTP/1.1"), TARGET),
    row("an absolute target with a fragment", "9112 3.2.2", Line("GET http://h/a#b HTTP/1.1"), TARGET),
    row("an absolute target with a fragment and no path", "9112 3.2.2", Line("GET http://h#b HTTP/1.1"), TARGET),
    row("an absolute target with a backslash in its host", "3986 3.2.2", Line("GET http://h\\@other/ HTTP/1.1"), TARGET),
    row("an absolute target of another scheme", "9112 3.2.2", Line("GET ftp://h/a HTTP/1.1"), TARGET),
    row("an absolute target of a scheme longer than http", "9112 3.2.2", Line("GET xhttp://h/a HTTP/1.1"), TARGET),
    row("an absolute target with one slash", "9112 3.2.2", Line("GET http:/h/a HTTP/1.1"), TARGET),
    row("an absolute target without its colon", "9112 3.2.2", Line("GET http//h/a HTTP/1.1"), TARGET),
    row("an absolute target without its scheme", "9112 3.2.2", Line("GET ://h/a HTTP/1.1"), TARGET),

    // Authority form
    row("CONNECT", "9110 9.3.6", Line("CONNECT h:443 HTTP/1.1"), CONNECT),
    row("CONNECT to an IPv6 address", "9110 9.3.6", Line("CONNECT [::1]:443 HTTP/1.1"), CONNECT),
    row("CONNECT without a port", "9110 9.3.6", Line("CONNECT h HTTP/1.1"), CONNECT),
    row("CONNECT of HTTP/1.0, without Host", "9110 9.3.6", Wire("CONNECT h:443 HTTP/1.0\r\n\r\n"), CONNECT),
    row("CONNECT with bytes for the tunnel", "9110 9.3.6", Wire("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n\x16\x03\x01"), CONNECT),
    row("CONNECT with a body", "9110 9.3.6", Wire("CONNECT h:443 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"), CONNECT),
    row("CONNECT without Host", "9112 3.2", Wire("CONNECT h:443 HTTP/1.1\r\n\r\n"), HOST),
    row("CONNECT with a path", "9112 3.2.3", Line("CONNECT /a HTTP/1.1"), TARGET),
    row("CONNECT with an absolute target", "9112 3.2.3", Line("CONNECT http://h/ HTTP/1.1"), TARGET),
    row("CONNECT with a user", "9112 3.2.3", Line("CONNECT u@h:443 HTTP/1.1"), TARGET),
    row("a host and port for GET", "9112 3.2.3", Line("GET h:80 HTTP/1.1"), TARGET),
    row("a host alone for GET", "9112 3.2.3", Line("GET h HTTP/1.1"), TARGET),

    // Asterisk form
    row("OPTIONS of the server", "9112 3.2.4", Line("OPTIONS * HTTP/1.1"), "200 OPTIONS *; open"),
    row("OPTIONS of a path", "9110 9.3.7", Line("OPTIONS /a HTTP/1.1"), "200 OPTIONS /a; open"),
    row("OPTIONS of the server by HTTP/1.0", "9112 3.2.4", Wire("OPTIONS * HTTP/1.0\r\n\r\n"), "200 close OPTIONS *; Finished"),
    row("an asterisk for GET", "9112 3.2.4", Line("GET * HTTP/1.1"), TARGET),
    row("an asterisk for a method that other protocols use with it", "9112 3.2.4", Line("M-SEARCH * HTTP/1.1"), TARGET)
        .because("llhttp takes it; it is OPTIONS' own form"),
    row("an asterisk with a query", "9112 3.2.4", Line("OPTIONS *?a HTTP/1.1"), TARGET),
    row("two asterisks", "9112 3.2.4", Line("OPTIONS ** HTTP/1.1"), TARGET),
    row("an asterisk as a path", "9112 3.2.1", Line("GET /* HTTP/1.1"), "200 GET /*; open"),

    // Limits
    row("an absolute target with its limit's length", "", Made(|| sized("http://h/", 8 << 10)), "200 8188 bytes; open"),
    row("an absolute target one past its limit", "", Made(|| sized("http://h/", (8 << 10) + 1)), LONG),
    row("a long target with a query, one past its limit", "", Made(|| sized("/a?b=", (8 << 10) + 1)), LONG),
    row("a malformed method in front of a target past its limit", "9110 5.6.2", Made(|| format!("G@{}", &sized("/", 9000)[2..])), LINE),
    row("a control byte in a target past its limit", "9112 3.2", Made(|| sized("/\x01", 9000)), LINE),
    row("a control byte behind the limit of a target", "", Made(|| format!("{}\x01", &sized("/", 9000)[..8990])), LONG),
    row("a malformed version behind a target past its limit", "", Made(|| sized("/", 9000).replace("HTTP/1.1", "XTTP/1.1")), LONG),
];

/// A request whose target begins with `start` and has `length` bytes.
fn sized(start: &str, length: usize) -> String {
    let rest = "a".repeat(length - start.len());
    format!("GET {start}{rest} HTTP/1.1\r\nHost: h\r\n\r\n")
}
