//! What did the person ask to be measured, and for how long?

use std::env;
use std::str::FromStr;

use crate::cases::Case;
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
        let only = env::var("BENCH_ONLY").unwrap_or_default();
        let mut names: Vec<&str> = only
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        names.extend(
            arguments
                .iter()
                .map(String::as_str)
                .filter(|argument| !argument.starts_with('-')),
        );
        let (cases, servers) = choose(&names)?;
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

/// Names of cases and of servers may be mixed; naming none of a kind means all of it.
pub(crate) fn choose(names: &[&str]) -> Result<(Vec<Case>, Vec<Server>), String> {
    let known = |name: &&&str| {
        !Case::ALL.iter().any(|c| c.name() == **name)
            && !Server::ALL.iter().any(|s| s.name() == **name)
    };
    if let Some(name) = names.iter().find(known) {
        let all: Vec<&str> = Case::ALL
            .iter()
            .map(|c| c.name())
            .chain(Server::ALL.iter().map(|s| s.name()))
            .collect();
        return Err(format!(
            "nothing here is called `{name}`; choose among {}",
            all.join(", ")
        ));
    }
    let mut cases = Case::ALL.to_vec();
    cases.retain(|case| names.contains(&case.name()));
    let mut servers = Server::ALL.to_vec();
    servers.retain(|server| names.contains(&server.name()));
    Ok((
        if cases.is_empty() {
            Case::ALL.to_vec()
        } else {
            cases
        },
        if servers.is_empty() {
            Server::ALL.to_vec()
        } else {
            servers
        },
    ))
}

fn number(name: &str, default: u32, least: u32, most: u32) -> Result<u32, String> {
    let Ok(text) = env::var(name) else {
        return Ok(default);
    };
    u32::from_str(&text)
        .ok()
        .filter(|value| (least..=most).contains(value))
        .ok_or_else(|| format!("{name} is `{text}`; give a number from {least} to {most}"))
}
