//! Which chunks make a body, and which end the connection?

use super::Sent::{Chunked, Made, Trailers};
use super::{Row, check, row};

#[test]
fn rows() {
    check(ROWS);
}

/// The head was fine, so it is the service's own answer.
const BROKEN: &str = "400 close; Finished";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Sizes
    row("two chunks", "9112 7.1", Chunked("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), "200 hello world; open"),
    row("no chunk but the last", "9112 7.1", Chunked("0\r\n\r\n"), "200; open"),
    row("a size in lower case", "9112 7.1", Chunked("a\r\n0123456789\r\n0\r\n\r\n"), "200 0123456789; open"),
    row("a size in upper case", "9112 7.1", Chunked("A\r\n0123456789\r\n0\r\n\r\n"), "200 0123456789; open"),
    row("a size of two digits", "9112 7.1", Chunked("1e\r\n012345678901234567890123456789\r\n0\r\n\r\n"), "200 012345678901234567890123456789; open"),
    row("a size with leading zeros", "9112 7.1", Chunked("0005\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("a last chunk of several zeros", "9112 7.1", Chunked("5\r\nhello\r\n000\r\n\r\n"), "200 hello; open"),
    row("a size of sixteen digits", "9112 7.1", Chunked("0000000000000005\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("a size of seventeen digits", "9112 7.1", Chunked("00000000000000005\r\nhello\r\n0\r\n\r\n"), BROKEN)
        .because("zeros may come without end; sixteen digits are all that a size needs"),
    row("a size of 1 and an overflow to 5", "9112 7.1", Chunked("10000000000000005\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size of 65 bits", "9112 7.1", Chunked("fffffffffffffffff\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("the largest size of 64 bits", "9112 7.1", Chunked("ffffffffffffffff\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size with the sign bit of 64", "9112 7.1", Chunked("8000000000000000\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("the largest size of 63 bits", "9110 15.5.14", Chunked("7fffffffffffffff\r\nhello\r\n0\r\n\r\n"), "413 close; Finished"),
    row("a size that overflows 32 bits to 5", "9110 15.5.14", Chunked("100000005\r\nhello\r\n0\r\n\r\n"), "413 close; Finished"),
    row("a size past the limit of bodies", "9110 15.5.14", Chunked("200001\r\n"), "413 close; Finished"),
    row("a chunk of many reads", "9112 7.1",
        Made(|| chunked(&format!("11170\r\n{}\r\n0\r\n\r\n", "a".repeat(70_000)))), "200 70000 bytes; open"),
    row("five hundred chunks of one byte", "9112 7.1",
        Made(|| chunked(&format!("{}0\r\n\r\n", "1\r\na\r\n".repeat(500)))), "200 500 bytes; open"),
    row("a size with a prefix", "9112 7.1", Chunked("0x5\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size with a plus sign", "9112 7.1", Chunked("+5\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a last chunk with a plus sign", "9112 7.1", Chunked("5\r\nhello\r\n+0\r\n\r\n"), BROKEN),
    row("a size with a minus sign", "9112 7.1", Chunked("-5\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a last chunk with a minus sign", "9112 7.1", Chunked("5\r\nhello\r\n-0\r\n\r\n"), BROKEN),
    row("a size with an underscore", "9112 7.1", Chunked("0_5\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size with a letter that is no digit", "9112 7.1", Chunked("5g\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a word as size", "9112 7.1", Chunked("x\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size with a suffix", "9112 7.1", Chunked("5h\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size in quotes", "9112 7.1", Chunked("\"5\"\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an empty size", "9112 7.1", Chunked("\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an empty size with an extension", "9112 7.1", Chunked(";a=b\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a space in place of a size, and an extension", "9112 7.1", Chunked(" ;a=b\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a space in front of a size", "9112 7.1", Chunked(" 5\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a space in front of the last size", "9112 7.1", Chunked("5\r\nhello\r\n 0\r\n\r\n"), BROKEN),
    row("a space behind a size", "9112 7.1", Chunked("5 \r\nhello\r\n0\r\n\r\n"), BROKEN).because("padding of old servers, which no grammar allows"),
    row("a space behind the last size", "9112 7.1", Chunked("5\r\nhello\r\n0 \r\n\r\n"), BROKEN),
    row("a tab behind a size", "9112 7.1", Chunked("5\t\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("two sizes on a line", "9112 7.1", Chunked("5 5\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a word behind a size", "9112 7.1", Chunked("5 five\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size with a fraction", "9112 7.1", Chunked("5.0\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size with a comma behind", "9112 7.1", Chunked("5,\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size of a full-width digit", "9112 7.1", Chunked("\u{ef}\u{bc}\u{95}\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a NUL behind a size", "9112 7.1", Chunked("5\0\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a NUL in front of a size", "9112 7.1", Chunked("\x005\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an empty line in front of the first size", "9112 7.1", Chunked("\r\n5\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a request in place of the first size", "9112 7.1", Chunked("GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"), BROKEN),

    // Line ends
    row("a size line that ends with a bare LF", "9112 2.2", Chunked("5\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a size line that ends with a bare CR", "9112 2.2", Chunked("5\rhello\r\n0\r\n\r\n"), BROKEN),
    row("a size line that ends with CR CR LF", "9112 2.2", Chunked("5\r\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a bare CR between a size and its extension", "9112 2.2", Chunked("5\r;a\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a bare LF between a size and its extension", "9112 2.2", Chunked("5\n;a\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a chunk that ends with a bare LF", "9112 7.1", Chunked("5\r\nhello\n0\r\n\r\n"), BROKEN),
    row("a chunk that ends with a bare CR", "9112 7.1", Chunked("5\r\nhello\r0\r\n\r\n"), BROKEN),
    row("a chunk that ends with LF CR", "9112 7.1", Chunked("5\r\nhello\n\r0\r\n\r\n"), BROKEN),
    row("a chunk without a line end", "9112 7.1", Chunked("5\r\nhello0\r\n\r\n"), BROKEN),
    row("a chunk with two other bytes for its line end", "9112 7.1", Chunked("5\r\nhelloXX0\r\n\r\n"), BROKEN),
    row("a chunk that ends with CR and another byte", "9112 7.1", Chunked("5\r\nhello\rX0\r\n\r\n"), BROKEN),
    row("a chunk that is longer than its size", "9112 7.1", Chunked("3\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a chunk that is shorter than its size", "9112 7.1", Chunked("7\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a chunk of line ends", "9112 7.1", Chunked("4\r\n\r\n\r\n\r\n0\r\n\r\n"), "200 \r\n\r\n; open"),
    row("a chunk that looks like the last one", "9112 7.1", Chunked("5\r\n0\r\n\r\n\r\n0\r\n\r\n"), "200 0\r\n\r\n; open"),
    row("an empty line in place of the last chunk", "9112 7.1", Chunked("5\r\nhello\r\n\r\n"), BROKEN),
    row("a last chunk that ends with a bare LF", "9112 7.1", Chunked("5\r\nhello\r\n0\n\r\n"), BROKEN),
    row("an empty line that ends the trailers with a bare LF", "9112 7.1", Chunked("5\r\nhello\r\n0\r\n\n"), BROKEN),
    row("a request in place of the trailers", "9112 7.1", Chunked("5\r\nhello\r\n0\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"), BROKEN),
    row("chunks behind the last one", "9112 7.1", Chunked("5\r\nhello\r\n0\r\n\r\n@\r\nhello\r\n0\r\n\r\n"), "200 hello, 400 close; Refused(InvalidRequestLine)"),

    // What does not come
    row("chunks without a last one", "9112 7.1", Chunked("5\r\nhello\r\n"), "; open").pauses(),
    row("a last chunk without its empty line", "9112 7.1", Chunked("5\r\nhello\r\n0\r\n"), "; open").pauses(),
    row("a last chunk without the LF of its empty line", "9112 7.1", Chunked("5\r\nhello\r\n0\r\n\r"), "; open").pauses(),
    row("chunks that the client cuts off", "9112 8", Chunked("5\r\nhello\r\n"), BROKEN).ends(),
    row("a chunk that the client cuts off", "9112 8", Chunked("5\r\nhell"), BROKEN).ends(),
    row("a chunk that the client cuts off in front of its line end", "9112 8", Chunked("5\r\nhello"), BROKEN).ends(),
    row("a size that the client cuts off", "9112 8", Chunked("5"), BROKEN).ends(),
    row("a client that ends in front of the first chunk", "9112 8", Chunked(""), BROKEN).ends(),
    row("a client that ends in front of the last empty line", "9112 8", Chunked("5\r\nhello\r\n0\r\n"), BROKEN).ends(),
    row("a client that ends in the trailers", "9112 8", Chunked("5\r\nhello\r\n0\r\nX: a\r\n"), BROKEN).ends(),

    // Extensions
    row("an extension", "9112 7.1.1", Chunked("5;a\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("an extension with a value", "9112 7.1.1", Chunked("5;a=b\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("several extensions", "9112 7.1.1", Chunked("5;a=b;c;d=e\r\nhello\r\n0;f\r\n\r\n"), "200 hello; open"),
    row("white space behind the semicolon", "9112 7.1.1", Chunked("5; a; b=c\r\nhello\r\n0;\tf\r\n\r\n"), "200 hello; open"),
    row("an extension with a quoted value", "9112 7.1.1", Chunked("5;a=\"b c;d\"\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("an extension with quotes in a quoted value", "9112 7.1.1", Chunked("5;a=\"b \\\"c\\\" \\\\\";d\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("obs-text in a quoted value", "9110 5.6.4", Chunked("5;a=\"caf\u{e9}\"\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("an extension that looks like a size", "9112 7.1.1", Chunked("5;6\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("white space around an equals sign and in front of a semicolon", "9112 7.1.1", Chunked("5;a = b ; c\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("an empty quoted value", "9110 5.6.4", Chunked("5;a=\"\"\r\nhello\r\n0\r\n\r\n"), "200 hello; open"),
    row("an unbalanced quote in an extension", "9112 7.1.1", Chunked("5;a=\"b\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a backslash in front of the last quote", "9110 5.6.4", Chunked("5;a=\"b\\\"\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a letter behind a quoted value", "9112 7.1.1", Chunked("5;a=\"b\"c\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an extension with a bracket in its name", "9112 7.1.1", Chunked("5;a[=b\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an extension with a comma in its value", "9112 7.1.1", Chunked("5;a=b,c\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an extension with obs-text outside of quotes", "9112 7.1.1", Chunked("5;a=caf\u{e9}\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an extension with its name in quotes", "9112 7.1.1", Chunked("5;\"a\"=b\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an extension of two words", "9112 7.1.1", Chunked("5;a b\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an extension with an equals sign and no value", "9112 7.1.1", Chunked("5;a=\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a semicolon at the end of an extension", "9112 7.1.1", Chunked("5;a;\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("white space at the end of an extension", "9112 7.1.1", Chunked("5;a \r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an extension without a name", "9112 7.1.1", Chunked("5;\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an extension of white space", "9112 7.1.1", Chunked("5; \r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("an extension with a value and no name", "9112 7.1.1", Chunked("5;=b\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("white space in front of the semicolon", "9112 7.1.1", Chunked("5 ;a\r\nhello\r\n0\r\n\r\n"), BROKEN)
        .because("BWS may be sent, by nobody alive; servers differ in what they make of it"),
    row("a bare LF in an extension", "9112 2.2", Chunked("5;a\nb\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a bare LF in place of an extension", "9112 2.2", Chunked("5;\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a bare CR in an extension", "9112 2.2", Chunked("5;a\rb\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a bare CR in a quoted value", "9112 2.2", Chunked("5;a=\"b\rc\"\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a line end in a quoted value ends the line", "9112 7.1.1", Chunked("5;a=\"b\r\nc\"\r\n0\r\n\r\n"), BROKEN),
    row("a NUL in an extension", "9112 7.1.1", Chunked("5;a\0\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a DEL in an extension", "9112 7.1.1", Chunked("5;a\x7f\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("a control byte in a quoted value", "9112 7.1.1", Chunked("5;a=\"\x01\"\r\nhello\r\n0\r\n\r\n"), BROKEN),
    row("extensions with their limit's length, in two chunks", "", Made(|| extended(16 << 10)), "200 ab; open"),
    row("extensions one past their limit, in two chunks", "", Made(|| extended((16 << 10) + 1)), BROKEN),

    // Trailers
    row("trailers", "9112 7.1.2", Trailers("X-T: 1\r\nX-U: 2\r\n"), "200 hello X-T=1 X-U=2; open"),
    row("a trailer with an empty value", "9112 7.1.2", Trailers("X-T:\r\n"), "200 hello X-T=; open"),
    row("a trailer with obs-text", "9110 5.5", Trailers("X-T: caf\u{e9}\r\n"), "200 hello X-T=caf\u{e9}; open"),
    row("trailers of one name keep their order", "9110 5.3", Trailers("X-T: 1\r\nx-t: 2\r\n"), "200 hello X-T=1 x-t=2; open"),
    row("a trailer that looks like a chunk", "9112 7.1.2", Trailers("5: a\r\n"), "200 hello 5=a; open"),
    row("a length among the trailers has no effect", "9110 6.5.1", Trailers("Content-Length: 99\r\n"), "200 hello; open")
        .because("gunicorn refuses it; the body has ended, so it is enough to hide the field"),
    row("a coding among the trailers has no effect", "9110 6.5.1", Trailers("Transfer-Encoding: chunked\r\n"), "200 hello; open"),
    row("a Host among the trailers has no effect", "9110 6.5.1", Trailers("Host: other\r\nX-T: 1\r\n"), "200 hello X-T=1; open"),
    row("Connection: close among the trailers has no effect", "9110 6.5.1", Trailers("Connection: close\r\n"), "200 hello; open"),
    row("a cookie among the trailers is hidden", "9110 6.5.1", Trailers("Cookie: a=b\r\nAuthorization: c\r\n"), "200 hello; open"),
    row("a trailer without a colon", "9112 5", Trailers("X-T 1\r\n"), BROKEN),
    row("a trailer with a space behind its name", "9112 5.1", Trailers("X-T : 1\r\n"), BROKEN),
    row("a trailer with a space in front", "9112 5.2", Trailers(" X-T: 1\r\n"), BROKEN),
    row("a folded trailer", "9112 5.2", Trailers("X-T: 1\r\n 2\r\n"), BROKEN),
    row("a trailer without a name", "9112 5", Trailers(": 1\r\n"), BROKEN),
    row("a NUL in a trailer", "9110 5.5", Trailers("X-T: a\0b\r\n"), BROKEN),
    row("a bare CR in a trailer", "9112 2.2", Trailers("X-T: a\rb\r\n"), BROKEN),
    row("a trailer that ends with a bare LF", "9112 2.2", Trailers("X-T: 1\nX-U: 2\r\n"), BROKEN),
    row("a trailer that ends with CR CR LF", "9112 2.2", Trailers("X-T: 1\r\r\n"), BROKEN),
    row("a bare CR in place of the empty line behind the trailers", "9112 2.2",
        Chunked("5\r\nhello\r\n0\r\nX-T: 1\r\n\rX-U: 2\r\n\r\n"), BROKEN),
    row("trailers with their limit's length", "", Made(|| trailed(16 << 10)), "200; open"),
    row("trailers one past their limit", "6585 5", Made(|| trailed((16 << 10) + 1)), "431 close; Finished"),
    row("as many trailers as may be", "", Made(|| counted(100)), "200; open"),
    row("one trailer past the limit", "6585 5", Made(|| counted(101)), "431 close; Finished"),
];

/// Two chunks whose extensions have `length` bytes together.
fn extended(length: usize) -> String {
    let (first, second) = ("a".repeat(length / 2), "a".repeat(length - length / 2));
    chunked(&format!("1;{first}\r\na\r\n1;{second}\r\nb\r\n0\r\n\r\n"))
}

/// An empty body with a trailer section of `length` bytes.
fn trailed(length: usize) -> String {
    let value = "a".repeat(length - "X: \r\n\r\n".len());
    chunked(&format!("0\r\nX: {value}\r\n\r\n"))
}

/// An empty body with `count` trailers.
fn counted(count: usize) -> String {
    chunked(&format!("0\r\n{}\r\n", "X: a\r\n".repeat(count)))
}

fn chunked(framed: &str) -> String {
    format!("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{framed}")
}
