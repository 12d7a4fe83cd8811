//! What may a topic be called, and how many may there be?

use std::fmt;

/// The longest name of a topic, in bytes.
const LONGEST_NAME: usize = 256;

/// How much a hub holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubLimits {
    /// How many messages each topic keeps for those who subscribe later (default 0).
    pub replay: usize,
    /// How many bytes of them, with 64 a message for its own (default 1 MiB). In memory it is up to twice as much, for a
    /// message is kept with its frame, and what that is compressed.
    pub replay_bytes: usize,
    /// How many bytes of them all topics keep together (default 64 MiB). Past it each new message drives out older ones of
    /// its own topic, and is not kept where that has none: nobody who chooses names takes another topic's messages away.
    pub replay_total_bytes: usize,
    /// How many topics have sockets, or keep messages (default 100,000). Past it a socket cannot subscribe to another
    /// one, and messages of another one are not kept.
    pub topics: usize,
    /// How many topics a socket is subscribed to (default 1,000).
    pub topics_per_socket: usize,
}

impl Default for HubLimits {
    fn default() -> HubLimits {
        HubLimits {
            replay: 0,
            replay_bytes: 1 << 20,
            replay_total_bytes: 64 << 20,
            topics: 100_000,
            topics_per_socket: 1_000,
        }
    }
}

/// Why a socket cannot subscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubError {
    /// The name is empty or longer than 256 bytes, or has a `*` elsewhere than as its last segment.
    InvalidName,
    /// The hub has all the topics that it may have.
    TooManyTopics {
        /// How many these are.
        most: usize,
    },
    /// The socket is in all the topics that it may be in.
    TooManySubscriptions {
        /// How many these are.
        most: usize,
    },
}

impl fmt::Display for HubError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HubError::InvalidName => f.write_str(
                "a topic has a name of 1 to 256 bytes such as news/sport; a * stands alone or at the end, as in news/*, \
                 and only where a socket subscribes",
            ),
            HubError::TooManyTopics { most } => write!(
                f,
                "the hub has {most} topics, which is all that HubLimits::topics allows"
            ),
            HubError::TooManySubscriptions { most } => write!(
                f,
                "the socket is subscribed to {most} topics, which is all that HubLimits::topics_per_socket allows"
            ),
        }
    }
}

impl std::error::Error for HubError {}

/// Whether a socket can subscribe to this.
pub(super) fn check_name(name: &str) -> Result<(), HubError> {
    let stem = match name {
        "*" => "",
        _ => name.strip_suffix("/*").unwrap_or(name),
    };
    let named = !stem.is_empty() || name == "*";
    if named && name.len() <= LONGEST_NAME && !stem.contains('*') {
        Ok(())
    } else {
        Err(HubError::InvalidName)
    }
}

/// Whether something can be published to this name of a topic.
pub(super) fn check_target(name: &str) -> Result<(), HubError> {
    if name.contains('*') {
        Err(HubError::InvalidName)
    } else {
        Ok(())
    }
}

/// The patterns that a topic fits, the narrowest first.
pub(super) fn patterns(topic: &str) -> impl Iterator<Item = String> {
    let folders = topic
        .rmatch_indices('/')
        .map(|(at, _)| format!("{}/*", &topic[..at]));
    folders.chain(["*".to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let long = "x".repeat(LONGEST_NAME);
        for name in [
            "a",
            "a/b",
            "*",
            "a/*",
            "a/b/*",
            "/",
            "/*x".trim_end_matches("*x"),
            &long,
        ] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let longer = "x".repeat(LONGEST_NAME + 1);
        for name in ["", "/*", "**", "a*", "*/a", "a/*/b", "*/*", &longer] {
            assert_eq!(check_name(name), Err(HubError::InvalidName), "{name}");
        }
        assert!(check_target("a/b").is_ok() && check_target("a/*").is_err());
    }

    #[test]
    fn patterns_of_a_topic() {
        let of = |topic| patterns(topic).collect::<Vec<_>>();
        assert_eq!(of("news"), ["*"]);
        assert_eq!(of("news/sport/tennis"), ["news/sport/*", "news/*", "*"]);
    }
}
