//! Which field lines are taken, and with which values?

use super::Sent::{Get, Made, Wire};
use super::{Row, check, row};

#[test]
fn rows() {
    check(ROWS);
}

const NAME: &str = "400 close; Refused(InvalidFieldName)";
const VALUE: &str = "400 close; Refused(InvalidFieldValue)";
const END: &str = "400 close; Refused(InvalidLineEnd)";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Values
    row("a value", "9110 5.5", Get("X: a\r\n"), "200 a; open"),
    row("a value without a space in front", "9112 5.1", Get("X:a\r\n"), "200 a; open"),
    row("spaces around a value", "9112 5.1", Get("X:   a   \r\n"), "200 a; open"),
    row("tabs around a value", "9110 5.6.3", Get("X:\ta\t\r\n"), "200 a; open"),
    row("spaces and a tab inside a value", "9110 5.5", Get("X: a  b\tc\r\n"), "200 a  b\tc; open"),
    row("an empty value", "9110 5.5", Get("X:\r\n"), "200; open"),
    row("a value of white space", "9110 5.5", Get("X: \t \r\n"), "200; open"),
    row("colons in a value", "9112 5", Get("X: a:b: c\r\n"), "200 a:b: c; open"),
    row("a value that begins with a colon", "9112 5", Get("X:: a\r\n"), "200 : a; open"),
    row("every printable character in a value", "9110 5.5",
        Get("X: !\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~\r\n"), "200 !\"#$%&'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~; open"),
    row("a value that looks like a request", "9112 5", Get("X: GET /a HTTP/1.1\r\n"), "200 GET /a HTTP/1.1; open"),
    row("a letter of Latin-1 in a value", "9110 5.5", Get("X: caf\u{e9}\r\n"), "200 caf\u{e9}; open"),
    row("a letter of UTF-8 in a value", "9110 5.5", Get("X: caf\u{c3}\u{a9}\r\n"), "200 caf\u{c3}\u{a9}; open"),
    row("an emoji in a value", "9110 5.5", Get("X: \u{f0}\u{9f}\u{a6}\u{80}\r\n"), "200 \u{f0}\u{9f}\u{a6}\u{80}; open"),
    row("the first and the last byte of obs-text", "9110 5.5", Get("X: \u{80}\u{ff}\r\n"), "200 \u{80}\u{ff}; open"),
    row("a non-breaking space is no white space", "9110 5.6.3", Get("X: \u{a0}a\u{a0}\r\n"), "200 \u{a0}a\u{a0}; open"),
    row("a next-line byte is no line end", "9112 2.2", Get("X: a\u{85}Y: b\r\n"), "200 a\u{85}Y: b; open"),
    row("a line separator of UTF-8 is no line end", "9112 2.2", Get("X: a\u{e2}\u{80}\u{a8}Y: b\r\n"), "200 a\u{e2}\u{80}\u{a8}Y: b; open"),
    row("repeated fields keep their order", "9110 5.3", Get("X: a\r\nY: b\r\nx: c\r\nX:\r\n"), "200 a|c|; open"),
    row("a NUL in a value", "9110 5.5", Get("X: a\0b\r\n"), VALUE),
    row("a NUL at the end of a value", "9110 5.5", Get("X: a\0\r\n"), VALUE),
    row("a start-of-heading byte in a value", "9110 5.5", Get("X: a\x01b\r\n"), VALUE),
    row("a bell in a value", "9110 5.5", Get("X: a\x07b\r\n"), VALUE),
    row("a backspace in a value", "9110 5.5", Get("X: a\x08b\r\n"), VALUE),
    row("a vertical tab in a value", "9110 5.5", Get("X: a\x0bb\r\n"), VALUE),
    row("a form feed in a value", "9110 5.5", Get("X: a\x0cb\r\n"), VALUE),
    row("an escape byte in a value", "9110 5.5", Get("X: \x1b[31m\r\n"), VALUE),
    row("a unit separator in a value", "9110 5.5", Get("X: a\x1fb\r\n"), VALUE),
    row("a DEL in a value", "9110 5.5", Get("X: a\x7fb\r\n"), VALUE),
    row("a control byte in an otherwise empty value", "9110 5.5", Get("X: \x01\r\n"), VALUE),

    // Names
    row("a name of every kind of token character", "9110 5.1", Get("!#$%&'*+-.^_`|~09azAZ: b\r\nX: a\r\n"), "200 a; open"),
    row("a name with an underscore is not that with a hyphen", "9110 5.1",
        Get("Content_Length: 7\r\nTransfer_Encoding: chunked\r\nX: a\r\n"), "200 a; open"),
    row("a name in lower case", "9110 5.1", Get("x: a\r\n"), "200 a; open"),
    row("a long name", "9110 5.4", Made(|| format!("GET /field HTTP/1.1\r\nHost: h\r\n{}: b\r\nX: a\r\n\r\n", "N".repeat(4000))), "200 a; open"),
    row("a cookie of delimiters", "6265 4.2.1", Get("Cookie: ===;;;\r\nX: a\r\n"), "200 a; open"),
    row("a name past the limit of a head", "6585 5",
        Made(|| format!("GET /field HTTP/1.1\r\nHost: h\r\n{}: b\r\n\r\n", "N".repeat(64 << 10))), "431 close; Refused(HeadTooLarge)"),
    row("a space behind a name", "9112 5.1", Get("X : a\r\n"), NAME),
    row("a tab behind a name", "9112 5.1", Get("X\t: a\r\n"), NAME),
    row("a space in a name", "9112 5.1", Get("X Y: a\r\n"), NAME),
    row("a line without a colon", "9112 5", Get("X a\r\n"), NAME),
    row("a line of a name alone", "9112 5", Get("X\r\n"), NAME),
    row("a name alone, its colon on the next line", "9112 5.2", Get("X\r\n : a\r\n"), NAME),
    row("an empty name", "9112 5", Get(": a\r\n"), NAME),
    row("a line of a colon alone", "9112 5", Get(":\r\n"), NAME),
    row("a NUL in a name", "9110 5.1", Get("X\0Y: a\r\n"), NAME),
    row("a control byte in a name", "9110 5.1", Get("X\x01: a\r\n"), NAME),
    row("a DEL in a name", "9110 5.1", Get("X\x7f: a\r\n"), NAME),
    row("a bracket in a name", "9110 5.1", Get("X(Y: a\r\n"), NAME),
    row("an at sign in a name", "9110 5.1", Get("X@: a\r\n"), NAME),
    row("a slash in a name", "9110 5.1", Get("X/Y: a\r\n"), NAME),
    row("a comma in a name", "9110 5.1", Get("X,Y: a\r\n"), NAME),
    row("a semicolon in a name", "9110 5.1", Get("X;Y: a\r\n"), NAME),
    row("an equals sign in a name", "9110 5.1", Get("X=Y: a\r\n"), NAME),
    row("a backslash in a name", "9110 5.1", Get("X\\Y: a\r\n"), NAME),
    row("a name in quotes", "9110 5.1", Get("\"X\": a\r\n"), NAME),
    row("a letter of Latin-1 in a name", "9110 5.1", Get("X\u{df}: a\r\n"), NAME),
    row("a letter of UTF-8 in a name", "9110 5.1", Get("caf\u{c3}\u{a9}: a\r\n"), NAME),
    row("a byte order mark in front of a name", "9110 5.1", Get("\u{ef}\u{bb}\u{bf}X: a\r\n"), NAME),

    // Folding and white space
    row("a value folded with a space", "9112 5.2", Get("X: a\r\n b\r\n"), NAME),
    row("a value folded with a tab", "9112 5.2", Get("X: a\r\n\tb\r\n"), NAME),
    row("a value that begins on the next line", "9112 5.2", Get("X:\r\n a\r\n"), NAME),
    row("a fold of white space alone", "9112 5.2", Get("X: a\r\n \r\n"), NAME),
    row("a fold that looks like a field", "9112 5.2", Get("X: a\r\n Content-Length: 35\r\n"), NAME),
    row("a space in front of the first field", "9112 2.2", Wire("GET /field HTTP/1.1\r\n X: a\r\nHost: h\r\n\r\n"), NAME),
    row("a tab in front of the first field", "9112 2.2", Wire("GET /field HTTP/1.1\r\n\tX: a\r\nHost: h\r\n\r\n"), NAME),
    row("a line of white space in place of the empty line", "9112 2.2", Wire("GET /field HTTP/1.1\r\nHost: h\r\n \r\n\r\n"), NAME),

    // Line ends
    row("a field line that ends with a bare LF", "9112 2.2", Get("X: a\nY: b\r\n"), END),
    row("an empty value that ends with a bare LF", "9112 2.2", Get("X:\nY: b\r\n"), END),
    row("an empty line that ends a head with a bare LF", "9112 2.2", Wire("GET /field HTTP/1.1\r\nHost: h\r\n\n"), END),
    row("a bare LF and an empty line", "9112 2.2", Wire("GET /field HTTP/1.1\r\nHost: h\n\r\n"), END),
    row("a bare CR in a value", "9112 2.2", Get("X: a\rb\r\n"), VALUE),
    row("a bare CR at the start of a value", "9112 2.2", Get("X:\ra\r\n"), VALUE),
    row("a bare CR in front of what looks like a field", "9112 2.2", Get("X: a\rY: b\r\n"), VALUE),
    row("a field line that ends with CR CR LF", "9112 2.2", Get("X: a\r\r\n"), VALUE),
    row("a field line that ends with LF CR", "9112 2.2", Get("X: a\n\rY: b\r\n"), END),
    row("a bare CR in a name", "9112 2.2", Get("X\rY: a\r\n"), NAME),
    row("a bare LF in a name", "9112 2.2", Get("X\nY: a\r\n"), NAME),
    row("a bare CR in place of the empty line", "9112 2.2", Wire("GET /field HTTP/1.1\r\nHost: h\r\n\rGET /a HTTP/1.1\r\nHost: h\r\n\r\n"), END),
    row("CR CR LF in place of the empty line", "9112 2.2", Wire("GET /field HTTP/1.1\r\nHost: h\r\n\r\r\n"), END),
    row("a request behind a field line that ends with a bare LF", "9112 2.2",
        Wire("GET /field HTTP/1.1\r\nHost: h\r\nX: a\nContent-Length: 35\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"), END),

    // Limits
    row("as many fields as may be, of different names", "9110 5.4", Made(|| numbered(100, "")), "200 a; open"),
    row("one field past the limit", "6585 5", Made(|| numbered(101, "")), "431 close; Refused(TooManyFields)"),
    row("a malformed field behind the limit of fields", "6585 5", Made(|| numbered(101, "A b\r\n")), "431 close; Refused(TooManyFields)"),
    row("a cookie of 7 KiB", "9110 5.4", Made(|| padded(7 << 10, "")), "200 a; open"),
    row("a head with its limit's length", "6585 5", Made(|| padded(64 << 10, "")), "200 a; open"),
    row("a head one past its limit", "6585 5", Made(|| padded((64 << 10) + 1, "")), "431 close; Refused(HeadTooLarge)"),
    row("a malformed field behind the limit of a head", "6585 5", Made(|| padded((64 << 10) + 20, "A b")), "431 close; Refused(HeadTooLarge)"),
    row("a malformed field at the end of a head of its limit's length", "9112 5", Made(|| padded(64 << 10, "A b")), NAME),
];

/// A request with `count` fields in all, and `rest` behind them.
fn numbered(count: usize, rest: &str) -> String {
    let fields: String = (2..count).map(|n| format!("N-{n}: {n}\r\n")).collect();
    format!("GET /field HTTP/1.1\r\nHost: h\r\n{fields}X: a\r\n{rest}\r\n")
}

/// A request whose head has `length` bytes and ends with the line `last`, if it is not empty.
fn padded(length: usize, last: &str) -> String {
    let head = |cookie: &str| {
        let last = if last.is_empty() {
            String::new()
        } else {
            format!("{last}\r\n")
        };
        format!("GET /field HTTP/1.1\r\nHost: h\r\nX: a\r\nCookie: {cookie}\r\n{last}\r\n")
    };
    head(&"c".repeat(length - head("").len()))
}
