//! How many requests does wrk get answered, and how fast?

use std::process::Command;

use crate::child;
use crate::options::Options;
use crate::site::Site;

pub(crate) struct Load {
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

pub(crate) fn run(
    options: &Options,
    seconds: u32,
    site: &Site,
    port: u16,
    target: &str,
) -> Result<Load, String> {
    let mut program: Vec<String> = [PROGRAM, "-t2", "--latency"].map(str::to_owned).to_vec();
    program.push(format!("-c{}", options.connections));
    program.push(format!("-d{seconds}s"));
    if options.pipeline > 1 {
        let script = site.write("pipeline.lua", pipeline_script(options.pipeline).as_bytes())?;
        program.extend(["-s".to_owned(), script.display().to_string()]);
    }
    program.push(format!("http://127.0.0.1:{port}{target}"));
    parse(&child::run_guarded(&program)?)
}

/// What `wrk -v` says first, or `None` if there is no wrk.
pub(crate) fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("-v").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(
        text.lines()
            .next()?
            .split(" Copyright")
            .next()?
            .trim()
            .to_owned(),
    )
}

pub(crate) const MISSING: &str = "wrk is not installed: apt-get install wrk";

const PROGRAM: &str = "wrk";

fn pipeline_script(depth: u32) -> String {
    format!(
        "init = function(args)\n  local one = {{}}\n  for i = 1, {depth} do one[i] = wrk.format() end\n  all = table.concat(one)\nend\nrequest = function() return all end\n"
    )
}

/// Reads wrk's report. A run in which anything failed is not a measurement.
pub(crate) fn parse(text: &str) -> Result<Load, String> {
    let line = |start: &str| {
        text.lines()
            .map(str::trim)
            .find_map(|line| line.strip_prefix(start))
            .map(str::trim)
    };
    if let Some(count) = line("Non-2xx or 3xx responses:") {
        return Err(format!(
            "void: wrk counted {count} answers with an error status"
        ));
    }
    if let Some(errors) = line("Socket errors:") {
        return Err(format!("void: wrk counted socket errors: {errors}"));
    }
    let unreadable = || {
        format!(
            "void: wrk said `{}`",
            text.lines().last().unwrap_or_default().trim()
        )
    };
    let requests: u64 = text
        .lines()
        .find_map(|line| line.split_once(" requests in ")?.0.trim().parse().ok())
        .ok_or_else(unreadable)?;
    if requests == 0 {
        return Err("void: not one request was answered".to_owned());
    }
    Ok(Load {
        requests,
        per_second: line("Requests/sec:")
            .and_then(|value| value.parse().ok())
            .ok_or_else(unreadable)?,
        p50_ms: line("50%").and_then(milliseconds).ok_or_else(unreadable)?,
        p99_ms: line("99%").and_then(milliseconds).ok_or_else(unreadable)?,
    })
}

/// wrk writes a time as a number and `us`, `ms`, `s`, `m` or `h`.
pub(crate) fn milliseconds(text: &str) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let scale = match unit {
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}
