//! Does `create-cloudgate-app` behave as its `--help` says? Each module asks about one side of it.

// clippy.toml allows this in test functions; the helpers of a test binary are none to clippy.
#![allow(clippy::unwrap_used)]

mod app;
mod existing;
mod interrupted;
mod made;
mod refused;
mod support;
