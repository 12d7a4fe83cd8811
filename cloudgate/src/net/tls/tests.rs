//! Do bytes come over TLS as they were sent, and is it told when they were cut off?

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::JoinHandle;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};

use super::engine::Acceptor;
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

fn configs() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
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
        tls.accept(Deadline::at(10_000)).unwrap();
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
        match tls.accept(Deadline::at(10_000)).unwrap_err() {
            NoSession::Failed(error) => error.kind(),
            NoSession::PlainHttp => panic!("nothing was said"),
        }
    });
    theirs.advance(10_000);
    assert_eq!(serving.join().unwrap(), ErrorKind::TimedOut);

    let (ours, mut theirs) = Pipe::pair(1 << 20);
    theirs.write(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut tls = Session::new(ours, server.begin().unwrap());
    let error = tls.accept(Deadline::at(10_000)).unwrap_err();
    assert!(matches!(error, NoSession::PlainHttp), "{error:?}");

    let (ours, mut theirs) = Pipe::pair(1 << 20);
    theirs.write(&[0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0]).unwrap();
    let mut tls = Session::new(ours, server.begin().unwrap());
    let error = tls.accept(Deadline::at(10_000)).unwrap_err();
    assert!(
        matches!(&error, NoSession::Failed(error) if error.kind() == ErrorKind::InvalidData),
        "{error:?}"
    );
    // An alert says so.
    let mut alert = [0; 16];
    assert_eq!(theirs.read(&mut alert).unwrap(), 7);
    assert_eq!(alert[0], 21);
}
