//! Do all kinds of answers reach the client as they were meant?

use std::io::{self, Read, Write};
use std::sync::Arc;

use super::script::{Answer, Case};
use crate::message::{Body, FileRange, Request, Response};
use http::{Method, StatusCode as Status};

fn request(line: &str) -> String {
    format!("{line}\r\nHost: h\r\n\r\n")
}

const GET: &str = "GET / HTTP/1.1";

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// Sends `line` twice, as HTTP/1.1 and on one connection, and gives both answers.
#[track_caller]
fn two_answers(answer: impl Fn() -> Response + Send + Sync + 'static) -> [Answer; 2] {
    let service = move |_: &mut Request<'_>| answer();
    let outcome = Case::new(service).send(request(GET).repeat(2)).run();
    assert_eq!(outcome.end, "open");
    let mut rest = &outcome.received[..];
    let answers = [Answer::take(&mut rest), Answer::take(&mut rest)];
    assert!(rest.is_empty());
    answers
}

#[track_caller]
fn check_body(answer: impl Fn() -> Response + Send + Sync + 'static, want: &[u8]) {
    for got in two_answers(answer) {
        assert_eq!((got.status, got.whole), (200, true));
        assert_eq!(got.body.len(), want.len());
        assert!(got.body == want, "the body differs");
    }
}

#[test]
fn bodies_of_every_kind_and_size_arrive_byte_by_byte() {
    for length in [0, 1, 16 << 10, (16 << 10) + 1, 100_000, 3 << 20] {
        let data = pattern(length);
        let give = |body: fn(Vec<u8>) -> Body| {
            let data = data.clone();
            move || Response::new(Status::OK).with_body(body(data.clone()))
        };
        check_body(give(Body::from), &data);
        let reader = |data: Vec<u8>, length| Body::Reader {
            reader: Box::new(io::Cursor::new(data)),
            length,
        };
        let sized = data.clone();
        check_body(
            move || {
                let length = Some(sized.len() as u64);
                Response::new(Status::OK).with_body(reader(sized.clone(), length))
            },
            &data,
        );
        let unsized_data = data.clone();
        check_body(
            move || Response::new(Status::OK).with_body(reader(unsized_data.clone(), None)),
            &data,
        );
        let written = data.clone();
        check_body(
            move || {
                let written = written.clone();
                Response::stream(move |out| {
                    for piece in written.chunks(777) {
                        out.write_all(piece)?;
                    }
                    Ok(())
                })
            },
            &data,
        );
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before").unwrap();
        file.write_all(&data).unwrap();
        file.write_all(b"behind").unwrap();
        let range = FileRange::new(Arc::new(file), 6, length as u64);
        check_body(move || Response::file(range.clone()), &data);
    }
}

#[test]
fn a_head_looks_as_it_should() {
    let service = |_: &mut Request<'_>| {
        Response::html("hello")
            .header("X-A", "b")
            .header("Content-Length", "99")
            .header("Transfer-Encoding", "gzip")
            .header("Connection", "upgrade")
    };
    let outcome = Case::new(service).send(request(GET)).run();
    assert_eq!(
        outcome.text(),
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX-A: b\r\n\
         Content-Length: 5\r\n\r\nhello"
    );
}

#[test]
fn the_answer_to_head_is_that_to_get_without_its_body() {
    // RFC 9110 section 9.3.2
    let kinds: [fn() -> Response; 3] = [
        || Response::html("hello"),
        || Response::stream(|out| out.write_all(b"hello")),
        || Response::new(Status::OK).with_body(pattern(100_000)),
    ];
    for kind in kinds {
        let run = |line: &str| {
            let service = move |_: &mut Request<'_>| kind();
            Case::new(service).send(request(line)).run()
        };
        let (get, head) = (run(GET), run("HEAD / HTTP/1.1"));
        let get_head = get.text().split_once("\r\n\r\n").unwrap().0.to_owned();
        assert_eq!(head.text(), get_head + "\r\n\r\n");
        assert_eq!(head.end, "open");
    }
}

#[test]
fn statuses_without_a_body_never_have_one() {
    // RFC 9112 section 6.3
    for status in [Status::NO_CONTENT, Status::NOT_MODIFIED] {
        let service = move |_: &mut Request<'_>| Response::html("stray").with_status(status);
        let outcome = Case::new(service).send(request(GET).repeat(2)).run();
        let code = status.as_u16();
        assert_eq!(outcome.brief(), format!("{code}, {code}; open"));
        assert!(!outcome.text().contains("Content-Length"));
    }
    let service = |_: &mut Request<'_>| Response::new(Status::OK);
    let outcome = Case::new(service).send(request(GET)).run();
    assert_eq!(
        outcome.text(),
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    );
}

#[test]
fn an_interim_status_is_not_an_answer() {
    let service = |_: &mut Request<'_>| Response::new(Status::SWITCHING_PROTOCOLS);
    let outcome = Case::new(service).send(request(GET)).run();
    assert_eq!(outcome.brief(), "500; open");
}

#[test]
fn a_client_of_http_1_0_gets_no_chunks() {
    // RFC 9112 section 7.1: the end of the connection is the end of the body.
    let service = |_: &mut Request<'_>| Response::stream(|out| out.write_all(b"hello"));
    let line = "GET / HTTP/1.0\r\nConnection: keep-alive";
    let outcome = Case::new(service).send(request(line)).run();
    assert_eq!(
        outcome.text(),
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"
    );
    assert_eq!(outcome.end, "Finished");
    // Where the length is known, the connection is kept.
    let service = |_: &mut Request<'_>| Response::html("hello");
    let outcome = Case::new(service).send(request(line).repeat(2)).run();
    assert_eq!(
        outcome.brief(),
        "200 keep-alive hello, 200 keep-alive hello; open"
    );
}

#[test]
fn a_flush_sends_what_was_written_so_far() {
    let service = |_: &mut Request<'_>| {
        Response::stream(|out| {
            write!(out, "a")?;
            write!(out, "b")?;
            out.flush()?;
            out.flush()?;
            write!(out, "c")
        })
    };
    let outcome = Case::new(service).send(request(GET)).run();
    let (_, body) = outcome
        .text()
        .split_once("\r\n\r\n")
        .map(|(head, body)| (head.to_owned(), body.to_owned()))
        .unwrap();
    assert_eq!(body, "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
}

#[test]
fn a_reader_that_has_more_or_less_than_its_length_never_breaks_the_framing() {
    let with_length = |length: u64| {
        let service = move |_: &mut Request<'_>| {
            Response::new(Status::OK).with_body(Body::Reader {
                reader: Box::new(&b"hello"[..]),
                length: Some(length),
            })
        };
        Case::new(service)
            .send(request(GET).repeat(2))
            .run()
            .brief()
    };
    assert_eq!(with_length(3), "200 hel, 200 hel; open");
    assert_eq!(with_length(6), "200 hello cut; BodyFailed");
}

#[test]
fn a_body_that_fails_is_cut_off_and_not_ended() {
    struct Failing(usize);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("the disk is gone"));
            }
            let count = self.0.min(buffer.len());
            buffer[..count].fill(b'x');
            self.0 -= count;
            Ok(count)
        }
    }
    let kinds: [fn() -> Response; 3] = [
        || {
            Response::new(Status::OK).with_body(Body::Reader {
                reader: Box::new(Failing(5)),
                length: None,
            })
        },
        || {
            Response::stream(|out| {
                out.write_all(b"xxxxx")?;
                out.flush()?;
                Err(io::Error::other("no more"))
            })
        },
        || {
            Response::stream(|out| {
                out.write_all(b"xxxxx")?;
                out.flush()?;
                panic!("in the middle of a body")
            })
        },
    ];
    for kind in kinds {
        let service = move |_: &mut Request<'_>| kind();
        let outcome = Case::new(service).send(request(GET).repeat(2)).run();
        assert_eq!(outcome.brief(), "200 xxxxx cut; BodyFailed");
    }
}

#[test]
fn a_panic_is_a_500_and_ends_only_its_connection() {
    let service = |request: &mut Request<'_>| {
        if *request.method() == Method::POST {
            panic!("the handler's own mistake");
        }
        Response::html("fine")
    };
    let input = request(GET) + &request("POST / HTTP/1.1") + &request(GET);
    let outcome = Case::new(service).send(input).run();
    assert_eq!(outcome.brief(), "200 fine, 500 close; Finished");
    assert!(
        !outcome.text().contains("mistake"),
        "the text is not the client's"
    );
}

#[test]
fn a_header_that_would_split_the_answer_is_a_500() {
    // CWE-113
    let service = |request: &mut Request<'_>| {
        let name = request.query().replace("%0d", "\r").replace("%0a", "\n");
        Response::html("secret").header("Location", &format!("/?name={name}"))
    };
    let line = "GET /?a%0d%0aSet-Cookie:b=c%0d%0a%0d%0asplit HTTP/1.1";
    let outcome = Case::new(service).send(request(line)).run();
    assert_eq!(outcome.brief(), "500; open");
    for text in ["Set-Cookie", "split", "secret"] {
        assert!(!outcome.text().contains(text), "{text}");
    }
}

#[test]
fn many_large_answers_to_pipelined_requests_come_in_order() {
    let service = |request: &mut Request<'_>| {
        let number: u8 = request.path()[1..].parse().unwrap();
        // Around the sizes where copying and gathering end.
        let length = (usize::from(number) % 5 + 1) * (10 << 10);
        Response::new(Status::OK).with_body(vec![number; length])
    };
    let input: String = (0..60)
        .map(|n| request(&format!("GET /{n} HTTP/1.1")))
        .collect();
    let outcome = Case::new(service).capacity(64 << 10).send(input).run();
    let mut rest = &outcome.received[..];
    for number in 0..60_u8 {
        let answer = Answer::take(&mut rest);
        assert_eq!(answer.body, vec![number; answer.body.len()]);
        assert_eq!(
            answer.body.len(),
            (usize::from(number) % 5 + 1) * (10 << 10)
        );
    }
    assert!(rest.is_empty());
}

#[test]
fn an_answer_does_not_wait_for_the_next_request() {
    let service = |_: &mut Request<'_>| Response::html("hello");
    let outcome = Case::new(service).send(request(GET) + "GET / HT").run();
    assert_eq!(outcome.brief(), "200 hello; open");
}
