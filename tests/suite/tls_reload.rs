//! Is no request lost while certificates change all the time?
//!
//! `TORTURE_SECONDS=60 cargo test --release --test suite tls_reload -- --nocapture` does it for longer and prints what it
//! has counted.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cloudgate::{App, Identity, Server};
use cloudgate_suite::{SelfSigned, open_tls, trusting};
use rustls::ClientConfig;

/// How many pairs take turns.
const PAIRS: usize = 4;

/// How many requests a connection has before the next one is opened.
const REQUESTS: usize = 5;

/// Asks on one connection, a few times; says how many answers were right.
fn ask(address: SocketAddr, config: &Arc<ClientConfig>) -> Result<usize, String> {
    let told = |error: std::io::Error| error.to_string();
    let mut tls = open_tls(address, config).map_err(told)?;
    for _ in 0..REQUESTS {
        tls.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .map_err(told)?;
        let mut answer = Vec::new();
        let mut piece = [0; 1024];
        while !answer.ends_with(b"hello") {
            match tls.read(&mut piece).map_err(told)? {
                0 => return Err("the end of the connection".to_owned()),
                count => answer.extend_from_slice(&piece[..count]),
            }
        }
    }
    tls.conn.send_close_notify();
    let _ = tls.flush();
    Ok(REQUESTS)
}

fn replace(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join("new"), text).expect("a file");
    fs::rename(folder.join("new"), folder.join(name)).expect("a file");
}

#[test]
#[allow(clippy::print_stdout, reason = "a long run is counted")]
fn no_request_is_lost_while_certificates_change() {
    let seconds = std::env::var("TORTURE_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(2);
    let pairs: Vec<_> = (0..PAIRS).map(|_| SelfSigned::new()).collect();
    let config = Arc::new(trusting(pairs.iter().map(|pair| pair.der.clone())));
    let folder = tempfile::tempdir().expect("a folder");
    let write = |pair: &SelfSigned| {
        replace(folder.path(), "cert.pem", &pair.certificate);
        replace(folder.path(), "key.pem", &pair.key);
    };
    write(&pairs[0]);
    let identity = Identity::from_pem_files(
        folder.path().join("cert.pem"),
        folder.path().join("key.pem"),
    );
    let server = Server::bind_tls("127.0.0.1:0", identity.expect("an identity"))
        .expect("a port")
        .serve(App::new().get("/", || "hello"))
        .expect("a server");
    let address = server.addr();
    let stop = AtomicBool::new(false);
    let answers = AtomicUsize::new(0);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut reloads, mut refused) = (0, 0);
    let lost: Vec<String> = thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut lost = Vec::new();
                    while !stop.load(Ordering::Relaxed) {
                        match ask(address, &config) {
                            Ok(count) => {
                                answers.fetch_add(count, Ordering::Relaxed);
                            }
                            Err(error) => lost.push(error),
                        }
                    }
                    lost
                })
            })
            .collect();
        while Instant::now() < end {
            for pair in &pairs {
                // In between there is half of a pair, which is not taken.
                replace(folder.path(), "cert.pem", &pair.certificate);
                refused += usize::from(server.reload_tls().is_err());
                write(pair);
                server.reload_tls().expect("a pair");
                reloads += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let lost = clients.into_iter().map(|client| client.join());
        lost.flat_map(|lost| lost.expect("a client")).collect()
    });
    let answers = answers.into_inner();
    println!(
        "{answers} answers, {reloads} reloads, {refused} halves refused, {} lost",
        lost.len()
    );
    assert_eq!(lost, [] as [String; 0]);
    assert!(answers > 0 && reloads >= PAIRS && refused >= PAIRS - 1);
}
