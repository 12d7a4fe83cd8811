//! What does a right server make of each thing that clients, and attackers, send?
//!
//! Tables of facts, a file a subject. Each row goes through the whole connection loop whole, byte
//! by byte and cut in two at every place, and behind and in front of a plain request: what was
//! answered, and whether the connection lives on, must be the same each time. The cases are
//! those of RFC 9110 and 9112 and of the public corpora of gunicorn, llhttp, h1spec and Http11Probe.
//!
//! A new row is a [`row`] in the table of its subject:
//!
//! ```text
//! row("two equal lengths", "9112 6.3", Post("Content-Length: 1\r\nContent-Length: 1\r\n", "a"),
//!     "400 close; Refused(RepeatedContentLength)")
//! ```

mod chunked;
mod connection;
mod expect;
mod fields;
mod framing;
mod host;
mod request_line;
mod target;

use std::collections::HashMap;
use std::fmt::Write as _;

use super::script::{Case, Outcome};
use crate::message::{Request, Response};
use http::{Method, StatusCode};

/// One fact about the protocol.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    /// The section of an RFC that says so, as `9112 6.3`; empty where none does.
    rfc: &'static str,
    sent: Sent,
    /// What the client sees, as [`Outcome::brief`] puts it, without interim answers.
    want: &'static str,
    after: After,
}

/// What a row sends. One `char` is one byte, so `\u{e9}` is the byte 0xE9 and not UTF-8.
#[derive(Clone, Copy)]
enum Sent {
    /// Everything.
    Wire(&'static str),
    /// A request line, with a Host field behind it.
    Line(&'static str),
    /// Field lines of a GET for `/field`, which answers with all values of `X`.
    Get(&'static str),
    /// Field lines, without Host, of a GET for `/host`, which answers with the host.
    Host(&'static str),
    /// Field lines and what follows the head, for `/echo`, which answers with the body.
    Post(&'static str, &'static str),
    /// A chunked body, for `/echo`.
    Chunked(&'static str),
    /// The trailer fields of a body `hello`, for `/trailers`, which answers with both.
    Trailers(&'static str),
    /// What is too long to be written out.
    Made(fn() -> String),
}

/// What the client does when all of a row is sent.
#[derive(Clone, Copy, PartialEq)]
enum After {
    /// It waits, and could send another request.
    Waits,
    /// It waits in the middle of a request.
    Pauses,
    /// It ends its side.
    Ends,
}

const fn row(name: &'static str, rfc: &'static str, sent: Sent, want: &'static str) -> Row {
    Row {
        name,
        rfc,
        sent,
        want,
        after: After::Waits,
    }
}

impl Row {
    /// Why this server does otherwise than one of the corpora, or than most servers.
    const fn because(self, _reason: &'static str) -> Row {
        self
    }

    /// What is sent is not all of a request: nothing may be sent behind it.
    const fn pauses(self) -> Row {
        Row {
            after: After::Pauses,
            ..self
        }
    }

    /// The client ends its side behind what is sent.
    const fn ends(self) -> Row {
        Row {
            after: After::Ends,
            ..self
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let text = match self.sent {
            Sent::Wire(text) => text.to_owned(),
            Sent::Line(line) => format!("{line}\r\nHost: h\r\n\r\n"),
            Sent::Get(fields) => format!("GET /field HTTP/1.1\r\nHost: h\r\n{fields}\r\n"),
            Sent::Host(fields) => format!("GET /host HTTP/1.1\r\n{fields}\r\n"),
            Sent::Post(fields, rest) => {
                format!("POST /echo HTTP/1.1\r\nHost: h\r\n{fields}\r\n{rest}")
            }
            Sent::Chunked(rest) => format!(
                "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{rest}"
            ),
            Sent::Trailers(fields) => format!(
                "POST /trailers HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
                 5\r\nhello\r\n0\r\n{fields}\r\n"
            ),
            Sent::Made(make) => make(),
        };
        latin1(&text)
    }

    /// Every way to send this row that did not give what it should.
    fn failures(&self) -> Vec<String> {
        let bytes = self.bytes();
        let mut failures = Vec::new();
        let mut compare = |way: &str, pieces: &[&[u8]], want: &str| {
            let got = seen(&self.run(pieces));
            if got != want {
                failures.push(format!("{way}: got {got:?}, not {want:?}"));
            }
        };
        compare("whole", &[&bytes], self.want);
        // A long row is mostly filling: only its ends are looked at byte by byte.
        let step = 1 + bytes.len() / LONG * (LONG / MIDDLE);
        let each: Vec<_> = bytes.chunks(step).collect();
        compare("byte by byte", &each, self.want);
        let at_an_end = |at: usize| at < EDGE || bytes.len() - at < EDGE;
        for at in (1..bytes.len()).filter(|&at| at % step == 0 || at_an_end(at)) {
            let (left, right) = bytes.split_at(at);
            compare(&format!("cut at {at}"), &[left, right], self.want);
        }
        let comma = if self.want.starts_with(';') { "" } else { ", " };
        let behind = format!("200 GET /before{comma}{}", self.want);
        compare("behind another", &[BEFORE, &bytes], &behind);
        compare(
            "in one piece behind",
            &[&[BEFORE, &bytes].concat()],
            &behind,
        );
        if self.after == After::Waits {
            // Where the connection ended nobody knows, or may know, where another request begins.
            let want = match self.want.strip_suffix("; open") {
                Some(answers) => format!("{answers}, 200 GET /after; open"),
                None => self.want.to_owned(),
            };
            compare("in front of another", &[&[&bytes, AFTER].concat()], &want);
        }
        failures
    }

    fn run(&self, pieces: &[&[u8]]) -> Outcome {
        let case = pieces
            .iter()
            .fold(Case::new(tell), |case, piece| case.send(piece));
        let outcome = match self.after {
            After::Ends => case.end().run(),
            After::Waits | After::Pauses => case.run(),
        };
        // A refusal that is not waited with would be lost with the bytes that nobody read.
        assert!(
            !outcome.end.starts_with("Refused(") || outcome.lingered,
            "{}: no lingering",
            self.name
        );
        outcome
    }
}

/// Rows of fewer bytes are cut at every place.
const LONG: usize = 1 << 10;

/// At about how many places a longer row is cut, and within how many bytes of its ends at each.
const MIDDLE: usize = 24;
const EDGE: usize = 16;

const BEFORE: &[u8] = b"GET /before HTTP/1.1\r\nHost: h\r\n\r\n";
const AFTER: &[u8] = b"GET /after HTTP/1.1\r\nHost: h\r\n\r\n";

/// Reads each request to its end and tells what it saw, one byte as one `char`.
fn tell(request: &mut Request<'_>) -> Response {
    let body = match request.body().read_all() {
        Ok(body) => body,
        Err(error) => return Response::error(error.status()),
    };
    // The client at hand cannot take an answer to HEAD apart; one without a body it can.
    if *request.method() == Method::HEAD {
        return Response::new(StatusCode::NO_CONTENT);
    }
    let told = match request.path() {
        "/echo" => body.to_vec(),
        "/field" => request
            .headers()
            .get_all("x")
            .collect::<Vec<_>>()
            .join(&b'|'),
        "/host" => request.host().unwrap_or("none").as_bytes().to_vec(),
        "/trailers" => {
            let trailers = request.body().trailers().into_iter();
            let mut told = body.to_vec();
            for (name, value) in trailers.flat_map(|trailers| trailers.iter()) {
                told.extend([b" ", name.as_bytes(), b"=", value].concat());
            }
            told
        }
        _ => format!("{} {}", request.method(), request.target()).into_bytes(),
    };
    Response::text_plain(match told.len() {
        0..=100 => told.iter().map(|&byte| byte as char).collect(),
        length => format!("{length} bytes"),
    })
}

/// What the client sees in the end. Whether it gets leave to send depends on how fast it is.
fn seen(outcome: &Outcome) -> String {
    outcome.brief().replace("100, ", "")
}

fn latin1(text: &str) -> Vec<u8> {
    let byte = |char| u8::try_from(u32::from(char)).expect("one char is one byte");
    text.chars().map(byte).collect()
}

/// Checks all rows of a table and shows all that fail.
#[track_caller]
fn check(rows: &[Row]) {
    let mut report = String::new();
    for row in rows {
        let failures = row.failures();
        if let [first, rest @ ..] = &failures[..] {
            let sent = row.bytes();
            let shown = sent[..sent.len().min(300)].escape_ascii();
            write!(report, "\n{} [{}]: {shown}\n    {first}", row.name, row.rfc).unwrap();
            if let Some(last) = rest.last() {
                write!(report, "\n    and {} more, as {last}", rest.len()).unwrap();
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}

#[test]
fn no_two_rows_say_the_same() {
    let mut names = HashMap::new();
    let mut inputs = HashMap::new();
    for rows in [
        chunked::ROWS,
        connection::ROWS,
        expect::ROWS,
        fields::ROWS,
        framing::ROWS,
        host::ROWS,
        request_line::ROWS,
        target::ROWS,
    ] {
        for row in rows {
            assert_eq!(names.insert(row.name, ()), None, "{} twice", row.name);
            let same = inputs.insert((row.bytes(), row.after as u8), row.name);
            assert_eq!(same, None, "{} sends the same", row.name);
        }
    }
}
