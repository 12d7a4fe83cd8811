//! Who answers a request?

use super::request::Request;
use super::response::Response;

/// What keeps a service from starting, for people: it is printed once and the program ends.
pub type StartError = Box<dyn std::error::Error + Send + Sync>;

/// Something that answers requests: an application, a folder of files, a gateway, or a closure.
///
/// ```
/// use cloudgate::{Request, Response, Service};
/// fn hello(_request: &mut Request<'_>) -> Response { Response::html("Hello World!") }
/// assert_eq!(hello.call(&mut Request::get("/")).text(), "Hello World!");
/// ```
pub trait Service: Send + Sync + 'static {
    /// Answers one request. It may block as a plain function would; the server goes on meanwhile.
    fn call(&self, request: &mut Request<'_>) -> Response;

    /// Checks, before the first request, that the service can work.
    ///
    /// # Errors
    /// Whatever makes it pointless to start: the server then does not.
    fn start(&self) -> Result<(), StartError> {
        Ok(())
    }
}

impl<F> Service for F
where
    F: Fn(&mut Request<'_>) -> Response + Send + Sync + 'static,
{
    fn call(&self, request: &mut Request<'_>) -> Response {
        self(request)
    }
}

/// One service in several places, such as a server and the tests of what it keeps.
impl<S: Service> Service for std::sync::Arc<S> {
    fn call(&self, request: &mut Request<'_>) -> Response {
        S::call(self, request)
    }

    fn start(&self) -> Result<(), StartError> {
        S::start(self)
    }
}
