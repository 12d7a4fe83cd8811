//! Should others send requests here now?

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::net::home::{self, Late};

/// How long all checks of one question may wait, together.
const TIME: Duration = Duration::from_secs(2);

type Check = dyn Fn() -> Result<(), String> + Send + Sync;

/// Whether the program is ready for requests, as [`Admin`](crate::Admin) tells those who ask: unless it is stopping, and as
/// long as no check fails. A clone is the same one.
///
/// ```
/// use cloudgate::Readiness;
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// let loaded = Arc::new(AtomicBool::new(false));
/// let readiness = Readiness::new();
/// readiness.check("catalogue", {
///     let loaded = Arc::clone(&loaded);
///     move || if loaded.load(Ordering::Relaxed) { Ok(()) } else { Err("is not loaded yet".to_owned()) }
/// });
/// assert_eq!(readiness.ask(), Err(vec!["catalogue: is not loaded yet".to_owned()]));
/// loaded.store(true, Ordering::Relaxed);
/// assert_eq!(readiness.ask(), Ok(()));
/// ```
///
/// # Checks
///
/// They are called one after the other, each time that somebody asks, on the worker that answers. So a check looks at what is known
/// already: it does not find out. It may wait as a handler may, with [`blocking`](crate::blocking()) for what blocks; all of them together have
/// two seconds for that, and then the one that waits counts as failed, and none behind it is asked. A check that panics has failed too.
///
/// Ask for what this program alone can lack. Where all copies of a program are unready because a database that they share is
/// away, there is nobody left to answer, not even with an error that explains it.
#[derive(Clone, Default)]
pub struct Readiness(Arc<State>);

#[derive(Default)]
struct State {
    stopping: AtomicBool,
    checks: Mutex<Vec<(String, Arc<Check>)>>,
}

impl Readiness {
    /// Ready, without a check.
    pub fn new() -> Readiness {
        Readiness::default()
    }

    /// Asks this too from now on, in place of a check of the same name. The text of an error is one line for people; its line feeds become
    /// spaces.
    pub fn check(
        &self,
        name: &str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        let check: Arc<Check> = Arc::new(check);
        let mut checks = self.checks();
        match checks.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = check,
            None => checks.push((name.to_owned(), check)),
        }
    }

    /// Asks the check of this name no more; says whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        let mut checks = self.checks();
        let before = checks.len();
        checks.retain(|(known, _)| known != name);
        checks.len() < before
    }

    /// Says from now on that the program is not ready, for it stops: those who send requests here look for another
    /// place before connections are refused.
    pub fn set_stopping(&self) {
        self.0.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether [`Readiness::set_stopping`] was called.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Relaxed)
    }

    /// Asks all checks, unless the program is stopping.
    ///
    /// # Errors
    /// Why it is not ready: `stopping`, or a line for each check that failed, such as `catalogue: is not loaded yet`.
    pub fn ask(&self) -> Result<(), Vec<String>> {
        if self.is_stopping() {
            return Err(vec!["stopping".to_owned()]);
        }
        // Not under the lock: a check may wait, and may change the checks.
        let checks = self.checks().clone();
        let due = Instant::now() + TIME;
        let mut reasons = Vec::new();
        for (name, check) in checks {
            let rest = due.saturating_duration_since(Instant::now());
            let answer = home::within(rest, || home::catch_panic(|| check()));
            let late = matches!(answer, Err(Late));
            let reason = match answer {
                Ok(Ok(Ok(()))) => continue,
                Ok(Ok(Err(reason))) => reason,
                Ok(Err(_panic)) => "the check panicked".to_owned(),
                Err(Late) => format!("no answer within {} s", TIME.as_secs()),
            };
            reasons.push(format!("{name}: {reason}").replace(['\r', '\n'], " "));
            if late {
                break;
            }
        }
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(reasons)
        }
    }

    fn checks(&self) -> MutexGuard<'_, Vec<(String, Arc<Check>)>> {
        self.0.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks = self.checks();
        let names: Vec<_> = checks.iter().map(|(name, _)| name).collect();
        f.debug_struct("Readiness")
            .field("is_stopping", &self.is_stopping())
            .field("checks", &names)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn each_check_that_fails_has_a_line() {
        let readiness = Readiness::new();
        assert_eq!(readiness.ask(), Ok(()));
        readiness.check("a", || Err("one\r\ntwo".to_owned()));
        readiness.check("b", || Ok(()));
        readiness.check("c", || std::panic::resume_unwind(Box::new("boom")));
        let want = ["a: one  two", "c: the check panicked"];
        assert_eq!(readiness.ask().unwrap_err(), want);
        readiness.check("a", || Ok(()));
        assert!(readiness.remove("c") && !readiness.remove("c"));
        assert_eq!(readiness.ask(), Ok(()));
    }

    #[test]
    fn who_stops_asks_no_check() {
        let readiness = Readiness::new();
        readiness.check("a", || Err("was asked".to_owned()));
        let other = readiness.clone();
        other.set_stopping();
        assert!(readiness.is_stopping());
        assert_eq!(readiness.ask().unwrap_err(), ["stopping"]);
    }

    #[test]
    fn a_check_may_change_the_checks() {
        let readiness = Readiness::new();
        readiness.check("once", {
            let readiness = readiness.clone();
            move || {
                readiness.remove("once");
                Err("the first time".to_owned())
            }
        });
        assert!(readiness.ask().is_err());
        assert_eq!(readiness.ask(), Ok(()));
    }

    #[test]
    fn a_check_that_waits_for_ever_has_failed_after_two_seconds() {
        home::start_for_tests();
        let (tell, told) = mpsc::channel();
        home::spawn(0, "test", move || {
            let readiness = Readiness::new();
            readiness.check("slow", || {
                home::sleep(Duration::from_secs(3600));
                Ok(())
            });
            readiness.check("behind", || Err("was asked".to_owned()));
            tell.send(readiness.ask()).unwrap();
        })
        .unwrap();
        let answer = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(answer.unwrap_err(), ["slow: no answer within 2 s"]);
    }
}
