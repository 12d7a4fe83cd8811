//! Who is the client behind a proxy?
//!
//! A forwarding proxy appends the address that it got a request from. Whatever stands further left
//! may be the client's invention, so addresses are read from the right, for as long as the ones
//! read so far belong to proxies that the application trusts.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

use super::extract::FromRequest;
use crate::message::{Headers, Network, Request};

/// The most addresses that are read of one request: a longer chain of own proxies is a loop.
const MOST_HOPS: usize = 32;

/// The field in which trusted proxies name the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardedBy {
    /// `X-Forwarded-For: client, proxy`, which nearly all proxies send.
    #[default]
    XForwardedFor,
    /// `Forwarded: for=client, for=proxy` (RFC 7239).
    Forwarded,
}

/// The address of the client, which is not always the other end of the connection: see
/// [`App::trust_proxies`](crate::App::trust_proxies).
///
/// ```
/// use cloudgate::{App, ClientAddr, ForwardedBy, Request, route};
///
/// #[route("/ip")]
/// fn ip(ClientAddr(address): ClientAddr) -> String { address.to_string() }
///
/// let app = App::gather().trust_proxies(ForwardedBy::XForwardedFor, ["127.0.0.1"]);
/// let mut request = Request::get("/ip").with_header("X-Forwarded-For", "6.6.6.6, 192.0.2.1");
/// assert_eq!(app.call(&mut request).text(), "192.0.2.1");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddr(pub IpAddr);

impl FromRequest for ClientAddr {
    type Rejection = Infallible;

    fn from_request(request: &mut Request<'_>) -> Result<ClientAddr, Infallible> {
        Ok(ClientAddr(request.client()))
    }
}

/// The proxies that are believed, and the field that is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    networks: Vec<Network>,
    field: ForwardedBy,
}

/// What a trusted proxy says of the client.
pub(crate) struct Said {
    pub(crate) client: IpAddr,
    /// Whether it speaks TLS; `None` where that is not said.
    pub(crate) secure: Option<bool>,
}

impl Proxies {
    pub(crate) fn new(networks: Vec<Network>, field: ForwardedBy) -> Proxies {
        Proxies { networks, field }
    }

    /// What is said of the client of a request that came by a trusted proxy.
    #[inline]
    pub(crate) fn say(&self, request: &Request<'_>) -> Option<Said> {
        if self.networks.is_empty() {
            return None;
        }
        self.said_by_proxy(request)
    }

    fn said_by_proxy(&self, request: &Request<'_>) -> Option<Said> {
        let peer = request.peer().ip();
        if !self.trusts(peer) {
            return None;
        }
        let mut client = peer.to_canonical();
        // How many trusted proxies stand between the nearest and the client.
        let mut depth = 0;
        for (index, hop) in self.hops(request.headers()).into_iter().enumerate() {
            // What is no address, such as `unknown`, was said by somebody who is believed, and so
            // is the last that is known.
            let Some(address) = hop else { break };
            (client, depth) = (address, index);
            if !self.trusts(address) {
                break;
            }
        }
        let secure = self.secure(request.headers(), depth);
        Some(Said { client, secure })
    }

    /// Whether the client of the proxy at `depth` speaks TLS, as far as that is said.
    fn secure(&self, headers: &Headers, depth: usize) -> Option<bool> {
        let name = match self.field {
            ForwardedBy::XForwardedFor => "x-forwarded-proto",
            ForwardedBy::Forwarded => "forwarded",
        };
        let values: Vec<&[u8]> = headers.get_all(name).collect();
        let elements = values
            .into_iter()
            .rev()
            .filter_map(|value| std::str::from_utf8(value).ok())
            .flat_map(|text| text.rsplit(','));
        // Most proxies put one scheme there in place of what they got, however many there are.
        let mut scheme = None;
        for element in elements.take(depth.min(MOST_HOPS) + 1) {
            scheme = match self.field {
                ForwardedBy::XForwardedFor => Some(element.trim()),
                ForwardedBy::Forwarded => parameter(element, "proto"),
            };
        }
        scheme.map(|scheme| {
            ["https", "wss"]
                .iter()
                .any(|secure| scheme.eq_ignore_ascii_case(secure))
        })
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.networks
            .iter()
            .any(|network| network.contains(address))
    }

    /// The addresses that the field names, the nearest first.
    fn hops(&self, headers: &Headers) -> Vec<Option<IpAddr>> {
        let name = match self.field {
            ForwardedBy::XForwardedFor => "x-forwarded-for",
            ForwardedBy::Forwarded => "forwarded",
        };
        let values: Vec<&[u8]> = headers.get_all(name).collect();
        let mut hops = Vec::new();
        for value in values.into_iter().rev() {
            let Ok(text) = std::str::from_utf8(value) else {
                hops.push(None);
                continue;
            };
            for element in text.rsplit(',') {
                if hops.len() == MOST_HOPS {
                    return hops;
                }
                hops.push(match self.field {
                    ForwardedBy::XForwardedFor => address(element.trim()),
                    ForwardedBy::Forwarded => parameter(element, "for").and_then(address),
                });
            }
        }
        hops
    }
}

/// A parameter of one element of Forwarded.
fn parameter<'e>(element: &'e str, wanted: &str) -> Option<&'e str> {
    let value = element.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case(wanted)
            .then(|| value.trim())
    })?;
    let bare = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    Some(bare.unwrap_or(value))
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    bare.parse()
        .or_else(|_| text.parse().map(|socket: SocketAddr| socket.ip()))
        .ok()
        .map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(field: ForwardedBy, peer: &str, values: &[&str], want: &str) {
        let trusted = ["10.0.0.0/8", "2001:db8::/32"].map(|text| text.parse().unwrap());
        let proxies = Proxies::new(trusted.to_vec(), field);
        let name = match field {
            ForwardedBy::XForwardedFor => "X-Forwarded-For",
            ForwardedBy::Forwarded => "Forwarded",
        };
        let peer = SocketAddr::new(peer.parse().unwrap(), 1);
        let request = values
            .iter()
            .fold(Request::get("/").with_peer(peer), |request, value| {
                request.with_header(name, value)
            });
        let client = proxies.say(&request).map_or(peer.ip(), |said| said.client);
        assert_eq!(client, want.parse::<IpAddr>().unwrap(), "{values:?}");
    }

    #[test]
    fn the_nearest_address_that_is_no_proxy_is_the_client() {
        let check =
            |peer, values: &[&str], want| check(ForwardedBy::XForwardedFor, peer, values, want);
        check("10.0.0.1", &["1.1.1.1"], "1.1.1.1");
        check("::ffff:10.0.0.1", &["1.1.1.1"], "1.1.1.1");
        // What the client itself claims stands further left.
        check("10.0.0.1", &["6.6.6.6, 1.1.1.1"], "1.1.1.1");
        check("10.0.0.1", &["6.6.6.6", "1.1.1.1,10.0.0.2"], "1.1.1.1");
        check("10.0.0.1", &["1.1.1.1", "10.0.0.3 , 10.0.0.2"], "1.1.1.1");
        check("10.0.0.1", &["[2001:db8::1]:80, 10.0.0.2"], "2001:db8::1");
        check("10.0.0.1", &["1.1.1.1:4711"], "1.1.1.1");
        check("10.0.0.1", &["::ffff:1.1.1.1"], "1.1.1.1");
        // Nobody is believed whom nobody trusts.
        check("9.9.9.9", &["1.1.1.1"], "9.9.9.9");
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["unknown"], "10.0.0.1");
        check("10.0.0.1", &["1.1.1.1, unknown, 10.0.0.2"], "10.0.0.2");
        check("10.0.0.1", &["1.1.1.1, "], "10.0.0.1");
        check("10.0.0.1", &[&"10.0.0.2, ".repeat(100_000)], "10.0.0.1");
    }

    #[test]
    fn forwarded_is_read_by_its_own_grammar() {
        let check = |values: &[&str], want| check(ForwardedBy::Forwarded, "10.0.0.1", values, want);
        check(&["for=1.1.1.1"], "1.1.1.1");
        check(
            &["for=6.6.6.6, For=\"[2001:db7::1]:4711\";proto=https;by=10.0.0.1"],
            "2001:db7::1",
        );
        check(&["proto=http; for = 1.1.1.1"], "1.1.1.1");
        check(&["for=1.1.1.1, for=_hidden"], "10.0.0.1");
        check(&["for=1.1.1.1, proto=http"], "10.0.0.1");
    }

    #[test]
    fn the_scheme_is_the_one_of_the_client() {
        let secure = |field, peer: &str, fields: &[(&str, &str)]| {
            let trusted = ["10.0.0.0/8".parse().unwrap()];
            let request = fields.iter().fold(
                Request::get("/").with_peer(SocketAddr::new(peer.parse().unwrap(), 1)),
                |request, (name, value)| request.with_header(name, value),
            );
            let said = Proxies::new(trusted.to_vec(), field).say(&request);
            said.and_then(|said| said.secure)
        };
        let one = |proto| {
            let fields = [("X-Forwarded-For", "1.1.1.1"), ("X-Forwarded-Proto", proto)];
            secure(ForwardedBy::XForwardedFor, "10.0.0.1", &fields)
        };
        assert_eq!(one("https"), Some(true));
        assert_eq!(one("HTTPS"), Some(true));
        assert_eq!(one("wss"), Some(true));
        assert_eq!(one("http"), Some(false));
        // The proxy appends what it sees to what it got.
        assert_eq!(one("https, http"), Some(false));
        let two = |proto| {
            let fields = [
                ("X-Forwarded-For", "1.1.1.1, 10.0.0.2"),
                ("X-Forwarded-Proto", proto),
            ];
            secure(ForwardedBy::XForwardedFor, "10.0.0.1", &fields)
        };
        assert_eq!(two("https, http"), Some(true));
        assert_eq!(two("https"), Some(true));
        assert_eq!(two("https, http, https"), Some(false));
        let none = [("X-Forwarded-For", "1.1.1.1")];
        assert_eq!(secure(ForwardedBy::XForwardedFor, "10.0.0.1", &none), None);
        let stranger = [("X-Forwarded-Proto", "https")];
        assert_eq!(
            secure(ForwardedBy::XForwardedFor, "9.9.9.9", &stranger),
            None
        );
        let forwarded = |value| {
            secure(
                ForwardedBy::Forwarded,
                "10.0.0.1",
                &[("Forwarded", value), ("X-Forwarded-Proto", "https")],
            )
        };
        assert_eq!(forwarded("for=1.1.1.1;proto=\"https\""), Some(true));
        assert_eq!(forwarded("for=1.1.1.1;proto=http"), Some(false));
        assert_eq!(forwarded("for=1.1.1.1"), None);
        assert_eq!(
            forwarded("for=1.1.1.1;proto=https, for=10.0.0.2;proto=http"),
            Some(true)
        );
    }

    #[test]
    fn the_chain_is_read_up_to_its_limit() {
        let chain = |hops: usize| format!("1.1.1.1{}", ", 10.0.0.2".repeat(hops));
        check(
            ForwardedBy::XForwardedFor,
            "10.0.0.1",
            &[&chain(MOST_HOPS - 1)],
            "1.1.1.1",
        );
        check(
            ForwardedBy::XForwardedFor,
            "10.0.0.1",
            &[&chain(MOST_HOPS)],
            "10.0.0.2",
        );
    }
}
