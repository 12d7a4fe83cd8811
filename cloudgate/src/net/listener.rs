//! How does an address, or an inherited descriptor, become a socket that connections come from?

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with, bind,
    getsockname, listen, socket_with, sockopt,
};

use super::home;
use super::unix_socket::{self, SocketFile, UnixSocket};

/// How many connections may wait to be accepted; the system's own limit (`somaxconn`) also counts.
const BACKLOG: i32 = 4096;

/// The address of a peer that has none, because it came by a Unix socket. It is nobody's real
/// address, so no list of trusted ones holds it by accident, as it might hold 127.0.0.1.
pub(crate) const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Where a server listens.
///
/// ```
/// use cloudgate::{Address, App, Server};
/// let server = Server::bind("127.0.0.1:0")?.serve(App::new().get("/", || "ok"))?;
/// let [Address::Tcp(address)] = server.addrs() else { panic!("one TCP address") };
/// assert_eq!(*address, server.addr());
/// # Ok::<(), cloudgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// An address and port of TCP.
    Tcp(SocketAddr),
    /// The same, where TLS is spoken.
    Tls(SocketAddr),
    /// A Unix socket: its path, or `@name` for one in Linux's abstract name space.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) | Address::Tls(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A listening socket; dropping it closes this descriptor, and removes the file of a Unix socket
/// that was made here.
#[derive(Debug)]
pub(crate) struct Listener {
    // Before the socket: as long as that is open, no other file has its inode number.
    file: Option<SocketFile>,
    source: Source,
    address: Address,
}

impl Listener {
    /// Binds a port. It cannot be shared: a second server on it is an error, not a lottery.
    ///
    /// `[::]` takes the connections of IPv4 too wherever the system can do that, whatever
    /// `net.ipv6.bindv6only` says; any other address of IPv6 takes IPv6 alone.
    ///
    /// # Errors
    /// `AddrInUse`, `PermissionDenied` and whatever else the system says.
    pub(crate) fn tcp(address: SocketAddr) -> io::Result<Listener> {
        let family = if address.is_ipv4() {
            AddressFamily::INET
        } else {
            AddressFamily::INET6
        };
        let socket = stream_socket(family)?;
        // Connections of an earlier run that linger in TIME_WAIT do not keep the port.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if address.is_ipv6() {
            let both = address.ip().is_unspecified();
            let set = sockopt::set_ipv6_v6only(&socket, !both);
            // A system without dual-stack sockets serves IPv6 alone.
            if !both {
                set?;
            }
        }
        bind(&socket, &address)?;
        listen(&socket, BACKLOG)?;
        Listener::of(socket)
    }

    /// Binds a Unix socket; a file that an earlier server has left is replaced.
    ///
    /// # Errors
    /// `AddrInUse` when a server listens there, `AlreadyExists` when the path is something other
    /// than a socket, and whatever else the system says.
    pub(crate) fn unix(place: &UnixSocket) -> io::Result<Listener> {
        let _turn = unix_socket::turn(place.path());
        unix_socket::make_way(place.path())?;
        let socket = stream_socket(AddressFamily::UNIX)?;
        bind(&socket, &SocketAddrUnix::new(place.path())?)?;
        // From here on the file is removed should anything fail; nobody can connect until `listen`.
        let file = SocketFile::claim(place)?;
        listen(&socket, BACKLOG)?;
        Ok(Listener {
            file: Some(file),
            source: Source {
                socket,
                family: Family::Unix,
            },
            address: Address::Unix(place.path().to_owned()),
        })
    }

    /// Takes a socket that another program made and that listens already.
    ///
    /// # Errors
    /// `InvalidInput` when it is no listening stream socket of TCP or Unix.
    pub(crate) fn inherited(socket: OwnedFd) -> io::Result<Listener> {
        if sockopt::socket_type(&socket)? != SocketType::STREAM
            || !sockopt::socket_acceptconn(&socket)?
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        rustix::io::ioctl_fionbio(&socket, true)?;
        Listener::of(socket)
    }

    fn of(socket: OwnedFd) -> io::Result<Listener> {
        let name = getsockname(&socket)?;
        let (family, address) = if name.address_family() == AddressFamily::UNIX {
            (Family::Unix, Address::Unix(path_of(name)?))
        } else {
            (Family::Tcp, Address::Tcp(name.try_into()?))
        };
        Ok(Listener {
            file: None,
            source: Source { socket, family },
            address,
        })
    }

    /// The same listener, whose connections speak TLS.
    pub(crate) fn secure(mut self) -> Listener {
        if let Address::Tcp(address) = self.address {
            self.address = Address::Tls(address);
        }
        self
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// One more descriptor of the same listening socket, at home on `worker`.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub(crate) fn for_worker(&self, worker: usize) -> io::Result<Source> {
        let copy = self.source.socket.try_clone()?;
        Ok(Source {
            socket: home::move_to(copy, worker, home::workers())?,
            family: self.source.family,
        })
    }

    /// The same listening socket for another server, in plain.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    #[cfg(feature = "cli")]
    pub(crate) fn share(&self) -> io::Result<Listener> {
        Listener::of(self.source.socket.try_clone()?)
    }

    /// Takes out the file to be removed when the server ends.
    pub(crate) fn take_file(&mut self) -> Option<SocketFile> {
        self.file.take()
    }
}

fn stream_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(family, SocketType::STREAM, flags, None)
}

fn path_of(name: SocketAddrAny) -> Result<PathBuf, Errno> {
    let name = SocketAddrUnix::try_from(name)?;
    let text = match (name.path_bytes(), name.abstract_name()) {
        (Some(path), _) => String::from_utf8_lossy(path).into_owned(),
        (None, Some(name)) => format!("@{}", String::from_utf8_lossy(name)),
        (None, None) => String::new(),
    };
    Ok(PathBuf::from(text))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Tcp,
    Unix,
}

/// What connections are accepted from.
#[derive(Debug)]
pub(crate) struct Source {
    socket: OwnedFd,
    family: Family,
}

impl Source {
    /// Takes the next connection, with its peer's address: an IPv4 address is one, whichever socket
    /// it came by, and a Unix peer has [`NO_ADDRESS`].
    ///
    /// # Errors
    /// `AGAIN` when there is none, and whatever else the system says.
    pub(crate) fn accept(&self) -> Result<(OwnedFd, SocketAddr), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (connection, peer) = acceptfrom_with(&self.socket, flags)?;
        if self.family == Family::Unix {
            return Ok((connection, NO_ADDRESS));
        }
        let peer = peer
            .and_then(|peer| SocketAddr::try_from(peer).ok())
            .ok_or(Errno::CONNABORTED)?;
        // Answers are gathered before they are written, so there is nothing to wait for.
        sockopt::set_tcp_nodelay(&connection, true).map_err(|_| Errno::CONNABORTED)?;
        Ok((
            connection,
            SocketAddr::new(peer.ip().to_canonical(), peer.port()),
        ))
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Source {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixStream;

    fn tcp_address(listener: &Listener) -> SocketAddr {
        match listener.address() {
            Address::Tcp(address) | Address::Tls(address) => *address,
            Address::Unix(path) => panic!("a Unix socket: {path:?}"),
        }
    }

    #[test]
    fn a_port_that_is_taken_is_refused() {
        let first = Listener::tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let error = Listener::tcp(tcp_address(&first)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn the_unspecified_address_of_ipv6_takes_both_families_and_no_other_does() {
        let Ok(both) = Listener::tcp("[::]:0".parse().unwrap()) else {
            return; // This system has no IPv6.
        };
        let v4 = SocketAddr::from(([127, 0, 0, 1], tcp_address(&both).port()));
        let client = TcpStream::connect(v4).unwrap();
        let (_, peer) = both.source.accept().unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        assert!(!sockopt::ipv6_v6only(&both.source).unwrap());
        let one = Listener::tcp("[::1]:0".parse().unwrap()).unwrap();
        assert!(sockopt::ipv6_v6only(&one.source).unwrap());
    }

    #[test]
    fn only_a_listening_stream_socket_is_inherited() {
        let listening = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listening.local_addr().unwrap();
        let listener = Listener::inherited(listening.into()).unwrap();
        assert_eq!(listener.address(), &Address::Tcp(address));
        assert_eq!(listener.source.accept().unwrap_err(), Errno::AGAIN);

        let (pair, _other) = UnixStream::pair().unwrap();
        for wrong in [
            OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap()),
            pair.into(),
            std::fs::File::open("/dev/null").unwrap().into(),
        ] {
            assert!(Listener::inherited(wrong).is_err());
        }
    }
}
