//! Does a new app build, and pass its own tests?
//!
//! Takes a build of the whole library: only when `CLOUDGATE_GENERATED_APP=1`, as `.ci/run` sets it.

use std::path::Path;
use std::process::Command;

use crate::support::Sandbox;

#[test]
fn it_builds_and_passes_its_own_tests() {
    if std::env::var("CLOUDGATE_GENERATED_APP").as_deref() != Ok("1") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.run(&["my-app-1"]).succeeds();
    let app = sandbox.work().join("my-app-1");
    // One folder for all runs: only the app itself is built anew.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated-app");
    let cargo = |arguments: &[&str]| {
        let done = Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(&app)
            .env("CARGO_TARGET_DIR", &target)
            .env("RUSTFLAGS", "-D warnings")
            .status()
            .unwrap();
        assert!(done.success(), "cargo {arguments:?} failed");
    };
    cargo(&["test"]);
    let formatted = Command::new("rustfmt")
        .args([
            "--check",
            "--edition",
            "2024",
            "build.rs",
            "main.rs",
            "tests.rs",
        ])
        .args([
            "api/chat.rs",
            "api/tests/full.rs",
            "api/tests/simple.rs",
            "api/tests/template.rs",
        ])
        .current_dir(&app)
        .status()
        .unwrap();
    assert!(formatted.success(), "rustfmt would change the new app");
}
