//! Is everything that goes over a plain connection the same over TLS?
//!
//! With the feature `native-tls` all of it is tested a second time, by that library.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use cloudgate::{
    App, Files, FromRequest, Hub, Identity, Message, Rejection, Request, Response, Running, Server,
    Settings, SocketHandler, SocketResult, WebSocket, WebSocketUpgrade,
};
use cloudgate_suite::{LIMIT, SelfSigned, TlsClient as Tls, open_tls, trusting, wait_for};
use rustls::{ClientConfig, HandshakeKind};

/// A server with a certificate of its own, and clients that trust it.
struct Secure {
    server: Running,
    config: Arc<ClientConfig>,
}

struct Room(Hub);

impl SocketHandler for Room {
    fn open(&mut self, socket: &mut WebSocket<'_>) -> SocketResult {
        Ok(self.0.subscribe("all", &socket.sender())?)
    }

    fn message(&mut self, _socket: &mut WebSocket<'_>, message: Message) -> SocketResult {
        self.0.publish("all", message);
        Ok(())
    }
}

fn app(hub: Hub) -> App {
    let room = move |request: &mut Request<'_>| -> Result<Response, Rejection> {
        Ok(WebSocketUpgrade::from_request(request)?.serve(Room(hub.clone())))
    };
    App::new()
        .get("/hello", || "hello")
        .post("/echo", |request: &mut Request<'_>| {
            request.body().set_limit(8 << 20);
            request
                .body()
                .read_all()
                .map(Response::text_plain)
                .map_err(Rejection::from)
        })
        .get("/room", room)
        .get("/stream", || {
            Response::stream(|out| {
                for _ in 0..50 {
                    out.write_all(&vec![b'x'; 10_000])?;
                }
                Ok(())
            })
        })
}

fn start(app: App) -> Secure {
    start_with(app, |_| ())
}

fn start_with(app: App, change: impl FnOnce(&mut Settings)) -> Secure {
    let made = SelfSigned::new();
    let mut settings = Settings::default();
    settings.workers.workers = settings.workers.workers.max(2);
    settings.timeouts.park = Duration::from_millis(50);
    change(&mut settings);
    let server = Server::bind_tls(
        "127.0.0.1:0",
        by_the_library_of_these_tests(made.identity()),
    )
    .expect("a free port")
    .with_settings(settings)
    .serve(app)
    .expect("a server");
    let mut config = trusting([made.der]);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Secure {
        server,
        config: Arc::new(config),
    }
}

/// TLS by rustls, or by native-tls where this is the module of that name.
fn by_the_library_of_these_tests(identity: Identity) -> cloudgate::Tls {
    let tls = cloudgate::Tls::new(identity);
    #[cfg(feature = "native-tls")]
    if module_path!().ends_with("native_tls") {
        return tls.native();
    }
    tls
}

impl Secure {
    fn open(&self) -> Tls {
        open_tls(self.server.addr(), &self.config).expect("a connection")
    }
}

/// Sends a request and reads the answer to it: the head, and the body that Content-Length announces.
fn ask(tls: &mut Tls, request: &str, body: &[u8]) -> (String, Vec<u8>) {
    tls.write_all(request.as_bytes())
        .expect("an open connection");
    tls.write_all(body).expect("an open connection");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        tls.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("a head");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    tls.read_exact(&mut body).expect("a body");
    (head, body)
}

fn get(tls: &mut Tls, target: &str) -> Vec<u8> {
    ask(
        tls,
        &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        b"",
    )
    .1
}

#[test]
fn requests_are_answered_on_one_connection_before_and_after_it_was_parked() {
    let secure = start(app(Hub::new()));
    let mut tls = secure.open();
    for _ in 0..3 {
        for _ in 0..10 {
            assert_eq!(get(&mut tls, "/hello"), b"hello");
        }
        wait_for("it to be parked", || secure.server.parked() == 1);
    }
    assert_eq!(tls.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    let large: Vec<u8> = (0..5_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    let request = format!(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        large.len()
    );
    let echo = std::thread::spawn(move || {
        let (head, body) = ask(&mut tls, &request, &large);
        (head, body == large, tls)
    });
    let (head, same, mut tls) = echo.join().expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200") && same);
    assert_eq!(get(&mut tls, "/hello"), b"hello");
    assert_eq!(cloudgate::thread_changes(), 0);
}

#[test]
fn files_streams_and_pipelines_come_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let content: Vec<u8> = (0..3_000_000_u32)
        .map(|index| (index % 253) as u8)
        .collect();
    std::fs::write(folder.path().join("large.bin"), &content).expect("a file");
    std::fs::write(folder.path().join("small.txt"), "small").expect("a file");
    let secure = start(app(Hub::new()).fallback(Files::new(folder.path())));
    let mut tls = secure.open();
    for _ in 0..2 {
        assert!(get(&mut tls, "/large.bin") == content);
        assert_eq!(get(&mut tls, "/small.txt"), b"small");
    }
    let one = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let last = "GET /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    tls.write_all(format!("{}{last}", one.repeat(100)).as_bytes())
        .expect("an open connection");
    let mut all = Vec::new();
    // To the end of the connection, which says by close_notify that it is one.
    tls.read_to_end(&mut all).expect("a proper end");
    let text = String::from_utf8_lossy(&all);
    assert_eq!(text.matches("\r\n\r\nhello").count(), 100);
    assert_eq!(
        text.matches('x').count(),
        500_000 + text.matches("text").count()
    );
}

#[test]
fn a_session_is_resumed_whichever_worker_a_client_comes_to() {
    let secure = start(app(Hub::new()));
    assert_eq!(get(&mut secure.open(), "/hello"), b"hello");
    for _ in 0..6 {
        let mut tls = secure.open();
        assert_eq!(get(&mut tls, "/hello"), b"hello");
        assert_eq!(tls.conn.handshake_kind(), Some(HandshakeKind::Resumed));
    }
}

#[test]
fn sockets_talk_over_tls_parked_and_not() {
    let hub = Hub::new();
    let secure = start(app(hub.clone()));
    let url = format!("ws://localhost:{}/room", secure.server.addr().port());
    let mut clients: Vec<_> = (0..10)
        .map(|_| {
            tungstenite::client(&url, secure.open())
                .expect("an open socket")
                .0
        })
        .collect();
    for round in 0..3 {
        wait_for("all to be parked", || secure.server.parked() == 10);
        let text = format!("news {round} {}", "x".repeat(40_000 * round));
        let published = hub.publish("all", text.as_str());
        assert_eq!((published.receivers, published.dropped), (10, 0));
        for client in &mut clients {
            assert_eq!(
                client
                    .read()
                    .expect("a message")
                    .into_text()
                    .expect("text")
                    .as_str(),
                text
            );
        }
        clients[round]
            .send("from one".into())
            .expect("an open socket");
        for client in &mut clients {
            assert_eq!(
                client
                    .read()
                    .expect("a message")
                    .into_text()
                    .expect("text")
                    .as_str(),
                "from one"
            );
        }
    }
    let seen = std::thread::spawn(move || {
        let mut closed = 0;
        for client in &mut clients {
            if let Ok(tungstenite::Message::Close(Some(frame))) = client.read() {
                closed += u32::from(u16::from(frame.code) == 1001);
            }
            // Answers the close, and waits for the end.
            while client.read().is_ok() {}
        }
        closed
    });
    assert_eq!(secure.server.shutdown(LIMIT), 0);
    assert_eq!(seen.join().expect("ten"), 10);
}

/// What comes back for these bytes, up to the end of the connection.
fn answer_to(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a connection");
    stream.write_all(bytes).expect("a connection");
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => fail(&error.to_string()),
        _ => answer,
    }
}

#[allow(clippy::panic, reason = "this is how a test fails")]
fn fail(reason: &str) -> ! {
    panic!("{reason}")
}

#[test]
fn what_is_no_handshake_gets_an_alert_and_one_that_does_not_come_is_not_awaited() {
    let secure = start_with(app(Hub::new()), |settings| {
        settings.timeouts.head = Duration::from_millis(300);
    });
    let answer = answer_to(
        secure.server.addr(),
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
    );
    assert_eq!(answer.first(), Some(&21), "an alert");
    // Who has forgotten the s of https hears so.
    let answer = answer_to(
        secure.server.addr(),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("begins with https:\n"),
        "{answer}"
    );
    assert_eq!(answer_to(secure.server.addr(), b""), b"");
    // The begin of a handshake whose rest does not come.
    assert_eq!(
        answer_to(secure.server.addr(), b"\x16\x03\x01\x02\x00\x01"),
        b""
    );
    assert_eq!(get(&mut secure.open(), "/hello"), b"hello");
    wait_for("the others to be gone", || secure.server.connections() <= 1);
}

#[test]
fn an_idle_connection_ends_with_a_word_of_it() {
    // Late, and when the server ends.
    for idle in [Duration::from_millis(300), Duration::from_secs(75)] {
        let secure = start_with(app(Hub::new()), |settings| settings.timeouts.idle = idle);
        let mut tls = secure.open();
        assert_eq!(get(&mut tls, "/hello"), b"hello");
        if idle > LIMIT / 2 {
            wait_for("it to be parked", || secure.server.parked() == 1);
            secure.server.shutdown(LIMIT);
        }
        let ended = tls.read(&mut [0]);
        assert!(matches!(ended, Ok(0)), "{ended:?}");
    }
}

#[test]
fn a_body_that_is_cut_off_is_not_taken_for_a_whole_one() {
    let secure = start(app(Hub::new()));
    let mut tls = secure.open();
    tls.write_all(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
        .expect("an open connection");
    tls.sock
        .shutdown(std::net::Shutdown::Write)
        .expect("an open connection");
    let mut answer = Vec::new();
    let _ = tls.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200"));
}
