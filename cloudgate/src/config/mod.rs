//! What can be set from outside the program?
//!
//! Plain data: each value is read, checked and given its default in one pass.

use std::env::{self, VarError};
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
/// | `SSL` | 1 for TLS in place of plain HTTP, with the two below | 0 |
/// | `SSL_PORT` | TCP port of TLS | 443 |
/// | `SSL_CERT` `SSL_KEY` | files in PEM form: the certificate with its chain, and its private key | |
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

/// Where TLS is served, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsConfig {
    /// The TCP port.
    pub port: u16,
    /// The file of the certificate with its chain.
    pub certificate: PathBuf,
    /// The file of the private key.
    pub key: PathBuf,
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
        let tls = variables.get("SSL", "1 for TLS, or 0", |text| match text {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        })?;
        let port = variables.get("SSL_PORT", PORTS, |text| text.parse().ok())?;
        let certificate = variables.get("SSL_CERT", "a file", |text| Some(PathBuf::from(text)))?;
        let key = variables.get("SSL_KEY", "a file", |text| Some(PathBuf::from(text)))?;
        // Serving plain text to somebody who asked for TLS would be worse than not starting.
        let tls = if tls == Some(true) {
            let missing = |name: &str, wanted| Error::Setting {
                place: format!("environment variable {name}"),
                value: String::new(),
                wanted,
            };
            Some(TlsConfig {
                port: port.unwrap_or(HTTPS),
                certificate: certificate.ok_or_else(|| {
                    missing(
                        "SSL_CERT",
                        "the file of the certificate where SSL is 1, in PEM form",
                    )
                })?,
                key: key.ok_or_else(|| {
                    missing(
                        "SSL_KEY",
                        "the file of the certificate's private key where SSL is 1, in PEM form",
                    )
                })?,
            })
        } else {
            None
        };
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
    fn tls_wants_a_certificate_and_its_key() {
        let config = read(&[("SSL", "1"), ("SSL_CERT", "c.pem"), ("SSL_KEY", "k.pem")]).unwrap();
        let tls = config.tls.unwrap();
        assert_eq!(
            (tls.port, tls.certificate, tls.key),
            (443, "c.pem".into(), "k.pem".into())
        );
        for (given, missing) in [("SSL_CERT", "SSL_KEY"), ("SSL_KEY", "SSL_CERT")] {
            let error = read(&[("SSL", "1"), (given, "x.pem")]).unwrap_err();
            assert!(
                error.contains(missing) && error.contains("must be the file"),
                "{error}"
            );
        }
        // Without SSL=1 the rest stands by.
        assert_eq!(read(&[("SSL_CERT", "c.pem")]).unwrap().tls, None);
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
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(
                error.contains(name) && error.contains(value) && error.contains("must be"),
                "{error}"
            );
        }
    }
}
