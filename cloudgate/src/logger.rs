//! Where do log lines go when the program has not said?

use std::io::Write;

use log::{Level, LevelFilter, Log, Metadata, Record};

/// What the program says of itself, whatever level others have.
const OWN: &str = "cloudgate::run";

/// Writes warnings and errors to standard error, one line each, and what the program says of itself.
struct ToStandardError;

impl Log for ToStandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn
            || (metadata.level() <= Level::Info && metadata.target().starts_with(OWN))
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // Nobody is there to be told when standard error is gone.
            let _ = writeln!(
                std::io::stderr(),
                "{} {}: {}",
                record.level(),
                record.target(),
                record.args()
            );
        }
    }

    fn flush(&self) {}
}

/// Installs the logger unless the program has one.
pub(crate) fn install() {
    if log::set_logger(&ToStandardError).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}
