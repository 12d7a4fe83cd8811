//! Does the program serve by its configuration file, and change while it serves?

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use cloudgate_suite::{
    Program, SelfSigned, Upstream, Wire, get, open_tls, response, trusting, wait_for,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::cli::command;

/// A gateway as a program of its own.
struct Gateway {
    folder: TempDir,
    program: Program,
    address: SocketAddr,
    admin: SocketAddr,
}

/// Its own listeners; what comes behind is the rest of the file.
const SERVER: &str = "server: {port: 0, host: 127.0.0.1, log: {enable: false}}\nadmin: {port: 0}\n";

impl Gateway {
    fn start(config: &str) -> Gateway {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("config.yml");
        fs::write(&file, config).expect("a file");
        let mut program = Program::spawn(command(&["-c", &file.display().to_string()]));
        let line = program.line();
        let address = |behind: &str| {
            let rest = line.split(behind).nth(1).expect("the line says it");
            let rest = rest.split(' ').next().expect("an address");
            rest.parse().expect("an address")
        };
        let scheme = if line.contains("https://") {
            "https://"
        } else {
            " · http://"
        };
        Gateway {
            address: address(scheme),
            admin: address("admin http://"),
            folder,
            program,
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("config.yml")
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.program.id())
            .ok()
            .and_then(Pid::from_raw);
        kill_process(id.expect("a process id"), signal).expect("a process that runs");
    }

    /// Writes another configuration and has it read.
    fn change(&self, config: &str) {
        let next = self.folder.path().join("next.yml");
        fs::write(&next, config).expect("a file");
        fs::rename(next, self.file()).expect("another file in its place");
        self.signal(Signal::HUP);
    }

    /// What it has said when it ends.
    fn stop(self) -> String {
        self.signal(Signal::TERM);
        let ended = self.program.ended();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.errors
    }
}

fn service(path: &str, upstream: &Upstream) -> String {
    format!(
        "  - {{path: {path}, stripPath: true, servers: [\"{}\"]}}\n",
        upstream.url()
    )
}

fn config(services: &[(&str, &Upstream)]) -> String {
    let services: String = services
        .iter()
        .map(|(path, upstream)| service(path, upstream))
        .collect();
    format!("{SERVER}services:\n{services}")
}

fn named(name: &'static str) -> Upstream {
    Upstream::answering(move |asked| response("200 OK", "", format!("{name} {}", asked.target())))
}

#[test]
fn zollys_published_configurations_run_as_they_are() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/cloudgate/src/config/file/tests/"
    );
    for file in ["zolly-basic.yml", "zolly-auto-ssl.yml"] {
        let (orders, products) = (named("orders"), named("products"));
        // On ports of this test, for it must not need its own.
        let text = fs::read_to_string(format!("{folder}{file}"))
            .expect("the file")
            .replace("localhost:3001", &orders.address().to_string())
            .replace("localhost:3002", &products.address().to_string());
        let kept = tempfile::tempdir().expect("a folder");
        fs::write(kept.path().join("config.yml"), text).expect("a file");
        let mut command = command(&["-c", "config.yml", "--port", "0", "--host", "127.0.0.1"]);
        command.current_dir(kept.path());
        let mut program = Program::spawn(command);
        let line = program.line();
        let address: SocketAddr = line
            .split("://")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        if file == "zolly-basic.yml" {
            assert_eq!(get(address, "/orders/7").text(), "orders /7");
            assert_eq!(get(address, "/products").text(), "products /");
            assert_eq!(get(address, "/ordersX").status, 404);
        } else {
            use std::io::{Read, Write};
            assert!(kept.path().join("certs/server.p12").exists(), "{line}");
            // Who knows nobody that has signed it does not come in.
            let stranger = SelfSigned::new();
            let config = Arc::new(trusting([stranger.der.clone()]));
            let mut stream = open_tls(address, &config).unwrap();
            let refused = stream
                .write_all(b"GET / HTTP/1.1\r\n")
                .and_then(|()| stream.read(&mut [0; 1]).map(drop));
            assert!(refused.unwrap_err().to_string().contains("certificate"));
        }
        let id = i32::try_from(program.id()).ok().and_then(Pid::from_raw);
        kill_process(id.unwrap(), Signal::TERM).unwrap();
        assert_eq!(program.ended().code, Some(0));
    }
}

#[test]
fn a_changed_file_is_served_by_and_one_with_mistakes_is_not() {
    let (a, b) = (named("a"), named("b"));
    let gateway = Gateway::start(&config(&[("/x", &a)]));
    assert_eq!(get(gateway.address, "/x/1").text(), "a /1");
    gateway.change(&config(&[("/x", &b), ("/y", &a)]));
    wait_for("the change", || {
        get(gateway.address, "/x/1").text() == "b /1"
    });
    assert_eq!(get(gateway.address, "/y").text(), "a /");
    gateway.change(&config(&[("/z", &a)]).replace("stripPath", "strip_path"));
    wait_for("the refusal", || {
        let refused = "\ncloudgate_gateway_config_reloads_total{outcome=\"refused\"} ";
        let metrics = get(gateway.admin, "/metrics").text();
        metrics.contains(refused) && !metrics.contains(&format!("{refused}0\n"))
    });
    // By itself, without a signal.
    fs::write(gateway.file(), config(&[("/w", &a)])).unwrap();
    wait_for("the next change", || {
        get(gateway.address, "/w").status == 200
    });
    assert_eq!(get(gateway.address, "/x").status, 404);
    let said = gateway.stop();
    assert!(
        said.contains("unknown key `strip_path` in a service: did you mean `stripPath`?"),
        "{said}"
    );
}

#[test]
fn reloads_under_load_lose_no_request() {
    let reloads = std::env::var("TORTURE_RELOADS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(60);
    let (a, b) = (named("a"), named("b"));
    let gateway = Gateway::start(&config(&[("/x", &a), ("/kept", &a)]));
    let stop = Arc::new(AtomicBool::new(false));
    let (answered, wrong) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (stop, answered, wrong) =
                (Arc::clone(&stop), Arc::clone(&answered), Arc::clone(&wrong));
            let address = gateway.address;
            thread::spawn(move || {
                let path = if client % 2 == 0 { "/x" } else { "/kept" };
                let mut wire = Wire::open(address);
                while !stop.load(Ordering::SeqCst) {
                    let answer = wire.send_get(path).answer();
                    let fine = answer.status == 200
                        && (answer.text() == "a /" || path == "/x" && answer.text() == "b /");
                    wrong.fetch_add(usize::from(!fine), Ordering::SeqCst);
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for round in 0..reloads {
        let before = answered.load(Ordering::SeqCst);
        let upstream = if round % 2 == 0 { &b } else { &a };
        gateway.change(&config(&[("/x", upstream), ("/kept", &a)]));
        wait_for("requests in between", || {
            answered.load(Ordering::SeqCst) > before + 4
        });
    }
    stop.store(true, Ordering::SeqCst);
    for client in clients {
        client.join().expect("a client that lost nothing");
    }
    assert_eq!(wrong.load(Ordering::SeqCst), 0);
    // A service that stayed the same kept its connections.
    let asked = a.asked();
    let kept: std::collections::HashSet<usize> = asked
        .iter()
        .filter(|asked| asked.field("x-forwarded-prefix") == Some("/kept"))
        .map(|asked| asked.connection)
        .collect();
    assert!(kept.len() <= 8, "{} connections", kept.len());
    gateway.stop();
}

#[test]
fn another_port_takes_over_and_what_goes_on_at_the_old_one_goes_on() {
    let upstream = Upstream::start(|talk| {
        while let Some(asked) = talk.request() {
            if asked.field("upgrade").is_none() {
                talk.ok("hello");
                continue;
            }
            talk.send(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n",
            );
            while let Some(byte) = talk.bytes(1) {
                talk.send(byte);
            }
            return;
        }
    });
    let services = service("/", &upstream);
    let gateway = Gateway::start(&format!("{SERVER}services:\n{services}"));
    let mut kept = Wire::open(gateway.address);
    assert_eq!(kept.send_get("/").answer().text(), "hello");
    let mut tunnel = Wire::open(gateway.address);
    tunnel.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    assert_eq!(tunnel.answer().status, 101);
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let server = SERVER.replacen("port: 0", &format!("port: {}", free.port()), 1);
    gateway.change(&format!("{server}services:\n{services}"));
    wait_for("the new port", || {
        std::net::TcpStream::connect(free).is_ok()
    });
    assert_eq!(get(free, "/").text(), "hello");
    wait_for("the old one to be given up", || {
        std::net::TcpStream::connect(gateway.address).is_err()
    });
    // Who was there already notices nothing.
    assert_eq!(kept.send_get("/").answer().text(), "hello");
    tunnel.send("a");
    assert_eq!(tunnel.take(1), b"a");
    // A port that somebody else has changes nothing.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let server = SERVER.replacen("port: 0", &format!("port: {port}"), 1);
    gateway.change(&format!("{server}services:\n{services}"));
    tunnel.send("b");
    assert_eq!(tunnel.take(1), b"b");
    assert_eq!(get(free, "/").text(), "hello");
    // The same port by other rules: it is taken again.
    let server = SERVER.replacen(
        "port: 0",
        &format!("port: {}, maxConnections: 100", free.port()),
        1,
    );
    gateway.change(&format!("{server}services:\n{services}"));
    wait_for("the port again", || {
        let mut fine = std::net::TcpStream::connect(free).is_ok();
        fine &= get(free, "/").text() == "hello";
        fine
    });
    tunnel.send("c");
    assert_eq!(tunnel.take(1), b"c");
    let said = gateway.stop();
    assert!(said.contains("the configuration stays as it was"), "{said}");
}

#[test]
fn readiness_ends_before_requests_do() {
    let upstream = named("a");
    let server = SERVER.replacen("port: 0", "port: 0, shutdownDelay: 2s", 1);
    let gateway = Gateway::start(&format!("{server}services:\n{}", service("/", &upstream)));
    assert_eq!(get(gateway.admin, "/healthz").text(), "ok\n");
    assert_eq!(get(gateway.admin, "/readyz").status, 200);
    gateway.signal(Signal::TERM);
    wait_for("it to be unready", || {
        get(gateway.admin, "/readyz").status == 503
    });
    assert_eq!(get(gateway.address, "/x").text(), "a /x");
    assert_eq!(get(gateway.admin, "/healthz").status, 200);
    assert_eq!(gateway.program.ended().code, Some(0));
}

#[test]
fn services_are_guarded_as_the_file_says() {
    let upstream = Upstream::answering(|asked| {
        response(
            "200 OK",
            "Content-Type: text/plain\r\n",
            asked.body.len().to_string(),
        )
    });
    let url = upstream.url();
    let gateway = Gateway::start(&format!(
        "server: {{port: 0, host: 127.0.0.1, log: {{enable: false}}, bodyLimit: 10}}\nadmin: {{port: 0}}\nservices:
  - {{path: /key, servers: [\"{url}\"], apiKey: {{keys: [k-1]}}}}
  - {{path: /basic, servers: [\"{url}\"], basicAuth: {{users: {{Aladdin: open sesame}}}}}}
  - {{path: /denied, servers: [\"{url}\"], deny: [127.0.0.0/8]}}
  - {{path: /rate, servers: [\"{url}\"], rateLimit: {{requests: 2}}}}
  - {{path: /big, servers: [\"{url}\"], bodyLimit: 20}}
  - {{path: /cors, servers: [\"{url}\"], cors: {{origins: [\"https://app.test\"]}}}}
  - {{path: /read, methods: [GET], servers: [\"{url}\"]}}
  - {{path: /, hosts: [\"*.a.test\"], servers: [\"{url}\"], responseHeaders: {{set: {{X-Host: a}}}}}}
"
    ));
    let ask = |request: &str| cloudgate_suite::ask(gateway.address, request);
    let status = |path: &str, fields: &str| {
        ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).status
    };
    assert_eq!(status("/key", ""), 401);
    assert_eq!(status("/key", "X-Api-Key: k-1\r\n"), 200);
    assert_eq!(status("/basic", ""), 401);
    assert_eq!(
        status(
            "/basic",
            "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"
        ),
        200
    );
    assert_eq!(status("/denied", ""), 403);
    assert_eq!(
        [
            status("/rate", ""),
            status("/rate", ""),
            status("/rate", "")
        ],
        [200, 200, 429]
    );
    let post = |path: &str, length: usize| {
        ask(&format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{}",
            "x".repeat(length)
        ))
        .status
    };
    assert_eq!(
        [
            post("/cors", 10),
            post("/cors", 11),
            post("/big", 20),
            post("/big", 21)
        ],
        [200, 413, 200, 413]
    );
    let preflight = ask(
        "OPTIONS /cors HTTP/1.1\r\nHost: h\r\nOrigin: https://app.test\r\nAccess-Control-Request-Method: GET\r\n\r\n",
    );
    assert_eq!(
        preflight.header("access-control-allow-origin"),
        Some("https://app.test")
    );
    assert_eq!(post("/read", 1), 405);
    let host = ask("GET /x HTTP/1.1\r\nHost: b.a.test\r\n\r\n");
    assert_eq!((host.status, host.header("x-host")), (200, Some("a")));
    assert_eq!(status("/x", ""), 404);
    gateway.stop();
}
