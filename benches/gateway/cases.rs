//! Which requests are passed on, and how?

use crate::harness::options::Named;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Hello,
    Bundle,
    Tls,
    Two,
    Idle,
}

impl Named for Case {
    const ALL: &'static [Self] = &[Self::Hello, Self::Bundle, Self::Tls, Self::Two, Self::Idle];

    fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Bundle => "bundle",
            Self::Tls => "tls",
            Self::Two => "two",
            Self::Idle => "idle",
        }
    }
}

pub(crate) const SIMPLE_BODY: &str = r#"{"name":"Hello World!"}"#;

/// The bytes of the large body.
const BUNDLE: usize = 452_460;

impl Case {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Hello => "`{\"name\":\"Hello World!\"}` on connections that are kept",
            Self::Bundle => "a body of 452,460 bytes, the same way",
            Self::Tls => "as hello, with TLS 1.3 (AES-128-GCM) to the gateway and none behind it",
            Self::Two => "as hello, with two servers behind in turn",
            Self::Idle => "connections at rest, in a table of their own",
        }
    }

    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Bundle => "/bundle",
            _ => crate::TARGET,
        }
    }

    pub(crate) fn body(self) -> Vec<u8> {
        match self {
            // No run of bytes repeats that a wrong order would hide in.
            Self::Bundle => (0..BUNDLE).map(|at| (at % 251) as u8).collect(),
            _ => SIMPLE_BODY.into(),
        }
    }

    /// What the server behind says, head and body.
    pub(crate) fn answer(self) -> Vec<u8> {
        let body = self.body();
        let kind = match self {
            Self::Bundle => "application/javascript",
            _ => "application/json",
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\nDate: Tue, 01 Dec 2026 12:00:00 GMT\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        [head.into_bytes(), body].concat()
    }

    /// How many servers are behind.
    pub(crate) fn behind(self) -> usize {
        match self {
            Self::Two => 2,
            _ => 1,
        }
    }

    pub(crate) fn over_tls(self) -> bool {
        self == Self::Tls
    }
}
