//! Which servers are compared, and how is each started for a case?

use crate::cases::Case;
use crate::harness::ask;
use crate::harness::child::Running;
use crate::harness::load::{Client, Plan};
use crate::harness::options::Named;
use crate::harness::rounds::Started;
use crate::options::Options;
use crate::site::Site;
use crate::{floor, nginx};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Cloudgate,
    Nginx,
    MayMinihttp,
    Limit,
}

impl Named for Server {
    const ALL: &'static [Self] = &[Self::Cloudgate, Self::Nginx, Self::MayMinihttp, Self::Limit];

    fn name(self) -> &'static str {
        match self {
            Self::Cloudgate => "cloudgate",
            Self::Nginx => "nginx",
            Self::MayMinihttp => "may_minihttp",
            Self::Limit => "limit",
        }
    }
}

impl Server {
    /// Starts it, checks its answer to the case, and hands it over running.
    pub(crate) fn start(
        self,
        case: Case,
        options: &Options,
        site: &Site,
    ) -> Result<Started, String> {
        let running = match self {
            Self::Cloudgate => Running::start("app", &[], site.dir())?,
            Self::Nginx => nginx::start(site, options.connections)?,
            Self::MayMinihttp => {
                Running::start("floor", &floor::arguments(case, site)?, site.dir())?
            }
            Self::Limit => {
                Running::start("limit", &[model_answer(case, options, site)?], site.dir())?
            }
        };
        let answer = ask::get(running.port, &case.target(site), &[])?;
        case.check(&answer, site)?;
        Ok(Started {
            running,
            behind: Vec::new(),
            answer_bytes: answer.raw.len(),
            plan: plan(case, options, site)?,
        })
    }
}

fn plan(case: Case, options: &Options, site: &Site) -> Result<Plan, String> {
    let script = if options.pipeline > 1 {
        Some(site.write("pipeline.lua", pipeline_script(options.pipeline).as_bytes())?)
    } else {
        None
    };
    Ok(Plan {
        client: Client::Wrk,
        connections: options.connections,
        warm_up: 1,
        seconds: options.seconds,
        patience: 2,
        target: case.target(site),
        headers: Vec::new(),
        script,
    })
}

fn pipeline_script(depth: u32) -> String {
    format!(
        "init = function(args)\n  local one = {{}}\n  for i = 1, {depth} do one[i] = wrk.format() end\n  all = table.concat(one)\nend\nrequest = function() return all end\n"
    )
}

/// The file with the answer that the limit repeats: cloudgate's, byte for byte, or the next one's where there is no cloudgate.
fn model_answer(case: Case, options: &Options, site: &Site) -> Result<String, String> {
    let path = site.dir().join(format!("answer-{}", case.name()));
    if !path.exists() {
        let mut reason = String::new();
        let answer = [Server::Cloudgate, Server::Nginx, Server::MayMinihttp]
            .into_iter()
            .find_map(|server| {
                let started = server
                    .start(case, options, site)
                    .map_err(|error| reason = error)
                    .ok()?;
                ask::get(started.running.port, &case.target(site), &[]).ok()
            });
        let answer = answer.ok_or_else(|| format!("no answer to repeat: {reason}"))?;
        site.write(&format!("answer-{}", case.name()), &answer.raw)?;
    }
    Ok(path.display().to_string())
}
