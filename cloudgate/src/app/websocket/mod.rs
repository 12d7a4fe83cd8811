//! How does an application speak over WebSockets (RFC 6455, RFC 7692)?
//!
//! ```text
//!  upgrade    a request becomes a socket        talk      a function has it       callbacks  or calls are made for it
//!  socket     who owns it reads and writes      outbox    others send to it       flush      also while it has no coroutine
//!  ending     it is closed                      session   what it keeps while it is parked    output  what is written next
//!  message    what goes over it                 delivery  what becomes of it         buffers   while something is read or written
//! ```

mod buffers;
mod callbacks;
mod delivery;
mod ending;
mod error;
mod flush;
mod message;
mod outbox;
mod output;
mod session;
mod socket;
mod talk;
mod upgrade;

pub use callbacks::SocketHandler;
pub use delivery::{Delivery, Dropped, Losses, SlowReceiver};
pub use error::{SocketError, SocketResult};
pub use message::Message;
pub use outbox::SocketSender;
pub use socket::{CloseFrame, Received, WebSocket};
pub use upgrade::{PerMessageDeflate, WebSocketUpgrade};

pub(super) use message::{Compresses, Prepared};
pub(super) use upgrade::refuse;

#[cfg(test)]
pub(super) mod tests;
