//! Do requests come in by every kind of socket, with the address of who sent them?

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use cloudgate::{
    Address, App, Event, ProxyProtocol, Request, Running, Server, Settings, UnixSocket, route,
};
use cloudgate_suite::{LIMIT, PROGRAM, Wire, get, start_with, wait_for};

const GET_PEER: &str = "GET /listeners/peer HTTP/1.1\r\nHost: h\r\n\r\n";
const GET_IP: &str = "GET /listeners/ip HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

#[route("/listeners/peer")]
fn peer(request: &mut Request<'_>) -> String {
    request.peer().to_string()
}

#[route("/listeners/ip")]
fn ip(event: Event) -> String {
    event.ip().to_string()
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.workers.workers = settings.workers.workers.max(2);
    settings
}

#[track_caller]
fn serve(server: Server) -> Running {
    server
        .with_settings(settings())
        .serve(crate::app())
        .expect("a server that starts")
}

/// Everything that comes back by a Unix socket until the connection ends, in whatever way.
#[track_caller]
fn ask_unix(path: &Path, request: impl AsRef<[u8]>) -> String {
    let mut stream = UnixStream::connect(path).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    stream.write_all(request.as_ref()).expect("a request");
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    String::from_utf8(answer).expect("text")
}

#[test]
fn one_server_listens_in_several_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let server = serve(
        Server::bind("127.0.0.1:0")
            .and_then(|server| server.and_bind_unix(&path))
            .and_then(|server| server.and_bind("127.0.0.1:0"))
            .unwrap(),
    );
    let [Address::Tcp(first), Address::Unix(unix), Address::Tcp(last)] = server.addrs() else {
        panic!("not what was bound: {:?}", server.addrs());
    };
    let (first, last) = (*first, *last);
    assert_eq!((server.addr(), unix), (first, &path));
    assert_ne!(first, last);
    for _ in 0..3 {
        assert_eq!(get(first, "/listeners/ip").text(), "127.0.0.1");
        assert_eq!(get(last, "/listeners/ip").text(), "127.0.0.1");
        assert!(ask_unix(&path, GET_IP).ends_with("0.0.0.0"));
    }
    wait_for("the connections to end", || server.connections() == 0);
    assert_eq!(server.shutdown(Duration::from_secs(5)), 0);
    for address in [first, last] {
        assert!(TcpStream::connect(address).is_err());
    }
    assert!(UnixStream::connect(&path).is_err());
}

#[test]
fn the_unspecified_address_of_ipv6_serves_ipv4_peers_as_such() {
    let Ok(server) = Server::bind("[::]:0") else {
        return; // This machine has no IPv6.
    };
    let server = serve(server);
    let port = server.addr().port();
    assert_eq!(
        get(([127, 0, 0, 1], port).into(), "/listeners/ip").text(),
        "127.0.0.1"
    );
    let mut wire = Wire::open(([127, 0, 0, 1], port).into());
    let text = wire.send(GET_PEER).answer().text();
    assert!(text.starts_with("127.0.0.1:"), "{text}");
    if let Ok(loopback) = "[::1]:0".parse::<SocketAddr>()
        && TcpListener::bind(loopback).is_ok()
    {
        let address = SocketAddr::new(loopback.ip(), port);
        assert_eq!(get(address, "/listeners/ip").text(), "::1");
    }
    let taken = Server::bind(("0.0.0.0", port)).unwrap_err().to_string();
    assert!(taken.contains("is in use"), "{taken}");
}

#[test]
fn a_unix_socket_serves_as_a_port_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let mut settings = settings();
    settings.timeouts.park = Duration::from_millis(50);
    // All peers of a Unix socket look the same, so no limit for one address is theirs.
    settings.max_connections_per_ip = Some(1);
    let server = Server::bind_unix(&path)
        .unwrap()
        .with_settings(settings)
        .serve(crate::app())
        .unwrap();
    assert_eq!(server.addr().to_string(), "0.0.0.0:0");
    let mut idle = UnixStream::connect(&path).unwrap();
    wait_for("it to be parked", || server.parked() == 1);
    let pipelined = format!("{GET_PEER}{GET_PEER}{GET_IP}");
    let answers = ask_unix(&path, pipelined);
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3, "{answers}");
    let body = "x".repeat(1 << 20);
    let upload = format!(
        "POST /extract/text HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert!(ask_unix(&path, upload).ends_with(&body));
    idle.write_all(GET_IP.as_bytes()).unwrap();
    let mut answer = String::new();
    idle.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("0.0.0.0"), "{answer}");
    assert_eq!(server.shutdown(Duration::from_secs(5)), 0);
}

#[test]
fn the_file_of_a_unix_socket_comes_with_the_server_and_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let mode = || fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o7777;

    let server = serve(Server::bind_unix(&path).unwrap());
    assert_eq!(mode(), 0o660);
    server.shutdown(Duration::from_secs(5));
    assert!(!path.exists());

    drop(Server::bind_unix(UnixSocket::new(&path).with_mode(0o600)).unwrap());
    assert!(!path.exists(), "also where it was never served");

    let server = serve(Server::bind_unix(UnixSocket::new(&path).with_mode(0o666)).unwrap());
    assert_eq!(mode(), 0o666);
    // Somebody else's socket by now: not ours to remove.
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(server);
    assert!(UnixStream::connect(&path).is_ok());
    drop(other);
}

#[test]
fn a_stale_socket_is_replaced_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    // What a server leaves behind that was killed.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let server = serve(Server::bind_unix(&path).unwrap());
    assert!(ask_unix(&path, GET_IP).starts_with("HTTP/1.1 200"));

    let error = Server::bind_unix(&path).unwrap_err();
    assert!(matches!(error, cloudgate::Error::BindUnix { .. }));
    assert!(
        error.to_string().contains("is in use by another program"),
        "{error}"
    );
    assert!(ask_unix(&path, GET_IP).starts_with("HTTP/1.1 200"));
    drop(server);

    let file = folder.path().join("file");
    fs::write(&file, "precious").unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [&file, &link, &folder.path().to_owned()] {
        let error = Server::bind_unix(path).unwrap_err().to_string();
        assert!(error.contains("is no socket"), "{error}");
    }
    assert_eq!(fs::read_to_string(&link).unwrap(), "precious");
    assert!(!fs::symlink_metadata(&link).unwrap().file_type().is_socket());

    let nowhere = folder.path().join("no/app.sock");
    let error = Server::bind_unix(nowhere).unwrap_err().to_string();
    assert!(error.contains("its folder is not there"), "{error}");
    let long = folder.path().join("x".repeat(120));
    let error = Server::bind_unix(long).unwrap_err().to_string();
    assert!(error.contains("107 bytes"), "{error}");
}

#[test]
fn of_servers_that_start_at_the_same_moment_one_gets_the_socket() {
    const SERVERS: usize = 6;
    let folder = tempfile::tempdir().unwrap();
    for round in 0..100 {
        let path = folder.path().join(round.to_string());
        if round % 4 != 0 {
            drop(UnixListener::bind(&path).unwrap());
        }
        let line = Barrier::new(SERVERS);
        let bound: Vec<_> = std::thread::scope(|scope| {
            let start = || {
                line.wait();
                Server::bind_unix(&path)
            };
            let starts: Vec<_> = (0..SERVERS).map(|_| scope.spawn(start)).collect();
            starts
                .into_iter()
                .map(|start| start.join().unwrap())
                .collect()
        });
        let errors: Vec<_> = bound
            .iter()
            .filter_map(|server| Some(server.as_ref().err()?.to_string()))
            .collect();
        assert_eq!(errors.len(), SERVERS - 1);
        for error in errors {
            assert!(error.contains("is in use"), "{error}");
        }
        assert!(UnixStream::connect(&path).is_ok());
    }
}

/// A process that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program below with descriptors 3 and 4 as a service manager would: a shell puts them
/// there and says which process they are for.
fn activated(three: OwnedFd, four: Option<OwnedFd>, pid: &str, fds: &str) -> Killed {
    let script = format!(
        "exec 3<&0 {} 0</dev/null 1>&2; LISTEN_PID={pid} exec \"$@\"",
        if four.is_some() { "4<&1" } else { "4<&-" }
    );
    let child = Command::new("sh")
        .args(["-c", &script, "sh"])
        .arg(std::env::current_exe().expect("a path to this program"))
        .args(["listeners::activated_program", "--exact", "--ignored"])
        .args(["--nocapture", "--test-threads=2"])
        .env(PROGRAM, "1")
        .env("LISTEN_FDS", fds)
        .env("LISTEN_FDNAMES", "web:admin")
        .stdin(Stdio::from(three))
        .stdout(four.map_or_else(Stdio::null, Stdio::from))
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    Killed(child)
}

#[test]
fn sockets_of_a_service_manager_are_served_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = web.local_addr().unwrap();
    let admin = UnixListener::bind(&path).unwrap();
    // Connections wait in the queue until the program is there.
    let program = activated(web.into(), Some(admin.into()), "$$", "2");
    assert_eq!(get(address, "/name").text(), "web");
    let request = "GET /name HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    assert!(ask_unix(&path, request).ends_with("admin"));
    // The service manager's file is not the program's to remove.
    drop(program);
    assert!(path.exists());
}

#[test]
fn unusable_sockets_of_a_service_manager_keep_a_program_from_starting() {
    let listening = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    let file = || OwnedFd::from(fs::File::open("/dev/null").unwrap());
    let connected = || OwnedFd::from(UnixStream::pair().unwrap().0);
    for (three, four, pid, fds, code, said) in [
        (
            listening(),
            None,
            "$$",
            "2",
            1,
            "descriptor 4 (admin) of LISTEN_FDS=2",
        ),
        (
            file(),
            Some(listening()),
            "$$",
            "2",
            1,
            "descriptor 3 (web) of LISTEN_FDS=2",
        ),
        (
            listening(),
            Some(connected()),
            "$$",
            "2",
            1,
            "a listening stream socket",
        ),
        (listening(), None, "$$", "many", 1, "LISTEN_FDS is \"many\""),
        (
            listening(),
            None,
            "$$",
            "1",
            1,
            "LISTEN_FDNAMES is \"web:admin\"",
        ),
        (listening(), None, "1", "2", 0, "nothing inherited"),
    ] {
        let mut program = activated(three, four, pid, fds);
        let mut text = String::new();
        let mut errors = program.0.stderr.take().unwrap();
        errors.read_to_string(&mut text).unwrap();
        assert!(text.contains(said), "{text}");
        assert_eq!(program.0.wait().unwrap().code(), Some(code), "{text}");
    }
}

#[test]
#[ignore = "the program of the tests above"]
#[allow(clippy::print_stderr, reason = "the other process reads it")]
fn activated_program() {
    if std::env::var_os(PROGRAM).is_none() {
        return;
    }
    let by_name = match Server::from_environment_by_name() {
        Ok(by_name) => by_name,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    if by_name.is_empty() {
        eprintln!("nothing inherited");
        std::process::exit(0);
    }
    assert!(Server::from_environment().unwrap().is_none(), "taken twice");
    let running: Vec<_> = by_name
        .into_iter()
        .map(|(name, server)| {
            server
                .with_settings(settings())
                .serve(App::new().get("/name", move || name.clone()))
                .unwrap()
        })
        .collect();
    assert_eq!(running.len(), 2);
    // Until it is killed.
    loop {
        std::thread::park();
    }
}

/// A server that trusts the proxies of these networks, and those on Unix sockets.
#[track_caller]
fn behind(trusted: &str, change: impl FnOnce(&mut Settings)) -> Running {
    start_with(crate::app(), |settings| {
        settings.proxy_protocol = Some(ProxyProtocol {
            trusted: vec![trusted.parse().expect("a network")],
            unix_sockets: true,
        });
        change(settings);
    })
}

/// A header of version 2 for TCP by IPv4, with one TLV.
fn v2(source: [u8; 4], port: u16) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x11".to_vec();
    header.extend(source);
    header.extend([127, 0, 0, 1]);
    header.extend(port.to_be_bytes());
    header.extend([0, 80]);
    header.extend(b"\x04\0\x02ab");
    header
}

fn headers() -> Vec<(Vec<u8>, &'static str)> {
    let v6 = [
        &b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24\x20\x01\x0d\xb8"[..],
        &[0; 11],
        &[7],
        &[0; 16],
        &[0x12, 0x34, 0, 80],
    ];
    vec![
        (
            b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n".to_vec(),
            "192.0.2.7:4711",
        ),
        (
            b"PROXY TCP6 2001:db8::7 ::1 4711 80\r\n".to_vec(),
            "[2001:db8::7]:4711",
        ),
        (v2([192, 0, 2, 9], 4712), "192.0.2.9:4712"),
        (v6.concat(), "[2001:db8::7]:4660"),
    ]
}

#[test]
fn a_trusted_proxy_says_who_the_client_is() {
    let server = behind("127.0.0.0/8", |settings| {
        settings.timeouts.park = Duration::from_millis(50);
    });
    for (header, client) in headers() {
        // With the request in the same packet, by itself, and byte by byte.
        let mut together = Wire::open(server.addr());
        together.send([&header, GET_PEER.as_bytes(), GET_PEER.as_bytes()].concat());
        assert_eq!(together.answer().text(), client);
        assert_eq!(together.answer().text(), client);
        let mut apart = Wire::open(server.addr());
        apart.send(&header);
        // Neither has anything to do now, and the header is gone with all that it says kept.
        wait_for("both to be parked", || server.parked() == 2);
        for wire in [&mut together, &mut apart] {
            assert_eq!(wire.send(GET_PEER).answer().text(), client);
        }
        let mut dripping = Wire::open(server.addr());
        for byte in header.iter().chain(GET_IP.as_bytes()) {
            dripping.send([*byte]);
        }
        let ip = client.parse::<SocketAddr>().unwrap().ip().to_string();
        assert_eq!(dripping.answer().text(), ip);
        drop((together, apart, dripping));
        wait_for("the connections to end", || server.connections() == 0);
    }
}

#[test]
fn a_header_that_names_nobody_means_the_proxy() {
    let server = behind("127.0.0.1", |_| ());
    for header in [
        &b"PROXY UNKNOWN\r\n"[..],
        b"PROXY UNKNOWN 1.2.3.4 1.2.3.4 1 2\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
        b"\r\n\r\n\0\r\nQUIT\n\x20\x11\0\x0c\x01\x02\x03\x04\x01\x02\x03\x04\0\0\0\0",
        b"\r\n\r\n\0\r\nQUIT\n\x21\0\0\0",
    ] {
        let mut wire = Wire::open(server.addr());
        wire.send([header, GET_IP.as_bytes()].concat());
        assert_eq!(wire.answer().text(), "127.0.0.1");
    }
}

#[test]
fn a_trusted_proxy_without_a_valid_header_gets_no_answer() {
    let server = behind("127.0.0.1", |_| ());
    for wrong in [
        GET_IP.as_bytes(),
        b"PROXY TCP4 192.0.2.7 127.0.0.1 4711\r\n",
        b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\n",
        b"\r\n\r\n\0\r\nQUIT\n\x31\x11\0\x0c",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff",
        b"\0",
    ] {
        let mut wire = Wire::open(server.addr());
        wire.send([wrong, GET_IP.as_bytes()].concat()).ends();
    }
    // A peer that ends its side inside the header is not waited for, however long it would have.
    let server = behind("127.0.0.1", |settings| {
        settings.timeouts.head = Duration::ZERO;
    });
    let mut half = Wire::open(server.addr());
    half.send("PROXY TCP4 192.0.2.7").end_sending().ends();
    Wire::open(server.addr()).end_sending().ends();
    wait_for("the connections to end", || server.connections() == 0);
}

#[test]
fn the_header_has_the_time_of_a_request_head() {
    const SHORT: Duration = Duration::from_millis(300);
    let server = behind("127.0.0.1", |settings| settings.timeouts.head = SHORT);
    for piece in ["", "PROXY TCP4 192.0.2.7 "] {
        let began = Instant::now();
        Wire::open(server.addr()).send(piece).ends();
        let took = began.elapsed();
        assert!(took >= SHORT - Duration::from_millis(50), "{took:?}");
    }
}

#[test]
fn a_peer_that_is_not_trusted_sends_a_bad_request() {
    let trusting_others = behind("10.0.0.0/8", |_| ());
    let trusting_nobody = start_with(crate::app(), |_| ());
    for server in [&trusting_others, &trusting_nobody] {
        for (header, _) in headers() {
            let mut wire = Wire::open(server.addr());
            wire.send([&header, GET_IP.as_bytes()].concat());
            assert_eq!(wire.answer().status, 400);
            wire.ends();
        }
        assert_eq!(get(server.addr(), "/listeners/ip").text(), "127.0.0.1");
    }
}

#[test]
fn the_limit_for_one_address_is_the_clients() {
    let server = behind("127.0.0.1", |settings| {
        settings.max_connections_per_ip = Some(1);
    });
    let open = |client: u8| {
        let mut wire = Wire::open(server.addr());
        wire.send([&v2([192, 0, 2, client], 1), GET_PEER.as_bytes()].concat());
        wire
    };
    let mut first = open(1);
    assert_eq!(first.answer().status, 200);
    let mut second = open(2);
    assert_eq!(second.answer().status, 200);
    let mut third = open(1);
    let answer = third.answer();
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    third.ends();
    drop(first);
    wait_for("the seat that is free again", || {
        open(1).answer().status == 200
    });
    assert_eq!(second.send(GET_PEER).answer().status, 200);
}

#[test]
fn a_proxy_on_a_unix_socket_is_trusted_where_that_is_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    for trusted in [true, false] {
        let mut settings = settings();
        settings.proxy_protocol = Some(ProxyProtocol {
            trusted: vec!["0.0.0.0/0".parse().unwrap()],
            unix_sockets: trusted,
        });
        let server = Server::bind_unix(&path)
            .unwrap()
            .with_settings(settings)
            .serve(crate::app())
            .unwrap();
        let answer = ask_unix(&path, [&v2([192, 0, 2, 7], 1), GET_IP.as_bytes()].concat());
        if trusted {
            assert!(answer.ends_with("\r\n\r\n192.0.2.7"), "{answer}");
            assert_eq!(ask_unix(&path, GET_IP), "");
            let mut of_unix = b"\r\n\r\n\0\r\nQUIT\n\x21\x31\0\xd8".to_vec();
            of_unix.extend([b'/'; 216]);
            of_unix.extend(GET_IP.as_bytes());
            assert!(ask_unix(&path, of_unix).ends_with("\r\n\r\n0.0.0.0"));
        } else {
            assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        }
        server.shutdown(Duration::from_secs(5));
    }
}

#[test]
fn a_stopping_server_does_not_wait_for_a_header() {
    let server = behind("127.0.0.1", |_| ());
    let mut silent = Wire::open(server.addr());
    wait_for("the connection", || server.connections() == 1);
    let began = Instant::now();
    assert_eq!(server.shutdown(LIMIT), 0);
    assert!(began.elapsed() < Duration::from_secs(5));
    silent.ends();
}
