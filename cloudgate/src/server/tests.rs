//! Does a connection behave on a pipe as RFC 9112 wants, in every state?
//!
//! ```text
//!  script    a client on a pipe whose next step comes when the server waits
//!  requests  heads: kept alive, pipelined, malformed, at their limits
//!  bodies    what comes in: framings, limits, Expect, left unread
//!  answers   what goes out: every kind of body, HEAD, failures
//!  turns     very fast peers
//!  time      deadlines, slow peers, half-closed and stopping connections
//! ```

mod answers;
mod bodies;
mod requests;
mod script;
mod time;
mod turns;
