//! From which addresses may requests come?

use std::net::IpAddr;

use http::StatusCode;

use crate::message::network::{Network, contains};
use crate::message::{Middleware, Next, Request, Response};

/// Lets requests in by the address that they come from, and answers the others with 403.
///
/// ```
/// use cloudgate::{App, IpFilter, Network, Request};
///
/// let office: Network = "192.0.2.0/24".parse().unwrap();
/// let printer: Network = "192.0.2.99".parse().unwrap();
/// let app = App::new()
///     .get("/", || "hello")
///     .wrap(IpFilter::new().allow(office).deny(printer));
///
/// let from = |address: &str| {
///     let peer = format!("{address}:50000").parse().unwrap();
///     app.call(&mut Request::get("/").with_peer(peer)).status()
/// };
/// assert_eq!(from("192.0.2.7"), 200);
/// assert_eq!(from("192.0.2.99"), 403);
/// assert_eq!(from("203.0.113.1"), 403);
/// ```
///
/// - An address of a denied network gets 403, also one that is in an allowed network.
/// - Where any network is allowed, every address outside of these gets 403. Where none is, everybody gets in who is not denied.
/// - IPv4 in an IPv6 address (`::ffff:192.0.2.7`) counts as IPv4.
/// - The address is [`Request::client`]. Behind a proxy that is the proxy's own, unless it speaks the PROXY protocol or the
///   application trusts it ([`App::trust_proxies`](crate::App::trust_proxies)): what a stranger writes into a field counts for nothing.
/// - A peer on a Unix socket has no address and is shown as `0.0.0.0`. So a list of allowed networks keeps it out, unless
///   `0.0.0.0` is in one of them.
///
/// Put it behind [`AccessLog`](crate::AccessLog), which then has a line for who was refused, and in front of what costs more. To limit
/// how often some may ask, and others not at all, [`RateLimit`](crate::RateLimit) has such lists too.
#[derive(Clone, Debug, Default)]
pub struct IpFilter {
    allowed: Vec<Network>,
    denied: Vec<Network>,
}

impl IpFilter {
    /// Lets everybody in, as long as nothing else is said.
    pub const fn new() -> IpFilter {
        IpFilter {
            allowed: Vec::new(),
            denied: Vec::new(),
        }
    }

    /// Lets this network in, and others no more unless they are allowed too.
    #[must_use]
    pub fn allow(mut self, network: impl Into<Network>) -> IpFilter {
        self.allowed.push(network.into());
        self
    }

    /// Keeps this network out, whatever is allowed.
    #[must_use]
    pub fn deny(mut self, network: impl Into<Network>) -> IpFilter {
        self.denied.push(network.into());
        self
    }

    /// Whether a request from this address gets in.
    ///
    /// ```
    /// use cloudgate::{IpFilter, Network};
    /// let loopback: Network = "127.0.0.0/8".parse().unwrap();
    /// let filter = IpFilter::new().allow(loopback);
    /// assert!(filter.lets_in("::ffff:127.0.0.1".parse().unwrap()));
    /// assert!(!filter.lets_in("::1".parse().unwrap()));
    /// ```
    pub fn lets_in(&self, address: IpAddr) -> bool {
        !contains(&self.denied, address)
            && (self.allowed.is_empty() || contains(&self.allowed, address))
    }
}

impl Middleware for IpFilter {
    fn handle(&self, request: &mut Request<'_>, next: Next<'_>) -> Response {
        if self.lets_in(request.client()) {
            next.run(request)
        } else {
            Response::error(StatusCode::FORBIDDEN)
        }
    }

    fn name(&self) -> &'static str {
        "cloudgate::IpFilter"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(allowed: &[&str], denied: &[&str], inside: &[&str], outside: &[&str]) {
        let network = |text: &&str| text.parse::<Network>().unwrap();
        let filter = allowed
            .iter()
            .map(network)
            .fold(IpFilter::new(), IpFilter::allow);
        let filter = denied.iter().map(network).fold(filter, IpFilter::deny);
        let end = |_: &mut Request<'_>| Response::html("inside");
        for (addresses, status) in [(inside, 200), (outside, 403)] {
            for address in addresses {
                let peer = (address.parse::<IpAddr>().unwrap(), 1).into();
                let mut request = Request::get("/").with_peer(peer);
                let answer = filter.handle(&mut request, Next::new(&[], &end));
                assert_eq!(answer.status(), status, "{address}");
            }
        }
    }

    #[test]
    fn deny_wins_and_an_allow_list_keeps_everybody_else_out() {
        let anybody = &["0.0.0.0", "127.0.0.1", "192.0.2.7", "::1", "2001:db8::7"];
        check(&[], &[], anybody, &[]);
        check(
            &[],
            &["192.0.2.0/24", "2001:db8::/32"],
            &["192.0.3.1", "::1", "2001:db9::"],
            &["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::7"],
        );
        check(
            &["192.0.2.0/24", "10.0.0.1"],
            &["192.0.2.7"],
            &["192.0.2.6", "::ffff:192.0.2.8", "10.0.0.1"],
            &["192.0.2.7", "::ffff:192.0.2.7", "10.0.0.2", "::1"],
        );
        // The same network on both lists.
        check(&["::/0"], &["::/0"], &[], &["::1", "127.0.0.1"]);
        check(&["0.0.0.0/0"], &[], &["127.0.0.1"], &["::1"]);
    }

    #[test]
    fn a_peer_without_an_address_is_on_no_list_by_accident() {
        // That is how a peer on a Unix socket is shown.
        check(&["127.0.0.0/8", "::1"], &[], &[], &["0.0.0.0"]);
        check(
            &["127.0.0.0/8", "0.0.0.0"],
            &[],
            &["0.0.0.0"],
            &["10.0.0.1"],
        );
    }

    #[test]
    fn the_client_counts_that_a_trusted_proxy_names() {
        let filter = IpFilter::new().deny("192.0.2.7".parse::<Network>().unwrap());
        let end = |_: &mut Request<'_>| Response::html("inside");
        let mut request = Request::get("/").with_header("X-Forwarded-For", "192.0.2.7");
        let answer = filter.handle(&mut request, Next::new(&[], &end));
        assert_eq!(answer.status(), 200);
        request.client = Some("192.0.2.7".parse().unwrap());
        let answer = filter.handle(&mut request, Next::new(&[], &end));
        assert_eq!(answer.status(), 403);
    }
}
