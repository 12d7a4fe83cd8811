//! How does the generator say that it could not do what was asked?

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

/// Why there is no app: what happened, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    pub(crate) message: String,
    /// A command that would work, if one is known.
    pub(crate) advice: Option<String>,
}

#[derive(Debug)]
enum Kind {
    CouldNot,
    Usage,
    Cancelled,
}

impl Failure {
    pub(crate) fn could_not(message: impl Into<String>) -> Failure {
        Failure {
            kind: Kind::CouldNot,
            message: message.into(),
            advice: None,
        }
    }

    /// `what` is a verb with its object, as in "write the file".
    pub(crate) fn io(what: &str, path: &Path, error: impl Display) -> Failure {
        Failure::could_not(format!("cannot {what} {}: {error}", path.display()))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure {
            kind: Kind::Usage,
            message: message.into(),
            advice: None,
        }
    }

    pub(crate) fn cancelled() -> Failure {
        Failure {
            kind: Kind::Cancelled,
            message: "cancelled, nothing was left behind".to_owned(),
            advice: None,
        }
    }

    pub(crate) fn with_advice(mut self, command: impl Into<String>) -> Failure {
        self.advice = Some(command.into());
        self
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::CouldNot => 1,
            Kind::Usage => 2,
            Kind::Cancelled => 130,
        })
    }
}
