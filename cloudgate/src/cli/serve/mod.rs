//! How does `cloudgate serve` serve a folder?
//!
//! ```text
//!  arguments, environment ─▶ App with Files ─▶ run ─▶ welcome ─ lan, qr ─▶ people
//!                                                  ─▶ browser
//! ```

mod browser;
mod lan;
mod qr;
mod welcome;

use std::env::{self, VarError};
use std::io::{self, IsTerminal};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;

use super::say;
use crate::app::App;
use crate::config::{Config, HOSTS, TlsConfig, parse_host};
use crate::error::{Error, Result};
use crate::logger;
use crate::message::Service;
use crate::net::tls::local_ca;
use crate::run;
use crate::server::Running;
use crate::services::access_log::AccessLog;
use crate::services::cors::Cors;
use crate::services::files::Files;
use crate::services::files::cache_control::CacheControl;
use welcome::Terminal;

/// The page for what is not there, if the folder has one at the start.
const NOT_FOUND: &str = "404.html";

/// How many ports after one that is in use are tried for the hint.
const NEXT_PORTS: u16 = 20;

/// Serves the files of a folder until Ctrl-C.
///
/// A page 404.html in it is the answer for what is not there. Files with a sibling that is compressed (see
/// `cloudgate compress`) are sent as that, and others are compressed on the way.
/// The environment variables PORT, HOST, THREADS and those of TLS (SSL, SSL_CERT, …) count where there is no argument.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder
    #[arg(default_value = ".")]
    dir: PathBuf,

    /// The port; 0 takes any free one (default: 3000)
    #[arg(long, short, value_name = "N")]
    port: Option<u16>,

    /// The address to listen on; 0.0.0.0 or :: lets the whole network in (default: 127.0.0.1)
    #[arg(long, value_name = "ADDR", value_parser = parse_host_argument)]
    host: Option<IpAddr>,

    /// Answer with index.html what is no file: for pages that make their own routes
    #[arg(long)]
    spa: bool,

    /// List what is in folders without an index.html
    #[arg(long)]
    listing: bool,

    /// Let the scripts of every web site read the files
    #[arg(long)]
    cors: bool,

    /// Speak TLS (https), with a key that is made in .cloudgate/ unless --cert names one
    #[arg(long)]
    tls: bool,

    /// The certificate with its chain: PEM, or PKCS#12 as .p12 or .pfx with its password in SSL_PASSWORD
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,

    /// The private key in PEM form, where it is not in the file of the certificate
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Open the address in a browser
    #[arg(long)]
    open: bool,

    /// Compress nothing on the way; compressed siblings that are there are sent all the same
    #[arg(long)]
    no_compress: bool,

    /// What browsers may keep. safe: what has a hash in its name, and the rest if they ask each time whether
    /// it is the same; by-type: pictures, scripts and the like for some time; none: they are told nothing
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Cache::Safe)]
    cache: Cache,

    /// Write no line for each request
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cache {
    None,
    Safe,
    ByType,
}

/// An address to listen on, for clap.
pub(super) fn parse_host_argument(text: &str) -> std::result::Result<IpAddr, String> {
    parse_host(text).ok_or_else(|| format!("it must be {HOSTS}"))
}

pub(super) fn run(args: &Args) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(&advice(&error));
            ExitCode::FAILURE
        }
    }
}

fn serve(args: &Args) -> Result<()> {
    logger::install();
    let config = configuration(args)?;
    let app = app(args);
    // A folder that is not there is said before a port is taken.
    app.start()?;
    app.run_and_announce(
        |app| run::bind(app, &config),
        |running| announce(args, running),
    )
}

/// The environment, where there is no argument. What an argument stands for is not even looked at.
fn configuration(args: &Args) -> Result<Config> {
    let tls = args.tls || args.cert.is_some();
    let mut config = Config::read(|name| match name {
        name if tls && name.starts_with("SSL") && name != "SSL_PASSWORD" => {
            Err(VarError::NotPresent)
        }
        "PORT" if args.port.is_some() => Err(VarError::NotPresent),
        "HOST" if args.host.is_some() => Err(VarError::NotPresent),
        name => env::var(name),
    })?;
    config.port = args.port.unwrap_or(config.port);
    config.host = args.host.unwrap_or(config.host);
    if tls {
        let mut tls = TlsConfig::new(config.port);
        tls.password = env::var("SSL_PASSWORD").unwrap_or_default();
        tls.certificate.clone_from(&args.cert);
        tls.key.clone_from(&args.key);
        // Those who come by another of its addresses see a name that they asked for.
        let mut lan = lan::addresses(config.host);
        // No local CA signs for others.
        lan.retain(|address| local_ca::is_ones_own(*address));
        tls.names = std::iter::once("localhost".to_owned())
            .chain(lan.iter().map(ToString::to_string))
            .collect();
        config.tls = Some(tls);
    }
    Ok(config)
}

fn app(args: &Args) -> App {
    let mut app = App::new();
    if !args.quiet {
        app = app.wrap(AccessLog::new());
    }
    if args.cors {
        app = app.wrap(Cors::new().any_origin());
    }
    app.fallback(files(args))
}

/// The folder as it was asked for.
fn files(args: &Args) -> Files {
    let mut files = Files::new(&args.dir)
        .listing(args.listing)
        .compress(!args.no_compress)
        .cache_control(match args.cache {
            Cache::None => CacheControl::none(),
            Cache::Safe => CacheControl::new(),
            Cache::ByType => CacheControl::by_type(),
        });
    if args.spa {
        files = files.spa("index.html");
    }
    if args.dir.join(NOT_FOUND).is_file() {
        files = files.not_found(NOT_FOUND);
    }
    files
}

fn announce(args: &Args, running: &Running) {
    let Some(address) = running.addrs().first() else {
        return;
    };
    let terminal = io::stdout()
        .is_terminal()
        .then(Terminal::of_stdout)
        .flatten();
    let lan = lan::addresses(running.addr().ip());
    say::out(&welcome::text(&args.dir, address, &lan, terminal));
    if args.open {
        browser::open(welcome::url(address));
    }
}

/// What is wrong, in one line, with what to do in terms of this program.
fn advice(error: &Error) -> String {
    match error {
        Error::Bind { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
            let Some(free) = next_free(*address) else {
                return error.to_string();
            };
            format!(
                "port {} of {} is in use by another program - stop that, or take the next free one: --port {free}",
                address.port(),
                address.ip()
            )
        }
        _ => error.to_string(),
    }
}

/// The next port that can be had at this moment.
fn next_free(address: SocketAddr) -> Option<u16> {
    let first = address.port().checked_add(1)?;
    (first..=first.saturating_add(NEXT_PORTS - 1))
        .find(|port| TcpListener::bind((address.ip(), *port)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_in_use_comes_with_the_next_that_is_free() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let Some(free) = next_free(address) else {
            return; // the last port, or many in use
        };
        assert!(free > address.port());
        let error = Error::Bind {
            address,
            source: io::ErrorKind::AddrInUse.into(),
        };
        let advice = advice(&error);
        assert!(
            advice.contains("in use") && advice.contains("--port "),
            "{advice}"
        );
        let last = SocketAddr::new(address.ip(), u16::MAX);
        assert_eq!(next_free(last), None);
    }
}
