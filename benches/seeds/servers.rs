//! Which servers are compared, and how is each started for a case?

use crate::ask;
use crate::cases::Case;
use crate::child::Running;
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

impl Server {
    pub(crate) const ALL: [Self; 4] =
        [Self::Cloudgate, Self::Nginx, Self::MayMinihttp, Self::Limit];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cloudgate => "cloudgate",
            Self::Nginx => "nginx",
            Self::MayMinihttp => "may_minihttp",
            Self::Limit => "limit",
        }
    }

    /// Starts it, checks its answer to the case, and hands it over running.
    pub(crate) fn start(
        self,
        case: Case,
        options: &Options,
        site: &Site,
    ) -> Result<(Running, usize), String> {
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
        let answer = ask::get(running.port, &case.target(site))?;
        case.check(&answer, site)?;
        Ok((running, answer.raw.len()))
    }
}

/// The file with the answer that the limit repeats: cloudgate's, byte for byte, or the next one's where there is no cloudgate.
fn model_answer(case: Case, options: &Options, site: &Site) -> Result<String, String> {
    let path = site.dir().join(format!("answer-{}", case.name()));
    if !path.exists() {
        let mut reason = String::new();
        let answer = [Server::Cloudgate, Server::Nginx, Server::MayMinihttp]
            .into_iter()
            .find_map(|server| {
                let (running, _) = server
                    .start(case, options, site)
                    .map_err(|error| reason = error)
                    .ok()?;
                ask::get(running.port, &case.target(site)).ok()
            });
        let answer = answer.ok_or_else(|| format!("no answer to repeat: {reason}"))?;
        site.write(&format!("answer-{}", case.name()), &answer.raw)?;
    }
    Ok(path.display().to_string())
}
