//! How does `cloudgate compress` make a folder ready to be served?
//!
//! ```text
//!  find: which siblings are missing ─▶ jobs ─▶ threads: sibling::make ─ encode ─▶ summary
//! ```
//!
//! On plain threads: no coroutine runs in this program.

mod encode;
mod find;
mod memory;
mod progress;
mod sibling;
mod summary;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use clap::builder::RangedU64ValueParser;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::say;
use encode::Coding;
use find::{Found, Job, Wanted};
use memory::Memory;
use progress::{Progress, Watched};
use sibling::Made;
use summary::Summary;

/// The exit code of a program that a signal has ended.
const INTERRUPTED: u8 = 130;

/// Makes compressed siblings of the files in a folder, for the server to send in their place.
///
/// Beside app.js: app.js.br, app.js.zst and app.js.gz, for every file of a type that can be compressed.
/// What is up to date is left alone, so it can be run after each build. Links are not followed, and
/// files whose names begin with a dot are left alone.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder; the folders in it are looked at too
    dir: PathBuf,

    /// Make .gz files, as without this
    #[arg(long, overrides_with = "no_gzip", hide = true)]
    gzip: bool,

    /// Make no .gz files
    #[arg(long, overrides_with = "gzip")]
    no_gzip: bool,

    /// Make no .br files
    #[arg(long)]
    no_brotli: bool,

    /// Make no .zst files
    #[arg(long)]
    no_zstd: bool,

    /// How much time to spend: 1 is the fastest, 9 makes the smallest files
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=9))]
    level: u32,

    /// Leave smaller files alone. Below the default a whole answer fits into one packet or little more
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    min_size: u64,

    /// How many to make at once, if 1 GiB of memory is enough for that (default: one a core)
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    jobs: Option<usize>,

    /// Make also those again that are up to date
    #[arg(long)]
    force: bool,

    /// Say what would be made, and make nothing
    #[arg(long)]
    dry_run: bool,

    /// Show no progress and no summary
    #[arg(long, short)]
    quiet: bool,
}

impl Args {
    fn codings(&self) -> Vec<Coding> {
        let mut codings = Coding::ALL.to_vec();
        codings.retain(|coding| match coding {
            Coding::Brotli => !self.no_brotli,
            Coding::Zstd => !self.no_zstd,
            Coding::Gzip => !self.no_gzip,
        });
        codings
    }
}

pub(super) fn run(args: &Args) -> ExitCode {
    match listen() {
        Ok(stop) => compress(args, &stop),
        Err(error) => {
            say::error(&format!("the system gives no signal handlers: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn compress(args: &Args, stop: &AtomicBool) -> ExitCode {
    let began = Instant::now();
    let wanted = Wanted {
        codings: args.codings(),
        min_size: args.min_size,
        force: args.force,
    };
    let found = match find::find(&args.dir, &wanted) {
        Ok(found) => found,
        Err(error) => {
            say::error(&format!(
                "the folder {} cannot be read: {error}",
                say::path(&args.dir)
            ));
            return ExitCode::FAILURE;
        }
    };
    if args.dry_run {
        return dry_run(&found);
    }
    let mut summary = Summary::new(&wanted.codings, &found);
    let progress = Progress::new(found.jobs.iter().map(|job| job.length).sum(), args.quiet);
    let mut failures = 0;
    for path in &found.remains {
        sibling::remove_if_left_behind(path);
    }
    let removed = found.stale.iter().map(|path| (path, sibling::remove(path)));
    for (path, error) in removed.filter_map(|(path, result)| Some((path, result.err()?))) {
        failures += 1;
        progress.error(&format!("{}: {error}", say::path(path)));
    }
    for (path, error) in &found.failures {
        failures += 1;
        progress.error(&format!("{}: {error}", say::path(path)));
    }
    let work = Work {
        jobs: &found.jobs,
        level: args.level,
        progress: &progress,
        stop,
    };
    failures += work.run(args.jobs, &mut summary);
    progress.clear();
    if stop.load(Ordering::Relaxed) {
        say::error("interrupted; what was finished is there, the next run makes the rest");
        return INTERRUPTED.into();
    }
    if !args.quiet {
        say::out(&summary.text(failures, began.elapsed()));
    }
    if failures > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// A flag that the first signal sets; the second ends the program at once, and leaves its temporary
/// files to the next run.
fn listen() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED.into(), Arc::clone(&stop))?;
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn dry_run(found: &Found) -> ExitCode {
    for job in &found.jobs {
        let name = sibling::path(&job.path, job.coding);
        say::out(&format!(
            "would make {} from {}\n",
            say::path(&name),
            say::bytes(job.length)
        ));
    }
    for path in found.stale.iter().chain(&found.remains) {
        say::out(&format!("would remove {}\n", say::path(path)));
    }
    for (path, error) in &found.failures {
        say::error(&format!("{}: {error}", say::path(path)));
    }
    if found.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The siblings that are to be made, and those who make them.
struct Work<'r> {
    jobs: &'r [Job],
    level: u32,
    progress: &'r Progress,
    stop: &'r AtomicBool,
}

impl Work<'_> {
    /// Makes all of them; gives the number that failed, each of which has its line.
    fn run(&self, threads: Option<usize>, summary: &mut Summary) -> usize {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = threads.unwrap_or(cores).min(self.jobs.len());
        let next = AtomicUsize::new(0);
        let memory = Memory::new();
        let results = Mutex::new((summary, 0));
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(job) = self.jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let share = memory.take(memory::needed(job.coding, job.length));
                        let made = self.make(job);
                        drop(share);
                        if self.stop.load(Ordering::Relaxed) {
                            return;
                        }
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        match made {
                            Ok(made) => results.0.add(job.coding, &made),
                            Err(error) => {
                                results.1 += 1;
                                self.progress
                                    .error(&format!("{}: {error}", say::path(&job.path)));
                            }
                        }
                    }
                });
            }
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.1
    }

    fn make(&self, job: &Job) -> io::Result<Made> {
        sibling::make(&job.path, job.coding, self.level, |file| Watched {
            file,
            path: &job.path,
            progress: self.progress,
            stop: self.stop,
        })
    }
}

#[cfg(test)]
mod tests;
