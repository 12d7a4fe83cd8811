//! How is rustls driven?

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::ops::DerefMut;
use std::sync::Arc;

use rustls::{
    ClientConnection, CommonState, ConnectionCommon, HandshakeKind, ProtocolVersion, ServerConfig,
    ServerConnection, SideData,
};

use super::engine::{AT_ONCE, Acceptor, Engine};
use crate::message::{ApplicationProtocol, Certificate, TlsSession};

impl Acceptor for Arc<ServerConfig> {
    fn begin(&self) -> io::Result<Box<dyn Engine>> {
        let mut session = ServerConnection::new(Arc::clone(self)).map_err(io::Error::other)?;
        // What is written waits in the socket alone, so that who writes hears when it is full.
        session.set_buffer_limit(Some(AT_ONCE));
        Ok(Box::new(session))
    }
}

/// What only one of both sides knows.
trait Side {
    /// The name that the client has asked for.
    fn server_name(&self) -> Option<&str>;

    /// Whether the peer's certificate is one of a client.
    const SERVES: bool;
}

impl Side for ServerConnection {
    const SERVES: bool = true;

    fn server_name(&self) -> Option<&str> {
        ServerConnection::server_name(self)
    }
}

impl Side for ClientConnection {
    const SERVES: bool = false;

    fn server_name(&self) -> Option<&str> {
        None
    }
}

fn common(state: &CommonState) -> &CommonState {
    state
}

impl<C, T> Engine for C
where
    C: DerefMut<Target = ConnectionCommon<T>> + Side + Send,
    T: SideData,
{
    fn is_handshaking(&self) -> bool {
        common(self).is_handshaking()
    }

    fn receive(&mut self, mut from: &mut dyn Read) -> io::Result<usize> {
        let count = self.read_tls(&mut from)?;
        if count > 0 {
            self.process_new_packets()
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        }
        Ok(count)
    }

    fn wants_write(&self) -> bool {
        common(self).wants_write()
    }

    fn send(&mut self, mut to: &mut dyn Write) -> io::Result<usize> {
        self.write_tls(&mut to)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader().read(buffer)
    }

    fn write(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        // No more than the session's limit, which is all free.
        self.writer().write_vectored(pieces)
    }

    fn say_goodbye(&mut self) {
        self.send_close_notify();
    }

    #[cfg(feature = "cli")]
    fn peer_chain(&self) -> Vec<rustls::pki_types::CertificateDer<'static>> {
        self.peer_certificates().unwrap_or_default().to_vec()
    }

    fn agreed(&self) -> TlsSession {
        let client = self.peer_certificates().and_then(<[_]>::first);
        TlsSession {
            version: match self.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
                Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
                _ => "",
            },
            cipher: self
                .negotiated_cipher_suite()
                .and_then(|suite| suite.suite().as_str())
                .unwrap_or_default(),
            server_name: self.server_name().map(str::to_owned),
            resumed: self.handshake_kind() == Some(HandshakeKind::Resumed),
            application: match self.alpn_protocol() {
                // Nothing else is offered.
                Some(_) | None => ApplicationProtocol::Http1,
            },
            // One that was verified and still cannot be read is none to a handler.
            client: client
                .filter(|_| C::SERVES)
                .and_then(|der| Certificate::from_der(der).ok()),
        }
    }
}
