//! What does the program `cloudgate` do, from the command line to the exit code?
//!
//! ```text
//!  arguments ─ clap ─▶ Command ─▶ serve::run    until a signal comes
//!                              ─▶ compress::run
//!                              ─▶ cert::run
//!                              ─▶ gateway::check, gateway::config
//!           -c FILE            ─▶ gateway::run  until a signal comes
//! ```
//!
//! A subcommand is a module with an `Args` and a `run`, and a line in `Command`.

mod cert;
mod compress;
mod gateway;
mod say;
mod serve;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 could not (the reason is printed), 2 wrong usage, 130 interrupted.";

/// Passes requests on to other servers, serves folders of files, makes them ready to be served, and looks after certificates.
#[derive(Debug, Parser)]
#[command(name = "cloudgate", bin_name = "cloudgate", version, arg_required_else_help = true, after_help = EXIT_CODES)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    /// Serves as the gateway that this configuration file describes.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The TCP port, in place of `server.port`; 0 takes any free one.
    #[arg(long, requires = "config")]
    port: Option<u16>,
    /// The address to listen on, in place of `server.host`.
    #[arg(long, value_name = "ADDR", requires = "config", value_parser = serve::parse_host_argument)]
    host: Option<IpAddr>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Compress(compress::Args),
    Cert(cert::Cert),
    Check(gateway::Check),
    Config(gateway::Config),
}

/// Runs the program with the arguments of this process; wrong ones end it with 2.
pub fn main() -> ExitCode {
    let Cli {
        config,
        port,
        host,
        command,
    } = Cli::parse();
    match (command, config) {
        (Some(Command::Serve(args)), _) => serve::run(&args),
        (Some(Command::Compress(args)), _) => compress::run(&args),
        (Some(Command::Cert(cert)), _) => cert::run(&cert),
        (Some(Command::Check(args)), _) => gateway::check(&args),
        (Some(Command::Config(args)), _) => gateway::config(&args),
        (None, Some(config)) => gateway::run(config, gateway::FlagArgs { port, host }),
        // Without any argument clap shows the help; the flags need a file.
        (None, None) => ExitCode::from(2),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn right_arguments_are_taken() {
        for line in [
            "cloudgate serve",
            "cloudgate serve public --port 0 --host ::1",
            "cloudgate serve --host localhost --spa --listing --cors --open --no-compress --quiet",
            "cloudgate serve --cache none",
            "cloudgate serve --cache safe",
            "cloudgate serve --cache by-type",
            "cloudgate compress public",
            "cloudgate compress public --no-gzip --gzip --no-brotli --no-zstd",
            "cloudgate compress public --level 1 --min-size 0 --jobs 256 --force --quiet",
            "cloudgate compress public --dry-run",
            "cloudgate serve --tls",
            "cloudgate serve --cert a.pem --key b.pem",
            "cloudgate cert new",
            "cloudgate cert new a.test *.a.test 10.0.0.1 --out a.p12 --password-file - --days 1 --force",
            "cloudgate cert show a.pem --key b.pem",
            "cloudgate cert show example.com:443",
            "cloudgate cert trust --dry-run --only browsers",
            "cloudgate cert trust --remove --only system",
            "cloudgate -c config.yml",
            "cloudgate --config config.yml --port 0 --host ::1",
            "cloudgate check",
            "cloudgate check -c config.yml --port 80",
            "cloudgate config show -c config.yml --origin --host localhost",
            "cloudgate config schema",
            "cloudgate config keys",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn wrong_arguments_say_what_is_wrong_and_end_with_2() {
        for (line, want) in [
            ("cloudgate", "Usage: cloudgate [OPTIONS]"),
            ("cloudgate -c", "a value is required for '--config <FILE>'"),
            ("cloudgate --port 1", "--config <FILE>"),
            ("cloudgate -c a.yml --port x", "invalid value 'x'"),
            ("cloudgate -c a.yml serve", "cannot be used with"),
            ("cloudgate config", "Usage: cloudgate config <COMMAND>"),
            (
                "cloudgate config show --orgin",
                "similar argument exists: '--origin'",
            ),
            ("cloudgate check a.yml", "unexpected argument 'a.yml'"),
            ("cloudgate serv", "similar subcommand exists: 'serve'"),
            ("cloudgate serve a b", "unexpected argument 'b'"),
            ("cloudgate serve --port 65536", "65536 is not in 0..=65535"),
            (
                "cloudgate serve --host example.org",
                "an IP address such as 127.0.0.1",
            ),
            (
                "cloudgate serve --lising",
                "similar argument exists: '--listing'",
            ),
            (
                "cloudgate serve --cache long",
                "[possible values: none, safe, by-type]",
            ),
            ("cloudgate serve --key b.pem", "--cert <FILE>"),
            ("cloudgate cert", "Usage: cloudgate cert <COMMAND>"),
            ("cloudgate cert show", "<WHAT>"),
            ("cloudgate cert new --days 0", "0 is not in 1..=3650"),
            ("cloudgate cert new --days 3651", "3651 is not in 1..=3650"),
            (
                "cloudgate cert trust --only firefox",
                "[possible values: browsers, system]",
            ),
            ("cloudgate compress", "<DIR>"),
            ("cloudgate compress a --level 0", "0 is not in 1..=9"),
            ("cloudgate compress a --level 10", "10 is not in 1..=9"),
            ("cloudgate compress a --jobs 0", "0 is not in 1..=256"),
            ("cloudgate compress a --jobs 257", "257 is not in 1..=256"),
            ("cloudgate compress a --min-size 1k", "invalid value '1k'"),
        ] {
            let error = parse(line).map(|_| ()).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
            let text = error.to_string();
            assert!(text.contains(want), "{line}: {text}");
        }
    }
}
