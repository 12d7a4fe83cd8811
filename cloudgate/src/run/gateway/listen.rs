//! How does a configuration become a server?

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::config::file::{
    AdminSection, BodyLimit, KeyConfigSection, ProxyProtocolSection, ServerSection, ServerTimeouts,
    SslSection,
};
use crate::error::{Error, Result};
use crate::net::listener::Listener;
use crate::net::tls::clients::ClientCa;
use crate::net::tls::generated::GeneratedKey;
use crate::net::tls::identity::{Identity, is_pkcs12};
use crate::net::tls::serving::Tls;
use crate::server::{ProxyProtocol, Running, Server, Settings, Timeouts};

/// Where a key lies that is made, unless it is said: where no service of files looks.
const GENERATED: &str = ".cloudgate/generated.pem";

/// What decides how and where a server listens: another one is needed once something of it changes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listening {
    host: IpAddr,
    port: u16,
    ssl: Option<SslSection>,
    threads: Option<usize>,
    max_connections: Option<usize>,
    proxy_protocol: Option<ProxyProtocolSection>,
    timeouts: ServerTimeouts,
}

impl Listening {
    pub(super) fn of(server: &ServerSection) -> Listening {
        Listening {
            host: server.host,
            port: server.port,
            ssl: server.ssl.clone().filter(|ssl| ssl.enable),
            threads: server.threads,
            max_connections: server.max_connections,
            proxy_protocol: server.proxy_protocol.clone(),
            timeouts: server.timeouts.clone(),
        }
    }

    /// The ports that it takes.
    pub(super) fn ports(&self) -> Vec<u16> {
        match &self.ssl {
            None => vec![self.port],
            Some(ssl) => {
                let tls = ssl.port.unwrap_or(self.port);
                ssl.redirect_from.into_iter().chain([tls]).collect()
            }
        }
    }

    /// Whether only the number of threads is another one, which cannot be changed while the program runs.
    pub(super) fn differs_by_threads_alone(&self, other: &Listening) -> bool {
        let same = Listening {
            threads: other.threads,
            ..self.clone()
        };
        same == *other
    }

    /// Takes the ports, those that a server has already together with that one.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(super) fn bind(&self, old: Option<&Running>) -> Result<Server> {
        let mut server = Server::nowhere();
        match &self.ssl {
            None => server = self.add(server, self.port, None, old)?,
            Some(ssl) => {
                let port = ssl.port.unwrap_or(self.port);
                server = self.add(server, port, Some(tls(ssl)?), old)?;
                if let Some(plain) = ssl.redirect_from {
                    server = self.add(server, plain, None, old)?;
                }
            }
        }
        Ok(server.with_settings(self.settings()))
    }

    fn add(
        &self,
        server: Server,
        port: u16,
        tls: Option<Tls>,
        old: Option<&Running>,
    ) -> Result<Server> {
        let address = SocketAddr::new(self.host, port);
        if let Some(listener) = old.and_then(|old| old.share(address)) {
            return server.and_listen(listener, tls);
        }
        let listener = match Listener::tcp(address) {
            // All addresses of a system without IPv6.
            Err(error)
                if self.host.is_ipv6()
                    && self.host.is_unspecified()
                    && matches!(
                        error.kind(),
                        ErrorKind::Unsupported | ErrorKind::AddrNotAvailable
                    ) =>
            {
                Listener::tcp(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port))
            }
            other => other,
        };
        let listener = listener.map_err(|source| Error::Bind { address, source })?;
        server.and_listen(listener, tls)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        if let Some(threads) = self.threads {
            settings.workers.workers = threads;
        }
        settings.max_connections = self.max_connections;
        settings.proxy_protocol = self.proxy_protocol.as_ref().map(|said| ProxyProtocol {
            trusted: said.from.clone(),
            unix_sockets: said.unix_sockets,
        });
        let or_none = |time: Option<Duration>| time.unwrap_or_default();
        let mut timeouts = Timeouts::default();
        timeouts.head = or_none(self.timeouts.head);
        timeouts.idle = or_none(self.timeouts.idle);
        timeouts.grace = or_none(self.timeouts.grace);
        timeouts.min_rate = self.timeouts.min_rate;
        timeouts.stall = or_none(self.timeouts.stall);
        settings.timeouts = timeouts;
        // What a service takes is its own to say.
        settings.body_limit = match BodyLimit::ZOLLYS {
            BodyLimit::Bytes(bytes) => bytes,
            BodyLimit::Unlimited => u64::MAX,
        };
        settings
    }
}

/// The listener for those who operate the gateway.
///
/// # Errors
/// Why it cannot be.
pub(super) fn bind_admin(said: &AdminSection) -> Result<Server> {
    Server::bind(SocketAddr::new(said.host, said.port))
}

fn tls(said: &SslSection) -> Result<Tls> {
    let mut identities = Vec::new();
    if let Some(key) = &said.key {
        identities.push(pkcs12(&key.file, &key.password.0)?);
    }
    for pair in &said.certificates {
        identities.push(if is_pkcs12(&pair.certificate) {
            pkcs12(&pair.certificate, &pair.password.0)?
        } else {
            let key = pair.key.as_ref().unwrap_or(&pair.certificate);
            Identity::from_pem_files(&pair.certificate, key)?
        });
    }
    if identities.is_empty() {
        let said = said.generate_key.as_ref().map(|made| &made.key_config);
        identities.push(Identity::generated(&generated(said))?);
    }
    let mut identities = identities.into_iter();
    let first = identities.next().ok_or(Error::NothingToServe)?;
    let mut tls = identities.fold(Tls::new(first), Tls::identity);
    if let Some(path) = &said.client_ca {
        let clients = ClientCa::from_pem_file(path)?;
        tls = tls.client_ca(match said.client_optional {
            true => clients.optional(),
            false => clients,
        });
    }
    Ok(tls)
}

fn pkcs12(path: &PathBuf, password: &str) -> Result<Identity> {
    Ok(Identity::from_pkcs12_file(path, password)?)
}

fn generated(said: Option<&KeyConfigSection>) -> GeneratedKey {
    let file = said.and_then(|said| said.file.clone());
    let mut key = GeneratedKey::new(file.unwrap_or_else(|| PathBuf::from(GENERATED)));
    let Some(said) = said else { return key };
    if let Some(name) = &said.common_name {
        key = key.common_name(name);
    }
    key = said.names.iter().fold(key, |key, name| key.name(name));
    match said.password.0.is_empty() {
        true => key,
        false => key.password(&said.password.0),
    }
}
