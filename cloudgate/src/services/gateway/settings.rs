//! How does a gateway treat what passes through it?

use std::time::Duration;

use super::balance::Balance;
use crate::message::headers::{is_field_value, is_token};
use crate::net::tls::client::TlsClient;

/// All that can be set of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// What it goes by in the log and the metrics.
    pub(crate) name: String,
    pub(crate) strip_path: bool,
    pub(crate) host: HostField,
    pub(crate) request_fields: Edits,
    pub(crate) response_fields: Edits,
    pub(crate) body_limit: Option<u64>,
    pub(crate) upgrades: bool,
    pub(crate) times: Times,
    pub(crate) balance: Balance,
    pub(crate) tls: TlsClient,
    /// How many servers are asked at most, the first among them.
    pub(crate) attempts: usize,
    /// How many retries a hundred requests may have, as tokens.
    pub(crate) retry_percent: u32,
    /// The most requests that a server has at once; 0 for any number.
    pub(crate) most_requests: usize,
    /// How many may wait for one of the server's requests to end, and for how long.
    pub(crate) queue: usize,
    pub(crate) passive: Passive,
    pub(crate) active: Option<Active>,
    pub(crate) breaker: Option<BreakerSettings>,
    /// In what time a server that has come back gets its full share.
    pub(crate) slow_start: Duration,
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// To open a connection, its name looked up and its TLS agreed on.
    pub(crate) connect: Duration,
    /// From the end of the request to the first byte of the answer; zero for no limit of its own.
    pub(crate) first_byte: Duration,
    /// Between two pieces of a body, either way.
    pub(crate) idle: Duration,
    /// From the request's beginning until the answer's head is there; zero for no limit.
    pub(crate) total: Duration,
    /// For how long an idle connection is kept.
    pub(crate) pool: Duration,
    /// For how long nothing may go through a tunnel.
    pub(crate) tunnel: Duration,
    /// For how long a request may wait for its turn.
    pub(crate) queue: Duration,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            connect: Duration::from_secs(5),
            first_byte: Duration::ZERO,
            idle: Duration::from_secs(60),
            total: Duration::from_secs(60),
            // Below the five seconds after which Node.js closes a connection.
            pool: Duration::from_secs(4),
            tunnel: Duration::from_secs(3600),
            queue: Duration::from_secs(5),
        }
    }
}

/// When a server is left out because requests to it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passive {
    /// How many failures in a row; 0 for never.
    pub(crate) failures: u32,
    pub(crate) within: Duration,
    pub(crate) out: Duration,
}

impl Default for Passive {
    fn default() -> Passive {
        Passive {
            failures: 3,
            within: Duration::from_secs(10),
            out: Duration::from_secs(10),
        }
    }
}

/// How servers are asked whether they are well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Active {
    pub(crate) path: String,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    /// How many good answers in a row bring one back.
    pub(crate) rise: u32,
    /// How many bad ones in a row put it out.
    pub(crate) fall: u32,
    /// From the first to the last status that is a good answer.
    pub(crate) statuses: (u16, u16),
}

/// When nobody is asked any more for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BreakerSettings {
    /// How many of a hundred requests have to fail.
    pub(crate) percent: u32,
    /// Of how many at least.
    pub(crate) requests: u32,
    pub(crate) window: Duration,
    pub(crate) open: Duration,
}

/// What the field Host says to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum HostField {
    /// The server's own name and port.
    #[default]
    Server,
    /// What the client said.
    Keep,
    Named(String),
}

/// Changes to the fields of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edits {
    /// Names that are taken out, in lower case.
    removed: Vec<String>,
    added: Vec<(String, String)>,
}

impl Edits {
    /// Puts a field in the place of those of its name.
    ///
    /// # Errors
    /// What is wrong with name or value.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.remove(name)?;
        self.add(name, value)
    }

    /// Adds a field to those of its name.
    ///
    /// # Errors
    /// As [`Edits::set`].
    pub(crate) fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        check_name(name)?;
        if !is_field_value(value.as_bytes()) {
            return Err(format!(
                "the value {value:?} of the field {name} holds a line break or another control character"
            ));
        }
        self.added.push((name.to_owned(), value.trim().to_owned()));
        Ok(())
    }

    /// Takes the fields of a name out.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub(crate) fn remove(&mut self, name: &str) -> Result<(), String> {
        check_name(name)?;
        self.removed.push(name.to_ascii_lowercase());
        Ok(())
    }

    /// Whether fields of this name are taken out.
    pub(crate) fn replaces(&self, name: &[u8]) -> bool {
        !self.removed.is_empty()
            && self
                .removed
                .iter()
                .any(|other| other.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The names that are taken out.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.removed.iter().map(String::as_str)
    }

    /// The fields that are put in.
    pub(crate) fn added(&self) -> impl Iterator<Item = (&str, &str)> {
        self.added.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// Fields whose values are this program's own business.
const OWN: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "te",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-real-ip",
];

fn check_name(name: &str) -> Result<(), String> {
    if !is_token(name.as_bytes()) {
        return Err(format!(
            "{name:?} is no name of a header field; take letters, digits and -"
        ));
    }
    if OWN.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(format!(
            "the field {name} is written by the gateway itself and cannot be changed; for Host there is an option"
        ));
    }
    Ok(())
}
