//! What does `cloudgate cert` do with certificates?
//!
//! ```text
//!  new    makes a key and a certificate     trust  lets browsers on this machine trust those that are made here
//!  show   tells what is in one              stores the places where browsers and programs look for whom to trust
//! ```
//!
//! On plain threads: no coroutine runs in this program.

mod new;
mod show;
mod stores;
mod trust;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::say;

/// Makes certificates, tells what is in one, and lets browsers on this machine trust those that are made here.
#[derive(Debug, Args)]
pub(super) struct Cert {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    New(new::Args),
    Show(show::Args),
    Trust(trust::Args),
}

/// What a command says in the end: lines for people, or why it could not.
type Outcome = Result<String, String>;

pub(super) fn run(cert: &Cert) -> ExitCode {
    let outcome = match &cert.command {
        Command::New(args) => new::run(args),
        Command::Show(args) => show::run(args),
        Command::Trust(args) => trust::run(args),
    };
    match outcome {
        Ok(text) => {
            say::out(&text);
            ExitCode::SUCCESS
        }
        Err(reason) => {
            say::error(&reason);
            ExitCode::FAILURE
        }
    }
}

/// The first line of a file with a password, or of standard input for `-`; without a file that of `SSL_PASSWORD`.
fn password(file: Option<&Path>) -> Result<String, String> {
    let Some(file) = file else {
        return Ok(std::env::var("SSL_PASSWORD").unwrap_or_default());
    };
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        fs::read_to_string(file)
    };
    match text {
        Ok(text) => Ok(text.lines().next().unwrap_or_default().to_owned()),
        Err(error) => Err(format!(
            "the password in {} cannot be read: {error}",
            say::path(file)
        )),
    }
}
