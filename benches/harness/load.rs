//! How many requests does a client get answered, and how fast?

use std::path::PathBuf;
use std::process::Command;

use super::child;

/// What is to be done to a server.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) client: Client,
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

/// Who does it.
#[derive(Clone)]
pub(crate) enum Client {
    Wrk,
    /// Over TLS, by OpenSSL with the configuration in this file: wrk itself takes none.
    WrkOverTls(PathBuf),
    /// This program again, in a role of its own, with these arguments, the port, how many connections, and for how many
    /// seconds. It writes [`Load::tell`].
    Own(&'static str, Vec<String>),
}

impl Client {
    /// Why it cannot be run, if it cannot.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        let wrk = !matches!(self, Client::Own(..));
        (wrk && version().is_none()).then_some(MISSING)
    }
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

/// OpenSSL's configuration of wrk for [`Client::WrkOverTls`]: the terms on which servers are compared.
pub(crate) const OVER_TLS: &str = "openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = client
[client]
MinProtocol = TLSv1.3
Ciphersuites = TLS_AES_128_GCM_SHA256
Groups = X25519:P-256
";

impl Load {
    /// For who reads it with [`Load::hear`].
    pub(crate) fn tell(&self) -> String {
        format!(
            "{} {} {} {}",
            self.requests, self.per_second, self.p50_ms, self.p99_ms
        )
    }

    pub(crate) fn hear(text: &str) -> Result<Self, String> {
        let unreadable = || format!("void: the client said `{}`", text.trim());
        let numbers: Vec<f64> = text
            .split_whitespace()
            .map(|word| word.parse().map_err(|_| unreadable()))
            .collect::<Result<_, _>>()?;
        let [requests, per_second, p50_ms, p99_ms] = numbers[..] else {
            return Err(unreadable());
        };
        Ok(Self {
            requests: requests as u64,
            per_second,
            p50_ms,
            p99_ms,
            received: None,
        })
    }
}

pub(crate) fn run(plan: &Plan, seconds: u32, port: u16) -> Result<Load, String> {
    if let Client::Own(role, arguments) = &plan.client {
        let mut arguments = arguments.clone();
        arguments.extend([u32::from(port), plan.connections, seconds].map(|it| it.to_string()));
        return Load::hear(&child::run_to_end(role, &arguments)?);
    }
    parse(&report(plan, seconds, port)?)
}

/// What wrk says of a run.
pub(crate) fn report(plan: &Plan, seconds: u32, port: u16) -> Result<String, String> {
    let (scheme, threads, mut program) = match &plan.client {
        Client::WrkOverTls(config) => {
            let config = format!("OPENSSL_CONF={}", config.display());
            // OpenSSL costs wrk more than TLS costs a server, and the system likes to keep two threads on one core:
            // 175,000 requests a second were all that wrk made then, whatever the server.
            ("https", 4, vec!["env".to_owned(), config])
        }
        _ => ("http", 2, Vec::new()),
    };
    program.extend([PROGRAM, "--latency"].map(str::to_owned));
    program.push(format!("-t{threads}"));
    program.push(format!("-c{}", plan.connections));
    program.push(format!("-d{seconds}s"));
    program.push(format!("--timeout={}s", plan.patience));
    for header in &plan.headers {
        program.extend(["-H".to_owned(), header.clone()]);
    }
    if let Some(script) = &plan.script {
        program.extend(["-s".to_owned(), script.display().to_string()]);
    }
    program.push(format!("{scheme}://127.0.0.1:{port}{}", plan.target));
    child::run_guarded(&program)
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

const MISSING: &str = "wrk is not installed: apt-get install wrk";

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
