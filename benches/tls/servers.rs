//! Which servers are compared over TLS, and how is each started and checked for a case?

use std::cell::RefCell;
use std::io;

use rustls::HandshakeKind;

use crate::cases::{Case, SIMPLE_BODY};
use crate::client::{Client, Connection, Version, take_leave};
use crate::harness::ask;
use crate::harness::child::Running;
use crate::harness::load::{self, Plan};
use crate::harness::options::Named;
use crate::harness::rounds::Started;
use crate::nginx;
use crate::site::{Site, file};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Cloudgate,
    Nginx,
}

impl Named for Server {
    const ALL: &'static [Self] = &[Self::Cloudgate, Self::Nginx];

    fn name(self) -> &'static str {
        match self {
            Self::Cloudgate => "cloudgate",
            Self::Nginx => "nginx",
        }
    }
}

/// One run of the benchmark.
pub(crate) struct Bench {
    pub(crate) seconds: u32,
    pub(crate) connections: u32,
    /// How many handshakes are made at a time.
    pub(crate) handshakes: u32,
    pub(crate) site: Site,
    /// The servers with which wrk was seen to agree on what it should.
    pub(crate) wrk_agreed: RefCell<Vec<Server>>,
}

impl Bench {
    pub(crate) fn run(
        &self,
        case: Case,
        server: Server,
        connections: u32,
    ) -> Result<Running, String> {
        match server {
            Server::Cloudgate => {
                Running::start("app", &[case.key().name().to_owned()], self.site.dir())
            }
            Server::Nginx => nginx::start(&self.site, case.key(), connections),
        }
    }

    /// Starts the server, checks its answer to the case, and hands it over running.
    pub(crate) fn start(&self, case: Case, server: Server) -> Result<Started, String> {
        let running = self.run(case, server, self.connections)?;
        let answer_bytes = check(case, running.port)?;
        let plan = self.plan(case)?;
        if !case.is_handshake() && !self.wrk_agreed.borrow().contains(&server) {
            self.check_wrk(&plan, running.port)?;
            self.wrk_agreed.borrow_mut().push(server);
        }
        Ok(Started {
            running,
            behind: Vec::new(),
            answer_bytes,
            plan,
        })
    }

    fn plan(&self, case: Case) -> Result<Plan, String> {
        let counting = self
            .site
            .folder()
            .write("counting.lua", load::COUNTING.as_bytes())?;
        Ok(Plan {
            client: if case.is_handshake() {
                load::Client::Own("handshakes", case.terms().words())
            } else {
                load::Client::WrkOverTls(self.site.dir().join("wrk.cnf"))
            },
            connections: if case.is_handshake() {
                self.handshakes
            } else {
                self.connections
            },
            warm_up: 1,
            seconds: self.seconds,
            patience: 10,
            target: case.target().to_owned(),
            headers: Vec::new(),
            script: Some(counting),
        })
    }

    /// wrk speaks TLS by OpenSSL, and does not say what was agreed on: the server does.
    fn check_wrk(&self, plan: &Plan, port: u16) -> Result<(), String> {
        let script = self.site.folder().write("agreed.lua", AGREED.as_bytes())?;
        let plan = Plan {
            target: "/agreed".to_owned(),
            script: Some(script),
            connections: 4,
            ..plan.clone()
        };
        let report = load::report(&plan, 1, port)?;
        let said: Vec<&str> = report
            .lines()
            .filter_map(|line| line.strip_prefix("agreed "))
            .collect();
        if !said.is_empty() && said.iter().all(|said| are_terms(said, Version::Tls13)) {
            Ok(())
        } else {
            Err(format!("void: wrk agreed on {said:?}"))
        }
    }
}

/// For wrk: what the last answer of each thread was.
const AGREED: &str = "local threads = {}
function setup(thread) table.insert(threads, thread) end
function response(status, headers, body) said = body end
function done()
  for _, thread in ipairs(threads) do io.write('agreed ' .. tostring(thread:get('said')) .. '\\n') end
end
";

/// Whether a server's words are the version with AES-128-GCM: OpenSSL and IANA call the suites of TLS 1.2 differently.
pub(crate) fn are_terms(said: &str, version: Version) -> bool {
    let mut words = said.split(' ');
    let wanted = match version {
        Version::Tls12 => "TLSv1.2",
        Version::Tls13 => "TLSv1.3",
    };
    words.next() == Some(wanted)
        && words
            .next()
            .is_some_and(|suite| suite.replace(['_', '-'], "").contains("AES128GCMSHA256"))
}

/// A benchmark of wrong answers measures nothing, nor does one of other handshakes. Gives back how long an answer is.
fn check(case: Case, port: u16) -> Result<usize, String> {
    let client = Client::new(case.terms())?;
    let told = |error: io::Error| format!("does not speak TLS: {error}");
    if case.terms().kind == HandshakeKind::Resumed {
        client.connect(port).and_then(take_leave).map_err(told)?;
    }
    let mut connection = client.connect(port).map_err(told)?;
    check_terms(case, &mut connection, port)?;
    let target = case.target();
    let answer = ask::get_over(&mut connection, port, target, &[])?;
    if answer.status != 200 {
        return Err(format!(
            "answers {target} with status {} instead of 200",
            answer.status
        ));
    }
    if answer.body != file(case).unwrap_or_else(|| SIMPLE_BODY.into()) {
        return Err(format!("answers {target} with other bytes than expected"));
    }
    Ok(answer.raw.len())
}

/// What the client knows of the handshake, and what the server says.
fn check_terms(case: Case, connection: &mut Connection, port: u16) -> Result<(), String> {
    let terms = case.terms();
    let kind = connection.conn.handshake_kind();
    if kind != Some(terms.kind) {
        return Err(format!(
            "makes a {kind:?} handshake and not a {:?} one",
            terms.kind
        ));
    }
    let answer = ask::get_over(connection, port, "/agreed", &[])?;
    let said = String::from_utf8_lossy(&answer.body);
    let mark = match terms.kind {
        HandshakeKind::Resumed => " r",
        _ => " .",
    };
    if are_terms(&said, terms.version) && said.ends_with(mark) {
        Ok(())
    } else {
        Err(format!("has agreed on `{said}`"))
    }
}
