//! What can be set from outside the program?
//!
//! Plain data: each value is read, checked and given its default in one pass.

#[cfg(feature = "yaml")]
#[cfg_attr(
    not(feature = "cli"),
    allow(
        dead_code,
        unused_imports,
        reason = "the program is who reads the file"
    )
)]
pub(crate) mod file;

use std::env::{self, VarError};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::error::{Error, Result};

/// Where and how an application is served.
///
/// | variable | meaning | default |
/// |---|---|---|
/// | `PORT` | TCP port; 0 takes any free one | 3000 |
/// | `HOST` | address to listen on; `0.0.0.0` or `::` for all of the machine's | 127.0.0.1 |
/// | `THREADS` | worker threads | number of cores |
/// | `SSL` | 1 for TLS in place of plain HTTP | 0 |
/// | `SSL_PORT` | TCP port of TLS | 443 |
/// | `SSL_CERT` | file of the certificate with its chain: PEM, or PKCS#12 if it ends with `.p12` or `.pfx` (feature `pkcs12`) | one that is made in `.cloudgate/generated.pem` ([`GeneratedKey`](crate::GeneratedKey)) |
/// | `SSL_KEY` | file of its private key in PEM form | the file of `SSL_CERT` |
/// | `SSL_PASSWORD` | password of a PKCS#12 file | empty |
/// | `SSL_NAMES` | names that the certificate which is made is for, with commas between | localhost |
/// | `SSL_CLIENT_CA` | file of those who sign certificates of clients, in PEM form: who has none does not get in | |
/// | `SSL_CLIENT_OPTIONAL` | 1 to let clients in that show no certificate | 0 |
/// | `SSL_REDIRECT` | 1 to send clients of plain HTTP at `PORT` to TLS, or the port of TLS as they reach it | 0 |
/// | `SSL_HSTS` | for how many seconds browsers shall come by TLS alone ([`HttpsOnly::hsts`](crate::HttpsOnly::hsts)) | |
/// | `SSL_BACKEND` | `rustls`, or `native` for the system's TLS (feature `native-tls`) | rustls |
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The TCP port.
    pub port: u16,
    /// The address to listen on.
    pub host: IpAddr,
    /// The number of worker threads; `None` for one a core.
    pub threads: Option<usize>,
    /// TLS in place of plain HTTP.
    pub tls: Option<TlsConfig>,
}

/// Where TLS is served, and by whom: the variables of [`Config`] that begin with `SSL`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsConfig {
    /// The TCP port.
    pub port: u16,
    /// The file of the certificate with its chain; `None` for one that is made.
    pub certificate: Option<PathBuf>,
    /// The file of the private key; `None` for that of the certificate.
    pub key: Option<PathBuf>,
    /// The password of a PKCS#12 file.
    pub password: String,
    /// Names that a certificate which is made is for.
    pub names: Vec<String>,
    /// The file of those who sign certificates of clients.
    pub client_ca: Option<PathBuf>,
    /// Whether clients get in that show no certificate.
    pub client_optional: bool,
    /// Whether clients of plain HTTP are sent to TLS.
    pub redirect: TlsRedirect,
    /// For how many seconds browsers shall come by TLS alone.
    pub hsts: Option<u64>,
    /// Whether the system's library is taken.
    pub native: bool,
}

/// Whether clients of plain HTTP are sent to TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsRedirect {
    /// Plain HTTP is not served.
    #[default]
    Off,
    /// They are, to the port where TLS is served.
    On,
    /// They are, to this port, as they reach it.
    To(u16),
}

impl TlsConfig {
    /// TLS on this port with a key that is made.
    pub fn new(port: u16) -> TlsConfig {
        TlsConfig {
            port,
            certificate: None,
            key: None,
            password: String::new(),
            names: Vec::new(),
            client_ca: None,
            client_optional: false,
            redirect: TlsRedirect::Off,
            hsts: None,
            native: false,
        }
    }
}

/// The password is not shown.
impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig")
            .field("port", &self.port)
            .field("certificate", &self.certificate)
            .field("key", &self.key)
            .field("names", &self.names)
            .field("client_ca", &self.client_ca)
            .field("client_optional", &self.client_optional)
            .field("redirect", &self.redirect)
            .field("hsts", &self.hsts)
            .field("native", &self.native)
            .finish_non_exhaustive()
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            port: 3000,
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            threads: None,
            tls: None,
        }
    }
}

/// The port of HTTPS (RFC 9110 section 4.2.2).
const HTTPS: u16 = 443;

/// The most worker threads that can be asked for.
const MOST_THREADS: usize = 128;

/// What a port is.
const PORTS: &str = "a number from 0 to 65535";

/// What [`parse_host`] takes.
pub(crate) const HOSTS: &str = "an IP address such as 127.0.0.1, 0.0.0.0 or ::1, or localhost";

impl Config {
    /// Reads the environment variables of the table above.
    ///
    /// ```
    /// let config = cloudgate::Config::from_env()?;
    /// # Ok::<(), cloudgate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] naming the variable, its value and what it should be.
    pub fn from_env() -> Result<Config> {
        Config::read(|name| env::var(name))
    }

    /// As [`Config::from_env`], of variables that are looked up like this.
    pub(crate) fn read(
        lookup: impl Fn(&str) -> std::result::Result<String, VarError>,
    ) -> Result<Config> {
        let default = Config::default();
        let variables = Variables(lookup);
        let tls = tls(&variables)?;
        Ok(Config {
            tls,
            port: variables
                .get("PORT", PORTS, |text| text.parse().ok())?
                .unwrap_or(default.port),
            host: variables
                .get("HOST", HOSTS, parse_host)?
                .unwrap_or(default.host),
            threads: variables.get("THREADS", "a number from 1 to 128", |text| {
                text.parse()
                    .ok()
                    .filter(|threads| (1..=MOST_THREADS).contains(threads))
            })?,
        })
    }

    /// The same configuration with another port.
    pub fn with_port(mut self, port: u16) -> Config {
        self.port = port;
        self
    }

    /// Address and port.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }
}

/// An address to listen on, as people write it.
pub(crate) fn parse_host(text: &str) -> Option<IpAddr> {
    if text.eq_ignore_ascii_case("localhost") {
        return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    text.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

/// Reads the variables that begin with `SSL`, all of them, so that a mistake in one does not wait for the day when TLS is
/// switched on.
fn tls<F>(variables: &Variables<F>) -> Result<Option<TlsConfig>>
where
    F: Fn(&str) -> std::result::Result<String, VarError>,
{
    let file = |text: &str| Some(PathBuf::from(text));
    let on = variables.get("SSL", "1 for TLS, or 0", switch)?;
    let certificate = variables.get("SSL_CERT", "a file", file)?;
    let key = variables.get("SSL_KEY", "a file", file)?;
    let client_ca = variables.get("SSL_CLIENT_CA", "a file", file)?;
    let client_optional = variables.get("SSL_CLIENT_OPTIONAL", "1 or 0", switch)?;
    let backend = variables.get("SSL_BACKEND", "rustls or native", |text| match text {
        "rustls" => Some(false),
        "native" | "native-tls" => Some(true),
        _ => None,
    })?;
    let redirect = variables.get(
        "SSL_REDIRECT",
        "1 for the port of TLS, the port as clients reach it, or 0",
        |text| match text {
            "0" | "false" => Some(TlsRedirect::Off),
            "1" | "true" => Some(TlsRedirect::On),
            port => port.parse().ok().map(TlsRedirect::To),
        },
    )?;
    let names = variables.get("SSL_NAMES", "names with commas between", |text| {
        let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
        names.iter().all(|name| !name.is_empty()).then_some(names)
    })?;
    let port = variables.get("SSL_PORT", PORTS, |text| text.parse().ok())?;
    let password = variables.get("SSL_PASSWORD", "a password", |text| Some(text.to_owned()))?;
    let hsts = variables.get("SSL_HSTS", "a number of seconds", |text| text.parse().ok())?;
    if on != Some(true) {
        return Ok(None);
    }
    let refuse = |name: &str, value: String, wanted| {
        let place = format!("environment variable {name}");
        Err(Error::Setting {
            place,
            value,
            wanted,
        })
    };
    // What is ignored would let somebody believe that it was not.
    if let (Some(key), None) = (&key, &certificate) {
        let wanted = "left out, or SSL_CERT be given: the file of the certificate of this key";
        return refuse("SSL_KEY", key.display().to_string(), wanted);
    }
    if let (Some(names), Some(_)) = (&names, &certificate) {
        let wanted = "left out where SSL_CERT is given: the names stand in that certificate";
        return refuse("SSL_NAMES", names.join(","), wanted);
    }
    if client_optional == Some(true) && client_ca.is_none() {
        let wanted =
            "0, or SSL_CLIENT_CA be given: the file of those who sign certificates of clients";
        return refuse("SSL_CLIENT_OPTIONAL", "1".to_owned(), wanted);
    }
    Ok(Some(TlsConfig {
        certificate,
        key,
        password: password.unwrap_or_default(),
        names: names.unwrap_or_default(),
        client_ca,
        client_optional: client_optional.unwrap_or(false),
        redirect: redirect.unwrap_or_default(),
        hsts,
        native: backend.unwrap_or(false),
        ..TlsConfig::new(port.unwrap_or(HTTPS))
    }))
}

/// What switches something on or off.
fn switch(text: &str) -> Option<bool> {
    match text {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

struct Variables<F>(F);

impl<F: Fn(&str) -> std::result::Result<String, VarError>> Variables<F> {
    /// The value of a variable, if it is set and not empty.
    fn get<T>(
        &self,
        name: &str,
        wanted: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let refuse = |value: String| Error::Setting {
            place: format!("environment variable {name}"),
            value,
            wanted,
        };
        match (self.0)(name) {
            Err(VarError::NotPresent) => Ok(None),
            Err(VarError::NotUnicode(value)) => Err(refuse(value.to_string_lossy().into_owned())),
            Ok(value) => match value.trim() {
                "" => Ok(None),
                text => parse(text).map(Some).ok_or_else(|| refuse(text.to_owned())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> std::result::Result<Config, String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found
                .map(|(_, value)| (*value).to_owned())
                .ok_or(VarError::NotPresent)
        };
        Config::read(lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_and_values() {
        let config = read(&[]).unwrap();
        assert_eq!(
            (config.address(), config.threads),
            ("127.0.0.1:3000".parse().unwrap(), None)
        );
        let config = read(&[
            ("PORT", " 80 "),
            ("HOST", "::"),
            ("THREADS", "4"),
            ("SSL", "0"),
        ])
        .unwrap();
        assert_eq!(
            (config.address(), config.threads),
            ("[::]:80".parse().unwrap(), Some(4))
        );
        assert_eq!(
            read(&[("PORT", ""), ("HOST", "localhost")])
                .unwrap()
                .address(),
            "127.0.0.1:3000".parse().unwrap()
        );
        assert_eq!(read(&[("THREADS", "128")]).unwrap().threads, Some(128));
    }

    #[test]
    fn tls_is_on_with_one_word_and_has_its_own_values() {
        let on = |more: &[(&str, &str)]| {
            let all = [&[("SSL", "1")], more].concat();
            read(&all).map(|config| config.tls.expect("TLS is on"))
        };
        assert_eq!(on(&[]), Ok(TlsConfig::new(443)));
        let tls = on(&[("SSL_CERT", "c.pem"), ("SSL_KEY", "k.pem")]).unwrap();
        assert_eq!(
            (tls.certificate, tls.key),
            (Some("c.pem".into()), Some("k.pem".into()))
        );
        let tls = on(&[("SSL_CERT", "c.p12"), ("SSL_PASSWORD", "secret")]).unwrap();
        assert_eq!((tls.key.as_ref(), &*tls.password), (None, "secret"));
        assert!(!format!("{tls:?}").contains("secret"));
        let tls = on(&[("SSL_NAMES", "a.test, b.test")]).unwrap();
        assert_eq!(tls.names, ["a.test", "b.test"]);
        let tls = on(&[("SSL_CLIENT_CA", "ca.pem"), ("SSL_CLIENT_OPTIONAL", "1")]).unwrap();
        assert_eq!(
            (tls.client_ca, tls.client_optional),
            (Some("ca.pem".into()), true)
        );
        for (text, want) in [
            ("0", TlsRedirect::Off),
            ("1", TlsRedirect::On),
            ("443", TlsRedirect::To(443)),
        ] {
            assert_eq!(on(&[("SSL_REDIRECT", text)]).unwrap().redirect, want);
        }
        assert_eq!(on(&[("SSL_HSTS", "600")]).unwrap().hsts, Some(600));
        assert!(on(&[("SSL_BACKEND", "native")]).unwrap().native);
        // Without SSL=1 the rest stands by.
        assert_eq!(read(&[("SSL_CERT", "c.pem")]).unwrap().tls, None);
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        for (given, want) in [
            (&[("SSL_KEY", "k.pem")][..], "SSL_CERT be given"),
            (
                &[("SSL_CERT", "c.pem"), ("SSL_NAMES", "a")],
                "stand in that certificate",
            ),
            (&[("SSL_CLIENT_OPTIONAL", "1")], "SSL_CLIENT_CA be given"),
        ] {
            let error = read(&[&[("SSL", "1")], given].concat()).unwrap_err();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn bad_values_name_the_variable_the_value_and_what_is_wanted() {
        for (name, value) in [
            ("PORT", "abc"),
            ("PORT", "65536"),
            ("PORT", "-1"),
            ("HOST", "example.org"),
            ("HOST", "1.2.3"),
            ("THREADS", "0"),
            ("THREADS", "129"),
            ("THREADS", "x"),
            ("SSL", "yes"),
            ("SSL_PORT", "0x50"),
            ("SSL_REDIRECT", "yes"),
            ("SSL_HSTS", "1 year"),
            ("SSL_CLIENT_OPTIONAL", "perhaps"),
            ("SSL_NAMES", "a,,b"),
            ("SSL_BACKEND", "openssl"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(
                error.contains(name) && error.contains(value) && error.contains("must be"),
                "{error}"
            );
        }
    }
}
