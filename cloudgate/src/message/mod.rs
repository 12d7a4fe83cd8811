//! Which values and contracts do all layers share?
//!
//! A request goes in, a response comes out, a [`Service`] is whatever does that. Nothing here
//! knows sockets, coroutines or a parser, so an application is testable as a plain function.

pub mod body;
pub(crate) mod byteranges;
pub mod certificate;
pub(crate) mod clock;
pub(crate) mod conditional;
pub mod deadline;
pub mod file_range;
pub mod headers;
pub mod host;
pub mod html;
pub(crate) mod metrics;
pub mod middleware;
pub mod mime;
pub mod negotiate;
pub mod network;
pub mod outgoing;
pub(crate) mod pace;
pub(crate) mod partial;
pub mod query;
pub(crate) mod range;
pub mod request;
pub mod response;
pub(crate) mod secret;
pub mod service;
pub(crate) mod shared_list;
pub mod tls_session;
pub mod upgrade;

pub use body::{BodyError, BodySource, RequestBody};
pub use certificate::{Certificate, InvalidCertificate};
pub use deadline::Deadline;
pub use file_range::{FileRange, FileVersion};
pub use headers::{HeaderError, Headers};
pub(crate) use middleware::Layer;
pub use middleware::{Middleware, Next};
pub use network::{InvalidNetwork, Network};
pub use outgoing::{Body, BodySink, BodyWriter, Relay};
pub(crate) use pace::Pace;
pub use request::{Request, RequestHead, Version};
pub use response::Response;
pub use service::{Service, StartError};
pub use tls_session::{ApplicationProtocol, TlsSession};
pub(crate) use upgrade::{After, Host, Protocol, Tie};
pub use upgrade::{Duplex, Upgrade, Upgraded};
