//! Is a server well, and how much of its share does it get?
//!
//! A server is left out when several requests in a row could not reach it (passive), or when it fails to answer what it is
//! asked for that purpose (active). Whatever is known of them all: when none is left, they all are asked, for a wrong
//! answer to the question who is well must not become an outage.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::settings::{BreakerSettings, Passive};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Milliseconds since the first call.
pub(crate) fn now() -> u64 {
    milliseconds(START.elapsed())
}

pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What is known of one server.
#[derive(Debug)]
pub(crate) struct Health {
    /// Failures in a row, and when the first of them was.
    failures: AtomicU32,
    first_failure: AtomicU64,
    /// Until when it is left out.
    out_until: AtomicU64,
    /// What asking it has shown last.
    up: AtomicBool,
    streak: AtomicU32,
    /// Since when it has been back.
    back_since: AtomicU64,
}

impl Health {
    pub(crate) fn new() -> Health {
        Health {
            failures: AtomicU32::new(0),
            first_failure: AtomicU64::new(0),
            out_until: AtomicU64::new(0),
            up: AtomicBool::new(true),
            streak: AtomicU32::new(0),
            back_since: AtomicU64::new(0),
        }
    }

    /// Whether requests go there.
    pub(crate) fn is_well(&self, now: u64) -> bool {
        self.up.load(Ordering::Relaxed) && self.out_until.load(Ordering::Relaxed) <= now
    }

    /// Notes that it has answered.
    pub(crate) fn succeeded(&self) {
        // Most of the time there is nothing to forget, and a load costs others nothing.
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that a request could not reach it; says whether it is left out from now on.
    pub(crate) fn failed(&self, rules: Passive, now: u64) -> bool {
        if rules.failures == 0 {
            return false;
        }
        let before = self.failures.load(Ordering::Relaxed);
        let began = self.first_failure.load(Ordering::Relaxed);
        if before == 0 || now.saturating_sub(began) > milliseconds(rules.within) {
            self.first_failure.store(now, Ordering::Relaxed);
            self.failures.store(1, Ordering::Relaxed);
        } else {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        if self.failures.load(Ordering::Relaxed) < rules.failures {
            return false;
        }
        let was_well = self.is_well(now);
        let until = now.saturating_add(milliseconds(rules.out));
        self.out_until.store(until, Ordering::Relaxed);
        self.back_since.store(until, Ordering::Relaxed);
        was_well
    }

    /// Notes what asking it has shown; says whether that changes something.
    pub(crate) fn asked(&self, good: bool, rise: u32, fall: u32, now: u64) -> bool {
        let up = self.up.load(Ordering::Relaxed);
        if good == up {
            self.streak.store(0, Ordering::Relaxed);
            return false;
        }
        let streak = self.streak.fetch_add(1, Ordering::Relaxed) + 1;
        if streak < if up { fall } else { rise } {
            return false;
        }
        self.streak.store(0, Ordering::Relaxed);
        if good {
            self.back_since.store(now, Ordering::Relaxed);
            self.failures.store(0, Ordering::Relaxed);
            self.out_until.store(0, Ordering::Relaxed);
        }
        self.up.store(good, Ordering::Relaxed);
        true
    }

    /// Which part of its share it gets, in thousandths, when it takes `slow_start` milliseconds to get all of it.
    pub(crate) fn share(&self, slow_start: u64, now: u64) -> u64 {
        let since = self.back_since.load(Ordering::Relaxed);
        if slow_start == 0 || since == 0 {
            return 1000;
        }
        let passed = now.saturating_sub(since);
        // Some of it at once, or nothing would ever be known of it.
        (passed.saturating_mul(1000) / slow_start).clamp(50, 1000)
    }
}

/// Says when it is of no use to ask anybody.
#[derive(Debug)]
pub(crate) struct Breaker {
    rules: BreakerSettings,
    open_until: AtomicU64,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    began: u64,
    requests: u32,
    failures: u32,
    /// Whether one request is out to see whether things are better.
    trying: bool,
}

/// Whether a request may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Circuit {
    Closed,
    /// It is the one that tries.
    Trial,
    Open,
}

impl Breaker {
    pub(crate) fn new(rules: BreakerSettings) -> Breaker {
        Breaker {
            rules,
            open_until: AtomicU64::new(0),
            counts: Mutex::default(),
        }
    }

    /// Asks whether a request may go on.
    pub(crate) fn ask(&self, now: u64) -> Circuit {
        match self.open_until.load(Ordering::Relaxed) {
            0 => Circuit::Closed,
            until if now < until => Circuit::Open,
            _ => {
                let mut counts = self.counts();
                match std::mem::replace(&mut counts.trying, true) {
                    true => Circuit::Open,
                    false => Circuit::Trial,
                }
            }
        }
    }

    /// Notes how a request ended; says whether the circuit has just opened.
    pub(crate) fn note(&self, circuit: Circuit, failed: bool, now: u64) -> bool {
        let mut counts = self.counts();
        if circuit == Circuit::Trial {
            *counts = Counts {
                began: now,
                ..Counts::default()
            };
            let until = if failed { self.until(now) } else { 0 };
            self.open_until.store(until, Ordering::Relaxed);
            return false;
        }
        if now.saturating_sub(counts.began) > milliseconds(self.rules.window) {
            *counts = Counts {
                began: now,
                trying: counts.trying,
                ..Counts::default()
            };
        }
        counts.requests = counts.requests.saturating_add(1);
        counts.failures = counts.failures.saturating_add(u32::from(failed));
        let full = counts.requests >= self.rules.requests;
        let failing = u64::from(counts.failures) * 100
            >= u64::from(counts.requests) * u64::from(self.rules.percent);
        if !failed || !full || !failing || self.open_until.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.open_until.store(self.until(now), Ordering::Relaxed);
        true
    }

    /// Never 0, which means that it is closed.
    fn until(&self, now: u64) -> u64 {
        now.saturating_add(milliseconds(self.rules.open)).max(1)
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Passive = Passive {
        failures: 3,
        within: Duration::from_secs(10),
        out: Duration::from_secs(5),
    };

    #[test]
    fn failures_in_a_row_put_a_server_out_for_a_while() {
        let health = Health::new();
        assert!(!health.failed(RULES, 1_000));
        assert!(!health.failed(RULES, 1_000));
        health.succeeded();
        assert!(!health.failed(RULES, 2_000));
        assert!(!health.failed(RULES, 2_000));
        assert!(health.is_well(2_000));
        assert!(health.failed(RULES, 2_000));
        assert!(!health.is_well(6_999));
        assert!(health.is_well(7_000));
        // One more is enough now.
        assert!(health.failed(RULES, 7_000));
        let never = Passive {
            failures: 0,
            ..RULES
        };
        assert!((0..100).all(|_| !Health::new().failed(never, 1)));
    }

    #[test]
    fn failures_far_apart_do_not_count_together() {
        let health = Health::new();
        for now in [0, 10_001, 20_002, 30_003] {
            assert!(!health.failed(RULES, now), "{now}");
        }
    }

    #[test]
    fn questions_change_something_at_the_numbers_that_were_set() {
        let health = Health::new();
        assert!(!health.asked(false, 2, 3, 1));
        assert!(!health.asked(false, 2, 3, 1));
        assert!(!health.asked(true, 2, 3, 1));
        assert!(!health.asked(false, 2, 3, 1));
        assert!(!health.asked(false, 2, 3, 1));
        assert!(health.asked(false, 2, 3, 1));
        assert!(!health.is_well(1));
        assert!(!health.asked(true, 2, 3, 5));
        assert!(health.asked(true, 2, 3, 5));
        assert!(health.is_well(5));
        assert_eq!(health.share(1_000, 5), 50);
        assert_eq!(health.share(1_000, 505), 500);
        assert_eq!(health.share(1_000, 1_005), 1_000);
        assert_eq!(Health::new().share(1_000, 5), 1_000);
    }

    #[test]
    fn a_circuit_opens_tries_once_and_closes() {
        let breaker = Breaker::new(BreakerSettings {
            percent: 50,
            requests: 4,
            window: Duration::from_secs(10),
            open: Duration::from_secs(5),
        });
        for failed in [true, false, true] {
            assert_eq!(breaker.ask(1), Circuit::Closed);
            assert!(!breaker.note(Circuit::Closed, failed, 1));
        }
        assert!(breaker.note(Circuit::Closed, true, 1));
        assert_eq!(breaker.ask(5_000), Circuit::Open);
        assert_eq!(breaker.ask(5_001), Circuit::Trial);
        assert_eq!(breaker.ask(5_001), Circuit::Open);
        breaker.note(Circuit::Trial, true, 5_001);
        assert_eq!(breaker.ask(10_000), Circuit::Open);
        assert_eq!(breaker.ask(10_001), Circuit::Trial);
        breaker.note(Circuit::Trial, false, 10_001);
        assert_eq!(breaker.ask(10_001), Circuit::Closed);
        // Counts of an earlier window are forgotten.
        for now in [20_000, 30_001, 40_002, 50_003, 60_004] {
            assert!(!breaker.note(Circuit::Closed, true, now));
        }
    }
}
