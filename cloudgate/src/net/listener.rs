//! How does a port become one descriptor for each worker?

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::home;

/// How many connections may wait to be accepted; the system's own limit (`somaxconn`) also counts.
const BACKLOG: i32 = 4096;

/// Binds a port. It cannot be shared: a second server on it is an error, not a lottery.
///
/// # Errors
/// `AddrInUse`, `PermissionDenied` and whatever else the system says.
pub(crate) fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket_with(
        family,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    // Connections of an earlier run that linger in TIME_WAIT do not keep the port.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(TcpListener::from(socket))
}

/// One more descriptor of the same listening socket, at home on `worker`.
///
/// # Errors
/// When the process has no descriptor left.
pub(crate) fn for_worker(listener: &TcpListener, worker: usize) -> io::Result<TcpListener> {
    let copy: OwnedFd = listener.as_fd().try_clone_to_owned()?;
    Ok(TcpListener::from(home::move_to(
        copy,
        worker,
        home::workers(),
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_refused() {
        let first = bind_tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let error = bind_tcp(first.local_addr().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
