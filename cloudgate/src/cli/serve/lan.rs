//! Under which addresses do others on the network see this machine?

use std::net::{IpAddr, UdpSocket};

/// Documentation addresses (RFC 5737, RFC 3849): nobody has them, so the way there is the usual one.
const FAR_AWAY: [(&str, &str); 2] = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];

/// The addresses that packets to far away would bear, if `bound` stands for all addresses; else none.
///
/// Connecting a UDP socket sends nothing: the system only looks up the way.
pub(super) fn addresses(bound: IpAddr) -> Vec<IpAddr> {
    if !bound.is_unspecified() {
        return Vec::new();
    }
    // Who listens on all addresses of version 6 is reached by version 4 as well, but not the other way.
    let versions = if bound.is_ipv6() { 2 } else { 1 };
    FAR_AWAY[..versions]
        .iter()
        .filter_map(|(here, there)| {
            let socket = UdpSocket::bind(here).ok()?;
            socket.connect(there).ok()?;
            socket.local_addr().ok()
        })
        .map(|address| address.ip())
        .filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_listens_for_all_hears_of_other_addresses() {
        for bound in ["127.0.0.1", "::1", "192.0.2.7"] {
            assert_eq!(addresses(bound.parse().unwrap()), [] as [IpAddr; 0]);
        }
        // How many there are depends on the machine.
        for bound in ["0.0.0.0", "::"] {
            let found = addresses(bound.parse().unwrap());
            assert!(
                found
                    .iter()
                    .all(|ip| !ip.is_loopback() && !ip.is_unspecified()),
                "{found:?}"
            );
        }
    }
}
