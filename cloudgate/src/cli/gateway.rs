//! What does the program do with a configuration file, beside serving by it?

use std::path::PathBuf;
use std::process::ExitCode;

use super::say;
use crate::config::file::{Flags, GatewayFile, Loaded};
use crate::run::{gateway, gateway_file};

/// Tells what is wrong with a configuration file of the gateway, without serving by it.
#[derive(Debug, clap::Args)]
pub(super) struct Check {
    #[command(flatten)]
    file: FileArgs,
}

/// Shows configurations of the gateway, and what they can hold.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Config {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigCommand {
    /// Prints the whole configuration with its defaults, as YAML; passwords and keys as ***.
    Show(Show),
    /// Prints the JSON Schema of the file, for editors.
    Schema,
    /// Prints what each key means, with its default, in Markdown.
    Keys,
}

#[derive(Debug, clap::Args)]
struct Show {
    #[command(flatten)]
    file: FileArgs,
    /// Says behind each value where it came from.
    #[arg(long)]
    origin: bool,
}

/// The file, and what comes before it.
#[derive(Debug, clap::Args)]
struct FileArgs {
    /// The configuration file.
    #[arg(short, long, value_name = "FILE", default_value = "config.yml")]
    config: PathBuf,
    #[command(flatten)]
    flags: FlagArgs,
}

/// Flags that come before the file and the environment.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct FlagArgs {
    /// The TCP port, in place of `server.port`; 0 takes any free one.
    #[arg(long)]
    pub(super) port: Option<u16>,
    /// The address to listen on, in place of `server.host`.
    #[arg(long, value_name = "ADDR", value_parser = super::serve::parse_host_argument)]
    pub(super) host: Option<std::net::IpAddr>,
}

impl FlagArgs {
    /// As the configuration takes them.
    pub(super) fn flags(&self) -> Flags {
        Flags {
            port: self.port,
            host: self.host,
        }
    }
}

/// Reads the file; tells what is wrong and gives the exit code.
fn load(args: &FileArgs) -> Result<Loaded, ExitCode> {
    gateway_file::load(&args.config, &args.flags.flags()).map_err(|error| {
        // Each mistake begins with the file and its place, for editors and people to go there.
        match error.exit_code() {
            1 => say::plain_error(&error.to_string()),
            _ => say::error(&error.to_string()),
        }
        ExitCode::from(error.exit_code())
    })
}

/// Serves by a configuration file until a signal comes.
pub(super) fn run(config: PathBuf, flags: FlagArgs) -> ExitCode {
    let file = FileArgs { config, flags };
    let loaded = match load(&file) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    match gateway::serve(&file.config, &file.flags.flags(), &loaded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::error(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Says whether a file is right.
pub(super) fn check(args: &Check) -> ExitCode {
    let loaded = match load(&args.file) {
        Ok(loaded) => loaded,
        Err(code) => return code,
    };
    for warning in &loaded.warnings {
        say::plain_error(&format!("{warning} (warning)"));
    }
    let services = say::count(loaded.config.services.len(), "service");
    say::out(&format!(
        "{}: ok, {services}\n",
        say::path(&args.file.config)
    ));
    ExitCode::SUCCESS
}

/// Shows a configuration or the schema.
pub(super) fn config(args: &Config) -> ExitCode {
    match &args.command {
        ConfigCommand::Schema => say::out(&GatewayFile::schema()),
        ConfigCommand::Keys => say::out(&GatewayFile::reference()),
        ConfigCommand::Show(show) => match load(&show.file) {
            Ok(loaded) if show.origin => say::out(&loaded.show_origins()),
            Ok(loaded) => say::out(&loaded.show()),
            Err(code) => return code,
        },
    }
    ExitCode::SUCCESS
}
