//! Which addresses belong to a network?

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network such as `10.0.0.0/8` or `2001:db8::/32`, or a single address.
///
/// ```
/// use cloudgate::Network;
/// let network: Network = "10.1.0.0/16".parse().unwrap();
/// assert!(network.contains("10.1.2.3".parse().unwrap()));
/// assert!(!network.contains("10.2.0.1".parse().unwrap()));
/// // Bits behind the length would be a mistake, so they are an error.
/// assert!("10.1.2.3/16".parse::<Network>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u32,
}

/// A text that is no network: it should have been an address, or an address, `/` and a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidNetwork;

impl fmt::Display for InvalidNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no network: it must be an address, or the first address of a network with its length, such as 10.0.0.0/8")
    }
}

impl std::error::Error for InvalidNetwork {}

impl Network {
    /// Whether the address is in it. IPv4 in an IPv6 address (`::ffff:10.0.0.1`) counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                first_bits(network.to_bits().into(), 32, self.length)
                    == first_bits(address.to_bits().into(), 32, self.length)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                first_bits(network.to_bits(), 128, self.length)
                    == first_bits(address.to_bits(), 128, self.length)
            }
            _ => false,
        }
    }
}

/// Whether the address is in one of the networks.
pub(crate) fn contains(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// The first `length` of `width` bits; none of them where `length` is 0.
fn first_bits(bits: u128, width: u32, length: u32) -> u128 {
    bits.checked_shr(width - length).unwrap_or(0)
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Network {
        let address = address.to_canonical();
        Network {
            address,
            length: width(address),
        }
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Network, InvalidNetwork> {
        let Some((address, length)) = text.split_once('/') else {
            return text
                .parse()
                .map(|address: IpAddr| Network::from(address))
                .map_err(|_| InvalidNetwork);
        };
        let address: IpAddr = address.parse().map_err(|_| InvalidNetwork)?;
        let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
        let length: u32 = length.parse().map_err(|_| InvalidNetwork)?;
        let width = width(address);
        let bits = match address {
            IpAddr::V4(address) => address.to_bits().into(),
            IpAddr::V6(address) => address.to_bits(),
        };
        // An IPv4 network in IPv6 notation would match nothing, for such addresses count as IPv4.
        let mapped = address.to_canonical() != address;
        if !digits || length > width || mapped {
            return Err(InvalidNetwork);
        }
        let rest = bits & !(u128::MAX.checked_shl(width - length).unwrap_or(0));
        if rest != 0 {
            return Err(InvalidNetwork);
        }
        Ok(Network { address, length })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.length == width(self.address) {
            self.address.fmt(f)
        } else {
            write!(f, "{}/{}", self.address, self.length)
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(network: &str, inside: &[&str], outside: &[&str]) {
        let network: Network = network.parse().unwrap();
        assert_eq!(network.to_string().parse(), Ok(network));
        for address in inside {
            assert!(network.contains(address.parse().unwrap()), "{address}");
        }
        for address in outside {
            assert!(!network.contains(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn networks_hold_the_addresses_with_their_first_bits() {
        check(
            "10.0.0.0/8",
            &["10.0.0.0", "10.255.255.255", "::ffff:10.1.1.1"],
            &["9.255.255.255", "11.0.0.0", "::10.0.0.1", "::1"],
        );
        check("192.0.2.128/25", &["192.0.2.128"], &["192.0.2.127"]);
        check("192.0.2.7", &["192.0.2.7"], &["192.0.2.6", "192.0.2.8"]);
        check("192.0.2.7/32", &["192.0.2.7"], &["192.0.2.6"]);
        check("0.0.0.0/0", &["0.0.0.0", "255.255.255.255"], &["::", "::1"]);
        check("::/0", &["::", "ffff::"], &["1.2.3.4", "::ffff:1.2.3.4"]);
        check("2001:db8::/33", &["2001:db8:7fff::1"], &["2001:db8:8000::"]);
        check("::1", &["::1"], &["::2", "127.0.0.1"]);
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for text in [
            "",
            "/",
            "/8",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
            "10.0.0.1/8",
            "::/129",
            "::1/0",
            "::ffff:10.0.0.0/104",
            "10.0.0.0/ 8",
            "localhost",
            "10.0.0.0/99999999999",
        ] {
            assert_eq!(text.parse::<Network>(), Err(InvalidNetwork), "{text}");
        }
    }
}
