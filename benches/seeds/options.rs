//! Which settings does this bench have?

use crate::cases::Case;
use crate::harness::options::{choose, names, number};
use crate::servers::Server;

pub(crate) struct Options {
    pub(crate) seconds: u32,
    pub(crate) rounds: u32,
    pub(crate) connections: u32,
    /// Requests that a connection sends before it waits for the answers.
    pub(crate) pipeline: u32,
    pub(crate) cases: Vec<Case>,
    pub(crate) servers: Vec<Server>,
}

impl Options {
    pub(crate) fn read(arguments: &[String]) -> Result<Self, String> {
        let (cases, servers) = choose(&names(arguments))?;
        Ok(Self {
            seconds: number("BENCH_SECONDS", 5, 1, 600)?,
            rounds: number("BENCH_ROUNDS", 3, 1, 99)?,
            connections: number("BENCH_CONNECTIONS", 64, 2, 20_000)?,
            pipeline: number("BENCH_PIPELINE", 1, 1, 64)?,
            cases,
            servers,
        })
    }
}
