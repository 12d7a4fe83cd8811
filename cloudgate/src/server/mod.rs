//! How does a service get onto a port?
//!
//! ```text
//!  accept    a coroutine a worker takes connections; each gets a coroutine, is parked, and woken
//!  seats     who may come in, and which worker takes it
//!  conn      the life of one connection
//!  body      a request body as the handler reads it     respond  a response as the client gets it
//!  pace      is the peer fast enough                    capacity how many connections fit
//!  settings  limits and timeouts                        clock    the Date field
//!  lease     the buffers of a request in flight
//! ```

mod accept;
mod body;
mod capacity;
mod clock;
mod conn;
mod lease;
mod pace;
mod respond;
mod seats;
mod settings;

use std::fmt;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::message::Service;
use crate::net::deadline::{Clock, WatchList};
use crate::net::home::{self, Waker};
use crate::net::listener;
use crate::net::park::Lot;
use conn::Surroundings;
use settings::Rules;
pub use settings::{Settings, Timeouts};

/// How long [`Running::shutdown`] waits for connections that it has cut.
const CUT_WAIT: Duration = Duration::from_secs(1);

/// How often [`Running::shutdown`] looks whether the last connection is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A port that is bound and not served yet.
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
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    settings: Settings,
}

impl Server {
    /// Binds the first address that `address` stands for; port 0 takes any free port.
    ///
    /// # Errors
    /// [`Error::Bind`] when the port is taken or may not be used, [`Error::Setting`] when the
    /// address cannot be understood.
    pub fn bind(address: impl ToSocketAddrs + fmt::Debug) -> Result<Server> {
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
        let bound =
            listener::bind_tcp(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|source| Error::Bind { address, source })?;
        Ok(Server {
            listener,
            address,
            settings: Settings::default(),
        })
    }

    /// The same server with other limits.
    pub fn with_settings(mut self, settings: Settings) -> Server {
        self.settings = settings;
        self
    }

    /// The address that is bound.
    pub fn addr(&self) -> SocketAddr {
        self.address
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
        let shared = Arc::new(Shared {
            around: Surroundings {
                service: Box::new(service),
                rules: Rules::new(&self.settings),
                clock,
                stopping: AtomicBool::new(false),
            },
            list,
            lot,
            seats: seats::Seats::new(workers, capacity, fits.active, per_peer),
            acceptors: AtomicUsize::new(0),
        });
        let mut running = Running {
            shared,
            address: self.address,
            acceptors: Vec::new(),
            workers,
            ended: false,
        };
        for worker in 0..workers {
            let waker = accept::start(&running.shared, &self.listener, worker)
                .map_err(system("descriptor to accept connections with"))?;
            running.acceptors.push(waker);
        }
        Ok(running)
    }
}

/// What the acceptors and connections of one server share.
struct Shared {
    around: Surroundings,
    list: Arc<WatchList>,
    lot: Arc<Lot<accept::Guest>>,
    seats: seats::Seats,
    /// How many acceptors still listen.
    acceptors: AtomicUsize,
}

/// A server that runs. Dropping it ends it at once, with what it was doing.
pub struct Running {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptors: Vec<Waker>,
    workers: usize,
    ended: bool,
}

impl Running {
    /// The address that is served.
    pub fn addr(&self) -> SocketAddr {
        self.address
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
            .field("address", &self.address)
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
