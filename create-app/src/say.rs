//! How does text reach the terminal?

use std::io::Write;

use serde_json::json;

use crate::failure::Failure;

/// Prints lines on stdout. A reader that went away (`| head`) is no reason to fail.
pub(crate) fn out(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Prints lines on stderr.
pub(crate) fn err(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

pub(crate) fn failure(failure: &Failure, as_json: bool) {
    err(&format!("error: {}", failure.message));
    if let Some(advice) = &failure.advice {
        err(&format!("\n  try: {advice}"));
    }
    if as_json {
        let answer = json!({ "created": false, "error": failure.message, "try": failure.advice });
        out(&format!("{answer:#}"));
    }
}
