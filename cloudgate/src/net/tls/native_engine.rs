//! How is the system's TLS driven, by native-tls?
//!
//! It gets a stream that is two buffers, and so never waits.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use native_tls::{HandshakeError, MidHandshakeTlsStream, Protocol, TlsAcceptor, TlsStream};
use pem::Pem;
use rustls::pki_types::PrivateKeyDer;
use x509_cert::der::{Decode, Encode};

use super::engine::{AT_ONCE, Acceptor, Engine};
use super::identity::Identity;
use super::identity_error::IdentityError;
use crate::message::TlsSession;

/// How much is read at once: a record (RFC 5246 section 6.2.3) fits.
const READ: usize = 18 << 10;

/// What begins sessions.
///
/// # Errors
/// [`IdentityError`] where the system cannot use the identity.
pub(crate) fn acceptor(identity: &Identity) -> Result<Arc<dyn Acceptor>, IdentityError> {
    let refuse = |error: native_tls::Error| IdentityError::Malformed {
        place: identity.place().to_owned(),
        reason: format!("the system's TLS refuses it: {error}"),
    };
    let chain: String = identity
        .certified()
        .cert
        .iter()
        .map(|certificate| encode("CERTIFICATE", certificate.to_vec()))
        .collect();
    let key = encode("PRIVATE KEY", pkcs8(identity)?);
    let identity =
        native_tls::Identity::from_pkcs8(chain.as_bytes(), key.as_bytes()).map_err(refuse)?;
    let acceptor = TlsAcceptor::builder(identity)
        .min_protocol_version(Some(Protocol::Tlsv12))
        .accept_alpn(&["http/1.1"])
        .build()
        .map_err(refuse)?;
    Ok(Arc::new(acceptor))
}

fn encode(label: &str, der: Vec<u8>) -> String {
    pem::encode(&Pem::new(label, der))
}

/// The private key as PKCS#8 (RFC 5208 section 5), which is the only form that native-tls takes.
fn pkcs8(identity: &Identity) -> Result<Vec<u8>, IdentityError> {
    let key = match identity.key() {
        PrivateKeyDer::Pkcs8(key) => return Ok(key.secret_pkcs8_der().to_vec()),
        other => other.secret_der(),
    };
    // What kind of key it is stands in the certificate in the same words.
    let algorithm = x509_cert::Certificate::from_der(identity.certificate().der())
        .and_then(|certificate| {
            let info = certificate.tbs_certificate().subject_public_key_info();
            info.algorithm.to_der()
        })
        .map_err(|error| IdentityError::Malformed {
            place: identity.place().to_owned(),
            reason: error.to_string(),
        })?;
    let version = element(0x02, &[&[0]]);
    let key = element(0x04, &[key]);
    Ok(element(0x30, &[&version, &algorithm, &key]))
}

/// An element of DER with this tag and content (X.690 section 8.1).
fn element(tag: u8, content: &[&[u8]]) -> Vec<u8> {
    let length: usize = content.iter().map(|piece| piece.len()).sum();
    let mut element = vec![tag];
    match u8::try_from(length) {
        Ok(short @ ..0x80) => element.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            element.push(0x80 | (bytes.len() - zeros) as u8);
            element.extend_from_slice(&bytes[zeros..]);
        }
    }
    content
        .iter()
        .for_each(|piece| element.extend_from_slice(piece));
    element
}

impl Acceptor for TlsAcceptor {
    fn begin(&self) -> io::Result<Box<dyn Engine>> {
        let wire = Wire::default();
        let state = State::of(self.accept(wire.clone()))?;
        Ok(Box::new(Native {
            state,
            wire,
            buffer: Vec::new(),
        }))
    }
}

struct Native {
    state: State,
    wire: Wire,
    /// What is to be encrypted, in one piece.
    buffer: Vec<u8>,
}

enum State {
    Shaking(MidHandshakeTlsStream<Wire>),
    Open(TlsStream<Wire>),
    /// Nothing could be agreed on.
    Over,
}

impl State {
    fn of(step: Result<TlsStream<Wire>, HandshakeError<Wire>>) -> io::Result<State> {
        match step {
            Ok(stream) => Ok(State::Open(stream)),
            Err(HandshakeError::WouldBlock(unfinished)) => Ok(State::Shaking(unfinished)),
            Err(HandshakeError::Failure(error)) => {
                Err(io::Error::new(ErrorKind::InvalidData, error))
            }
        }
    }
}

/// What has come from the peer and what goes to it.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Buffers>>);

#[derive(Default)]
struct Buffers {
    incoming: Vec<u8>,
    /// How many bytes of it were taken.
    taken: usize,
    outgoing: Vec<u8>,
    /// The peer sends nothing more.
    ended: bool,
    /// And that was met.
    met_end: bool,
}

impl Wire {
    fn buffers(&self) -> MutexGuard<'_, Buffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffers = self.buffers();
        let there = &buffers.incoming[buffers.taken..];
        if there.is_empty() {
            if buffers.ended {
                buffers.met_end = true;
                return Ok(0);
            }
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        buffers.taken += count;
        if buffers.taken == buffers.incoming.len() {
            // Given back: it would stay with a connection that is parked.
            buffers.incoming = Vec::new();
            buffers.taken = 0;
        }
        Ok(count)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffers().outgoing.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Engine for Native {
    fn is_handshaking(&self) -> bool {
        !matches!(self.state, State::Open(_))
    }

    fn receive(&mut self, from: &mut dyn Read) -> io::Result<usize> {
        let mut piece = vec![0; READ];
        let count = from.read(&mut piece)?;
        {
            let mut buffers = self.wire.buffers();
            buffers.ended |= count == 0;
            buffers.incoming.extend_from_slice(&piece[..count]);
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Shaking(unfinished) => self.state = State::of(unfinished.handshake())?,
            other => self.state = other,
        }
        Ok(count)
    }

    fn wants_write(&self) -> bool {
        !self.wire.buffers().outgoing.is_empty()
    }

    fn send(&mut self, to: &mut dyn Write) -> io::Result<usize> {
        let mut buffers = self.wire.buffers();
        let count = to.write(&buffers.outgoing)?;
        if count == buffers.outgoing.len() {
            buffers.outgoing = Vec::new();
        } else {
            buffers.outgoing.drain(..count);
        }
        Ok(count)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let State::Open(stream) = &mut self.state else {
            return Err(ErrorKind::NotConnected.into());
        };
        let read = stream.read(buffer);
        // Versions of OpenSSL differ in what they say of an end without close_notify.
        match read {
            Ok(0) if self.wire.buffers().met_end => Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                Err(match self.wire.buffers().met_end {
                    true => ErrorKind::UnexpectedEof.into(),
                    false => io::Error::new(ErrorKind::InvalidData, error),
                })
            }
            other => other,
        }
    }

    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let State::Open(stream) = &mut self.state else {
            return Err(ErrorKind::NotConnected.into());
        };
        self.buffer.clear();
        for piece in pieces {
            let room = AT_ONCE - self.buffer.len();
            self.buffer
                .extend_from_slice(&piece[..piece.len().min(room)]);
        }
        // The buffer behind it takes everything.
        stream.write_all(&self.buffer)?;
        let count = self.buffer.len();
        self.buffer = Vec::new();
        Ok(count)
    }

    fn say_goodbye(&mut self) {
        if let State::Open(stream) = &mut self.state {
            // It would wait for the peer's as well.
            let _ = stream.shutdown();
        }
    }

    fn agreed(&self) -> TlsSession {
        TlsSession {
            // The only one that native-tls speaks as a server on Linux, and it does not tell.
            version: "TLSv1.2",
            ..TlsSession::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tls::clients::ClientCa;
    use crate::net::tls::serving::{Tls, tickets};

    #[test]
    fn what_it_cannot_do_is_an_error() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let one = Tls::new(identity.clone()).native();
        let clients = ClientCa::from_pem(certificate.as_bytes()).unwrap();
        for (tls, want) in [
            (one.clone().identity(identity.clone()), "under other names"),
            (one.clone().name("a.example", identity), "under other names"),
            (one.client_ca(clients), "ask clients for a certificate"),
        ] {
            let error = tls.acceptor(&tickets().unwrap()).err().unwrap();
            assert!(error.to_string().contains(want), "{error}");
        }
    }

    #[test]
    fn lengths_are_written_as_der_has_them() {
        for (length, head) in [
            (0, &[4, 0][..]),
            (127, &[4, 127]),
            (128, &[4, 0x81, 128]),
            (255, &[4, 0x81, 255]),
            (256, &[4, 0x82, 1, 0]),
            (65_536, &[4, 0x83, 1, 0, 0]),
        ] {
            let written = element(4, &[&vec![7; length]]);
            assert!(written.starts_with(head) && written.len() == head.len() + length);
        }
    }
}
