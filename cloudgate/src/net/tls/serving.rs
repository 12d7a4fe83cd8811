//! How does a server speak TLS: as whom, and with whom?

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoClientAuth, ProducesTickets};
use rustls::version::{TLS12, TLS13};

use super::clients::ClientCa;
use super::engine::Acceptor;
use super::identity::{Identity, Stamp};
use super::identity_error::IdentityError;
use super::table::{self, Table};

/// What a server needs for TLS: who it is, under which names, and which clients it takes.
///
/// TLS 1.3 and 1.2 are spoken, with HTTP/1.1 inside; sessions are resumed on any worker, without data ahead of the
/// handshake, which others could send again (RFC 8446 section 8).
///
/// ```no_run
/// use cloudgate::{App, Identity, Server, Tls};
///
/// let tls = Tls::new(Identity::from_pem_files("example.com.pem", "example.com.key")?)
///     .identity(Identity::from_pem_files("example.org.pem", "example.org.key")?)
///     .name("*.dev.example.com", Identity::from_pem_files("dev.pem", "dev.key")?);
/// let server = Server::bind_tls("0.0.0.0:443", tls)?.serve(App::new().get("/", || "hello"))?;
/// # Ok::<(), cloudgate::Error>(())
/// ```
///
/// # Which certificate a client sees
/// The one for the name that it asks for (RFC 6066 section 3), or for `*.` and what follows its first label; for
/// everybody else, and who asks for no name, the first. Where several have the same name, such as one with an ECDSA key
/// and one with an RSA key for old clients, the first whose signatures the client understands.
///
/// # While the server runs
/// Files that certificates came from are looked at every second, and read when they have changed and rest; so they are
/// when the program gets a SIGHUP ([`App::run`](crate::App::run)) and by [`Running::reload_tls`](crate::Running::reload_tls).
/// New connections see the new certificate, those that are open go on. What cannot be used is told in the log, and what
/// was there stays. 30 days, 7 days and 1 day before a certificate expires the log says so.
#[derive(Clone, Debug)]
pub struct Tls {
    /// With the name that it is shown for; without one for those in the certificate. The first is the default.
    pub(crate) identities: Vec<(Option<String>, Identity)>,
    pub(crate) clients: Option<ClientCa>,
    backend: Backend,
}

/// By which library TLS is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    Rustls,
    #[cfg(feature = "native-tls")]
    Native,
}

/// Where sessions are taken up again.
pub(crate) type Tickets = Arc<dyn ProducesTickets>;

impl Tls {
    /// Shows one certificate to everybody, unless more are added.
    pub fn new(identity: Identity) -> Tls {
        Tls {
            identities: vec![(None, identity)],
            clients: None,
            backend: Backend::Rustls,
        }
    }

    /// Shows another certificate to who asks for one of the names that it is for.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Tls {
        self.identities.push((None, identity));
        self
    }

    /// Shows another certificate to who asks for this name, whatever stands in it: `a.example.com`, or `*.example.com`
    /// for all names with one label more.
    ///
    /// Counts more than names in certificates. What is no host is an error when the port is bound.
    #[must_use]
    pub fn name(mut self, name: &str, identity: Identity) -> Tls {
        self.identities.push((Some(name.to_owned()), identity));
        self
    }

    /// Asks clients for a certificate.
    #[must_use]
    pub fn client_ca(mut self, clients: ClientCa) -> Tls {
        self.clients = Some(clients);
        self
    }

    /// Speaks TLS by the system's library, where a rule demands that one; with the feature `native-tls`.
    ///
    /// On Linux, where it is OpenSSL, that is TLS 1.2 alone, one certificate for everybody, and no certificates of
    /// clients: native-tls offers servers no more. What asks for more is an error when the port is bound.
    /// [`TlsSession::cipher`](crate::TlsSession::cipher) and the name that the client asked for are not known then.
    ///
    /// ```no_run
    /// use cloudgate::{App, Identity, Server, Tls};
    /// let tls = Tls::new(Identity::from_pem_files("cert.pem", "key.pem")?).native();
    /// let server = Server::bind_tls("0.0.0.0:443", tls)?.serve(App::new().get("/", || "hello"))?;
    /// # Ok::<(), cloudgate::Error>(())
    /// ```
    #[cfg(feature = "native-tls")]
    #[must_use]
    pub fn native(mut self) -> Tls {
        self.backend = Backend::Native;
        self
    }

    /// What begins sessions.
    ///
    /// # Errors
    /// [`IdentityError`] for what cannot be used.
    pub(crate) fn acceptor(&self, tickets: &Tickets) -> Result<Arc<dyn Acceptor>, IdentityError> {
        #[cfg(feature = "native-tls")]
        if self.backend == Backend::Native {
            let unsupported = |what| Err(IdentityError::Unsupported { what });
            return match &*self.identities {
                _ if self.clients.is_some() => unsupported("ask clients for a certificate"),
                [(None, identity)] => super::native_engine::acceptor(identity),
                _ => unsupported("show other certificates under other names"),
            };
        }
        let config = Arc::new(self.rustls(Arc::clone(tickets))?);
        Ok(Arc::new(config))
    }

    fn rustls(&self, tickets: Tickets) -> Result<ServerConfig, IdentityError> {
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| unusable(&error))?;
        let clients = match &self.clients {
            Some(clients) => clients.verifier(provider)?,
            None => Arc::new(NoClientAuth),
        };
        let mut config = builder
            .with_client_cert_verifier(clients)
            .with_cert_resolver(Arc::new(self.table()?));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Ours: AES with a short key first, which is the fastest where there are instructions for it.
        config.ignore_client_order = true;
        // Whichever worker a client comes back to, the ticket that it brings is good there.
        config.ticketer = tickets;
        Ok(config)
    }

    fn table(&self) -> Result<Table, IdentityError> {
        let mut table = Table::default();
        // Names that were given come first, and so are found first.
        for (name, identity) in &self.identities {
            if let Some(name) = name {
                let valid = table::name(name).map_err(|reason| IdentityError::Name {
                    name: name.clone(),
                    reason,
                })?;
                table.add(&valid, identity.certified());
            }
        }
        let own_names = self.identities.iter().filter(|(name, _)| name.is_none());
        for (_, identity) in own_names {
            for name in identity.certificate().names() {
                // An address, which nobody asks for by name.
                if let Ok(name) = table::name(name) {
                    table.add(&name, identity.certified());
                }
            }
        }
        if let Some((_, first)) = self.identities.first() {
            let name = first.certificate().names().first();
            // Those of another kind, for who does not understand its signatures.
            let others = name.and_then(|name| table.of(name)).into_iter().flatten();
            let mut default = vec![Arc::clone(first.certified())];
            default.extend(others.cloned());
            table.set_default(default);
        }
        Ok(table)
    }

    /// What its files are like now, where any of them has changed since it was read.
    pub(crate) fn changed(&self) -> Option<Vec<Option<Vec<Stamp>>>> {
        let identities = self.identities.iter();
        let mut now: Vec<_> = identities.map(|(_, identity)| identity.changed()).collect();
        now.extend(self.clients.iter().map(ClientCa::changed));
        now.iter().any(Option::is_some).then_some(now)
    }

    /// Whether a certificate that was made here is to be made anew.
    pub(crate) fn is_due(&self, now: SystemTime) -> bool {
        self.identities
            .iter()
            .any(|(_, identity)| identity.is_due(now))
    }

    /// The same with what its files hold now. A fault of one is none of the others: what cannot be used stays as it was,
    /// and the first such fault comes with it.
    pub(crate) fn read_again(&self, now: SystemTime) -> (Tls, Option<IdentityError>) {
        let mut faults = Vec::new();
        let mut identities = Vec::with_capacity(self.identities.len());
        for (name, identity) in &self.identities {
            let read = identity.read_again(now).unwrap_or_else(|error| {
                // One that has expired where it is was warned of, and another may be here to be taken.
                if identity.changed().is_some() || identity.is_due(now) {
                    faults.push(error);
                }
                identity.clone()
            });
            identities.push((name.clone(), read));
        }
        let clients = self.clients.as_ref().map(|clients| {
            clients.read_again().unwrap_or_else(|error| {
                faults.push(error);
                clients.clone()
            })
        });
        let tls = Tls {
            backend: self.backend,
            identities,
            clients,
        };
        (tls, faults.into_iter().next())
    }
}

impl From<Identity> for Tls {
    fn from(identity: Identity) -> Tls {
        Tls::new(identity)
    }
}

impl From<&Identity> for Tls {
    fn from(identity: &Identity) -> Tls {
        Tls::new(identity.clone())
    }
}

impl From<&Tls> for Tls {
    fn from(tls: &Tls) -> Tls {
        tls.clone()
    }
}

/// What computes.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::cipher_suite::{
        TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
    };
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            TLS13_AES_128_GCM_SHA256,
            TLS13_AES_256_GCM_SHA384,
            TLS13_CHACHA20_POLY1305_SHA256,
            TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ],
        ..aws_lc_rs::default_provider()
    })
}

/// A key for tickets, which changes by itself.
///
/// # Errors
/// Where the system gives no random bytes.
pub(crate) fn tickets() -> Result<Tickets, IdentityError> {
    aws_lc_rs::Ticketer::new().map_err(|error| unusable(&error))
}

fn unusable(reason: &dyn fmt::Display) -> IdentityError {
    IdentityError::Malformed {
        place: "the configuration of TLS".to_owned(),
        reason: reason.to_string(),
    }
}
