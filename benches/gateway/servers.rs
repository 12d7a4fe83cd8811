//! Which gateways are compared, and how is each started and checked for a case?

use rustls::HandshakeKind;

use crate::cases::Case;
use crate::client::{Client, Terms, Version};
use crate::foreign;
use crate::harness::ask;
use crate::harness::child::Running;
use crate::harness::load::{self, Plan};
use crate::harness::options::Named;
use crate::harness::rounds::Started;
use crate::nginx::{self, Fields};
use crate::site::{self, Site};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Direct,
    Cloudgate,
    Nginx,
    NginxGuide,
    Haproxy,
    Caddy,
    Limit,
}

impl Named for Server {
    const ALL: &'static [Self] = &[
        Self::Direct,
        Self::Cloudgate,
        Self::Nginx,
        Self::NginxGuide,
        Self::Haproxy,
        Self::Caddy,
        Self::Limit,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Cloudgate => "cloudgate",
            Self::Nginx => "nginx",
            Self::NginxGuide => "nginx-guide",
            Self::Haproxy => "haproxy",
            Self::Caddy => "caddy",
            Self::Limit => "limit",
        }
    }
}

impl Server {
    /// The bare ones know neither TLS nor turns, and nothing of theirs is kept for a connection.
    pub(crate) fn takes_part_in(self, case: Case) -> bool {
        match self {
            Self::Direct | Self::Limit => matches!(case, Case::Hello | Case::Bundle),
            _ => true,
        }
    }
}

/// One run of the benchmark.
pub(crate) struct Bench {
    pub(crate) seconds: u32,
    pub(crate) connections: u32,
    pub(crate) site: Site,
}

/// A gateway with what is behind it.
pub(crate) struct Row {
    pub(crate) running: Running,
    pub(crate) behind: Vec<Running>,
}

impl Bench {
    pub(crate) fn run(&self, case: Case, server: Server, connections: u32) -> Result<Row, String> {
        let dir = self.site.dir();
        let mut behind: Vec<Running> = (0..case.behind())
            .map(|_| Running::start("limit", &[site::answer(case)], dir))
            .collect::<Result<_, _>>()?;
        let addresses: Vec<String> = behind
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port))
            .collect();
        let tls = case.over_tls();
        let site = &self.site;
        let running = match server {
            Server::Direct => behind.pop().ok_or("there is nothing behind")?,
            Server::Cloudgate => {
                let mut arguments = vec![if tls { "tls" } else { "plain" }.to_owned()];
                arguments.extend(addresses);
                Running::start("app", &arguments, dir)?
            }
            Server::Nginx => nginx::start(site, Fields::None, tls, &addresses, connections)?,
            Server::NginxGuide => {
                nginx::start(site, Fields::AsInGuides, tls, &addresses, connections)?
            }
            Server::Haproxy => foreign::haproxy(site, tls, &addresses, connections)?,
            Server::Caddy => foreign::caddy(site, tls, &addresses)?,
            Server::Limit => Running::start("bare", &addresses, dir)?,
        };
        Ok(Row { running, behind })
    }

    /// Starts the gateway, checks its answer to the case, and hands it over running.
    pub(crate) fn start(&self, case: Case, server: Server) -> Result<Started, String> {
        let Row { running, behind } = self.run(case, server, self.connections)?;
        let answer_bytes = check(case, running.port)?;
        let dir = self.site.dir();
        let plan = Plan {
            client: if case.over_tls() {
                load::Client::WrkOverTls(dir.join("wrk.cnf"))
            } else {
                load::Client::Wrk
            },
            connections: self.connections,
            warm_up: 1,
            seconds: self.seconds,
            patience: 10,
            target: case.target().to_owned(),
            headers: Vec::new(),
            script: Some(dir.join("counting.lua")),
        };
        Ok(Started {
            running,
            behind,
            answer_bytes,
            plan,
        })
    }
}

/// A benchmark of wrong answers measures nothing. Two on one connection: the second finds the one behind kept, and with
/// two servers behind each is asked. Gives back how long an answer is.
fn check(case: Case, port: u16) -> Result<usize, String> {
    if case.over_tls() {
        let client = Client::new(Terms {
            version: Version::Tls13,
            kind: HandshakeKind::Full,
        })?;
        let mut connection = client
            .connect(port)
            .map_err(|error| format!("does not speak TLS: {error}"))?;
        check_over(&mut connection, case, port)?;
        check_over(&mut connection, case, port)
    } else {
        let mut connection = ask::connect(port)?;
        check_over(&mut connection, case, port)?;
        check_over(&mut connection, case, port)
    }
}

fn check_over(
    connection: &mut (impl std::io::Read + std::io::Write),
    case: Case,
    port: u16,
) -> Result<usize, String> {
    let target = case.target();
    let answer = ask::get_over(connection, port, target, &[])?;
    if answer.status != 200 {
        return Err(format!(
            "answers {target} with status {} instead of 200",
            answer.status
        ));
    }
    if answer.body != case.body() {
        return Err(format!("answers {target} with other bytes than expected"));
    }
    Ok(answer.raw.len())
}
