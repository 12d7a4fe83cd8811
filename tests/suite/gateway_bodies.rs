//! Do bodies, interim answers and other protocols go through a gateway as they come?

use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use cloudgate::Gateway;
use cloudgate_suite::{LIMIT, Talk, Upstream, Wire, ask, response, wait_for};

use crate::gateway::{serve, to};

/// A word from a script to its test.
fn channel<T: Send + 'static>() -> (impl Fn(T) + Send + Sync, mpsc::Receiver<T>) {
    let (send, receive) = mpsc::channel();
    let send = Mutex::new(send);
    (
        move |value| {
            let send = send.lock().expect("one sender");
            send.send(value).expect("a test that waits");
        },
        receive,
    )
}

#[test]
fn an_upload_is_seen_by_the_server_before_it_is_complete() {
    let (seen, heard) = channel();
    let upstream = Upstream::start(move |talk| {
        let head = talk.head().unwrap();
        seen(head.field("content-length").map(str::to_owned));
        let first = talk.bytes(5).unwrap();
        seen(Some(String::from_utf8(first).unwrap()));
        let rest = talk.bytes(5).unwrap();
        talk.ok(rest);
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    wire.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n");
    assert_eq!(heard.recv_timeout(LIMIT).unwrap().as_deref(), Some("10"));
    wire.send("12345");
    assert_eq!(heard.recv_timeout(LIMIT).unwrap().as_deref(), Some("12345"));
    assert_eq!(wire.send("67890").answer().text(), "67890");
}

#[test]
fn chunks_trailers_and_large_bodies_arrive_whole_both_ways() {
    let upstream = Upstream::start(|talk| {
        while let Some(asked) = talk.request() {
            talk.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n");
            for piece in asked.body.chunks(70_000) {
                talk.send(format!("{:x};a=b\r\n", piece.len()));
                talk.send(piece);
                talk.send("\r\n");
            }
            talk.send(format!(
                "0\r\nX-Sum: {}\r\nContent-Length: 1\r\n\r\n",
                asked.body.len()
            ));
        }
    });
    let server = serve(to(&upstream).body_limit(16 << 20));
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    let mut wire = Wire::open(server.addr());
    wire.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\r\n");
    for piece in body.chunks(50_000) {
        wire.send(format!("{:x}\r\n", piece.len()))
            .send(piece)
            .send("\r\n");
    }
    wire.send("0\r\nX-Client: 1\r\n\r\n");
    let head = wire.answer_to_head();
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    let mut got = Vec::new();
    let trailers = loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend(wire.take(1));
        }
        let size = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
        if size == 0 {
            let mut rest = Vec::new();
            while !rest.ends_with(b"\r\n\r\n") && rest != b"\r\n" {
                rest.extend(wire.take(1));
            }
            break String::from_utf8(rest).unwrap();
        }
        got.extend(wire.take(size));
        wire.take(2);
    };
    assert!(got == body);
    assert_eq!(trailers, "X-Sum: 3000000\r\n\r\n");
    let asked = &upstream.asked()[0];
    assert!(asked.body == body);
    assert_eq!(asked.trailers, "X-Client: 1\n");
    assert_eq!(asked.field("te"), Some("trailers"));
}

#[test]
fn a_stream_of_events_is_passed_on_at_once() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let upstream = Upstream::start(move |talk| {
        talk.request();
        talk.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n");
        let _ = wait.lock().unwrap().recv_timeout(LIMIT);
        talk.send("data: 2\n\n");
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    wire.send_get("/events").answer_to_head();
    assert!(wire.take_some().ends_with(b"data: 1\n\n\r\n"));
    go.send(()).unwrap();
    assert!(wire.take_some().starts_with(b"9\r\ndata: 2\n\n\r\n"));
}

#[test]
fn an_answer_that_breaks_off_is_never_whole_for_the_client() {
    for start in [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nxx\r\n",
    ] {
        let upstream = Upstream::start(move |talk| {
            talk.request();
            talk.send(start);
        });
        let server = serve(to(&upstream));
        let mut wire = Wire::open(server.addr());
        let head = wire.send_get("/").answer_to_head();
        let rest = wire.rest();
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{start:?}");
        let promised = head
            .header("content-length")
            .map(|length| length.parse::<usize>().unwrap());
        assert!(
            promised.is_none_or(|length| rest.len() < length),
            "{start:?}"
        );
    }
}

#[test]
fn bodies_without_a_length_end_with_the_connection_and_old_servers_are_understood() {
    let upstream = Upstream::start(|talk| {
        let asked = talk.request().unwrap();
        talk.send(if asked.target() == "/old" {
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold"
        } else {
            "HTTP/1.1 200 OK\r\n\r\nuntil close"
        });
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    assert_eq!(wire.send_get("/old").answer().text(), "old");
    assert_eq!(wire.send_get("/new").answer().text(), "until close");
}

#[test]
fn answers_without_a_body_leave_the_connection_usable() {
    let upstream = Upstream::answering(|asked| match asked.target() {
        "/204" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        "/304" => {
            b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 10\r\n\r\n".to_vec()
        }
        _ if asked.method() == "HEAD" => b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n".to_vec(),
        _ => response("200 OK", "", "0123456789"),
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    for _ in 0..3 {
        assert_eq!(wire.send_get("/204").answer().status, 204);
        let not_modified = wire.send_get("/304").answer();
        assert_eq!(not_modified.header("etag"), Some("\"a\""));
        let head = wire
            .send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
            .answer_to_head();
        assert_eq!(head.header("content-length"), Some("10"));
        assert_eq!(wire.send_get("/").answer().text(), "0123456789");
    }
    assert!(upstream.connections() <= 2);
}

#[test]
fn bytes_behind_an_answer_are_nobodys_answer() {
    let upstream = Upstream::start(|talk| {
        while talk.request().is_some() {
            let mut both = response("200 OK", "", "mine");
            both.extend(response("200 OK", "", "POISON"));
            talk.send(both);
        }
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    for _ in 0..10 {
        assert_eq!(wire.send_get("/").answer().text(), "mine");
    }
}

#[test]
fn hints_come_before_the_answer_and_a_hundred_of_them_are_too_many() {
    let upstream = Upstream::start(|talk| {
        while let Some(asked) = talk.request() {
            let count = if asked.target() == "/many" { 17 } else { 16 };
            for _ in 0..count {
                talk.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
            }
            talk.ok("hello");
        }
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    wire.send_get("/");
    for _ in 0..16 {
        let hint = wire.answer();
        assert_eq!((hint.status, hint.header("link")), (103, Some("</a.css>")));
    }
    assert_eq!(wire.answer().text(), "hello");
    wire.send_get("/many");
    let statuses: Vec<u16> = (0..17).map(|_| wire.answer().status).collect();
    assert_eq!(statuses.last(), Some(&502));
    // HTTP/1.0 knows no such answers.
    let old = ask(server.addr(), "GET / HTTP/1.0\r\n\r\n");
    assert_eq!((old.status, &*old.text()), (200, "hello"));
}

#[test]
fn a_client_that_asks_first_gets_leave_or_the_answer() {
    let upstream = Upstream::start(|talk| {
        while let Some(mut asked) = talk.head() {
            assert_eq!(asked.field("expect"), Some("100-continue"));
            if asked.target() == "/no" {
                talk.send(response("403 Forbidden", "Connection: close\r\n", "no"));
                return;
            }
            talk.send("HTTP/1.1 100 Continue\r\n\r\n");
            asked.body = talk.bytes(5).unwrap();
            talk.ok(asked.body);
        }
    });
    let server = serve(to(&upstream));
    let ask_first = |target: &str| {
        let mut wire = Wire::open(server.addr());
        wire.send(format!(
            "POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        ));
        wire
    };
    let mut wire = ask_first("/yes");
    assert_eq!(wire.answer().status, 100);
    assert_eq!(wire.send("hello").answer().text(), "hello");
    assert_eq!(ask_first("/no").answer().text(), "no");
}

#[test]
fn a_server_that_refuses_an_upload_early_is_heard() {
    let upstream = Upstream::start(|talk| {
        talk.head();
        talk.send(response(
            "413 Content Too Large",
            "Connection: close\r\n",
            "big",
        ));
        talk.is_left();
    });
    let server = serve(to(&upstream).body_limit(64 << 20));
    let mut wire = Wire::open(server.addr());
    wire.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 40000000\r\n\r\n");
    // Without a byte of the body.
    assert_eq!(wire.answer().text(), "big");
}

#[test]
fn a_body_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let upstream =
        Upstream::answering(|asked| response("200 OK", "", asked.body.len().to_string()));
    let server = serve(to(&upstream).body_limit(10));
    let sized = |length: usize| {
        let body = "x".repeat(length);
        ask(
            server.addr(),
            format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}"),
        )
    };
    assert_eq!(sized(10).text(), "10");
    assert_eq!(sized(11).status, 413);
    let chunked = |length: usize| {
        let body = "x".repeat(length);
        ask(
            server.addr(),
            format!(
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            ),
        )
    };
    assert_eq!(chunked(10).text(), "10");
    assert_eq!(chunked(11).status, 413);
    // What was cut off is never a whole request for the server.
    assert!(upstream.asked().iter().all(|asked| asked.body.len() == 10));
}

#[test]
fn an_upload_that_the_client_breaks_off_is_never_whole_for_the_server() {
    let (seen, heard) = channel();
    let upstream = Upstream::start(move |talk| seen(talk.request().is_some()));
    let server = serve(to(&upstream));
    for request in [
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nshort",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
    ] {
        let mut wire = Wire::open(server.addr());
        wire.send(request).end_sending();
        assert!(!heard.recv_timeout(LIMIT).unwrap(), "{request:?}");
        assert_eq!(wire.answer().status, 400);
    }
}

fn upgrade(talk: &mut Talk) -> bool {
    let Some(asked) = talk.request() else {
        return false;
    };
    if asked.field("upgrade") != Some("shout") || asked.field("connection") != Some("Upgrade") {
        talk.ok("no upgrade");
        return false;
    }
    talk.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\nEARLY",
    )
}

const UPGRADE: &str =
    "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n";

#[test]
fn another_protocol_goes_both_ways_and_each_side_ends_for_itself() {
    let upstream = Upstream::start(|talk| {
        if !upgrade(talk) {
            return;
        }
        // What came behind the request too.
        let mut all = talk.bytes(9).unwrap();
        all.make_ascii_uppercase();
        talk.send(all);
        assert!(talk.is_left());
        // The other side has ended, and still listens.
        talk.send("bye");
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    wire.send(format!("{UPGRADE}first"));
    let head = wire.answer();
    assert_eq!((head.status, head.header("upgrade")), (101, Some("shout")));
    assert_eq!(wire.take(5), b"EARLY");
    wire.send("more");
    assert_eq!(wire.take(9), b"FIRSTMORE");
    wire.end_sending();
    assert_eq!(wire.rest(), b"bye");
}

#[test]
fn much_goes_through_a_tunnel_whoever_is_slow() {
    let upstream = Upstream::start(|talk| {
        if upgrade(talk) {
            let half = talk.bytes(2_000_000).unwrap();
            let rest = talk.bytes(3_000_000).unwrap();
            talk.send([half, rest].concat());
        }
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    wire.send(UPGRADE).answer();
    wire.take(5);
    let sent: Vec<u8> = (0..5_000_000_u32)
        .map(|index| (index % 253) as u8)
        .collect();
    wire.send(&sent);
    assert!(wire.take(sent.len()) == sent);
    wire.ends();
}

#[test]
fn protocols_switch_only_where_that_was_asked_for_and_allowed() {
    let upstream = Upstream::start(|talk| {
        talk.request();
        talk.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
    });
    let server = serve(to(&upstream));
    assert_eq!(Wire::open(server.addr()).send_get("/").answer().status, 502);
    let closed = serve(to(&upstream).upgrades(false));
    let answer = Wire::open(closed.addr()).send(UPGRADE).answer();
    assert_eq!(answer.status, 502);
    let last = upstream.asked().pop().unwrap();
    assert_eq!(last.field("upgrade"), None);
    // A refusal is an ordinary answer.
    let refusing = Upstream::answering(|_| response("403 Forbidden", "", "nope"));
    let server = serve(to(&refusing));
    let mut wire = Wire::open(server.addr());
    assert_eq!(wire.send(UPGRADE).answer().text(), "nope");
    assert_eq!(wire.send_get("/").answer().status, 403);
}

#[test]
fn a_tunnel_in_which_nothing_goes_ends_at_last_and_one_ends_with_the_server() {
    let upstream = Upstream::start(|talk| {
        if upgrade(talk) {
            talk.is_left();
        }
    });
    let gateway: Gateway = to(&upstream).tunnel_timeout(Duration::from_millis(200));
    let server = serve(gateway);
    let mut wire = Wire::open(server.addr());
    wire.send(UPGRADE).answer();
    assert_eq!(wire.rest(), b"EARLY");
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    wire.send(UPGRADE).answer();
    wait_for("the tunnel", || upstream.asked().len() == 2);
    assert_eq!(server.shutdown(LIMIT), 0);
    assert_eq!(wire.rest(), b"EARLY");
}

#[test]
fn a_client_that_leaves_a_stream_ends_it_behind_the_gateway() {
    let (left, heard) = channel();
    let upstream = Upstream::start(move |talk| {
        talk.request();
        talk.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        left(talk.is_left());
    });
    let server = serve(to(&upstream));
    let mut wire = Wire::open(server.addr());
    wire.send_get("/").answer_to_head();
    wire.take(1);
    drop(wire);
    assert!(heard.recv_timeout(LIMIT).unwrap());
}
