//! Which questions are asked over TLS, and on which terms?

use rustls::HandshakeKind;

use crate::client::{Terms, Version};
use crate::harness::options::Named;
use crate::site::Key;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Simple,
    Page,
    Png15k,
    File1m,
    FullTls13,
    FullTls12,
    RsaTls13,
    RsaTls12,
    ResumedTls13,
    ResumedTls12,
    Idle,
}

impl Named for Case {
    const ALL: &'static [Self] = &[
        Self::Simple,
        Self::Page,
        Self::Png15k,
        Self::File1m,
        Self::FullTls13,
        Self::FullTls12,
        Self::RsaTls13,
        Self::RsaTls12,
        Self::ResumedTls13,
        Self::ResumedTls12,
        Self::Idle,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Page => "page",
            Self::Png15k => "png15k",
            Self::File1m => "file1m",
            Self::FullTls13 => "full-tls13",
            Self::FullTls12 => "full-tls12",
            Self::RsaTls13 => "rsa-tls13",
            Self::RsaTls12 => "rsa-tls12",
            Self::ResumedTls13 => "resumed-tls13",
            Self::ResumedTls12 => "resumed-tls12",
            Self::Idle => "idle",
        }
    }
}

pub(crate) const SIMPLE_BODY: &str = "Hello World!";

impl Case {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Simple => "`Hello World!` on connections that are kept",
            Self::Page => "a page of 2 kB, the same way",
            Self::Png15k => "a picture of 15 kB, the same way",
            Self::File1m => "a file of 1 MiB, the same way",
            Self::FullTls13 => {
                "a new connection with a full handshake and nothing else, P-256, TLS 1.3"
            }
            Self::FullTls12 => "the same with TLS 1.2",
            Self::RsaTls13 => "the same with an RSA key of 2048 bits, TLS 1.3",
            Self::RsaTls12 => "the same with TLS 1.2",
            Self::ResumedTls13 => {
                "a new connection that takes up a session by its ticket, P-256, TLS 1.3"
            }
            Self::ResumedTls12 => "the same with TLS 1.2",
            Self::Idle => "connections at rest, in a table of their own",
        }
    }

    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Page => "/page.html",
            Self::Png15k => "/15k.png",
            Self::File1m => "/1m.bin",
            _ => "/simple",
        }
    }

    pub(crate) fn key(self) -> Key {
        match self {
            Self::RsaTls13 | Self::RsaTls12 => Key::Rsa2048,
            _ => Key::P256,
        }
    }

    pub(crate) fn terms(self) -> Terms {
        Terms {
            version: match self {
                Self::FullTls12 | Self::RsaTls12 | Self::ResumedTls12 => Version::Tls12,
                _ => Version::Tls13,
            },
            kind: match self {
                Self::ResumedTls13 | Self::ResumedTls12 => HandshakeKind::Resumed,
                _ => HandshakeKind::Full,
            },
        }
    }

    /// Whether it is about handshakes alone.
    pub(crate) fn is_handshake(self) -> bool {
        !matches!(
            self,
            Self::Simple | Self::Page | Self::Png15k | Self::File1m | Self::Idle
        )
    }
}
