//! How many requests does wrk get answered, and how fast?

use std::path::PathBuf;
use std::process::Command;

use super::child;

/// What wrk is to do to a server.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) connections: u32,
    /// How long the server is loaded before it is measured, in seconds.
    pub(crate) warm_up: u32,
    pub(crate) seconds: u32,
    /// Seconds after which wrk counts an answer as lost.
    pub(crate) patience: u32,
    pub(crate) target: String,
    /// Lines of headers besides wrk's own.
    pub(crate) headers: Vec<String>,
    pub(crate) script: Option<PathBuf>,
}

pub(crate) struct Load {
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Where the script has [`COUNTING`]: all bytes that came, of unfinished answers too, and in how many microseconds.
    pub(crate) received: Option<(f64, f64)>,
}

/// For a script: wrk itself says how many bytes it got in three digits only.
pub(crate) const COUNTING: &str = "done = function(summary)\n  io.write(string.format('received %.0f bytes in %.0f us\\n', summary.bytes, summary.duration))\nend\n";

pub(crate) fn run(plan: &Plan, seconds: u32, port: u16) -> Result<Load, String> {
    let mut program: Vec<String> = [PROGRAM, "-t2", "--latency"].map(str::to_owned).to_vec();
    program.push(format!("-c{}", plan.connections));
    program.push(format!("-d{seconds}s"));
    program.push(format!("--timeout={}s", plan.patience));
    for header in &plan.headers {
        program.extend(["-H".to_owned(), header.clone()]);
    }
    if let Some(script) = &plan.script {
        program.extend(["-s".to_owned(), script.display().to_string()]);
    }
    program.push(format!("http://127.0.0.1:{port}{}", plan.target));
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
        received: line("received").and_then(|line| {
            let (bytes, time) = line.strip_suffix(" us")?.split_once(" bytes in ")?;
            Some((bytes.parse().ok()?, time.parse().ok()?))
        }),
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
