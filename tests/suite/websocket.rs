//! Do WebSockets open, talk and end over real connections, with and without a coroutine?

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudgate::test::{self, SocketEvent};
use cloudgate::{
    App, CloseFrame, Cors, Delivery, Extension, FromRequest, Message, Rejection, Request, Response,
    Running, SocketHandler, SocketResult, SocketSender, Upgraded, WebSocket, WebSocketUpgrade,
};
use cloudgate_suite::{Client, LIMIT, Wire, ask, client, start_with, wait_for};

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no test has panicked")
}

/// What the sockets of a test have in common.
#[derive(Clone, Default)]
struct Room {
    senders: Arc<Mutex<Vec<SocketSender>>>,
    closed: Arc<Mutex<Vec<CloseFrame>>>,
    opened: Arc<AtomicUsize>,
}

impl SocketHandler for Room {
    fn open(&mut self, socket: &mut WebSocket<'_>) -> SocketResult {
        self.opened.fetch_add(1, Ordering::SeqCst);
        lock(&self.senders).push(socket.sender());
        Ok(())
    }

    fn message(&mut self, socket: &mut WebSocket<'_>, message: Message) -> SocketResult {
        Ok(socket.send(message)?)
    }

    fn close(&mut self, socket: &SocketSender, frame: &CloseFrame) {
        lock(&self.senders).retain(|other| other != socket);
        lock(&self.closed).push(frame.clone());
    }
}

fn talk(request: &mut Request<'_>) -> Result<Response, Rejection> {
    let upgrade = WebSocketUpgrade::from_request(request)?;
    Ok(upgrade.accept(|mut socket| {
        while let Some(message) = socket.recv()? {
            socket.send(message)?;
        }
        Ok(())
    }))
}

/// A server with a socket of each kind, whose connections are put aside soon.
fn serve(room: &Room) -> Running {
    let room = room.clone();
    let calls = move |request: &mut Request<'_>| -> Result<Response, Rejection> {
        Ok(WebSocketUpgrade::from_request(request)?.serve(room.clone()))
    };
    let app = App::new().get("/talk", talk).get("/calls", calls);
    start_with(app, |settings| {
        settings.timeouts.park = Duration::from_millis(50);
    })
}

#[test]
fn many_sockets_of_both_kinds_talk_at_once() {
    let room = Room::default();
    let server = serve(&room);
    let open = |path| (0..50).map(move |_| path);
    let mut clients: Vec<Client> = open("/talk")
        .chain(open("/calls"))
        .map(|path| client(server.addr(), path))
        .collect();
    for round in 0..20 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.say(&format!("{round} {number}"));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.text(), format!("{round} {number}"));
        }
    }
    let long = "x".repeat(900_000);
    for client in &mut clients[48..52] {
        client.say(&long);
        assert_eq!(client.text(), long);
    }
    for client in &mut clients {
        assert_eq!(client.close(4000, "done"), 4000);
    }
    drop(clients);
    wait_for("all to be gone", || server.connections() == 0);
    assert_eq!(lock(&room.closed).len(), 50);
    assert!(
        lock(&room.closed)
            .iter()
            .all(|frame| frame.code == 4000 && frame.reason == "done")
    );
    assert_eq!(cloudgate::thread_changes(), 0);
}

#[test]
fn sockets_with_callbacks_are_parked_and_reached_all_the_same() {
    let room = Room::default();
    let server = serve(&room);
    let mut clients: Vec<Client> = (0..40).map(|_| client(server.addr(), "/calls")).collect();
    for _ in 0..3 {
        wait_for("all to be parked", || server.parked() == 40);
        for sender in lock(&room.senders).iter() {
            assert_eq!(sender.send("news"), Delivery::Sent);
        }
        for client in &mut clients {
            assert_eq!(client.text(), "news");
        }
        // They were not woken for that, and are by what they say themselves.
        assert_eq!(server.parked(), 40);
        for client in &mut clients {
            client.say("hello");
        }
        for client in &mut clients {
            assert_eq!(client.text(), "hello");
        }
    }
    wait_for("all to be parked", || server.parked() == 40);
    // One is closed from elsewhere, one leaves without a word, one properly.
    lock(&room.senders)[0].close(4004, "out");
    let code = clients[0].closed();
    assert_eq!(code, (4004, "out".to_owned()));
    drop(clients.remove(1));
    assert_eq!(clients[1].close(1000, ""), 1000);
    wait_for("three to be closed", || lock(&room.closed).len() == 3);
    let mut codes: Vec<_> = room
        .closed
        .lock()
        .unwrap()
        .iter()
        .map(|frame| frame.code)
        .collect();
    codes.sort_unstable();
    assert_eq!(codes, [1000, 1006, 4004]);
    wait_for("the rest to stay", || {
        server.connections() == 37 && server.parked() == 37
    });
}

#[test]
fn a_peer_that_does_not_read_while_parked_gets_everything_in_order() {
    let room = Room::default();
    let server = serve(&room);
    let mut client = client(server.addr(), "/calls");
    wait_for("it to be parked", || server.parked() == 1);
    let sender = lock(&room.senders)[0].clone();
    // More than the socket's buffers take: the rest waits, and is sent as the peer reads.
    let mut count = 0;
    while sender.waiting() < 900_000 {
        assert!(!matches!(
            sender.send(format!("{count:0>1000}")),
            Delivery::Dropped(_)
        ));
        count += 1;
    }
    assert!(sender.is_open());
    for number in 0..count {
        assert_eq!(client.text(), format!("{number:0>1000}"));
    }
    client.say("still here");
    assert_eq!(client.text(), "still here");
    assert_eq!((sender.waiting(), sender.losses().total()), (0, 0));
}

#[test]
fn a_server_that_stops_closes_its_sockets() {
    let room = Room::default();
    let server = serve(&room);
    let mut clients: Vec<Client> = ["/talk", "/calls", "/talk", "/calls"]
        .map(|path| client(server.addr(), path))
        .into();
    wait_for("the sockets to rest", || server.parked() == 2);
    let seen =
        std::thread::spawn(move || clients.iter_mut().map(Client::closed).collect::<Vec<_>>());
    assert_eq!(server.shutdown(LIMIT), 0);
    for closed in seen.join().unwrap() {
        assert_eq!(closed, (1001, "the server stops".to_owned()));
    }
    assert_eq!(lock(&room.closed).len(), 2);
}

#[test]
fn opening_and_leaving_again_and_again_leaves_nothing() {
    // 10,000 in a release build; a debug build takes ten times as long for each.
    const ROUNDS: usize = if cfg!(debug_assertions) { 50 } else { 500 };
    let room = Room::default();
    let server = serve(&room);
    for round in 0..ROUNDS {
        let clients: Vec<Client> = (0..20)
            .map(|number| {
                client(
                    server.addr(),
                    if number % 2 == 0 { "/talk" } else { "/calls" },
                )
            })
            .collect();
        // Some go at once, some when they are parked, some inside a frame.
        if round % 10 == 0 {
            wait_for("them to rest", || server.parked() == 10);
        }
        for (number, client) in clients.into_iter().enumerate() {
            if number % 3 == 0 {
                client.leave(b"\x82\xff\x00\x00");
            }
        }
    }
    wait_for("all to be gone", || server.connections() == 0);
    assert_eq!(room.opened.load(Ordering::SeqCst), ROUNDS * 10);
    assert_eq!(lock(&room.closed).len(), ROUNDS * 10);
    assert!(lock(&room.senders).is_empty());
    assert_eq!(server.parked(), 0);
}

#[test]
fn the_client_for_tests_talks_too() {
    let app = App::new()
        .get("/talk", talk)
        .get("/signs-in", |request: &mut Request<'_>| {
            let upgrade = WebSocketUpgrade::from_request(request)?.protocols(&["v2"]);
            let known = request.header("cookie") == Some("user=Ada");
            let response = upgrade
                .header("Set-Cookie", "user=Ada")
                .accept(move |mut socket| {
                    socket.ping(b"?")?;
                    socket.send(format!("{known} {:?}", socket.protocol()))?;
                    socket.close(4000, "that is all")?;
                    Ok(())
                });
            Ok::<_, Rejection>(response)
        });
    let client = test::serve(app);
    let mut socket = client.get("/talk").websocket();
    socket.send("text");
    assert_eq!(socket.text(), "text");
    socket.send_binary(&[0, 255]);
    assert_eq!(socket.binary(), [0, 255]);
    assert_eq!(socket.next_within(Duration::from_millis(30)), None);
    socket.ping(b"!");
    assert_eq!(socket.event(), SocketEvent::Pong(b"!".to_vec()));
    // A frame that is not masked.
    socket.send_raw(b"\x81\x01a");
    assert_eq!(socket.closed().0, Some(1002));

    for known in ["false", "true"] {
        let opening = client
            .get("/signs-in")
            .header("Sec-WebSocket-Protocol", "v1, v2");
        let mut socket = opening.websocket();
        assert_eq!(socket.protocol(), Some("v2"));
        assert_eq!(socket.text(), format!("{known} Some(\"v2\")"));
        assert_eq!(socket.closed(), (Some(4000), "that is all".to_owned()));
    }
    let refused = client.get("/talk").header("Origin", "https://evil.example");
    refused.websocket_refused().assert_status(403);
    client
        .get("/nothing")
        .websocket_refused()
        .assert_status(404);
}

#[test]
fn what_asks_for_no_socket_is_told_what_is_wrong() {
    let server = serve(&Room::default());
    let opening = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let request = |fields: &str| format!("GET /talk HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let plain = ask(server.addr(), request(""));
    assert_eq!(plain.status, 426);
    assert_eq!(plain.header("upgrade"), Some("websocket"));
    assert_eq!(plain.header("sec-websocket-version"), Some("13"));
    let old = ask(
        server.addr(),
        request(&format!("{opening}Sec-WebSocket-Version: 8\r\n")),
    );
    assert_eq!(
        (old.status, old.header("sec-websocket-version")),
        (426, Some("13"))
    );
    let opening = format!("{opening}Sec-WebSocket-Version: 13\r\n");
    let keyless = ask(server.addr(), request(&opening.replace("dGhl", "")));
    assert_eq!(keyless.status, 400);
    let foreign = ask(
        server.addr(),
        request(&format!("{opening}Origin: https://evil.example\r\n")),
    );
    assert_eq!(foreign.status, 403);
    let own = ask(
        server.addr(),
        request(&format!("{opening}Origin: http://h\r\n")),
    );
    assert_eq!(own.status, 101);
    assert_eq!(
        own.header("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
}

#[test]
fn pages_that_cors_allows_by_name_may_open_sockets() {
    let app = App::new().get("/talk", talk);
    let named = start_with(app.wrap(Cors::new().origin("https://app.example")), |_| ());
    let app = App::new().get("/talk", talk);
    let any = start_with(app.wrap(Cors::new().any_origin()), |_| ());
    let request = |origin: &str| {
        format!(
            "GET /talk HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nOrigin: {origin}\r\n\r\n"
        )
    };
    assert_eq!(
        ask(named.addr(), request("https://app.example")).status,
        101
    );
    assert_eq!(
        ask(named.addr(), request("https://evil.example")).status,
        403
    );
    // A socket brings its cookies along, which such a page may not use.
    assert_eq!(ask(any.addr(), request("https://evil.example")).status, 403);
}

#[test]
fn another_protocol_gets_the_bytes_behind_its_request() {
    let app = App::new().get("/shout", || {
        Response::switching_protocols("shout", |connection: &mut Upgraded<'_>| {
            let mut bytes = [0; 5];
            loop {
                connection.read_exact(&mut bytes)?;
                connection.write_all(&bytes.to_ascii_uppercase())?;
            }
        })
    });
    let server = start_with(app, |_| ());
    let mut wire = Wire::open(server.addr());
    let request = "GET /shout HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n";
    wire.send(format!("{request}hel")).send("lo");
    assert_eq!(wire.answer().status, 101);
    assert_eq!(wire.take(5), b"HELLO");
    wire.send("again");
    assert_eq!(wire.take(5), b"AGAIN");
    assert_eq!(server.shutdown(LIMIT), 0);
    assert_eq!(wire.rest(), b"");
}

#[test]
fn a_handler_reaches_what_middlewares_left_and_refuses_with_any_status() {
    #[derive(Clone)]
    struct User(&'static str);
    let sign_in = |request: &mut Request<'_>, next: cloudgate::Next<'_>| {
        if request.query() == "token=secret" {
            request.extensions_mut().insert(User("Ada"));
        }
        next.run(request)
    };
    let socket = |request: &mut Request<'_>| -> Result<Response, Rejection> {
        let upgrade = WebSocketUpgrade::from_request(request)?.protocols(&["v2", "v1"]);
        let Ok(Extension(User(name))) = Extension::from_request(request) else {
            return Ok(Response::error(cloudgate::Status::UNAUTHORIZED));
        };
        Ok(upgrade.header("X-User", name).accept(move |mut socket| {
            let protocol = socket.protocol().unwrap_or("none").to_owned();
            Ok(socket.send(format!("{name} {protocol}"))?)
        }))
    };
    let server = start_with(App::new().get("/socket", socket).wrap(sign_in), |_| ());
    let request = |query: &str| {
        format!(
            "GET /socket{query} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Protocol: v0, v1\r\n\r\n"
        )
    };
    assert_eq!(ask(server.addr(), request("")).status, 401);
    let mut wire = Wire::open(server.addr());
    let answer = wire.send(request("?token=secret")).answer();
    assert_eq!((answer.status, answer.header("x-user")), (101, Some("Ada")));
    assert_eq!(answer.header("sec-websocket-protocol"), Some("v1"));
    assert_eq!(wire.take(8), b"\x81\x06Ada v1");
}

#[test]
fn a_thread_pushes_while_a_handler_waits() {
    let (send, senders) = mpsc::channel();
    let send = Mutex::new(send);
    let socket = move |request: &mut Request<'_>| -> Result<Response, Rejection> {
        let send = send.lock().unwrap().clone();
        Ok(
            WebSocketUpgrade::from_request(request)?.accept(move |mut socket| {
                send.send(socket.sender())?;
                while let Some(message) = socket.recv()? {
                    socket.send(message)?;
                }
                Ok(())
            }),
        )
    };
    let server = start_with(App::new().get("/socket", socket), |_| ());
    let mut client = client(server.addr(), "/socket");
    let sender: SocketSender = senders.recv_timeout(LIMIT).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for number in 0..250 {
                    let delivery = sender.send(format!("{thread} {number}"));
                    assert!(!matches!(delivery, Delivery::Dropped(_)));
                }
            })
        })
        .collect();
    let mut next = [0; 4];
    for _ in 0..1000 {
        let text = client.text();
        let (thread, number) = text.split_once(' ').unwrap();
        let thread: usize = thread.parse().unwrap();
        assert_eq!(
            number.parse::<i32>().unwrap(),
            next[thread],
            "each thread's in its order"
        );
        next[thread] += 1;
    }
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    drop(client);
    wait_for("the sender to see the end", || {
        matches!(sender.send("late"), Delivery::Dropped(_))
    });
}

#[test]
fn a_stopped_client_is_given_up_when_the_server_stops() {
    let server = serve(&Room::default());
    let mut wire = Wire::open(server.addr());
    let request = "GET /talk HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    assert_eq!(wire.send(request).answer().status, 101);
    // It answers no close.
    assert_eq!(server.shutdown(Duration::from_millis(300)), 1);
}
