//! How do the tests start the program `cloudgate`, and does it take what it is told?

use std::process::Command;

use cloudgate_suite::{Ended, Program};

/// The program with these arguments, and nothing of the environment that would count.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloudgate-under-test"));
    command.args(arguments).env_remove("RUST_BACKTRACE");
    for name in [
        "PORT", "HOST", "THREADS", "SSL", "SSL_PORT", "SSL_CERT", "SSL_KEY",
    ] {
        command.env_remove(name);
    }
    command
}

/// What becomes of the program with these arguments.
#[track_caller]
pub fn ended(arguments: &[&str]) -> Ended {
    Program::spawn(command(arguments)).ended()
}

#[test]
fn wrong_arguments_end_it_with_2_and_right_questions_with_0() {
    for (arguments, code, want) in [
        (
            &["serve", "--port", "no"][..],
            2,
            "error: invalid value 'no'",
        ),
        (&["compress"], 2, "Usage: cloudgate compress"),
        (&["nonsense"], 2, "Usage: cloudgate"),
        (&[], 2, "Usage: cloudgate"),
        (&["--help"], 0, "Usage: cloudgate"),
        (&["serve", "--help"], 0, "Usage: cloudgate serve"),
        (&["compress", "--help"], 0, "Usage: cloudgate compress"),
    ] {
        let ended = ended(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:?}");
        // Answers go where they can be read page by page, complaints where they are not in the way.
        let said = if code == 0 {
            ended.lines.join("\n")
        } else {
            ended.errors
        };
        assert!(said.contains(want), "{arguments:?}: {said}");
    }
    let version = ended(&["--version"]);
    assert_eq!(
        version.lines,
        [concat!("cloudgate ", env!("CARGO_PKG_VERSION"))]
    );
}
