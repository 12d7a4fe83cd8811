//! Do bytes come over TLS as they were sent, and is it told when they were cut off?

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::engine::Acceptor;
use super::identity::Identity;
use super::lane::Lane;
use super::serving::{Tls, tickets};
use super::session::{NoSession, Session};
use crate::message::{Deadline, Duplex};
use crate::proto::pipe::Pipe;

/// A pipe whose reads and writes wait, as a client's do.
struct Blocking(Pipe);

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.0.wait(Deadline::NEVER)?;
                }
                other => return other,
            }
        }
    }
}

impl Write for Blocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.0.wait(Deadline::NEVER)?;
                }
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A server by rustls, or by native-tls where this is the module of that name, and clients that trust it.
fn configs() -> (Arc<dyn Acceptor>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(made.cert.der().to_vec()))
        .unwrap();
    let tls = Tls::new(Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap());
    #[cfg(feature = "native-tls")]
    let tls = match module_path!().contains("native") {
        true => tls.native(),
        false => tls,
    };
    let server = tls.acceptor(&tickets().unwrap()).unwrap();
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, Arc::new(client))
}

type Client = StreamOwned<ClientConnection, Blocking>;

/// A client, and a server that runs on a thread over a pipe of this capacity.
fn pair<T: Send + 'static>(
    capacity: usize,
    serve: impl FnOnce(Session<Pipe>) -> T + Send + 'static,
) -> (Client, JoinHandle<T>) {
    let (server, client) = configs();
    let (ours, theirs) = Pipe::pair(capacity);
    let serving = std::thread::spawn(move || {
        let mut tls = Session::new(ours, server.begin().unwrap());
        tls.accept(Deadline::at(10_000), &Lane::new()).unwrap();
        serve(tls)
    });
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(client, name).unwrap();
    (StreamOwned::new(session, Blocking(theirs)), serving)
}

/// Reads to the end of the stream.
fn read_all(tls: &mut impl Duplex) -> io::Result<Vec<u8>> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 5000]);
    loop {
        match tls.read(&mut buffer) {
            Ok(0) => return Ok(all),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => tls.wait(Deadline::NEVER)?,
            Err(error) => return Err(error),
        }
    }
}

fn write_all(tls: &mut impl Duplex, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match tls.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                tls.wait(Deadline::NEVER).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8).collect()
}

#[test]
fn bytes_come_both_ways_whatever_fits_into_the_socket() {
    for capacity in [100, 5_000, 1 << 20] {
        let (mut client, serving) = pair(capacity, |mut tls| {
            write_all(&mut tls, &pattern(100_000));
            let received = read_all(&mut tls).unwrap();
            tls.close_write().unwrap();
            received
        });
        let mut received = vec![0; 100_000];
        client.read_exact(&mut received).unwrap();
        assert!(received == pattern(100_000), "capacity {capacity}");
        client.write_all(&pattern(70_000)).unwrap();
        client.conn.send_close_notify();
        client.flush().unwrap();
        assert!(serving.join().unwrap() == pattern(70_000));
        // The server's own close_notify makes it a clean end.
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    }
}

#[test]
fn an_end_without_close_notify_is_no_end() {
    let (mut client, serving) = pair(1 << 20, |mut tls| read_all(&mut tls));
    client.write_all(b"half of it").unwrap();
    client.flush().unwrap();
    client.sock.0.close_write().unwrap();
    let error = serving.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn what_comes_behind_our_end_is_thrown_away_whatever_it_is() {
    for rubbish in [
        &b"\x17\x03\x03\x00\x03xxx"[..],
        b"\x16\x03\x03\xff\xff",
        b"rubbish",
    ] {
        let (mut client, serving) = pair(1 << 20, |mut tls| {
            tls.close_write().unwrap();
            read_all(&mut tls).unwrap().len()
        });
        assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
        client.sock.write_all(rubbish).unwrap();
        client.sock.0.close_write().unwrap();
        assert_eq!(serving.join().unwrap(), rubbish.len());
    }
}

#[test]
fn pieces_and_files_are_written_in_their_order() {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&pattern(40_000), 0).unwrap();
    let (mut client, serving) = pair(3_000, move |mut tls| {
        let pieces = [IoSlice::new(b"head, "), IoSlice::new(b"body, ")];
        loop {
            match tls.write_vectored(&pieces) {
                Ok(count) => break assert_eq!(count, 12),
                Err(_) => tls.wait(Deadline::NEVER).unwrap(),
            }
        }
        let mut offset = 0;
        while offset < 40_000 {
            match tls.send_file(&file, offset, 40_000 - offset) {
                Ok(count) => offset += count as u64,
                Err(_) => tls.wait(Deadline::NEVER).unwrap(),
            }
        }
        assert_eq!(tls.send_file(&file, offset, 1).unwrap(), 0);
    });
    let mut received = vec![0; 12 + 40_000];
    client.read_exact(&mut received).unwrap();
    assert!(received.starts_with(b"head, body, ") && received[12..] == pattern(40_000));
    serving.join().unwrap();
}

#[test]
fn a_session_goes_on_where_it_was_put_aside() {
    let (mut client, serving) = pair(1 << 20, |mut tls| {
        let mut rounds = 0;
        let mut buffer = [0; 5];
        while rounds < 3 {
            match tls.read(&mut buffer) {
                Ok(5) => {
                    write_all(&mut tls, &buffer);
                    rounds += 1;
                }
                Ok(other) => panic!("{other}"),
                Err(_) => {
                    let (io, session) = tls.into_parts();
                    tls = Session::new(io, session);
                    tls.wait(Deadline::NEVER).unwrap();
                }
            }
        }
    });
    for _ in 0..3 {
        client.write_all(b"hello").unwrap();
        let mut echo = [0; 5];
        client.read_exact(&mut echo).unwrap();
        assert_eq!(&echo, b"hello");
    }
    serving.join().unwrap();
}

#[test]
fn a_handshake_has_its_time_and_its_rules() {
    let (server, _) = configs();
    let (ours, theirs) = Pipe::pair(1 << 20);
    let config = Arc::clone(&server);
    let serving = std::thread::spawn(move || {
        let mut tls = Session::new(ours, config.begin().unwrap());
        match tls.accept(Deadline::at(10_000), &Lane::new()).unwrap_err() {
            NoSession::Failed(error) => error.kind(),
            NoSession::PlainHttp => panic!("nothing was said"),
        }
    });
    theirs.advance(10_000);
    assert_eq!(serving.join().unwrap(), ErrorKind::TimedOut);

    let (ours, mut theirs) = Pipe::pair(1 << 20);
    theirs.write(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut tls = Session::new(ours, server.begin().unwrap());
    let error = tls.accept(Deadline::at(10_000), &Lane::new()).unwrap_err();
    assert!(matches!(error, NoSession::PlainHttp), "{error:?}");

    let (ours, mut theirs) = Pipe::pair(1 << 20);
    theirs.write(&[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]).unwrap();
    let mut tls = Session::new(ours, server.begin().unwrap());
    let error = tls.accept(Deadline::at(10_000), &Lane::new()).unwrap_err();
    assert!(
        matches!(&error, NoSession::Failed(error) if error.kind() == ErrorKind::InvalidData),
        "{error:?}"
    );
    // An alert says so.
    let mut alert = [0; 16];
    assert_eq!(theirs.read(&mut alert).unwrap(), 7);
    assert_eq!(alert[0], 21);
}

/// The key inside of PKCS#8 (RFC 5208 section 5) as PEM of an older form.
fn older(label: &str, pkcs8: &[u8]) -> String {
    // What is in the last element is a sequence that begins with its version.
    let begins = |bytes: &[u8]| match label {
        "EC PRIVATE KEY" => bytes.starts_with(b"\x02\x01\x01\x04\x20"),
        _ => bytes.starts_with(b"\x02\x01\x00\x02\x82"),
    };
    let version = (10..pkcs8.len()).find(|at| begins(&pkcs8[*at..])).unwrap();
    let head = if label == "EC PRIVATE KEY" { 2 } else { 4 };
    pem::encode(&pem::Pem::new(label, &pkcs8[version - head..]))
}

#[test]
fn keys_are_taken_in_every_form() {
    let ecdsa = rcgen::KeyPair::generate().unwrap();
    let rsa = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048);
    for (key, label) in [(ecdsa, "EC PRIVATE KEY"), (rsa.unwrap(), "RSA PRIVATE KEY")] {
        let params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        let forms = [key.serialize_pem(), older(label, &key.serialize_der())];
        for form in forms {
            let identity = Identity::from_pem(certificate.as_bytes(), form.as_bytes());
            let tls = Tls::new(identity.expect(&form));
            #[cfg(feature = "native-tls")]
            let tls = match module_path!().contains("native") {
                true => tls.native(),
                false => tls,
            };
            assert!(tls.acceptor(&tickets().unwrap()).is_ok(), "{form}");
        }
    }
}
