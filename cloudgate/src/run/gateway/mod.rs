//! How does the program serve by a configuration file, and change while it serves?
//!
//! ```text
//!  file ─ gateway_file::load ─▶ Loaded ─ build ─▶ App ─▶ Swap ─▶ Server (listen)
//!    ▲                                     │
//!    └ looked at each second, SIGHUP       └ services that are the same are taken over, with what they know
//! ```

mod build;
mod listen;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::gateway_file::{self, FileError};
use super::{INTERRUPTED, count, url};
use crate::app::App;
use crate::config::file::{AdminSection, Flags, GatewayFile, Loaded};
use crate::error::{Error, Result};
use crate::logger;
use crate::message::Service;
use crate::server::{Running, Server};
use crate::services::access_log;
use crate::services::admin::Admin;
use crate::services::gateway::stats::ReloadStats;
use crate::services::readiness::Readiness;
use crate::services::swap::Swap;
use build::{Built, Kept};
use listen::Listening;
use watch::Watch;

/// How often it is looked whether the file has changed.
const LOOK: Duration = Duration::from_secs(1);

/// For how long connections of a listener that is no longer there may go on when the program ends.
const LAST: Duration = Duration::from_secs(1);

/// Serves by a configuration until a signal comes.
///
/// # Errors
/// Whatever keeps it from starting.
pub(crate) fn serve(path: &Path, flags: &Flags, loaded: &Loaded) -> Result<()> {
    let began = Instant::now();
    logger::install();
    for warning in &loaded.warnings {
        log::warn!("{warning}");
    }
    // Before a port is taken, so that nobody who could be told is missed.
    let handlers = |source| Error::System {
        wanted: "signal handlers",
        source,
    };
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(handlers)?;
    let mut program = Program::start(path, flags, &loaded.config)?;
    program.announce(began.elapsed());
    let (word, words) = mpsc::channel();
    let mut watch = Watch::new(path);
    let changed = word.clone();
    thread::spawn(move || {
        while !watch.has_changed() || changed.send(Word::Reload).is_ok() {
            thread::sleep(LOOK);
        }
    });
    thread::spawn(move || {
        let mut stopping = false;
        for signal in signals.forever() {
            match signal {
                SIGHUP if word.send(Word::Reload).is_ok() => {}
                SIGHUP => {}
                // A second one ends it at once.
                _ if stopping => std::process::exit(INTERRUPTED),
                _ => {
                    stopping = true;
                    let _ = word.send(Word::Stop);
                }
            }
        }
    });
    while let Ok(Word::Reload) = words.recv() {
        program.reload();
    }
    program.stop();
    access_log::flush_all();
    Ok(())
}

/// What the program is to do.
enum Word {
    Reload,
    Stop,
}

/// The gateway as it runs.
struct Program {
    path: PathBuf,
    flags: Flags,
    config: GatewayFile,
    service: Arc<Swap<App>>,
    kept: Kept,
    listening: Listening,
    running: Option<Running>,
    /// Listeners of before whose connections go on.
    leaving: Vec<Running>,
    admin: Option<Running>,
    readiness: Readiness,
    reloads: Arc<ReloadStats>,
}

impl Program {
    fn start(path: &Path, flags: &Flags, config: &GatewayFile) -> Result<Program> {
        let Built { app, kept } = build::build(config, &Kept::default()).map_err(cannot)?;
        app.start()?;
        let listening = Listening::of(&config.server);
        let server = listening.bind(None)?;
        let readiness = Readiness::new();
        let admin = admin(&config.admin, &readiness)?;
        let service = Arc::new(Swap::new(app));
        let running = server.serve(Arc::clone(&service))?;
        Ok(Program {
            path: path.to_owned(),
            flags: flags.clone(),
            config: config.clone(),
            service,
            kept,
            listening,
            running: Some(running),
            leaving: Vec::new(),
            admin,
            readiness,
            reloads: ReloadStats::new(),
        })
    }

    /// Says that it serves.
    #[allow(
        clippy::print_stdout,
        reason = "the line that a person who starts the program wants to see"
    )]
    fn announce(&self, took: Duration) {
        let Some(running) = &self.running else { return };
        let places: Vec<String> = running.addrs().iter().map(url).collect();
        let admin = self.admin.as_ref().map_or_else(String::new, |admin| {
            format!(" · admin http://{}", admin.addr())
        });
        println!(
            "cloudgate {} · {} · {} of {}{admin} · {} · up to {} connections · ready in {} ms",
            env!("CARGO_PKG_VERSION"),
            places.join(" · "),
            count(self.config.services.len(), "service"),
            self.path.display(),
            count(running.workers(), "worker"),
            running.max_connections(),
            took.as_millis(),
        );
    }

    /// Goes on by what the file says now, or as before where that cannot be.
    fn reload(&mut self) {
        let taken = self.take_over();
        self.reloads.count(taken);
    }

    fn take_over(&mut self) -> bool {
        let shown = self.path.display().to_string();
        let loaded = match gateway_file::load(&self.path, &self.flags) {
            Ok(loaded) => loaded,
            Err(error) => {
                let what = match error {
                    FileError::Unreadable { .. } => "the configuration stays as it was",
                    FileError::Mistakes(_) => {
                        "the configuration stays as it was, for the file has mistakes"
                    }
                };
                log::error!("{what}:\n{error}");
                return false;
            }
        };
        for warning in &loaded.warnings {
            log::warn!("{warning}");
        }
        let config = loaded.config;
        let Built { app, kept } = match build::build(&config, &self.kept) {
            Ok(built) => built,
            Err(error) => {
                log::error!("the configuration stays as it was: {shown}: {error}");
                return false;
            }
        };
        if let Err(error) = app.start() {
            log::error!("the configuration stays as it was: {shown}: {error}");
            return false;
        }
        let listening = Listening::of(&config.server);
        if listening != self.listening && !self.listen(listening) {
            return false;
        }
        self.change_admin(&config.admin);
        if let Some(running) = &self.running
            && let Err(error) = running.reload_tls()
        {
            log::error!("a certificate stays as it was: {error}");
        }
        self.service.set(app);
        self.kept = kept;
        self.config = config;
        log::info!(
            "{shown} was read again: {}",
            count(self.config.services.len(), "service")
        );
        true
    }

    /// Listens where the configuration says now; says whether that can be.
    fn listen(&mut self, next: Listening) -> bool {
        if next.differs_by_threads_alone(&self.listening) {
            log::warn!("`threads` takes another value only when the program is started again");
            return true;
        }
        let mut bound = next.bind(self.running.as_ref());
        let taken = self.listening.ports();
        let in_the_way = |error: &Error| matches!(error, Error::Bind { address, .. } if taken.contains(&address.port()));
        if bound.as_ref().is_err_and(in_the_way) {
            // The same port at another address: for a moment nobody has it.
            self.leave();
            bound = next.bind(None);
        }
        match bound.and_then(|server| server.serve(Arc::clone(&self.service))) {
            Ok(running) => {
                self.leave();
                let places: Vec<String> = running.addrs().iter().map(url).collect();
                log::info!("now at {}", places.join(" · "));
                self.running = Some(running);
                self.listening = next;
                true
            }
            Err(error) => {
                log::error!("the configuration stays as it was: {error}");
                if self.running.is_none() {
                    self.listen_again();
                }
                false
            }
        }
    }

    /// Gives the ports up; connections that are there go on.
    fn leave(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.stop_listening();
            self.leaving.push(running);
        }
        self.leaving.retain(|running| running.connections() > 0);
    }

    /// Takes the ports again that were given up for nothing.
    fn listen_again(&mut self) {
        let begun = self
            .listening
            .bind(None)
            .and_then(|server| server.serve(Arc::clone(&self.service)));
        match begun {
            Ok(running) => self.running = Some(running),
            Err(error) => log::error!(
                "nobody can connect now: {error} - write a configuration that works, and it is tried again"
            ),
        }
    }

    fn change_admin(&mut self, next: &AdminSection) {
        if *next == self.config.admin {
            return;
        }
        // Its port may be the same one.
        drop(self.admin.take());
        match admin(next, &self.readiness) {
            Ok(running) => self.admin = running,
            Err(error) => log::error!("the admin listener is gone: {error}"),
        }
    }

    /// Says that no more requests should come, waits for whoever heeds that, and ends.
    fn stop(mut self) {
        self.readiness.set_stopping();
        thread::sleep(self.config.server.shutdown_delay);
        let grace = self.config.server.shutdown_timeout;
        let mut cut = 0;
        if let Some(running) = self.running.take() {
            cut += running.shutdown(grace);
        }
        for running in self.leaving.drain(..) {
            cut += running.shutdown(LAST);
        }
        if cut > 0 {
            log::warn!("{cut} connections were cut after {} s", grace.as_secs());
        }
        drop(self.admin.take());
    }
}

/// The listener for those who operate the gateway, if there is to be one.
fn admin(said: &AdminSection, readiness: &Readiness) -> Result<Option<Running>> {
    if !said.enable {
        return Ok(None);
    }
    let bound = listen::bind_admin(said);
    let server: Server = match bound {
        Ok(server) => server,
        // Two gateways on one machine are no mistake of who has said nothing of it.
        Err(error) if AdminSection::usual().as_ref() == Some(said) => {
            log::warn!("no admin listener: {error}");
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    server.serve(Admin::new(readiness.clone())).map(Some)
}

fn cannot(reason: String) -> Error {
    Error::Service(reason.into())
}
