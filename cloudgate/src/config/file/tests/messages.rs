//! What does a person read about each mistake?

use super::*;

/// A service that is right.
const SERVICE: &str = "services:\n  - path: /a\n    servers: [\"http://localhost:3001\"]\n";

#[track_caller]
fn check(text: &str, want: &str) {
    let told = match load(text) {
        Ok(_) => panic!("no mistake in:\n{text}"),
        Err(mistakes) => mistakes.to_string(),
    };
    assert_eq!(
        told,
        want.trim_matches('\n'),
        "\n--- of:\n{text}\n--- got:\n{told}\n---"
    );
}

/// A mistake in `server`, with a right service below.
#[track_caller]
fn server(line: &str, want: &str) {
    check(&format!("server:\n{line}\n{SERVICE}"), want);
}

/// A mistake in the second line of a service.
#[track_caller]
fn service(line: &str, want: &str) {
    check(&format!("{SERVICE}{line}\n"), want);
}
