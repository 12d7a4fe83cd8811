//! Does a server at full load stay right and small beside clients that behave badly?
//!
//! ```text
//! SOAK_SECONDS=600 cargo run --release --example soak
//! ```
//!
//! Steady clients ask without a pause on connections that are kept, and check every byte of every
//! answer; beside them others reset, half-close, send garbage and drip. Every few seconds a line says
//! how it goes. The exit code is 1 for a lost or wrong answer, a panic, a coroutine that changed
//! threads, or memory that grew more than `SOAK_GROWTH_MIB` (default 8) after the first quarter.

mod steady;
mod unruly;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cloudgate::{App, Request, Response, Server, Settings};

/// How many connections ask without a pause.
const STEADY: u64 = 8;

/// How many threads behave badly.
const UNRULY: u64 = 3;

/// How often it is told how it goes.
const REPORT: Duration = Duration::from_secs(5);

/// What all threads of the test share.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) stop: AtomicBool,
    pub(crate) answers: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) unruly: AtomicU64,
    panics: AtomicU64,
}

impl Tally {
    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

fn main() -> ExitCode {
    match soak() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("soak: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn soak() -> Result<bool, Box<dyn std::error::Error>> {
    let time = Duration::from_secs(number("SOAK_SECONDS", 30)?);
    let most_growth = number("SOAK_GROWTH_MIB", 8)? << 20;
    let tally = Arc::new(Tally::default());
    let panics = Arc::clone(&tally);
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        panics.panics.fetch_add(1, Ordering::Relaxed);
        tell(info);
    }));
    let mut settings = Settings::default();
    // Short limits, so that each of them ends connections while the test runs.
    settings.timeouts.head = Duration::from_secs(2);
    settings.timeouts.grace = Duration::from_secs(2);
    settings.timeouts.park = Duration::from_millis(200);
    settings.timeouts.idle = Duration::from_secs(5);
    let server = Server::bind("127.0.0.1:0")?
        .with_settings(settings)
        .serve(app())?;
    let threads = start(server.addr(), &tally)?;
    let (base, last) = watch(time, &tally);
    tally.stop.store(true, Ordering::Relaxed);
    let ended = threads.into_iter().all(|thread| thread.join().is_ok());
    let began = Instant::now();
    let cut = server.shutdown(Duration::from_secs(10));
    let (lost, panics) = (
        tally.lost.load(Ordering::Relaxed),
        tally.panics.load(Ordering::Relaxed),
    );
    let growth = last.saturating_sub(base);
    say(&format!(
        "{} answers right, {lost} lost or wrong, {panics} panics, {} thread changes; {} unruly connections; \
         memory {} KiB after the first quarter, {} KiB at the end; {cut} cut at the stop, which took {:.1?}",
        tally.answers.load(Ordering::Relaxed),
        cloudgate::thread_changes(),
        tally.unruly.load(Ordering::Relaxed),
        base >> 10,
        last >> 10,
        began.elapsed(),
    ));
    let flat = growth <= most_growth;
    if !flat {
        say(&format!(
            "memory grew by {} KiB, more than {} KiB",
            growth >> 10,
            most_growth >> 10
        ));
    }
    Ok(flat && ended && lost == 0 && panics == 0 && cloudgate::thread_changes() == 0)
}

fn app() -> App {
    App::new()
        .get("/number/{number}", |request: &mut Request<'_>| {
            request.parameter("number").unwrap_or_default().to_owned()
        })
        .post("/echo", |request: &mut Request<'_>| {
            match request.body().read_all() {
                Ok(body) => Response::of_type("application/octet-stream", body),
                Err(error) => Response::error(error.status()),
            }
        })
        .get("/large", || {
            Response::of_type("application/octet-stream", vec![b'x'; steady::LARGE])
        })
}

fn start(address: SocketAddr, tally: &Arc<Tally>) -> std::io::Result<Vec<thread::JoinHandle<()>>> {
    let one = |name: &str, seed, work: fn(SocketAddr, u64, &Tally)| {
        let tally = Arc::clone(tally);
        thread::Builder::new()
            .name(format!("{name}-{seed}"))
            .spawn(move || work(address, seed, &tally))
    };
    let steady = (0..STEADY).map(|seed| one("steady", seed, steady::run));
    let unruly = (0..UNRULY).map(|seed| one("unruly", seed, unruly::run));
    steady.chain(unruly).collect()
}

/// Reports until the time is over; the memory after the first quarter, and the most in the last one.
fn watch(time: Duration, tally: &Tally) -> (u64, u64) {
    let began = Instant::now();
    let (mut base, mut last, mut told) = (0, 0, Instant::now());
    let (mut answers, mut report) = (0, REPORT.min(time));
    while began.elapsed() < time {
        thread::sleep(Duration::from_millis(250).min(time));
        let memory = resident();
        if began.elapsed() < time / 4 {
            base = base.max(memory);
        } else if began.elapsed() > time / 4 * 3 {
            last = last.max(memory);
        }
        if began.elapsed() >= report {
            report += REPORT;
            let now = tally.answers.load(Ordering::Relaxed);
            let rate = (now - answers) as f64 / told.elapsed().as_secs_f64();
            (answers, told) = (now, Instant::now());
            say(&format!(
                "{:4} s: {rate:7.0} answers/s, {} lost, {} panics, {} unruly connections, {} KiB resident",
                began.elapsed().as_secs(),
                tally.lost.load(Ordering::Relaxed),
                tally.panics.load(Ordering::Relaxed),
                tally.unruly.load(Ordering::Relaxed),
                memory >> 10,
            ));
        }
    }
    (base, last)
}

/// The resident memory of this process in bytes, its clients included.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}

fn number(variable: &str, default: u64) -> Result<u64, String> {
    match std::env::var(variable) {
        Err(_) => Ok(default),
        Ok(text) => text
            .parse()
            .map_err(|_| format!("{variable} is {text:?}; it must be a whole number")),
    }
}

#[allow(clippy::print_stdout, reason = "the lines are the result")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
