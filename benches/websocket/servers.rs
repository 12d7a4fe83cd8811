//! Which servers are compared, and how is each started for a case?

use crate::cases::{Case, Kind};
use crate::harness::child::Running;
use crate::harness::folder::Folder;
use crate::harness::options::Named;
use crate::{app, check, peers, threads};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Cloudgate,
    Coroutine,
    Feed,
    Tungstenite,
    Ws,
    Bun,
    Limit,
}

impl Named for Server {
    const ALL: &'static [Self] = &[
        Self::Cloudgate,
        Self::Coroutine,
        Self::Feed,
        Self::Tungstenite,
        Self::Ws,
        Self::Bun,
        Self::Limit,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Cloudgate => "cloudgate",
            Self::Coroutine => "cloudgate-coroutine",
            Self::Feed => "cloudgate-feed",
            Self::Tungstenite => "tungstenite",
            Self::Ws => "ws",
            Self::Bun => "bun",
            Self::Limit => "limit",
        }
    }
}

impl Server {
    /// The limit knows no compression, and what it keeps for a socket says nothing; to gather answers makes a difference
    /// only where several are due.
    pub(crate) fn takes_part_in(self, case: Case) -> bool {
        match self {
            Self::Limit => matches!(case, Case::Echo64 | Case::Echo64x16 | Case::Broadcast),
            Self::Feed => case == Case::Echo64x16,
            _ => true,
        }
    }

    /// Starts it, checks what it answers to the case, and hands it over running.
    pub(crate) fn start(self, case: Case, folder: &Folder) -> Result<Running, String> {
        let compressed = case.compressed();
        let running = match self {
            Self::Cloudgate => app::start(app::CALLBACK, compressed, folder)?,
            Self::Coroutine => app::start(app::COROUTINE, compressed, folder)?,
            Self::Feed => app::start(app::FEED, compressed, folder)?,
            Self::Tungstenite if compressed => {
                return Err("not offered by tungstenite".to_owned());
            }
            Self::Tungstenite => {
                let many = case.kind() != Kind::Echo;
                let arguments = if many {
                    vec![threads::MANY.to_owned()]
                } else {
                    Vec::new()
                };
                Running::start("threads", &arguments, folder.path())?
            }
            Self::Ws => peers::start_ws(folder, compressed)?,
            Self::Bun => peers::start_bun(folder, compressed)?,
            Self::Limit => Running::start("bare", &[], folder.path())?,
        };
        check::run(running.port, case)?;
        Ok(running)
    }
}
