//! What keeps a server from starting, and what should be done about it?

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::net::tls::identity_error::IdentityError;

/// The result of starting.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server did not start: one line for people, with what to do about it.
///
/// `Debug` prints the same line, because that is what a `main` that returns it shows.
#[non_exhaustive]
pub enum Error {
    /// The address could not be bound.
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The Unix socket could not be bound.
    BindUnix {
        /// The path that was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A setting is not what it has to be.
    Setting {
        /// Where it was set: `environment variable PORT`.
        place: String,
        /// The value that was found.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// A certificate or its key cannot be used.
    Identity(IdentityError),
    /// A folder to be served is not there, or cannot be read.
    Folder {
        /// The path as it was given.
        path: PathBuf,
        /// The folder that a relative path was looked up in.
        working_directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Two routes answer the same requests.
    RouteConflict {
        /// The method and pattern of both.
        route: String,
        /// Where the first one is: `file:line`.
        first: String,
        /// Where the second one is.
        second: String,
    },
    /// The pattern of a route that was added by hand is malformed.
    Pattern {
        /// The pattern.
        pattern: String,
        /// Where the route is: `file:line`.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A redirect or rewrite cannot work.
    Redirect {
        /// Which of them: `redirect`, `rewrite` or `host redirect`.
        what: &'static str,
        /// The pattern or host of the requests.
        from: String,
        /// Where they are to go.
        to: String,
        /// Where it was written: `file:line`.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A template cannot be read, or has a mistake.
    Template {
        /// Where: `file:line`, or the path that could not be read.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A host of the application is no name.
    Host {
        /// What stands there.
        host: String,
        /// Where: `file:line`.
        place: String,
        /// What it should be.
        reason: String,
    },
    /// A route is private, and the application has no API key.
    MissingApiKey {
        /// Where the route is: `file:line`.
        place: String,
    },
    /// A route takes a `State` that nobody registered.
    MissingState {
        /// The type that is missing.
        type_name: &'static str,
        /// What to add to the application, where that is always the same.
        line: Option<&'static str>,
        /// Where the route is: `file:line`.
        place: String,
    },
    /// The application has no route and serves no folder.
    NothingToServe,
    /// The system gives no threads, descriptors or memory to run with.
    System {
        /// What was wanted.
        wanted: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A service refused to start for a reason of its own.
    Service(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Bind { address, source } => bind_advice(f, *address, source),
            Error::BindUnix { path, source } => bind_unix_advice(f, path, source),
            Error::Identity(error) => write!(f, "TLS cannot start: {error}"),
            Error::Setting { place, value, wanted } => write!(f, "{place} is {value:?}; it must be {wanted}"),
            Error::Folder { path, working_directory, source } => write!(
                f,
                "the folder {} cannot be served: {source}; looked for it in {} - start the program in the folder that holds it",
                path.display(),
                working_directory.display()
            ),
            Error::RouteConflict { route, first, second } => write!(
                f,
                "two routes answer {route}: one at {first}, one at {second} - remove one of them or change its pattern"
            ),
            Error::Pattern { pattern, place, reason } => {
                write!(f, "the route pattern {pattern:?} at {place} is malformed: {reason}")
            }
            Error::Redirect { what, from, to, place, reason } => write!(
                f,
                "the {what} from {from:?} to {to:?} at {place} cannot work: {reason}"
            ),
            Error::Template { place, reason } => {
                write!(f, "the template at {place} cannot be used: {reason}")
            }
            Error::Host { host, place, reason } => {
                write!(f, "{host:?} at {place} is no host: {reason}")
            }
            Error::MissingApiKey { place } => write!(
                f,
                "the route at {place} is private, but the application has no key to let anybody in - add .api_keys([...]) to the App in main.rs"
            ),
            Error::MissingState { type_name, line: Some(line), place } => write!(
                f,
                "the route at {place} needs a {}, which nobody registered - add {line} to the App in main.rs",
                type_name.rsplit("::").next().unwrap_or(type_name)
            ),
            Error::MissingState { type_name, line: None, place } => write!(
                f,
                "the route at {place} takes State<{type_name}>, which nobody registered - add .state(value of type {type_name}) to the App in main.rs"
            ),
            Error::NothingToServe => f.write_str(
                "the application has no route and no folder, so every answer would be 404 - add #[route(...)] to a \
                 function of this program, or .files(\"public\"); routes of a library crate count only if the program names it: use my_library as _;",
            ),
            Error::System { wanted, source } => write!(f, "the system gives no {wanted}: {source}"),
            Error::Service(source) => write!(f, "{source}"),
        }
    }
}

fn bind_advice(f: &mut fmt::Formatter<'_>, address: SocketAddr, source: &io::Error) -> fmt::Result {
    let port = address.port();
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            let other = if port == u16::MAX { port - 1 } else { port + 1 };
            write!(
                f,
                "port {port} of {} is in use by another program - stop that, or choose another port: PORT={other}",
                address.ip()
            )
        }
        io::ErrorKind::PermissionDenied => write!(
            f,
            "port {port} of {} may not be used by this user - ports below 1024 need a privilege (CAP_NET_BIND_SERVICE); or choose a higher one: PORT=3000",
            address.ip()
        ),
        io::ErrorKind::AddrNotAvailable => write!(
            f,
            "{} is no address of this machine - set HOST to one of its addresses, 127.0.0.1 for this machine only, or 0.0.0.0 for all",
            address.ip()
        ),
        _ => write!(f, "{address} cannot be bound: {source}"),
    }
}

fn bind_unix_advice(f: &mut fmt::Formatter<'_>, path: &Path, source: &io::Error) -> fmt::Result {
    let path = path.display();
    match source.kind() {
        io::ErrorKind::AddrInUse => write!(
            f,
            "the Unix socket {path} is in use by another program that listens on it - stop that, or choose another path"
        ),
        io::ErrorKind::AlreadyExists => write!(
            f,
            "{path} is there already and is no socket - choose another path, or move it away if nobody needs it"
        ),
        io::ErrorKind::NotFound => write!(
            f,
            "the Unix socket {path} cannot be bound: its folder is not there - make the folder first"
        ),
        io::ErrorKind::InvalidFilename => write!(
            f,
            "the Unix socket {path} cannot be bound: a path of more than 107 bytes is too long for one - choose a shorter one, or a relative one"
        ),
        _ => write!(f, "the Unix socket {path} cannot be bound: {source}"),
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Bind { source, .. }
            | Error::BindUnix { source, .. }
            | Error::Folder { source, .. }
            | Error::System { source, .. } => Some(source),
            Error::Service(source) => Some(&**source),
            Error::Identity(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}

impl From<IdentityError> for Error {
    fn from(error: IdentityError) -> Error {
        Error::Identity(error)
    }
}

impl From<crate::message::StartError> for Error {
    fn from(error: crate::message::StartError) -> Error {
        error
            .downcast::<Error>()
            .map_or_else(Error::Service, |error| *error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_and_say_what_to_do() {
        let busy = Error::Bind {
            address: "127.0.0.1:3000".parse().unwrap(),
            source: io::ErrorKind::AddrInUse.into(),
        };
        assert_eq!(
            format!("{busy:?}"),
            "port 3000 of 127.0.0.1 is in use by another program - stop that, or choose another port: PORT=3001"
        );
        let setting = Error::Setting {
            place: "environment variable PORT".into(),
            value: "abc".into(),
            wanted: "a number from 0 to 65535",
        };
        assert_eq!(
            setting.to_string(),
            "environment variable PORT is \"abc\"; it must be a number from 0 to 65535"
        );
    }

    #[test]
    fn a_start_error_keeps_its_type_through_the_service_contract() {
        let boxed: crate::message::StartError = Box::new(Error::NothingToServe);
        assert!(matches!(Error::from(boxed), Error::NothingToServe));
    }
}
