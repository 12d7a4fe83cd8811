//! What does an HTTP/1.1 conformance probe need of a server?
//!
//! `HTTP_PORT=8100 ECHO_PORT=8101 cargo run --release --example conformance` serves, on 127.0.0.1:
//!
//! - `HTTP_PORT`: `GET /`, `POST /echo` that returns the body, and below `/static/` a text of 16 KB
//!   (`file.txt`, an hour old) and 20 MB (`big.bin`); a WebSocket at `/ws` that echoes; everything else is 404;
//! - `ECHO_PORT`: the request body for every method and path;
//! - `TLS_PORT`: what is at `HTTP_PORT`, over TLS, with an RSA-2048 certificate for localhost that signs itself;
//! - `PROXY_PORT`: whatever the server at `ORIGIN_PORT` of this machine answers.
//!
//! Port 0 takes any free port. One line a port on standard output says where it listens.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cloudgate::{
    App, Files, FromRequest, Gateway, Identity, PerMessageDeflate, Rejection, Request, Response,
    Server, Settings, WebSocketUpgrade,
};
use rcgen::{CertificateParams, KeyPair, RsaKeySize};

/// The largest body that is echoed, in bytes.
const LARGEST_ECHO: u64 = 16 << 20;

#[allow(clippy::print_stdout, reason = "whoever probes reads the ports there")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    make_files(&folder.path().join("static"))?;
    let mut running = Vec::new();
    if let Some(port) = port("HTTP_PORT")? {
        let server = Server::bind(("127.0.0.1", port))?
            .with_settings(settings())
            .serve(site(folder.path()))?;
        println!("http {}", server.addr());
        running.push(server);
    }
    if let Some(port) = port("ECHO_PORT")? {
        let server = Server::bind(("127.0.0.1", port))?
            .with_settings(settings())
            .serve(echo)?;
        println!("echo {}", server.addr());
        running.push(server);
    }
    if let Some(port) = port("TLS_PORT")? {
        let server = Server::bind_tls(("127.0.0.1", port), identity()?)?
            .with_settings(settings())
            .serve(site(folder.path()))?;
        println!("tls {}", server.addr());
        running.push(server);
    }
    if let Some(port) = port("PROXY_PORT")? {
        let origin = self::port("ORIGIN_PORT")?.ok_or("PROXY_PORT needs an ORIGIN_PORT")?;
        let server = Server::bind(("127.0.0.1", port))?
            .with_settings(settings())
            .serve(App::new().mount("/", gateway(origin)?))?;
        println!("proxy {}", server.addr());
        running.push(server);
    }
    if running.is_empty() {
        return Err(
            "set HTTP_PORT, ECHO_PORT, TLS_PORT or PROXY_PORT to the port to serve, 0 for any"
                .into(),
        );
    }
    loop {
        std::thread::park();
    }
}

fn site(folder: &Path) -> App {
    App::new()
        .wrap(cloudgate::Compression::new())
        .get("/", || {
            Response::html("<!doctype html><title>cloudgate</title><p>It works.</p>")
        })
        .post("/echo", echo)
        .get("/ws", echo_messages)
        .fallback(Files::new(folder))
}

fn gateway(origin: u16) -> Result<Gateway, Box<dyn std::error::Error>> {
    let gateway = Gateway::to([&*format!("http://127.0.0.1:{origin}")])?;
    Ok(gateway
        .keep_host()
        .timeout(Duration::from_secs(6))
        .body_limit(LARGEST_ECHO))
}

/// An RSA key, for the probes of TLS 1.2 know no other, and its certificate.
fn identity() -> Result<Identity, Box<dyn std::error::Error>> {
    let key = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048)?;
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let mut params = CertificateParams::new(names)?;
    // Probes find a certificate too good that lives for centuries.
    params.not_before = SystemTime::now().into();
    params.not_after = (SystemTime::now() + Duration::from_secs(90 * 86_400)).into();
    let made = params.self_signed(&key)?;
    let pem = (made.pem(), key.serialize_pem());
    Ok(Identity::from_pem(pem.0.as_bytes(), pem.1.as_bytes())?)
}

fn port(variable: &str) -> Result<Option<u16>, String> {
    match std::env::var(variable) {
        Err(_) => Ok(None),
        Ok(text) => match text.parse() {
            Ok(port) => Ok(Some(port)),
            Err(_) => Err(format!(
                "{variable} is {text:?}; it must be a port, or 0 for any"
            )),
        },
    }
}

/// Time limits short enough to be waited for.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.timeouts.head = Duration::from_secs(5);
    settings.timeouts.idle = Duration::from_secs(10);
    settings.timeouts.grace = Duration::from_secs(5);
    settings.timeouts.stall = Duration::from_secs(10);
    settings
}

fn echo(request: &mut Request<'_>) -> Response {
    request.body().set_limit(LARGEST_ECHO);
    match request.body().read_all() {
        Ok(body) => Response::of_type("application/octet-stream", body),
        Err(error) => Response::error(error.status()),
    }
}

fn echo_messages(request: &mut Request<'_>) -> Result<Response, Rejection> {
    let upgrade = WebSocketUpgrade::from_request(request)?;
    Ok(upgrade
        .any_origin()
        .compress(PerMessageDeflate::new().threshold(0))
        .frame_limit(16 << 20)
        .accept(|mut socket| {
            while let Some(message) = socket.recv()? {
                socket.send(message)?;
            }
            Ok(())
        }))
}

fn make_files(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    let line = "The quick brown fox jumps over the lazy dog, and the server sends it.\n";
    let text = line.repeat(16_384 / line.len());
    let file = folder.join("file.txt");
    fs::write(&file, text)?;
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    File::options()
        .write(true)
        .open(&file)?
        .set_modified(hour_ago)?;
    let big: Vec<u8> = (0..20_000_000_u32)
        .map(|index| (index % 251) as u8)
        .collect();
    fs::write(folder.join("big.bin"), big)
}
