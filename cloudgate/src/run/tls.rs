//! How does TLS come from a configuration into a server?

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::app::App;
use crate::config::{Config, TlsConfig, TlsRedirect};
use crate::error::Result;
use crate::net::tls::clients::ClientCa;
use crate::net::tls::generated::GeneratedKey;
use crate::net::tls::identity::{Identity, is_pkcs12};
use crate::net::tls::serving::Tls;
use crate::server::Server;
use crate::services::https_only::HttpsOnly;

/// Where a key lies that is made because none was given: where no service of files looks, whichever folder it serves.
const GENERATED: &str = ".cloudgate/generated.pem";

/// A server of TLS, and of plain HTTP where clients of that are sent to it.
pub(super) fn bind(app: App, config: &Config, secure: &TlsConfig) -> Result<(App, Server)> {
    let address = SocketAddr::new(config.host, secure.port);
    let server = Server::bind_tls(address, tls(secure)?)?;
    let port = match secure.redirect {
        TlsRedirect::Off => None,
        // Any free one may have been taken.
        TlsRedirect::On => Some(server.addr().port()),
        TlsRedirect::To(port) => Some(port),
    };
    let server = match port {
        Some(_) => server.and_bind(config.address())?,
        None => server,
    };
    if port.is_none() && secure.hsts.is_none() {
        return Ok((app, server));
    }
    let mut only = HttpsOnly::new().port(port.unwrap_or(secure.port));
    if let Some(seconds) = secure.hsts {
        only = only.hsts(Duration::from_secs(seconds));
    }
    Ok((app.wrap(only), server))
}

fn tls(secure: &TlsConfig) -> Result<Tls> {
    let mut tls = Tls::new(identity(secure)?);
    if let Some(path) = &secure.client_ca {
        let clients = ClientCa::from_pem_file(path)?;
        tls = tls.client_ca(match secure.client_optional {
            true => clients.optional(),
            false => clients,
        });
    }
    if secure.native {
        return native(tls);
    }
    Ok(tls)
}

fn identity(secure: &TlsConfig) -> Result<Identity> {
    let Some(certificate) = &secure.certificate else {
        let mut names = secure.names.iter();
        let mut key = GeneratedKey::new(GENERATED);
        if let Some(name) = names.next() {
            key = key.common_name(name);
        }
        let key = names.fold(key, |key, name| key.name(name));
        return Ok(Identity::generated(&key)?);
    };
    if is_pkcs12(certificate) {
        return pkcs12(certificate, &secure.password);
    }
    let key = secure.key.as_ref().unwrap_or(certificate);
    Ok(Identity::from_pem_files(certificate, key)?)
}

#[cfg(feature = "pkcs12")]
fn pkcs12(path: &Path, password: &str) -> Result<Identity> {
    Ok(Identity::from_pkcs12_file(path, password)?)
}

#[cfg(not(feature = "pkcs12"))]
fn pkcs12(path: &Path, _password: &str) -> Result<Identity> {
    Err(crate::error::Error::Setting {
        place: "environment variable SSL_CERT".to_owned(),
        value: path.display().to_string(),
        wanted: "a file in PEM form, for this program was built without cloudgate's feature pkcs12",
    })
}

#[cfg(feature = "native-tls")]
fn native(tls: Tls) -> Result<Tls> {
    Ok(tls.native())
}

#[cfg(not(feature = "native-tls"))]
fn native(_tls: Tls) -> Result<Tls> {
    Err(crate::error::Error::Setting {
        place: "environment variable SSL_BACKEND".to_owned(),
        value: "native".to_owned(),
        wanted: "rustls, for this program was built without cloudgate's feature native-tls",
    })
}
