//! How do new certificates come into a server that runs?

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use log::Level;
use rustc_hash::FxHashMap;

use super::engine::Acceptor;
use super::identity::{Stamp, called};
use super::identity_error::{IdentityError, span};
use super::serving::{Tickets, Tls, tickets};
use crate::message::Certificate;

/// How long before a certificate expires the log says so, in days: each once.
const WARNINGS: [u32; 3] = [30, 7, 1];

const DAY: Duration = Duration::from_secs(86_400);

/// After how many looks without another change files that cannot be used are spoken of: until then another half of them
/// may be on its way.
const COMPLAIN_AFTER: u32 = 4;

/// After how many looks files that could not be used are tried again although they did not change: a descriptor may have
/// been lacking.
const TRY_AGAIN_AFTER: u32 = 60;

/// TLS of one port, with what its files hold now.
pub(crate) struct Live {
    current: RwLock<Arc<dyn Acceptor>>,
    /// Held while files are read and keys derived, so never by who answers a request.
    state: Mutex<State>,
    /// What `state` holds, for people.
    shown: RwLock<Vec<CertificateStatus>>,
}

struct State {
    tls: Tls,
    tickets: Tickets,
    /// What changed files are like, and for how many looks they have been like that.
    changed: Option<(Vec<Option<Vec<Stamp>>>, u32)>,
    /// How often it was looked.
    looks: u32,
    /// Why what the files hold now is not in use.
    problem: Option<String>,
    /// How many of the warnings a certificate has had, by its fingerprint.
    warned: FxHashMap<String, usize>,
}

/// A certificate that a server shows, and whether a newer one could not be taken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CertificateStatus {
    /// What it says.
    pub certificate: Certificate,
    /// Where it came from: a file, or `the certificate` for one that was given as bytes.
    pub place: String,
    /// Why what the files hold now is not in use, if they have changed to something that cannot be.
    pub problem: Option<String>,
}

impl CertificateStatus {
    /// For how long the certificate is still valid; zero where it has expired.
    pub fn remaining(&self) -> Duration {
        let until = self.certificate.valid_until();
        until.duration_since(SystemTime::now()).unwrap_or_default()
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state().tls.fmt(f)
    }
}

impl Live {
    /// TLS as it is described.
    ///
    /// # Errors
    /// [`IdentityError`] for what cannot be used.
    pub(crate) fn new(tls: Tls) -> Result<Arc<Live>, IdentityError> {
        let tickets = tickets()?;
        let acceptor = tls.acceptor(&tickets)?;
        let state = State {
            tls,
            tickets,
            changed: None,
            looks: 0,
            problem: None,
            warned: FxHashMap::default(),
        };
        Ok(Arc::new(Live {
            current: RwLock::new(acceptor),
            shown: RwLock::new(state.shown()),
            state: Mutex::new(state),
        }))
    }

    /// What the next connection gets.
    pub(crate) fn current(&self) -> Arc<dyn Acceptor> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is shown.
    pub(crate) fn certificates(&self) -> Vec<CertificateStatus> {
        let shown = self.shown.read();
        shown.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn show(&self, state: &State) {
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = state.shown();
    }

    /// Takes what the files hold now.
    ///
    /// # Errors
    /// [`IdentityError`] for the first that cannot be used; that stays as it was.
    pub(crate) fn reload(&self, now: SystemTime) -> Result<(), IdentityError> {
        let mut state = self.state();
        let taken = self.take(&mut state, now);
        state.problem = taken.as_ref().err().map(ToString::to_string);
        self.show(&state);
        taken
    }

    /// Takes what has changed, and warns of what expires. To be called about once a second by a thread that may block.
    pub(crate) fn look(&self, now: SystemTime) {
        let mut state = self.state();
        self.follow_files(&mut state, now);
        self.show(&state);
        let said = state.warnings(now);
        drop(state);
        for (level, text) in said {
            log::log!(level, "{text}");
        }
    }

    fn follow_files(&self, state: &mut State, now: SystemTime) {
        state.looks = state.looks.wrapping_add(1);
        let Some(files) = state.tls.changed() else {
            state.changed = None;
            if state.tls.is_due(now) {
                self.renew(state, now);
            } else {
                state.problem = None;
            }
            return;
        };
        let looks = match state.changed.take() {
            Some((known, looks)) if known == files => looks.saturating_add(1),
            _ => 0,
        };
        state.changed = Some((files, looks));
        // Who writes a file, and then another, is given the time for that.
        if looks != 1
            && looks != COMPLAIN_AFTER
            && (looks == 0 || !looks.is_multiple_of(TRY_AGAIN_AFTER))
        {
            return;
        }
        match self.take(state, now) {
            Ok(()) => {
                let names = state.tls.identities.iter();
                let names: Vec<_> = names
                    .map(|(_, identity)| called(identity.certificate()))
                    .collect();
                log::info!(
                    "new connections see the new certificate of {}",
                    names.join(", ")
                );
                state.changed = None;
                state.problem = None;
            }
            Err(error) if looks >= COMPLAIN_AFTER => {
                let error = error.to_string();
                if state.problem.as_ref() != Some(&error) {
                    log::error!("a certificate stays as it was: {error}");
                    state.problem = Some(error);
                }
            }
            Err(_) => {}
        }
    }

    /// Has those certificates made anew that were made here.
    fn renew(&self, state: &mut State, now: SystemTime) {
        if state.problem.is_some() && !state.looks.is_multiple_of(TRY_AGAIN_AFTER) {
            return;
        }
        match self.take(state, now) {
            Ok(()) => {
                log::info!("a certificate that was made here has been made anew");
                state.problem = None;
            }
            Err(error) => {
                log::error!("a certificate that was made here cannot be made anew: {error}");
                state.problem = Some(error.to_string());
            }
        }
    }

    fn take(&self, state: &mut State, now: SystemTime) -> Result<(), IdentityError> {
        let (tls, fault) = state.tls.read_again(now);
        if tls.clients.is_some() {
            // A session remembers a client that may not be let in any more.
            state.tickets = tickets()?;
        }
        let acceptor = tls.acceptor(&state.tickets)?;
        state.tls = tls;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        fault.map_or(Ok(()), Err)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn shown(&self) -> Vec<CertificateStatus> {
        let identities = self.tls.identities.iter();
        identities
            .map(|(_, identity)| CertificateStatus {
                certificate: identity.certificate().clone(),
                place: identity.place().to_owned(),
                problem: self.problem.clone(),
            })
            .collect()
    }

    /// What is to be said about certificates that expire, each but once.
    fn warnings(&mut self, now: SystemTime) -> Vec<(Level, String)> {
        let mut said = Vec::new();
        for (_, identity) in &self.tls.identities {
            let certificate = identity.certificate();
            let until = certificate.valid_until();
            let left = until.duration_since(now).unwrap_or_default();
            let days = WARNINGS.iter().filter(|days| left <= DAY * **days);
            let due = days.count() + usize::from(left.is_zero());
            let fingerprint = certificate.fingerprint().to_owned();
            let warned = self.warned.entry(fingerprint).or_default();
            if due <= *warned {
                continue;
            }
            *warned = due;
            let (name, place) = (called(certificate), identity.place());
            said.push(if left.is_zero() {
                (Level::Error, format!(
                    "the certificate of {name} in {place} has expired: clients refuse to connect; put a renewed one in its place"
                ))
            } else {
                (Level::Warn, format!(
                    "the certificate of {name} in {place} expires in {}, on {}; put a renewed one in its place, which is taken without a restart",
                    span(left),
                    httpdate::fmt_http_date(until)
                ))
            });
        }
        let identities = &self.tls.identities;
        self.warned.retain(|fingerprint, _| {
            identities
                .iter()
                .any(|(_, identity)| identity.certificate().fingerprint() == fingerprint)
        });
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::tls::generated::GeneratedKey;
    use crate::net::tls::identity::Identity;

    #[test]
    fn an_end_is_announced_at_30_7_and_1_days_and_when_it_has_come() {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let until = identity.certificate().valid_until();
        let live = Live::new(Tls::new(identity)).unwrap();
        let second = Duration::from_secs(1);
        let said = |before: Duration| live.state().warnings(until - before);
        assert_eq!(said(30 * DAY + second), []);
        for days in [30, 7, 1] {
            let (level, text) = said(days * DAY).remove(0);
            assert_eq!(level, Level::Warn);
            let wanted = format!(
                "the certificate of a.example in the certificate expires in {days} day{}, on {}; ",
                if days == 1 { "" } else { "s" },
                httpdate::fmt_http_date(until)
            );
            assert!(text.starts_with(&wanted), "{text}");
            assert_eq!(said(days * DAY), []);
            assert_eq!(said(days * DAY - second), []);
        }
        let (level, text) = said(Duration::ZERO).remove(0);
        assert!(
            level == Level::Error && text.contains("has expired"),
            "{text}"
        );
        assert_eq!(live.state().warnings(until + 40 * DAY), []);
    }

    #[test]
    fn what_was_made_here_is_made_anew_while_the_server_runs() {
        let folder = tempfile::tempdir().unwrap();
        let key = GeneratedKey::new(folder.path().join("key.pem"));
        let live = Live::new(Tls::new(Identity::generated(&key).unwrap())).unwrap();
        let shown = || live.certificates().remove(0);
        let first = shown().certificate;
        let due = first.valid_until() - 30 * DAY;
        live.look(due - Duration::from_secs(2));
        assert_eq!(shown().certificate, first);
        live.look(due);
        let second = shown().certificate;
        assert_ne!(second, first);
        live.look(due);
        assert_eq!(shown().certificate, second);
        // A file in its place stays, and the last good one is shown.
        std::fs::write(key.path(), "my diary").unwrap();
        for _ in 0..=COMPLAIN_AFTER {
            live.look(due);
        }
        let status = shown();
        assert_eq!(status.certificate, second);
        assert!(status.problem.unwrap().contains("was not made here"));
        assert_eq!(std::fs::read_to_string(key.path()).unwrap(), "my diary");
    }

    #[test]
    fn a_fault_of_one_is_none_of_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, names: [&str; 1]| {
            let made = rcgen::generate_simple_self_signed(names.map(str::to_owned)).unwrap();
            let path = folder.path().join(name);
            let text = made.cert.pem() + &made.signing_key.serialize_pem();
            std::fs::write(&path, text).unwrap();
            path
        };
        let paths = ["a.pem", "b.pem"].map(|name| write(name, ["one.example"]));
        let identities = paths
            .clone()
            .map(|path| Identity::from_pem_files(&path, &path).unwrap());
        let [first, second] = identities;
        let live = Live::new(Tls::new(first).name("b.example", second)).unwrap();
        let names = || {
            let certificates = live.certificates().into_iter();
            let names = certificates.map(|status| status.certificate.names()[0].clone());
            names.collect::<Vec<_>>()
        };
        let now = SystemTime::now();
        std::fs::write(&paths[0], "").unwrap();
        write("b.pem", ["two.example"]);
        let error = live.reload(now).unwrap_err().to_string();
        assert!(error.contains("a.pem"), "{error}");
        assert_eq!(names(), ["one.example", "two.example"]);
        // Nor by itself, which takes two looks.
        write("b.pem", ["three.example"]);
        live.look(now);
        live.look(now);
        assert_eq!(names(), ["one.example", "three.example"]);
        for _ in 0..=COMPLAIN_AFTER {
            live.look(now);
        }
        assert!(
            live.certificates()[0]
                .problem
                .as_ref()
                .unwrap()
                .contains("a.pem")
        );
        write("a.pem", ["four.example"]);
        live.look(now);
        live.look(now);
        assert_eq!(names(), ["four.example", "three.example"]);
        assert_eq!(live.certificates()[0].problem, None);
    }

    #[test]
    fn who_asks_what_is_shown_does_not_wait_for_files_that_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let key = GeneratedKey::new(folder.path().join("key.pem"));
        let live = Live::new(Tls::new(Identity::generated(&key).unwrap())).unwrap();
        let _reading = live.state();
        let (sender, receiver) = std::sync::mpsc::channel();
        let asked = Arc::clone(&live);
        std::thread::spawn(move || sender.send(asked.certificates().len()));
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok(1));
    }

    #[test]
    fn who_starts_late_hears_the_last_warning_alone() {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        let until = identity.certificate().valid_until();
        let live = Live::new(Tls::new(identity)).unwrap();
        assert_eq!(live.state().warnings(until - 2 * DAY).len(), 1);
        assert_eq!(live.state().warnings(until - 2 * DAY).len(), 0);
        assert_eq!(live.state().warnings(until - DAY).len(), 1);
    }
}
