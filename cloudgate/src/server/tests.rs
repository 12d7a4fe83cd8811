//! Does a connection behave on a pipe as RFC 9112 wants, in every state?
//!
//! ```text
//!  script    a client on a pipe whose next step comes when the server waits
//!  corpus    tables of what clients and attackers send, each row in every cut
//!  requests  many at once, and heads at their limits
//!  bodies    what comes in: limits, Expect, cut off, left unread
//!  answers   what goes out: every kind of body, HEAD, failures
//!  files     what goes out of files that change meanwhile
//!  turns     very fast peers                          upgrades  another protocol behind a request
//!  time      deadlines, slow peers, half-closed and stopping connections
//! ```

mod answers;
mod bodies;
mod corpus;
mod files;
mod requests;
mod script;
mod time;
mod turns;
mod upgrades;
