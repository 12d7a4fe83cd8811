//! Which server does a URL in a list of servers mean?

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::proto::h1::is_host;

/// A server that requests are passed on to: `http://host:port`, `https://host`, `host:port` or `unix:/path`, with a path
/// of its own or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// Whether TLS is spoken.
    pub(crate) secure: bool,
    /// The host, with brackets where it is an address of IPv6.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// What the field Host says where the server's own name is wanted there.
    pub(crate) authority: String,
    /// What stands in front of every path, without a slash at its end.
    pub(crate) base: String,
    /// The socket, where it is one of the file system.
    pub(crate) socket: Option<PathBuf>,
    text: String,
}

/// A text that names no server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidServer {
    text: String,
    reason: &'static str,
}

impl fmt::Display for InvalidServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no server: {}; write http://host:port, https://host or unix:/path/of.sock",
            self.text, self.reason
        )
    }
}

impl std::error::Error for InvalidServer {}

impl FromStr for Address {
    type Err = InvalidServer;

    fn from_str(text: &str) -> Result<Address, InvalidServer> {
        let refuse = |reason| InvalidServer {
            text: text.to_owned(),
            reason,
        };
        if let Some(path) = text.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(refuse("the path of a Unix socket begins with a slash"));
            }
            return Ok(Address {
                secure: false,
                host: "localhost".to_owned(),
                port: 80,
                authority: "localhost".to_owned(),
                base: String::new(),
                socket: Some(PathBuf::from(path)),
                text: text.to_owned(),
            });
        }
        let (secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some(_) => return Err(refuse("only http and https are spoken")),
            None => (false, text),
        };
        if rest.contains(['?', '#']) {
            return Err(refuse("it has a query or a fragment"));
        }
        let (authority, base) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(refuse(
                "it holds a user's name; set the field Authorization instead",
            ));
        }
        if authority.is_empty() {
            return Err(refuse("the host is missing"));
        }
        if !is_host(authority.as_bytes()) {
            return Err(refuse("this is not a host with a port from 1 to 65535"));
        }
        if !base.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refuse(
                "its path holds a space, a control or a non-ASCII character",
            ));
        }
        let usual = if secure { 443 } else { 80 };
        let end_of_host = authority.find(']').map_or(0, |end| end + 1);
        let (host, port) = match authority[end_of_host..].rfind(':') {
            Some(at) => {
                let (host, port) = authority.split_at(end_of_host + at);
                match port[1..].parse() {
                    Ok(0) | Err(_) => return Err(refuse("its port is not one from 1 to 65535")),
                    Ok(port) => (host, port),
                }
            }
            None if !text.contains("://") => {
                return Err(refuse("without http:// in front it needs a port"));
            }
            None => (authority, usual),
        };
        let named = if port == usual { host } else { authority };
        Ok(Address {
            secure,
            host: host.to_ascii_lowercase(),
            port,
            authority: named.to_ascii_lowercase(),
            base: base.trim_end_matches('/').to_owned(),
            socket: None,
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: (bool, &str, u16, &str, &str)) {
        let address: Address = text.parse().unwrap();
        let got = (
            address.secure,
            &*address.host,
            address.port,
            &*address.authority,
            &*address.base,
        );
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn servers_in_all_their_forms() {
        check(
            "http://localhost:3001",
            (false, "localhost", 3001, "localhost:3001", ""),
        );
        check("http://A.test", (false, "a.test", 80, "a.test", ""));
        check("HTTPS://a.test:443/", (true, "a.test", 443, "a.test", ""));
        check(
            "https://a.test:8443/v1/",
            (true, "a.test", 8443, "a.test:8443", "/v1"),
        );
        check(
            "http://[::1]:8080/x",
            (false, "[::1]", 8080, "[::1]:8080", "/x"),
        );
        check("http://[::1]", (false, "[::1]", 80, "[::1]", ""));
        check("10.0.0.1:80", (false, "10.0.0.1", 80, "10.0.0.1", ""));
        let unix: Address = "unix:/run/a.sock".parse().unwrap();
        assert_eq!(unix.socket, Some(PathBuf::from("/run/a.sock")));
        assert_eq!(unix.authority, "localhost");
    }

    #[test]
    fn what_is_no_server_says_why() {
        for (text, want) in [
            ("", "the host is missing"),
            ("http://", "the host is missing"),
            ("http:///x", "the host is missing"),
            ("ftp://a.test", "only http and https"),
            ("a.test", "needs a port"),
            ("http://a.test:0", "from 1 to 65535"),
            ("http://a.test:65536", "from 1 to 65535"),
            ("http://a b", "not a host"),
            ("http://me@a.test", "Authorization"),
            ("http://a.test/?a", "query"),
            ("http://a.test/\u{e9}", "non-ASCII"),
            ("unix:run/a.sock", "begins with a slash"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }
}
