//! How does a program serve an application until it is told to stop?
//!
//! Configuration, listener, server, signals, drain: the one place that knows all parts.

#[cfg(feature = "cli")]
pub(crate) mod gateway;
#[cfg(feature = "cli")]
pub(crate) mod gateway_file;
mod tls;

use std::ffi::OsString;
use std::io::Write;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::app::App;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::logger;
use crate::net::listener::Address;
use crate::server::{Running, Server, Settings};
use crate::services::access_log;
use crate::services::files::Files;

/// How long connections may finish what they are doing after the first signal.
const GRACE: Duration = Duration::from_secs(10);

/// The exit code of a program that a second SIGINT has ended.
const INTERRUPTED: i32 = 130;

impl App {
    /// Serves the files of a folder where no route fits; routes win over files.
    ///
    /// A folder that is not there is an error at start.
    ///
    /// ```no_run
    /// use cloudgate::{App, Files};
    /// let plain = App::new().files("public");
    /// let site = App::new().files(Files::new("dist").spa("index.html"));
    /// ```
    pub fn files(self, files: impl Into<Files>) -> App {
        let files = files.into();
        let described = files.describe();
        let mut app = self.fallback(files);
        app.core_mut().folder = Some(described);
        app
    }

    /// Serves the application until SIGTERM or SIGINT, then lets active requests finish for up to
    /// ten seconds; a second signal ends the program at once. Where TLS is served, SIGHUP has certificates read again.
    ///
    /// A program whose only argument is `--routes` prints the [table of routes](App::routes_table) instead,
    /// takes no port, and has an `Ok` from here. One with arguments of its own calls that itself.
    ///
    /// Prints one line when it is ready. Where the program has set no logger, warnings and errors
    /// go to standard error.
    ///
    /// # Errors
    /// Whatever keeps it from starting; see [`Error`].
    pub fn run(self, config: Config) -> Result<()> {
        self.run_when_ready(|app| bind(app, &config))
    }

    /// As [`App::run`], on a server that the program has prepared: on several addresses, a Unix socket or
    /// inherited sockets, or with settings of its own.
    ///
    /// ```no_run
    /// use cloudgate::{App, Server, Settings};
    ///
    /// fn main() -> cloudgate::Result<()> {
    ///     let mut settings = Settings::default();
    ///     settings.body_limit = 16 << 20;
    ///     let server = match Server::from_environment()? {     // sockets of systemd; first thing in main
    ///         Some(server) => server,
    ///         None => Server::bind("127.0.0.1:3000")?,
    ///     };
    ///     App::gather().run_on(server.with_settings(settings))
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`App::run`].
    pub fn run_on(self, server: Server) -> Result<()> {
        self.run_when_ready(|app| Ok((app, server)))
    }

    fn run_when_ready(self, server: impl FnOnce(App) -> Result<(App, Server)>) -> Result<()> {
        let began = Instant::now();
        logger::install();
        // What the application itself lacks is said before a port is taken, and the table of one that
        // would not start tells no truth.
        crate::message::Service::start(&self)?;
        if asks_for_routes(std::env::args_os().skip(1)) {
            print_table(&self.routes_table());
            return Ok(());
        }
        let description = Description {
            routes: self.route_count(),
            folder: self.core().folder.clone(),
        };
        self.run_and_announce(server, |running| {
            announce(running, &description, began.elapsed());
        })
    }

    /// Serves until a signal comes; `announce` is called once it does.
    pub(crate) fn run_and_announce(
        self,
        server: impl FnOnce(App) -> Result<(App, Server)>,
        announce: impl FnOnce(&Running),
    ) -> Result<()> {
        let handlers = |source| Error::System {
            wanted: "signal handlers",
            source,
        };
        let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(handlers)?;
        let (app, server) = server(self)?;
        let running = server.serve(app)?;
        if !running.certificates().is_empty() {
            // Without TLS it ends the program, as when its terminal is closed.
            signals.add_signal(SIGHUP).map_err(handlers)?;
        }
        announce(&running);
        // Ends when the iterator is closed, which nobody does.
        for signal in signals.forever() {
            if signal != SIGHUP {
                break;
            }
            match running.reload_tls() {
                Ok(()) => log::info!("certificates were read again"),
                Err(error) => log::error!("a certificate stays as it was: {error}"),
            }
        }
        std::thread::spawn(move || {
            if signals.forever().any(|signal| signal != SIGHUP) {
                std::process::exit(INTERRUPTED);
            }
        });
        let cut = running.shutdown(GRACE);
        if cut > 0 {
            log::warn!("{cut} connections were cut after {} s", GRACE.as_secs());
        }
        access_log::flush_all();
        Ok(())
    }
}

/// The server of a configuration, and the application as it is served there.
pub(crate) fn bind(app: App, config: &Config) -> Result<(App, Server)> {
    let mut settings = Settings::default();
    if let Some(threads) = config.threads {
        settings.workers.workers = threads;
    }
    let (app, server) = match &config.tls {
        Some(secure) => tls::bind(app, config, secure)?,
        None => (app, Server::bind(config.address())?),
    };
    Ok((app, server.with_settings(settings)))
}

/// Whether these are the arguments of somebody who wants to see the routes.
fn asks_for_routes(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.next().is_some_and(|first| first == "--routes") && arguments.next().is_none()
}

/// Not by `print!`, which panics where the reader has gone, such as `head`.
fn print_table(table: &str) {
    let _ = std::io::stdout().write_all(table.as_bytes());
}

/// What the start-up line says of the application.
struct Description {
    routes: usize,
    folder: Option<String>,
}

#[allow(
    clippy::print_stdout,
    reason = "the one line that a person who starts the program wants to see"
)]
fn announce(running: &Running, description: &Description, took: Duration) {
    let places: Vec<String> = running.addrs().iter().map(url).collect();
    let url = places.join(" · ");
    let folder = description
        .folder
        .as_ref()
        .map_or_else(String::new, |folder| format!(" · {folder}"));
    println!(
        "cloudgate {} · {url} · {}{folder} · {} · up to {} connections · ready in {} ms",
        env!("CARGO_PKG_VERSION"),
        count(description.routes, "route"),
        count(running.workers(), "worker"),
        running.max_connections(),
        took.as_millis(),
    );
}

/// An address as a browser takes it.
pub(crate) fn url(address: &Address) -> String {
    let (scheme, socket) = match address {
        Address::Tcp(socket) => ("http", socket),
        Address::Tls(socket) => ("https", socket),
        Address::Unix(_) => return address.to_string(),
    };
    if socket.ip().is_unspecified() {
        format!("{scheme}://localhost:{}", socket.port())
    } else {
        format!("{scheme}://{socket}")
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_asked_for_by_that_argument_alone() {
        for (arguments, want) in [
            (&["--routes"][..], true),
            (&[], false),
            (&["--routes", "x"], false),
            (&["x", "--routes"], false),
            (&["--routes=1"], false),
        ] {
            let arguments = arguments.iter().map(OsString::from);
            assert_eq!(asks_for_routes(arguments), want);
        }
    }
}
