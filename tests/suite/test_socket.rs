//! Does a test's WebSocket hear what a server says, and tell what is wrong with it?
//!
//! Most servers here speak by somebody else's code, or by bytes written by hand, behind a handshake of their own: our
//! client against our server would not see what both get wrong.

use std::io::{self, Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use cloudgate::test::{self, Client, SocketEvent};
use cloudgate::{
    App, FromRequest, PerMessageDeflate, Rejection, Request, Response, Upgraded, WebSocketUpgrade,
};
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Role, WebSocket};

/// A client of a server that agrees to each WebSocket, with `fields` besides, and then does `talk`.
fn behind_handshake(
    fields: &'static [(&'static str, &'static str)],
    talk: impl Fn(&mut Upgraded<'_>) -> io::Result<()> + Clone + Send + Sync + 'static,
) -> Client {
    let open = move |request: &mut Request<'_>| {
        let key = request.header("sec-websocket-key").unwrap_or_default();
        let accept = derive_accept_key(key.as_bytes());
        let talk = talk.clone();
        let mut response = Response::switching_protocols("websocket", talk)
            .header("Sec-WebSocket-Accept", &accept);
        for (name, value) in fields {
            response = response.header(name, value);
        }
        response
    };
    test::serve(App::new().get("/", open))
}

/// What a failing test says.
fn failure<T>(test: impl FnOnce() -> T) -> String {
    let test = || drop(test());
    let payload = panic::catch_unwind(AssertUnwindSafe(test)).expect_err("a test that fails");
    payload
        .downcast_ref::<String>()
        .expect("a panic with a text")
        .clone()
}

/// Sends back what comes, by tungstenite.
fn echo(connection: &mut Upgraded<'_>) -> io::Result<()> {
    let mut socket = WebSocket::from_raw_socket(connection, Role::Server, None);
    loop {
        match socket.read() {
            Ok(message) if message.is_text() || message.is_binary() => {
                socket.send(message).map_err(io::Error::other)?;
            }
            Ok(_) => {}
            Err(_) => return Ok(()),
        }
    }
}

#[test]
fn somebody_elses_server_understands_and_is_understood() {
    let client = behind_handshake(&[], echo);
    let mut socket = client.get("/").websocket();
    assert_eq!(socket.protocol(), None);
    for length in [0, 1, 125, 126, 127, 65_535, 65_536, 2 << 20] {
        let text = "é".repeat(length / 2);
        socket.send(&text);
        assert!(socket.text() == text, "text of {length} bytes");
        let bytes = vec![0x81; length];
        socket.send_binary(&bytes);
        assert!(socket.binary() == bytes, "{length} bytes");
    }
    socket.ping(b"?");
    assert_eq!(socket.event(), SocketEvent::Pong(b"?".to_vec()));
    socket.close(4001, "bye");
    assert_eq!(socket.closed(), (Some(4001), "bye".to_owned()));
}

#[test]
fn pings_do_not_put_off_the_end_of_a_wait() {
    // A ping, its pong, the next ping, for ever.
    let client = behind_handshake(&[], |connection| {
        loop {
            connection.write_all(b"\x89\x01p")?;
            connection.read_exact(&mut [0; 7])?;
        }
    });
    let mut socket = client.get("/").websocket();
    assert_eq!(socket.next_within(Duration::from_millis(50)), None);
}

#[test]
fn what_a_test_says_itself_of_the_handshake_is_sent() {
    let open = |request: &mut Request<'_>| -> Result<Response, Rejection> {
        Ok(WebSocketUpgrade::from_request(request)?.accept(|_| Ok(())))
    };
    let client = test::serve(App::new().get("/", open));
    for (name, value, status) in [
        ("Sec-WebSocket-Version", "8", 426),
        ("Upgrade", "other", 426),
        ("Sec-WebSocket-Key", "short", 400),
        ("Sec-WebSocket-Protocol", "a b", 400),
        ("Sec-WebSocket-Extensions", "=", 400),
    ] {
        let ask = client.get("/").header(name, value);
        ask.websocket_refused().assert_status(status);
    }
    let text = failure(|| client.get("/a b").websocket());
    assert!(
        text.contains("GET /a b") && text.contains("percent-encode"),
        "{text}"
    );
}

#[test]
fn the_limit_of_a_message_is_held_at_it_and_one_past_it() {
    for (first_frame, rest) in [(2000, 0), (1500, 500)] {
        let client = move |limit| {
            let talk = move |connection: &mut Upgraded<'_>| {
                let mut frames = Vec::new();
                let (begin, continued) = if rest == 0 {
                    (0x82, None)
                } else {
                    (0x02, Some(rest))
                };
                let pieces = [(begin, Some(first_frame)), (0x80, continued)];
                for (head, length) in pieces {
                    if let Some(length) = length {
                        frames.extend_from_slice(&[head, 126]);
                        frames.extend_from_slice(&u16::to_be_bytes(length));
                        frames.extend_from_slice(&vec![7; length.into()]);
                    }
                }
                connection.write_all(&frames)
            };
            behind_handshake(&[], talk).with_body_limit(limit)
        };
        assert_eq!(client(2000).get("/").websocket().binary(), vec![7; 2000]);
        let text = failure(|| client(1999).get("/").websocket().binary());
        assert!(text.contains("longer than the 1999 bytes"), "{text}");
    }
}

#[test]
fn a_wait_ends_and_says_what_it_was_for() {
    let wait_for_end = |connection: &mut Upgraded<'_>| {
        connection.write_all(b"\x81\x01a\x81\x05hel")?;
        connection.read_to_end(&mut Vec::new()).map(drop)
    };
    let client = behind_handshake(&[], wait_for_end);
    let open = || {
        let socket = client.get("/").websocket();
        let mut socket = socket.with_time_limit(Duration::from_millis(20));
        assert_eq!(socket.text(), "a");
        socket
    };
    let text = failure(|| open().text());
    assert_eq!(
        text,
        "GET /: text was expected, and only a part of a message came within 20ms"
    );
    let silent = behind_handshake(&[], |connection| {
        connection.read_to_end(&mut Vec::new()).map(drop)
    });
    for (wanted, wait) in [
        (
            "something",
            (|socket| drop(socket.event())) as fn(&mut test::Socket),
        ),
        ("text", |socket| drop(socket.text())),
        ("a message of bytes", |socket| drop(socket.binary())),
        ("a close", |socket| drop(socket.closed())),
    ] {
        let socket = silent.get("/").websocket();
        let mut socket = socket.with_time_limit(Duration::from_millis(20));
        let text = failure(|| wait(&mut socket));
        let want = format!("GET /: {wanted} was expected, and nothing came within 20ms");
        assert_eq!(text, want);
    }
}

#[test]
fn a_server_that_does_not_read_is_found_out() {
    let (end, until) = mpsc::channel::<()>();
    let until = Arc::new(Mutex::new(until));
    let client = behind_handshake(&[], move |_| {
        let until = Arc::clone(&until);
        cloudgate::blocking(move || drop(until.lock().map(|until| until.recv())));
        Ok(())
    });
    let socket = client.get("/").websocket();
    let mut socket = socket.with_time_limit(Duration::from_millis(50));
    let piece = vec![0; 1 << 20];
    // More than the buffers of both ends hold.
    let text = failure(|| (0..100).for_each(|_| socket.send_binary(&piece)));
    assert!(text.contains("the server does not read"), "{text}");
    drop(end);
}

#[test]
fn what_breaks_the_protocol_fails_and_says_how() {
    for (bytes, said) in [
        (&b"\x81\x81\0\0\0\0a"[..], "frame is masked"),
        (b"\x81\x01\xff", "not UTF-8"),
        (b"\xc1\x01a", "a reserved bit"),
        (b"\x80\x01a", "no message to continue"),
        (b"\x88\x02\x03\xed", "the close code may not be sent"),
    ] {
        let client = behind_handshake(&[], move |connection| connection.write_all(bytes));
        let text = failure(|| client.get("/").websocket().event());
        assert!(
            text.starts_with("GET /: the server broke the protocol: ") && text.contains(said),
            "{text}"
        );
    }
    for (name, value, said) in [
        (
            "Sec-WebSocket-Protocol",
            "v3",
            "a subprotocol that was not offered",
        ),
        (
            "Sec-WebSocket-Extensions",
            "permessage-deflate",
            "an extension that was not offered",
        ),
        ("Sec-WebSocket-Accept", "AAAA", "does not answer the key"),
    ] {
        let fields: &'static [_] = vec![(name, value)].leak();
        let client = behind_handshake(fields, |_| Ok(()));
        let text = failure(|| {
            let ask = client.get("/").header("Sec-WebSocket-Protocol", "v1, v2");
            ask.websocket()
        });
        assert!(
            text.starts_with("GET / was answered wrongly: ") && text.contains(said),
            "{text}"
        );
    }
}

#[test]
fn a_close_is_answered_as_it_came_and_nothing_follows_it() {
    for (close, answer, seen) in [
        (&b"\x88\0"[..], &[][..], None),
        (b"\x88\x02\x0f\xa0", &[0x0f, 0xa0], Some(4000)),
    ] {
        let client = behind_handshake(&[], move |connection| {
            connection.write_all(close)?;
            let mut frame = Vec::new();
            // The connection is ended only behind the right answer.
            connection
                .take(6 + answer.len() as u64)
                .read_to_end(&mut frame)?;
            let plain = frame.iter().skip(6).zip(frame.iter().skip(2).cycle());
            let plain: Vec<u8> = plain.map(|(byte, key)| byte ^ key).collect();
            let right = frame.starts_with(&[0x88, 0x80 | answer.len() as u8]) && plain == answer;
            if !right {
                connection.write_all(b"HTTP")?;
                connection.read_to_end(&mut frame)?;
            }
            Ok(())
        });
        let socket = client.get("/").websocket();
        let mut socket = socket.with_time_limit(Duration::from_secs(5));
        assert_eq!(socket.closed(), (seen, String::new()));
        assert_eq!(socket.event(), SocketEvent::Ended);
        let text = failure(|| socket.send("more"));
        assert!(
            text.contains("nothing may be sent behind a close"),
            "{text}"
        );
    }
    let client = behind_handshake(&[], echo);
    let mut socket = client.get("/").websocket();
    for code in [1005, 1006, 1015, 999, 5000] {
        let text = failure(|| socket.close(code, ""));
        assert!(text.contains(&code.to_string()), "{text}");
    }
    let text = failure(|| socket.close(1000, &"r".repeat(124)));
    assert!(text.contains("at most 123"), "{text}");
    socket.close(1000, &"r".repeat(123));
    assert_eq!(socket.closed(), (Some(1000), "r".repeat(123)));
}

/// Sends back what comes.
fn talk(socket: &mut cloudgate::WebSocket<'_>) -> cloudgate::SocketResult {
    while let Some(message) = socket.recv()? {
        socket.send(message)?;
    }
    Ok(())
}

#[test]
fn messages_are_compressed_where_both_want_it() {
    let open = |how: Option<PerMessageDeflate>| {
        move |request: &mut Request<'_>| -> Result<Response, Rejection> {
            let mut upgrade = WebSocketUpgrade::from_request(request)?;
            if let Some(how) = how {
                upgrade = upgrade.compress(how);
            }
            Ok(upgrade.accept(|mut socket| talk(&mut socket)))
        }
    };
    let deflate = PerMessageDeflate::new().threshold(0);
    let remembering = deflate
        .server_context_takeover(true)
        .client_context_takeover(true);
    let small = remembering
        .server_max_window_bits(9)
        .client_max_window_bits(9);
    let app = App::new()
        .get("/plain", open(None))
        .get("/forgets", open(Some(deflate)))
        .get("/remembers", open(Some(remembering)))
        .get("/small", open(Some(small)));
    let client = test::serve(app).with_body_limit(100_000);
    for path in ["/forgets", "/remembers", "/small", "/plain"] {
        assert!(!client.get(path).websocket().is_compressed(), "{path}");
        let mut socket = client.get(path).compressed().websocket();
        assert_eq!(socket.is_compressed(), path != "/plain");
        for length in [0, 1, 5, 1000, 1000, 70_000, 100_000] {
            let text: String = ('a'..='z').cycle().take(length).collect();
            socket.send(&text);
            assert!(socket.text() == text, "{path}: text of {length}");
        }
        // The limit counts what a message is, not what it takes on the wire.
        socket.send(&"a".repeat(100_001));
        let text = failure(|| socket.text());
        assert!(text.contains("longer than the 100000 bytes"), "{text}");
    }
}

#[test]
fn what_is_sent_compressed_is_so_on_the_wire() {
    // The server tells the first byte and the length of the first frame, as text.
    let client = behind_handshake(
        &[("Sec-WebSocket-Extensions", "permessage-deflate")],
        |connection| {
            let mut head = [0; 2];
            connection.read_exact(&mut head)?;
            let said = format!("{:02x} {:3}", head[0], head[1] & 0x7f);
            connection.write_all(b"\x81\x06")?;
            connection.write_all(said.as_bytes())?;
            io::copy(connection, &mut io::sink()).map(drop)
        },
    );
    let mut socket = client.get("/").compressed().websocket();
    socket.send(&"a".repeat(100));
    let said = socket.text();
    let (first, length) = said.split_once(' ').expect("two words");
    let length: usize = length.trim().parse().expect("a number");
    assert_eq!(first, "c1", "the last frame of a text, with RSV1");
    assert!(length < 20, "{length} bytes for a hundred times the same");
}

#[test]
fn an_answer_to_compression_that_does_not_fit_the_offer_fails() {
    for (answer, said) in [
        (
            "permessage-deflate; server_max_window_bits=16",
            "does not fit the offer",
        ),
        ("permessage-deflate; other", "does not fit the offer"),
        ("x-webkit-deflate-frame", "not offered"),
    ] {
        let fields: &'static [_] = vec![("Sec-WebSocket-Extensions", answer)].leak();
        let client = behind_handshake(fields, |_| Ok(()));
        let text = failure(|| client.get("/").compressed().websocket());
        assert!(text.contains(said), "{answer}: {text}");
    }
    let extensions = &[("Sec-WebSocket-Extensions", "permessage-deflate")];
    let client = behind_handshake(extensions, |connection| {
        connection.write_all(b"\xc1\x01\xff")
    });
    let text = failure(|| client.get("/").compressed().websocket().text());
    assert!(
        text.contains("the compressed message is malformed"),
        "{text}"
    );
}

#[test]
fn pings_are_answered_unless_asked_not_to() {
    // What came back behind a ping and a text, as far as the client has answered when it closes.
    let client = behind_handshake(&[], |connection| {
        connection.write_all(b"\x89\x01p\x81\x01t")?;
        let mut socket = WebSocket::from_raw_socket(connection, Role::Server, None);
        let mut pongs = 0;
        loop {
            match socket.read() {
                Ok(message) if message.is_pong() => pongs += 1,
                Ok(message) if message.is_text() => {
                    let said = tungstenite::Message::text(pongs.to_string());
                    socket.send(said).map_err(io::Error::other)?;
                }
                Ok(_) => {}
                Err(_) => return Ok(()),
            }
        }
    });
    let mut socket = client.get("/").websocket();
    assert_eq!(socket.text(), "t");
    socket.send("");
    assert_eq!(socket.text(), "1");
    let mut socket = client.get("/").websocket().without_pongs();
    assert_eq!(socket.event(), SocketEvent::Ping(b"p".to_vec()));
    assert_eq!(socket.text(), "t");
    socket.send("");
    assert_eq!(socket.text(), "0");
    socket.pong(&[0; 125]);
    socket.send("");
    assert_eq!(socket.text(), "1");
    for send in [test::Socket::ping, test::Socket::pong] {
        let text = failure(|| send(&mut socket, &[0; 126]));
        assert!(text.contains("at most 125"), "{text}");
    }
}
