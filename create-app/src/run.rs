//! How is the new app started at once?

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::failure::Failure;
use crate::say;

/// Builds and starts the app with the terminal of this program, and ends as it ends.
pub(crate) fn start(folder: &Path, port: u16) -> Result<ExitCode, Failure> {
    say::err(&format!(
        "Running `PORT={port} cargo run` in {} (Ctrl-C stops it)",
        folder.display()
    ));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .arg("run")
        .current_dir(folder)
        .env("PORT", port.to_string());
    become_it(&mut cargo)
}

/// Cargo takes the place of this process, so that signals and the exit code are its own.
#[cfg(unix)]
fn become_it(cargo: &mut Command) -> Result<ExitCode, Failure> {
    use std::os::unix::process::CommandExt;
    let error = cargo.exec();
    Err(Failure::could_not(format!("cannot start cargo: {error}")))
}

#[cfg(not(unix))]
fn become_it(cargo: &mut Command) -> Result<ExitCode, Failure> {
    let status = cargo
        .status()
        .map_err(|error| Failure::could_not(format!("cannot start cargo: {error}")))?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
