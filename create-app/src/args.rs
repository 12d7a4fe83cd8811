//! What can be asked for on the command line?

use std::path::PathBuf;

use clap::Parser;
use clap::builder::PossibleValuesParser;

use crate::git::Wish;
use crate::plan::Mode;
use crate::template;

const EXAMPLES: &str = "\
Examples:
  create-cloudgate-app my-app-1          make the folder my-app-1
  create-cloudgate-app my-app-1 --run    make it, build it and start it
  create-cloudgate-app .                 make the app in this folder

Exit codes: 0 made, 1 could not (the reason is printed), 2 wrong usage, 130 cancelled.";

/// Makes a cloudgate application: static files, an API and a page, ready to run.
#[derive(Parser)]
#[command(name = "create-cloudgate-app", version, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The folder to make: a name, a path, or `.` for this folder
    #[arg(value_name = "NAME|PATH|.")]
    pub(crate) target: Option<PathBuf>,

    /// Ask nothing and take the default answers
    #[arg(short, long)]
    pub(crate) yes: bool,

    /// Overwrite files of the same name in an existing folder; nothing else is deleted
    #[arg(long, conflicts_with = "merge")]
    force: bool,

    /// Write only the files that an existing folder lacks
    #[arg(long)]
    merge: bool,

    /// Make no git repository
    #[arg(long)]
    no_git: bool,

    /// The port for --run and for the printed commands
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: u16,

    /// Take cloudgate from this folder instead of the registry
    #[arg(long, value_name = "DIR")]
    pub(crate) path_dep: Option<PathBuf>,

    /// Build and start the app at once
    #[arg(long, conflicts_with_all = ["dry_run", "json"])]
    pub(crate) run: bool,

    /// Say what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Name the templates
    #[arg(long)]
    pub(crate) list_templates: bool,

    /// The template to use
    #[arg(
        long,
        value_name = "NAME",
        default_value = template::DEFAULT,
        value_parser = PossibleValuesParser::new(template::NAMES),
    )]
    pub(crate) template: String,

    /// Print one JSON object on stdout, also when the app could not be made
    #[arg(long)]
    pub(crate) json: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl Args {
    pub(crate) fn mode(&self) -> Mode {
        match (self.force, self.merge) {
            (true, _) => Mode::Force,
            (_, true) => Mode::Merge,
            _ => Mode::Careful,
        }
    }

    pub(crate) fn git(&self) -> Wish {
        if self.no_git {
            Wish::Nothing
        } else {
            Wish::Repository
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Args::command().debug_assert();
    }
}
