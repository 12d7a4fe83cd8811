//! Does a connection behave on a pipe as RFC 9112 wants, in every state?
