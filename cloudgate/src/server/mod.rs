//! How does a service get onto a port?
//!
//! ```text
//!  accept    a coroutine a worker takes connections; each gets a coroutine, is parked, and woken
//!  seats     who may come in, and which worker takes it
//!  inherited sockets that another program has made
//!  proxied   the client that a trusted proxy speaks for     network addresses with the same first bits
//!  conn      the life of one connection
//!  body      a request body as the handler reads it     respond  a response as the client gets it
//!  send_file a piece of a file as the client gets it
//!  capacity  how many connections fit
//!  settings  limits and timeouts                        clock    the Date field
//!  lease     the buffers of a request in flight         upgraded the life of one that speaks another protocol
//!  line      what is left of one that nobody serves     metrics  what those want to know who watch
//! ```

mod accept;
mod body;
mod capacity;
mod clock;
mod conn;
mod inherited;
mod lease;
mod line;
mod metrics;
mod proxied;
mod respond;
mod seats;
mod send_file;
mod settings;
mod upgraded;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::error::{Error, Result};
use crate::message::Service;
use crate::net::deadline::{Clock, WatchList};
use crate::net::home::{self, Waker};
use crate::net::listener::{Address, Listener, NO_ADDRESS};
use crate::net::park::Lot;
use crate::net::tls::identity_error::IdentityError;
use crate::net::tls::keeper::Keeper;
use crate::net::tls::lane::Lane;
use crate::net::tls::live::{CertificateStatus, Live};
use crate::net::tls::serving::Tls;
use crate::net::unix_socket::{SocketFile, UnixSocket};
use conn::Surroundings;
use settings::Rules;
pub use settings::{ProxyProtocol, Settings, Timeouts};

/// How long [`Running::shutdown`] waits for connections that it has cut.
const CUT_WAIT: Duration = Duration::from_secs(1);

/// How often [`Running::shutdown`] looks whether the last connection is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Ports and Unix sockets that are bound and not served yet.
///
/// ```
/// use cloudgate::{App, Server};
/// use std::time::{Duration, Instant};
/// let server = Server::bind("127.0.0.1:0")?.serve(App::new().get("/health", || "ok"))?;
/// let address = server.addr();
/// // … requests to `address` are answered by other threads …
/// let cut = server.shutdown(Duration::from_secs(10));
/// assert_eq!(cut, 0);
/// # Ok::<(), cloudgate::Error>(())
/// ```
///
/// One server can listen in several places:
///
/// ```
/// use cloudgate::{App, Server};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("app.sock");
/// let server = Server::bind("127.0.0.1:0")?
///     .and_bind("127.0.0.2:0")?
///     .and_bind_unix(&path)?
///     .serve(App::new().get("/", || "ok"))?;
/// assert_eq!(server.addrs().len(), 3);
/// # Ok::<(), cloudgate::Error>(())
/// ```
#[derive(Debug)]
pub struct Server {
    /// Never empty; with what TLS takes, where it is spoken.
    listeners: Vec<(Listener, Option<Arc<Live>>)>,
    settings: Settings,
}

impl Server {
    /// Binds the first address that `address` stands for; port 0 takes any free port.
    ///
    /// `[::]` takes the connections of IPv4 as well, so that no `0.0.0.0` with the same port can be
    /// bound beside it, and an IPv4 peer has its IPv4 address; every other IPv6 address takes IPv6 alone.
    ///
    /// # Errors
    /// [`Error::Bind`] when the port is taken or may not be used, [`Error::Setting`] when the
    /// address cannot be understood.
    pub fn bind(address: impl ToSocketAddrs + fmt::Debug) -> Result<Server> {
        Ok(Server::on(vec![tcp(address)?]))
    }

    /// Binds one more address for the same server.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub fn and_bind(mut self, address: impl ToSocketAddrs + fmt::Debug) -> Result<Server> {
        self.listeners.push((tcp(address)?, None));
        Ok(self)
    }

    /// As [`Server::bind`], with TLS: as an [`Identity`](crate::Identity), or as [`Tls`] says.
    ///
    /// # Errors
    /// As [`Server::bind`], and [`Error::Identity`] for what cannot be used.
    pub fn bind_tls(
        address: impl ToSocketAddrs + fmt::Debug,
        tls: impl Into<Tls>,
    ) -> Result<Server> {
        Server::on(Vec::new()).and_bind_tls(address, tls)
    }

    /// Binds one more address for the same server, with TLS.
    ///
    /// # Errors
    /// As [`Server::bind_tls`].
    pub fn and_bind_tls(
        mut self,
        address: impl ToSocketAddrs + fmt::Debug,
        tls: impl Into<Tls>,
    ) -> Result<Server> {
        let live = Live::new(tls.into())?;
        self.listeners.push((tcp(address)?.secure(), Some(live)));
        Ok(self)
    }

    /// Nowhere yet: [`Server::serve`] wants one listener at least.
    #[cfg(feature = "cli")]
    pub(crate) fn nowhere() -> Server {
        Server::on(Vec::new())
    }

    /// Listens on a socket that listens already.
    ///
    /// # Errors
    /// [`Error::Identity`] for what cannot be used.
    #[cfg(feature = "cli")]
    pub(crate) fn and_listen(mut self, listener: Listener, tls: Option<Tls>) -> Result<Server> {
        let listener = match tls {
            Some(tls) => (listener.secure(), Some(Live::new(tls)?)),
            None => (listener, None),
        };
        self.listeners.push(listener);
        Ok(self)
    }

    /// Binds a Unix socket, which the owner and the group of this process may connect to; see
    /// [`UnixSocket::with_mode`] for others.
    ///
    /// A socket that an earlier server has left there is replaced. When the server ends, the file is
    /// removed if it is still the same. [`Request::peer`](crate::Request::peer) is `0.0.0.0:0` for
    /// those who come by it.
    ///
    /// ```
    /// use cloudgate::Server;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("app.sock");
    /// let server = Server::bind_unix(&path)?;
    /// let error = Server::bind_unix(&path).unwrap_err();
    /// assert!(error.to_string().contains("is in use"));
    /// # Ok::<(), cloudgate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BindUnix`] when another server listens there, or the path is something other than a
    /// socket, or the socket cannot be made.
    pub fn bind_unix(socket: impl Into<UnixSocket>) -> Result<Server> {
        Ok(Server::on(vec![unix(&socket.into())?]))
    }

    /// Binds a Unix socket for the same server.
    ///
    /// # Errors
    /// As [`Server::bind_unix`].
    pub fn and_bind_unix(mut self, socket: impl Into<UnixSocket>) -> Result<Server> {
        self.listeners.push((unix(&socket.into())?, None));
        Ok(self)
    }

    /// Takes all sockets that this program was given when it was started, by systemd's socket
    /// activation (`LISTEN_FDS`, `LISTEN_PID`) or the like; `None` where there are none.
    ///
    /// They can be taken once, and the variables are removed for the sake of child processes: call it
    /// first thing in `main`, while there is no other thread that reads the environment.
    ///
    /// ```
    /// use cloudgate::Server;
    /// let server = match Server::from_environment()? {
    ///     Some(server) => server,
    ///     None => Server::bind("127.0.0.1:0")?,
    /// };
    /// # Ok::<(), cloudgate::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Setting`] when the variables are malformed, or one of the descriptors is no listening
    /// stream socket.
    pub fn from_environment() -> Result<Option<Server>> {
        let inherited: Vec<_> = inherited::take()?
            .into_iter()
            .map(|(_, listener)| listener)
            .collect();
        Ok((!inherited.is_empty()).then(|| Server::on(inherited)))
    }

    /// As [`Server::from_environment`], with one server for each name that a socket unit gives its
    /// sockets by `FileDescriptorName=`; it is the unit's name by default, and `unknown` where the
    /// program that passes them gives no names (`LISTEN_FDNAMES`).
    ///
    /// ```
    /// use cloudgate::{App, Server};
    /// let mut inherited = Server::from_environment_by_name()?;
    /// if let Some(admin) = inherited.remove("admin") {
    ///     let running = admin.serve(App::new().get("/", || "for the few"))?;
    ///     # drop(running);
    /// }
    /// # Ok::<(), cloudgate::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Server::from_environment`].
    pub fn from_environment_by_name() -> Result<BTreeMap<String, Server>> {
        let mut by_name = BTreeMap::new();
        for (name, listener) in inherited::take()? {
            by_name
                .entry(name)
                .or_insert_with(|| Server::on(Vec::new()))
                .listeners
                .push((listener, None));
        }
        Ok(by_name)
    }

    fn on(listeners: Vec<Listener>) -> Server {
        Server {
            listeners: listeners
                .into_iter()
                .map(|listener| (listener, None))
                .collect(),
            settings: Settings::default(),
        }
    }

    /// The same server with other limits.
    pub fn with_settings(mut self, settings: Settings) -> Server {
        self.settings = settings;
        self
    }

    /// The first address of TCP that is bound; `0.0.0.0:0` when there is none.
    pub fn addr(&self) -> SocketAddr {
        first_tcp(
            self.listeners
                .iter()
                .map(|(listener, _)| listener.address()),
        )
    }

    /// Everything that is bound, in the order in which it was.
    pub fn addrs(&self) -> impl Iterator<Item = &Address> {
        self.listeners
            .iter()
            .map(|(listener, _)| listener.address())
    }

    /// Serves `service` on the process's workers, which start with the first server, and returns
    /// at once.
    ///
    /// # Errors
    /// What [`Service::start`] says, or [`Error::System`] when threads or descriptors are lacking.
    pub fn serve(self, service: impl Service) -> Result<Running> {
        service.start()?;
        let system = |wanted| move |source| Error::System { wanted, source };
        let workers = home::start(self.settings.workers)
            .map_err(system("worker threads"))?
            .workers;
        let fits = capacity::of_this_process();
        let capacity = self.settings.max_connections.unwrap_or(fits.connections);
        let per_peer = self.settings.max_connections_per_ip;
        let clock = Arc::new(Clock::new());
        let list = WatchList::start(Arc::clone(&clock)).map_err(system("thread for deadlines"))?;
        let lot = Lot::start(Arc::clone(&clock), accept::give_coroutine)
            .map_err(system("thread for idle connections"))?;
        let tls: Vec<_> = self
            .listeners
            .iter()
            .filter_map(|(_, tls)| tls.clone())
            .collect();
        let shared = Arc::new(Shared {
            around: Surroundings {
                service: Box::new(service),
                rules: Rules::new(&self.settings),
                clock,
                stopping: AtomicBool::new(false),
                active: AtomicUsize::new(0),
                kept: AtomicUsize::new(0),
                // The rest is for those that come and go, or nobody would be answered any more.
                most_kept: fits.active - fits.active / 4,
            },
            list,
            lot,
            seats: seats::Seats::new(workers, capacity, fits.active, per_peer),
            proxies: self.settings.proxy_protocol.clone(),
            closed: AtomicBool::new(false),
            acceptors: AtomicUsize::new(0),
            tls,
            lanes: (0..workers).map(|_| Lane::new()).collect(),
        });
        metrics::note(&shared);
        let addresses = self.addrs().cloned().collect();
        let keeper = match shared.tls.is_empty() {
            true => None,
            false => {
                let keeper = Keeper::start(shared.tls.clone());
                Some(keeper.map_err(system("thread for certificates"))?)
            }
        };
        let mut running = Running {
            shared,
            addresses,
            _keeper: keeper,
            files: Vec::new(),
            acceptors: Vec::new(),
            listeners: Vec::new(),
            workers,
            ended: false,
        };
        for (mut listener, tls) in self.listeners {
            for worker in 0..workers {
                let waker = accept::start(&running.shared, &listener, tls.as_ref(), worker)
                    .map_err(system("descriptor to accept connections with"))?;
                running.acceptors.push(waker);
            }
            running.files.extend(listener.take_file());
            running.listeners.push(listener);
        }
        Ok(running)
    }
}

fn tcp(address: impl ToSocketAddrs + fmt::Debug) -> Result<Listener> {
    let not_understood = || Error::Setting {
        place: "the address to bind".to_owned(),
        value: format!("{address:?}"),
        wanted: "a host and port such as 127.0.0.1:3000 that can be resolved",
    };
    let address = address
        .to_socket_addrs()
        .ok()
        .and_then(|mut all| all.next())
        .ok_or_else(not_understood)?;
    Listener::tcp(address).map_err(|source| Error::Bind { address, source })
}

fn unix(socket: &UnixSocket) -> Result<Listener> {
    Listener::unix(socket).map_err(|source| Error::BindUnix {
        path: socket.path().to_owned(),
        source,
    })
}

fn first_tcp<'a>(mut addresses: impl Iterator<Item = &'a Address>) -> SocketAddr {
    let first = addresses.find_map(|address| match address {
        Address::Tcp(address) | Address::Tls(address) => Some(*address),
        Address::Unix(_) => None,
    });
    first.unwrap_or(NO_ADDRESS)
}

/// What the acceptors and connections of one server share.
struct Shared {
    around: Surroundings,
    list: Arc<WatchList>,
    lot: Arc<Lot<accept::Guest>>,
    seats: seats::Seats,
    proxies: Option<ProxyProtocol>,
    /// Whether nobody is let in any more, although those who are go on.
    closed: AtomicBool,
    /// How many acceptors still listen.
    acceptors: AtomicUsize,
    /// TLS, for each port where it is spoken.
    tls: Vec<Arc<Live>>,
    /// Where handshakes of each worker wait for their turn.
    lanes: Vec<Lane>,
}

/// A server that runs. Dropping it ends it at once, with what it was doing.
pub struct Running {
    shared: Arc<Shared>,
    addresses: Vec<Address>,
    /// Looks after the certificates.
    _keeper: Option<Keeper>,
    /// The files of Unix sockets that were made here.
    files: Vec<SocketFile>,
    acceptors: Vec<Waker>,
    /// Kept so that another server can take them over.
    listeners: Vec<Listener>,
    workers: usize,
    ended: bool,
}

impl Running {
    /// The first address of TCP that is served; `0.0.0.0:0` when there are Unix sockets alone.
    pub fn addr(&self) -> SocketAddr {
        first_tcp(self.addresses.iter())
    }

    /// Everything that is served, in the order in which it was bound.
    pub fn addrs(&self) -> &[Address] {
        &self.addresses
    }

    /// The listening socket at this address for another server: who connects meanwhile is served by one of them.
    #[cfg(feature = "cli")]
    pub(crate) fn share(&self, wanted: SocketAddr) -> Option<Listener> {
        let mut all = self.listeners.iter();
        let found = all.find(|listener| {
            matches!(listener.address(), Address::Tcp(at) | Address::Tls(at) if *at == wanted)
        });
        found.and_then(|listener| listener.share().ok())
    }

    /// Takes no new connections, and gives its ports and sockets up. Those that are there go on as long as they like.
    #[cfg(feature = "cli")]
    pub(crate) fn stop_listening(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.files.clear();
        self.listeners.clear();
        for acceptor in &self.acceptors {
            acceptor.wake();
        }
        wait_until(CUT_WAIT, || {
            self.shared.acceptors.load(Ordering::SeqCst) == 0
        });
    }

    /// How many worker threads serve it.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The most connections it takes at once.
    pub fn max_connections(&self) -> usize {
        self.shared.seats.capacity()
    }

    /// How many connections there are now.
    pub fn connections(&self) -> usize {
        self.shared.seats.taken()
    }

    /// How many of them are parked: idle, without a coroutine.
    pub fn parked(&self) -> usize {
        self.shared.lot.len()
    }

    /// The certificates that are shown to those who connect by TLS.
    pub fn certificates(&self) -> Vec<CertificateStatus> {
        self.shared
            .tls
            .iter()
            .flat_map(|live| live.certificates())
            .collect()
    }

    /// Reads certificates, keys and lists of revoked ones anew from the files that they came from, now and not when it is
    /// seen that they have changed. Connections that are open go on.
    ///
    /// To be called from a plain thread, for it reads from the disk.
    ///
    /// # Errors
    /// [`IdentityError`] for the first that cannot be used; what was there in its place stays.
    pub fn reload_tls(&self) -> std::result::Result<(), IdentityError> {
        let now = SystemTime::now();
        // A fault of one port is none of the others.
        let reloaded: Vec<_> = self
            .shared
            .tls
            .iter()
            .map(|live| live.reload(now))
            .collect();
        reloaded.into_iter().collect()
    }

    /// Ends the server: accepts nothing more, closes idle connections, lets active ones finish for
    /// up to `grace`, then cuts the rest. Says how many were cut.
    ///
    /// To be called from a plain thread, which waits meanwhile.
    pub fn shutdown(mut self, grace: Duration) -> usize {
        self.stop();
        let shared = &self.shared;
        let mut cut = 0;
        // Nobody can connect any more when this has returned.
        wait_until(CUT_WAIT, || shared.acceptors.load(Ordering::SeqCst) == 0);
        if !wait_until(grace, || shared.seats.taken() == 0) {
            cut = shared.seats.taken();
            shared.list.cut_all();
            wait_until(CUT_WAIT, || shared.seats.taken() == 0);
        }
        shared.list.stop();
        cut
    }

    fn stop(&mut self) {
        self.ended = true;
        self.shared.around.stopping.store(true, Ordering::SeqCst);
        // Before the sockets are closed: who finds the file can connect, or is told that nobody listens.
        self.files.clear();
        self.listeners.clear();
        for acceptor in &self.acceptors {
            acceptor.wake();
        }
        self.shared.lot.close();
        self.shared.list.wake_all();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.stop();
            self.shared.list.cut_all();
            self.shared.list.stop();
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("addresses", &self.addresses)
            .field("workers", &self.workers)
            .finish()
    }
}

/// Waits on a plain thread until `done`, at most for `limit`; says whether it is.
fn wait_until(limit: Duration, done: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !done() && began.elapsed() < limit {
        std::thread::sleep(LOOK_AGAIN.min(limit));
    }
    done()
}

#[cfg(test)]
mod tests;
