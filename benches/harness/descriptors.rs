//! How many descriptors may this process and its children have?

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, and says what it is then. Children inherit it; with many connections the usual 1024
/// would end clients and servers alike.
pub(crate) fn raise_limit() -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum.or(Some(1 << 20));
    // Where it is refused the old limit stays, and is what is given back.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(1 << 20)
}
