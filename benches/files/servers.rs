//! Which servers are compared, and how is each started and checked for a case?

use std::io::Read;
use std::path::PathBuf;

use flate2::read::GzDecoder;

use crate::cases::{Case, PAGES};
use crate::content;
use crate::harness::ask::{self, Answer};
use crate::harness::child::Running;
use crate::harness::load::{Client, Plan};
use crate::harness::options::Named;
use crate::harness::rounds::Started;
use crate::nginx::{self, Sendfile};
use crate::scripts;
use crate::site::{Site, page_target};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Cloudgate,
    Nginx,
    NginxWithoutSendfile,
    Limit,
}

impl Named for Server {
    const ALL: &'static [Self] = &[
        Self::Cloudgate,
        Self::Nginx,
        Self::NginxWithoutSendfile,
        Self::Limit,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Cloudgate => "cloudgate",
            Self::Nginx => "nginx",
            Self::NginxWithoutSendfile => "nginx-no-sendfile",
            Self::Limit => "limit",
        }
    }
}

impl Server {
    /// The limit repeats one answer from memory, so it says nothing about many files or large ones.
    pub(crate) fn takes_part_in(self, case: Case) -> bool {
        let small = matches!(
            case,
            Case::Html600 | Case::Html2k | Case::Html4k | Case::Png15k
        );
        match self {
            Self::Cloudgate | Self::Nginx => true,
            Self::NginxWithoutSendfile => small || matches!(case, Case::Many | Case::One),
            Self::Limit => small || case == Case::NotModified,
        }
    }
}

/// One run of the benchmark.
pub(crate) struct Bench {
    pub(crate) seconds: u32,
    pub(crate) connections: u32,
    pub(crate) site: Site,
}

/// The shortest run that a gigabyte is measured in, and its warm-up, in seconds: one answer has to end in each.
const LARGE_SECONDS: u32 = 6;
const LARGE_WARM_UP: u32 = 3;

impl Bench {
    /// Starts the server, checks its answer to the case, and hands it over running.
    pub(crate) fn start(&self, case: Case, server: Server) -> Result<Started, String> {
        self.site.has(case)?;
        let connections = case.connections().unwrap_or(self.connections);
        let nginx = |sendfile| nginx::start(case, sendfile, &self.site, connections);
        let running = match server {
            Server::Cloudgate => self.cloudgate(case)?,
            Server::Nginx => nginx(Sendfile::On)?,
            Server::NginxWithoutSendfile => nginx(Sendfile::Off)?,
            Server::Limit => {
                let model = self.model_answer(case)?.display().to_string();
                Running::start("limit", &[model], self.site.dir())?
            }
        };
        let headers = headers(case, running.port)?;
        let answer_bytes = self.check(case, running.port, &headers)?;
        let large = case == Case::File1g;
        let script = self.site.folder().write(
            &format!("{}.lua", case.name()),
            scripts::script(case).as_bytes(),
        )?;
        let plan = Plan {
            client: Client::Wrk,
            connections,
            warm_up: if large { LARGE_WARM_UP } else { 1 },
            seconds: if large {
                self.seconds.max(LARGE_SECONDS)
            } else {
                self.seconds
            },
            patience: 30,
            target: case.target().to_owned(),
            headers,
            script: Some(script),
        };
        Ok(Started {
            running,
            behind: Vec::new(),
            answer_bytes,
            plan,
        })
    }

    fn cloudgate(&self, case: Case) -> Result<Running, String> {
        let role = if case.takes_gzip() { "coded" } else { "files" };
        Running::start("app", &[role.to_owned()], self.site.dir())
    }

    /// The file with the answer that the limit repeats: cloudgate's, byte for byte, or nginx's where there is no cloudgate.
    fn model_answer(&self, case: Case) -> Result<PathBuf, String> {
        let path = self.site.dir().join(format!("answer-{}", case.name()));
        if path.exists() {
            return Ok(path);
        }
        let running = self
            .cloudgate(case)
            .or_else(|_| nginx::start(case, Sendfile::On, &self.site, self.connections))?;
        let answer = ask::get(running.port, case.target(), &headers(case, running.port)?)?;
        self.site
            .folder()
            .write(&format!("answer-{}", case.name()), &answer.raw)
    }

    /// A benchmark of wrong answers measures nothing. Gives back how long an answer is.
    fn check(&self, case: Case, port: u16, headers: &[String]) -> Result<usize, String> {
        if case == Case::File1g {
            return check_pattern(port, case);
        }
        if case == Case::Many {
            // Enough of them to meet a wrong one, and not so many that the server has all of them before it is measured.
            for number in (0..PAGES).step_by(500) {
                let target = page_target(number);
                let answer = ask::get(port, &target, headers)?;
                expect(&answer, 200, &target)?;
                same(&answer.body, &self.site.body(&target)?, &target)?;
            }
        }
        let target = case.target();
        let answer = ask::get(port, target, headers)?;
        if case == Case::NotModified {
            expect(&answer, 304, target)?;
            return Ok(answer.raw.len());
        }
        expect(&answer, 200, target)?;
        let wanted = self.site.body(target)?;
        if case.takes_gzip() {
            same(&unzipped(&answer, target)?, &wanted, target)?;
        } else {
            same(&answer.body, &wanted, target)?;
        }
        Ok(answer.raw.len())
    }
}

/// What the client says besides wrk's own headers: the tag is the server's own, so it has to be asked for.
fn headers(case: Case, port: u16) -> Result<Vec<String>, String> {
    if case == Case::NotModified {
        let answer = ask::get(port, case.target(), &[])?;
        let tag = answer
            .field("etag")
            .ok_or_else(|| format!("answers {} without an ETag", case.target()))?;
        return Ok(vec![format!("If-None-Match: {tag}")]);
    }
    Ok(if case.takes_gzip() {
        vec!["Accept-Encoding: gzip".to_owned()]
    } else {
        Vec::new()
    })
}

fn expect(answer: &Answer, status: u16, target: &str) -> Result<(), String> {
    if answer.status == status {
        Ok(())
    } else {
        Err(format!(
            "answers {target} with status {} instead of {status}",
            answer.status
        ))
    }
}

fn same(body: &[u8], wanted: &[u8], target: &str) -> Result<(), String> {
    if body == wanted {
        Ok(())
    } else {
        Err(format!("answers {target} with other bytes than expected"))
    }
}

pub(crate) fn unzipped(answer: &Answer, target: &str) -> Result<Vec<u8>, String> {
    if answer.field("content-encoding") != Some("gzip") {
        return Err(format!(
            "answers {target} without gzip to a client that takes it"
        ));
    }
    let mut plain = Vec::new();
    GzDecoder::new(&answer.body[..])
        .read_to_end(&mut plain)
        .map_err(|error| format!("answers {target} with gzip that cannot be undone: {error}"))?;
    Ok(plain)
}

fn check_pattern(port: u16, case: Case) -> Result<usize, String> {
    let target = case.target();
    let mut offset = 0;
    let whole = ask::get_in_pieces(port, target, |piece| {
        let wanted = content::pattern(offset, piece.len());
        offset += piece.len() as u64;
        same(piece, &wanted, target)
    })?;
    if Some(offset) == case.length() {
        Ok(whole)
    } else {
        Err(format!(
            "answers {target} with {offset} bytes of a longer file"
        ))
    }
}
