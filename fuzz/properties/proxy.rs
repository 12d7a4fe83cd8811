//! Does every PROXY protocol header name one address, however it arrives?

use std::net::SocketAddr;

use cloudgate::__fuzz;

/// The longest header with room for the longest of its parts.
const LONGEST: usize = 4200;

/// A header names the same address in whatever pieces it comes, does not depend on what follows, and
/// an address written as a line of version 1 is that address.
pub fn proxy(input: &[u8]) {
    let whole = __fuzz::proxy(input);
    for pieces in super::cuts(input) {
        let (mut sizes, mut size, mut end) = (pieces.iter(), 1, 0);
        let mut arrived = Ok(None);
        while arrived == Ok(None) && end < input.len() {
            size = sizes.next().copied().unwrap_or(size);
            end = (end + size).min(input.len());
            arrived = __fuzz::proxy(&input[..end]);
        }
        assert_eq!(arrived.is_err(), whole.is_err(), "the pieces decide");
        if whole.is_ok() {
            assert_eq!(arrived, whole, "the pieces decide");
        }
    }
    if let Ok(Some((length, address))) = whole {
        assert!(length <= input.len() && length <= LONGEST);
        assert_eq!(__fuzz::proxy(&input[..length]), Ok(Some((length, address))));
        if let Some(address) = address {
            written_again(address);
        }
    }
}

fn written_again(address: SocketAddr) {
    let (family, other) = match address {
        SocketAddr::V4(_) => ("TCP4", "192.0.2.1"),
        SocketAddr::V6(_) => ("TCP6", "2001:db8::1"),
    };
    let (ip, port) = (address.ip(), address.port());
    let line = format!("PROXY {family} {ip} {other} {port} 443\r\n");
    assert_eq!(
        __fuzz::proxy(line.as_bytes()),
        Ok(Some((line.len(), Some(address)))),
        "{line}"
    );
}
