//! What was agreed on with a client by TLS?

use super::certificate::Certificate;

/// What the client and the server have agreed on where a request came by TLS; see
/// [`Request::tls`](crate::Request::tls).
#[derive(Clone, Debug, Default)]
pub struct TlsSession {
    pub(crate) version: &'static str,
    pub(crate) cipher: &'static str,
    pub(crate) server_name: Option<String>,
    pub(crate) resumed: bool,
    pub(crate) application: ApplicationProtocol,
    pub(crate) client: Option<Certificate>,
}

/// What is spoken inside (ALPN, RFC 7301).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplicationProtocol {
    /// HTTP/1.1, also where the client names nothing.
    #[default]
    Http1,
}

impl TlsSession {
    /// One as a test wants a request to have come by: TLS 1.3, without a name.
    ///
    /// ```
    /// use cloudgate::{Request, TlsSession};
    /// let request = Request::get("/").with_tls(TlsSession::for_test());
    /// assert!(request.is_secure());
    /// ```
    pub fn for_test() -> TlsSession {
        TlsSession {
            version: "TLSv1.3",
            cipher: "TLS13_AES_128_GCM_SHA256",
            ..TlsSession::default()
        }
    }

    /// The same with a client that has shown this certificate.
    #[must_use]
    pub fn with_client_certificate(mut self, certificate: Certificate) -> TlsSession {
        self.client = Some(certificate);
        self
    }

    /// `TLSv1.3` or `TLSv1.2`.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// The cipher suite, such as `TLS13_AES_128_GCM_SHA256`; empty where the library does not say.
    pub fn cipher(&self) -> &'static str {
        self.cipher
    }

    /// The host that the client has asked for (RFC 6066 section 3), in whatever case; `None` where it did not say, or where
    /// the library does not.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Whether the client came back to a session of before, which costs a fraction of a new one.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// What is spoken inside.
    pub fn application(&self) -> ApplicationProtocol {
        self.application
    }

    /// The certificate by which the client has said who it is.
    pub fn client_certificate(&self) -> Option<&Certificate> {
        self.client.as_ref()
    }
}
