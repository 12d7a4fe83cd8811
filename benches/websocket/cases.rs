//! Which five things are measured, and what is sent in each?

use crate::harness::options::Named;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Echo64,
    Echo64x16,
    Broadcast,
    BroadcastDeflate,
    Idle,
}

impl Named for Case {
    const ALL: &'static [Self] = &[
        Self::Echo64,
        Self::Echo64x16,
        Self::Broadcast,
        Self::BroadcastDeflate,
        Self::Idle,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Echo64 => "echo64",
            Self::Echo64x16 => "echo64x16",
            Self::Broadcast => "broadcast",
            Self::BroadcastDeflate => "broadcast-deflate",
            Self::Idle => "idle",
        }
    }
}

/// By what a case is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Echo,
    Broadcast,
    Idle,
}

impl Case {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Echo64 | Self::Echo64x16 => Kind::Echo,
            Self::Broadcast | Self::BroadcastDeflate => Kind::Broadcast,
            Self::Idle => Kind::Idle,
        }
    }

    /// Messages that a socket has on the way at a time.
    pub(crate) fn in_flight(self) -> usize {
        if self == Self::Echo64x16 { 16 } else { 1 }
    }

    /// Whether the client offers permessage-deflate, and the server is set up to agree.
    pub(crate) fn compressed(self) -> bool {
        self == Self::BroadcastDeflate
    }
}

/// What every server does with the messages of a socket depends on the path that it was opened with.
pub(crate) mod path {
    /// Each message comes back.
    pub(crate) const ECHO: &str = "/echo";
    /// The socket gets what is published.
    pub(crate) const ROOM: &str = "/room";
    /// Each message is published to the room, of which this socket is no part.
    pub(crate) const PUBLISH: &str = "/publish";
}

/// What is echoed: 64 bytes.
pub(crate) const ECHOED: &str = "The quick brown fox jumps over the lazy dog, and then once more.";

/// What is published: 128 bytes, as an application might.
pub(crate) const PUBLISHED: &str = r#"{"kind":"message","room":"all","from":"Ada","at":"2026-01-31T12:34:56Z","text":"Who has seen the keys of the old engine house?"}"#;
