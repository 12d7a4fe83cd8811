//! What do the benchmarks that measure whole servers share?
//!
//! ```text
//!  Program::run ─┬─ child::play     one role of this program, to its end
//!                └─ rounds::run     cells in turn: a server, checked, below wrk's load
//!                   └─ table::render
//! ```

pub(crate) mod ask;
pub(crate) mod child;
pub(crate) mod descriptors;
pub(crate) mod folder;
pub(crate) mod limit;
pub(crate) mod load;
pub(crate) mod machine;
pub(crate) mod measure;
pub(crate) mod nginx;
pub(crate) mod options;
pub(crate) mod rounds;
pub(crate) mod selfcheck;
pub(crate) mod table;

use std::process::ExitCode;

/// What makes one benchmark another than the next.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    /// What this program can be started again as, besides the roles that every one has.
    pub(crate) roles: &'static [child::Role],
    /// What `cargo test` is to check besides the harness.
    pub(crate) selfcheck: fn(),
    /// Given the arguments of the command line.
    pub(crate) bench: fn(&[String]) -> Result<(), String>,
}

impl Program {
    pub(crate) fn run(&self) -> ExitCode {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let role = arguments
            .first()
            .and_then(|first| first.strip_prefix("--child="));
        let outcome = match role {
            Some(role) => child::play(role, &arguments[1..], self.roles),
            None if arguments.iter().any(|argument| argument == "--bench") => {
                (self.bench)(&arguments)
            }
            None => {
                selfcheck::run();
                (self.selfcheck)();
                println!(
                    "{name}: the harness reads its own samples rightly; `cargo bench --bench {name}` measures",
                    name = self.name
                );
                Ok(())
            }
        };
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => {
                eprintln!("{}: {reason}", self.name);
                ExitCode::FAILURE
            }
        }
    }
}
