//! How does an application's own test ask it something?
//!
//! [`client`] calls a service in process: no port, no socket, no wait. [`serve`] puts it on a free port
//! of this machine and speaks HTTP/1.1 over a real connection. Both give the same [`Client`], so a test
//! can be written once and run both ways:
//!
//! ```
//! use cloudgate::test::{self, Client};
//! use cloudgate::{App, Request, Response};
//!
//! fn app() -> App {
//!     App::new()
//!         .get("/hello", |request: &mut Request<'_>| format!("Hello {}!", request.query()))
//!         .post("/login", || Response::text_plain("in").header("Set-Cookie", "session=7; HttpOnly"))
//!         .get("/me", |request: &mut Request<'_>| {
//!             request.header("cookie").unwrap_or("nobody").to_owned()
//!         })
//! }
//!
//! fn it_knows_who_logged_in(client: &Client) {
//!     assert_eq!(client.get("/me").send().text(), "nobody");
//!     client.post("/login").form(&[("name", "Ada")]).send().assert_status(200);
//!     assert_eq!(client.get("/me").send().text(), "session=7");
//!     client.get("/nothing").send().assert_status(404);
//! }
//!
//! it_knows_who_logged_in(&test::client(app()));
//! it_knows_who_logged_in(&test::serve(app()));
//! ```
//!
//! What is expected and does not come is a panic that names the request, the status and the body.
//!
//! ```text
//!  Client ─ get, post … ─▶ Ask ─ send ─▶ here (a call) or wire (a socket) ─▶ Reply
//!    cookies, fields       target, form, body                              status, fields, body, events
//!                                │ websocket ───────────────────────────────▶ Socket: messages both ways
//! ```

mod ask;
mod cookies;
mod events;
mod form;
mod here;
mod reply;
mod socket;
mod target;
mod wire;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use http::{Method, StatusCode};

use crate::message::{Headers, Service};
use crate::server::{Running, Server, Settings};
pub use ask::Ask;
use cookies::Jar;
pub use events::ServerEvent;
pub use form::Form;
pub use reply::Reply;
pub use socket::{Socket, SocketEvent};
use target::Target;

/// The most bytes of a body where [`Client::with_body_limit`] does not say otherwise: 16 MiB.
const BODY_LIMIT: usize = 16 << 20;

/// A client that calls `service` in process, on the calling thread.
///
/// The service sees what it would see over a connection from 127.0.0.1 to the host `localhost`. What it
/// answers is made what a client would get: a panic of a handler is a 500, an answer to HEAD has no
/// body, `Content-Length` is set. Other fields that belong to the connection, and `Date`, are not there.
/// As the thread is no worker, limits of time do not hold.
///
/// ```
/// use cloudgate::{App, test};
/// let client = test::client(App::new().get("/", || "hello"));
/// assert_eq!(client.get("/").send().text(), "hello");
/// ```
///
/// # Panics
/// When the service would not start, with the reason.
#[track_caller]
pub fn client(service: impl Service) -> Client {
    if let Err(error) = service.start() {
        fail(format_args!("the service would not start: {error}"));
    }
    Client::new(Way::Here(Box::new(service)), "localhost".to_owned())
}

/// A client of a real server with `service` on a free port of this machine; it ends with the client.
///
/// ```
/// use cloudgate::{App, test};
/// let client = test::serve(App::new().get("/", || "hello"));
/// assert_eq!(client.get("/").send().assert_status(200).header("content-length"), Some("5"));
/// ```
///
/// # Panics
/// When the server does not start, with the reason.
#[track_caller]
pub fn serve(service: impl Service) -> Client {
    let mut settings = Settings::default();
    // On a machine of one core too a test should see what two workers do.
    settings.workers.workers = settings.workers.workers.max(2);
    let started = Server::bind("127.0.0.1:0")
        .and_then(|server| server.with_settings(settings).serve(service));
    match started {
        Ok(server) => {
            let authority = server.addr().to_string();
            let connection = Mutex::default();
            Client::new(Way::Wire { server, connection }, authority)
        }
        Err(error) => fail(format_args!("the server did not start: {error}")),
    }
}

/// Asks one service, and keeps its cookies from one request to the next.
///
/// A target is a path with a query, or a whole address such as `http://api.example.com/path`, which goes
/// to the same service with that host. Made by [`client`] or [`serve`].
pub struct Client {
    way: Way,
    base: Target,
    jar: Mutex<Jar>,
    headers: Headers,
    body_limit: usize,
}

enum Way {
    Here(Box<dyn Service>),
    Wire {
        server: Running,
        connection: Mutex<Option<wire::Connection>>,
    },
}

impl Client {
    fn new(way: Way, authority: String) -> Client {
        Client {
            way,
            base: Target {
                secure: false,
                authority,
                path_and_query: "/".to_owned(),
            },
            jar: Mutex::default(),
            headers: Headers::new(),
            body_limit: BODY_LIMIT,
        }
    }

    /// The same client with a header field that goes with every request which does not set another.
    ///
    /// # Panics
    /// When the name is no token or the value holds a control character.
    #[must_use]
    #[track_caller]
    pub fn with_header(mut self, name: &str, value: &str) -> Client {
        set(&mut self.headers, name, value);
        self
    }

    /// The same client with another limit, in bytes, to the body of an answer and to a message of a
    /// [`Socket`] (default 16 MiB): one that is longer fails the test.
    #[must_use]
    pub fn with_body_limit(mut self, bytes: usize) -> Client {
        self.body_limit = bytes;
        self
    }

    /// Begins a GET request; nothing happens before [`Ask::send`].
    ///
    /// # Panics
    /// When the target is no path and no address.
    #[track_caller]
    pub fn get(&self, target: &str) -> Ask<'_> {
        self.request(Method::GET, target)
    }

    /// Begins a HEAD request; see [`Client::get`].
    ///
    /// # Panics
    /// As [`Client::get`].
    #[track_caller]
    pub fn head(&self, target: &str) -> Ask<'_> {
        self.request(Method::HEAD, target)
    }

    /// Begins a POST request; see [`Client::get`].
    ///
    /// # Panics
    /// As [`Client::get`].
    #[track_caller]
    pub fn post(&self, target: &str) -> Ask<'_> {
        self.request(Method::POST, target)
    }

    /// Begins a PUT request; see [`Client::get`].
    ///
    /// # Panics
    /// As [`Client::get`].
    #[track_caller]
    pub fn put(&self, target: &str) -> Ask<'_> {
        self.request(Method::PUT, target)
    }

    /// Begins a PATCH request; see [`Client::get`].
    ///
    /// # Panics
    /// As [`Client::get`].
    #[track_caller]
    pub fn patch(&self, target: &str) -> Ask<'_> {
        self.request(Method::PATCH, target)
    }

    /// Begins a DELETE request; see [`Client::get`].
    ///
    /// # Panics
    /// As [`Client::get`].
    #[track_caller]
    pub fn delete(&self, target: &str) -> Ask<'_> {
        self.request(Method::DELETE, target)
    }

    /// Begins a request with any method; see [`Client::get`].
    ///
    /// # Panics
    /// As [`Client::get`].
    #[track_caller]
    pub fn request(&self, method: Method, target: &str) -> Ask<'_> {
        let is_address = target.starts_with("http://") || target.starts_with("https://");
        let resolved = if target.starts_with('/') && !target.starts_with("//") {
            // As it stands: what a test sends is its own affair, dots in the path too.
            Some(Target {
                path_and_query: target.to_owned(),
                ..self.base.clone()
            })
        } else if is_address {
            self.base.resolve(target)
        } else {
            None
        };
        match resolved {
            Some(target) => Ask::new(self, method, target),
            None => fail(format_args!(
                "{target:?} is no target: write a path such as /a/b?c=d, or an address such as http://host/path"
            )),
        }
    }

    /// The value of a cookie that is kept for the service's own host.
    pub fn cookie(&self, name: &str) -> Option<String> {
        let jar = self.jar();
        jar.value(name, &self.base, SystemTime::now())
            .map(str::to_owned)
    }

    /// Sets a cookie for all paths of the service's own host.
    pub fn set_cookie(&self, name: &str, value: &str) {
        self.jar().set(name, value, &self.base);
    }

    /// Forgets all cookies.
    pub fn clear_cookies(&self) {
        self.jar().clear();
    }

    /// Where the server listens; `None` for a client without one.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.way {
            Way::Here(_) => None,
            Way::Wire { server, .. } => Some(server.addr()),
        }
    }

    fn jar(&self) -> MutexGuard<'_, Jar> {
        self.jar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one request and takes the answer, whatever it is.
    ///
    /// # Errors
    /// What went wrong where there is no whole answer.
    fn exchange(&self, question: &Question, collected: Collected) -> Result<Answer, String> {
        match &self.way {
            Way::Here(service) => here::exchange(&**service, question, collected),
            Way::Wire { server, connection } => {
                let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                wire::exchange(server.addr(), &mut connection, question, collected)
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("authority", &self.base.authority)
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

/// A request, ready to be sent.
struct Question {
    method: Method,
    target: Target,
    /// Host and Content-Length among them.
    headers: Headers,
    body: Bytes,
}

/// What came back.
struct Answer {
    status: StatusCode,
    headers: Headers,
    body: Vec<u8>,
    /// What else is to be told where a test fails.
    note: Option<String>,
}

/// When enough of a body has come.
#[derive(Clone, Copy, Debug)]
enum Enough {
    AtItsEnd,
    Bytes(usize),
    Events(usize),
}

/// The body of an answer as it comes in.
struct Collected {
    bytes: Vec<u8>,
    limit: usize,
    enough: Enough,
}

/// What to do after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Leave,
}

impl Collected {
    /// Takes in a piece.
    ///
    /// # Errors
    /// When the body is longer than it may be.
    fn push(&mut self, piece: &[u8]) -> Result<Then, String> {
        self.bytes.extend_from_slice(piece);
        let leave = match self.enough {
            Enough::AtItsEnd => false,
            Enough::Bytes(count) => {
                let leave = self.bytes.len() >= count;
                self.bytes.truncate(count);
                leave
            }
            Enough::Events(count) => {
                let end = events::end_of(&self.bytes, count);
                self.bytes.truncate(end.unwrap_or(self.bytes.len()));
                end.is_some()
            }
        };
        if leave {
            return Ok(Then::Leave);
        }
        if self.bytes.len() > self.limit {
            return Err(format!(
                "the body is longer than the {} bytes that this client takes",
                self.limit
            ));
        }
        Ok(Then::GoOn)
    }
}

/// Sets a field.
#[track_caller]
fn set(headers: &mut Headers, name: &str, value: &str) {
    if let Err(error) = headers.set(name, value) {
        fail(format_args!(
            "the header field {name:?} cannot be sent: {error}; its value is {value:?}"
        ));
    }
}

/// Fails the test.
#[track_caller]
#[allow(clippy::panic, reason = "this is how a test fails")]
fn fail(message: fmt::Arguments<'_>) -> ! {
    panic!("{message}")
}
