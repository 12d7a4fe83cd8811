//! How is a connection to another server opened?

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, getpeername, socket_with,
    sockopt,
};

use super::deadline::{Clock, WatchList};
use super::home::{self, Socket};
use super::stream::Stream;
use super::tls::client::Connector;
use super::tls::lane::Lane;
use super::transport::Plain;
use crate::message::{Deadline, Duplex};

/// Where another server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(address) => address.fmt(f),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Opens connections to other servers, each a socket of the calling coroutine's worker.
pub(crate) struct Dialer {
    list: Arc<WatchList>,
    lanes: Vec<Lane>,
}

impl Dialer {
    /// The one of this process, made with the first call.
    ///
    /// # Errors
    /// When there is no thread for its deadlines.
    pub(crate) fn get() -> io::Result<&'static Dialer> {
        static DIALER: OnceLock<Dialer> = OnceLock::new();
        static STARTING: Mutex<()> = Mutex::new(());
        if let Some(dialer) = DIALER.get() {
            return Ok(dialer);
        }
        let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dialer) = DIALER.get() {
            return Ok(dialer);
        }
        let list = WatchList::start(Arc::new(Clock::new()))?;
        let lanes = (0..home::workers()).map(|_| Lane::new()).collect();
        Ok(DIALER.get_or_init(|| Dialer { list, lanes }))
    }

    /// Where the clock of its connections' deadlines stands, in milliseconds.
    pub(crate) fn now(&self) -> u64 {
        self.list.clock().now()
    }

    /// As [`Dialer::now`], when no connection may have kept the clock going.
    pub(crate) fn present(&self) -> u64 {
        self.list.clock().tick()
    }

    /// Opens a connection, for `limit` milliseconds at most. To be called by a coroutine.
    ///
    /// # Errors
    /// `TimedOut` when it takes longer, and what the system says.
    pub(crate) fn dial(&self, place: &Place, limit: u64) -> io::Result<Plain> {
        let worker = home::current().ok_or_else(no_worker)?;
        let family = match place {
            Place::Tcp(address) if address.is_ipv4() => AddressFamily::INET,
            Place::Tcp(_) => AddressFamily::INET6,
            Place::Unix(_) => AddressFamily::UNIX,
        };
        let socket = stream_socket(family)?;
        if let Place::Tcp(_) = place {
            sockopt::set_tcp_nodelay(&socket, true)?;
            // A server that vanished without a word is noticed at last.
            sockopt::set_socket_keepalive(&socket, true)?;
        }
        let socket = home::move_to(socket, worker, home::workers())?;
        // Before it connects, so that the event which says that it has is not missed.
        let socket = Socket::at_home(worker, socket)?;
        let waker = socket.waker();
        let begun = match place {
            Place::Tcp(address) => connect(socket.get(), address),
            Place::Unix(path) => connect(socket.get(), &SocketAddrUnix::new(path)?),
        };
        let mut plain = Plain::new(socket, self.list.register(waker));
        match begun {
            Ok(()) => return Ok(plain),
            Err(Errno::INPROGRESS | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let until = Deadline::after(self.now(), limit);
        loop {
            plain.wait(until)?;
            sockopt::socket_error(plain.socket())??;
            match getpeername(plain.socket()) {
                Ok(_) => return Ok(plain),
                Err(Errno::NOTCONN) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Agrees on keys with the server at the other end, for `limit` milliseconds at most.
    ///
    /// # Errors
    /// `InvalidData` where that is not the one which was meant, and as [`Dialer::dial`].
    pub(crate) fn secure(
        &self,
        plain: Plain,
        connector: &Connector,
        host: &str,
        limit: u64,
    ) -> io::Result<Stream> {
        let worker = home::current().ok_or_else(no_worker)?;
        let until = Deadline::after(self.now(), limit);
        Stream::connect(plain, connector.begin(host)?, until, &self.lanes[worker])
    }
}

fn no_worker() -> io::Error {
    io::Error::other("connections to other servers are opened by the coroutines of a server")
}

fn stream_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(family, SocketType::STREAM, flags, None)?)
}
