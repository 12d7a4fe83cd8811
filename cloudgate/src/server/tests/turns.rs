//! Does a connection with a very fast peer leave turns to others?

use std::io::{self, Read, Write};
use std::sync::Arc;

use http::StatusCode as Status;

use super::script::Case;
use crate::message::{Body, FileRange, Request, Response};

const SIZE: usize = 3 << 20;

/// A peer that is as fast as the worker never makes it wait: without turns, nobody else on the
/// worker is served for seconds.
#[track_caller]
fn check_turns(kind: &str, service: impl crate::message::Service + Clone, request: &[u8]) {
    // In a crowd the turns are shorter.
    for (active, least) in [(1, 3), (10_000, SIZE as u32 / (256 << 10))] {
        let case = Case::new(service.clone()).beside(active).send(request);
        let outcome = case.run();
        assert_eq!(outcome.end, "open", "{kind}");
        assert!(
            outcome.turns >= least,
            "{kind} beside {active}: {} turns for 3 MiB",
            outcome.turns
        );
    }
}

#[test]
fn a_fast_reader_leaves_turns_to_others() {
    for kind in ["bytes", "reader", "writer", "flushing writer", "file"] {
        let service = move |_: &mut Request<'_>| {
            let data = vec![b'x'; SIZE];
            match kind {
                "bytes" => Response::text_plain(data),
                "reader" => Response::new(Status::OK).with_body(Body::Reader {
                    reader: Box::new(io::Cursor::new(data)),
                    length: None,
                }),
                "writer" => Response::stream(move |out| out.write_all(&data)),
                "flushing writer" => Response::stream(move |out| {
                    for piece in data.chunks(1000) {
                        out.write_all(piece)?;
                        out.flush()?;
                    }
                    Ok(())
                }),
                _ => {
                    let mut file = tempfile::tempfile().unwrap();
                    file.write_all(&data).unwrap();
                    Response::file(FileRange::new(Arc::new(file), 0, SIZE as u64))
                }
            }
        };
        check_turns(kind, service, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    }
}

#[test]
fn a_fast_sender_leaves_turns_to_others() {
    let whole = |request: &mut Request<'_>| {
        request.body().set_limit(SIZE as u64);
        assert_eq!(request.body().read_all().unwrap().len(), SIZE);
        Response::new(Status::OK)
    };
    let pieces = |request: &mut Request<'_>| {
        request.body().set_limit(SIZE as u64);
        let mut piece = vec![0; 4096];
        while request.body().read(&mut piece).unwrap() > 0 {}
        Response::new(Status::OK)
    };
    let mut sized =
        format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {SIZE}\r\n\r\n").into_bytes();
    sized.resize(sized.len() + SIZE, b'x');
    let mut chunked = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..SIZE / 4096 {
        chunked.extend_from_slice(b"1000\r\n");
        chunked.resize(chunked.len() + 4096, b'x');
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    check_turns("whole", whole, &sized);
    check_turns("whole, chunked", whole, &chunked);
    check_turns("pieces", pieces, &sized);
    check_turns("pieces, chunked", pieces, &chunked);
}
