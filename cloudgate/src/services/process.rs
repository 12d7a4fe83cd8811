//! What does this process take of the machine?
//!
//! By the names that every client library of Prometheus uses for it. All of it comes from `/proc/self` and the clocks of
//! Linux; what cannot be read is left out.

use std::fs;

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::message::metrics::{Exposition, Kind};

/// How many of the ticks of `/proc` are a second: `USER_HZ`, which is the same on all machines that this is built for.
const TICKS: f64 = 100.0;

/// The figures, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Process {
    cpu_seconds: Option<f64>,
    resident_bytes: Option<u64>,
    open_descriptors: Option<u64>,
    most_descriptors: Option<f64>,
    start_seconds: Option<f64>,
    threads: Option<u64>,
}

impl Process {
    /// Reads them. It may take a moment, for the system counts what the process has.
    pub(super) fn read() -> Process {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let status = read("/proc/self/status");
        let here = !status.is_empty();
        Process {
            cpu_seconds: here.then(cpu_seconds),
            resident_bytes: field(&status, "VmRSS:").and_then(|kib| kib.checked_mul(1024)),
            open_descriptors: open_descriptors(),
            most_descriptors: here.then(most_descriptors),
            start_seconds: start_seconds(&read("/proc/self/stat"), &read("/proc/stat")),
            threads: field(&status, "Threads:"),
        }
    }

    pub(super) fn tell(&self, out: &mut Exposition) {
        let whole = |number: Option<u64>| number.map(|number| number as f64);
        for (name, kind, help, value) in [
            (
                "process_cpu_seconds_total",
                Kind::Counter,
                "Time that the processors have spent for the process.",
                self.cpu_seconds,
            ),
            (
                "process_resident_memory_bytes",
                Kind::Gauge,
                "Memory that is resident.",
                whole(self.resident_bytes),
            ),
            (
                "process_open_fds",
                Kind::Gauge,
                "Descriptors that are open.",
                whole(self.open_descriptors),
            ),
            (
                "process_max_fds",
                Kind::Gauge,
                "The most descriptors that may be open at once.",
                self.most_descriptors,
            ),
            (
                "process_start_time_seconds",
                Kind::Gauge,
                "When the process began, in seconds since 1970.",
                self.start_seconds,
            ),
            (
                "process_threads",
                Kind::Gauge,
                "Threads of the process.",
                whole(self.threads),
            ),
        ] {
            if let Some(value) = value {
                out.family(name, kind, help).sample(&[], value);
            }
        }
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The soft limit; infinity where there is none.
fn most_descriptors() -> f64 {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(f64::INFINITY, |limit| limit as f64)
}

fn open_descriptors() -> Option<u64> {
    // Since Linux 6.2 the size of the folder is their number, whatever that is.
    match fs::metadata("/proc/self/fd").ok()?.len() {
        // One of those that are seen here is the folder itself.
        0 => Some((fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1)),
        count => Some(count),
    }
}

/// The number behind a name in `/proc/self/status`, without its unit.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// When the process began (proc_pid_stat(5), field 22, in ticks since the machine did) and the machine (`btime`).
fn start_seconds(stat: &str, machine: &str) -> Option<f64> {
    // The name of the program may hold spaces and parentheses itself; it ends at the last of these.
    let behind_name = stat.rsplit_once(')')?.1;
    // The next field is the third.
    let ticks: f64 = behind_name.split_whitespace().nth(22 - 3)?.parse().ok()?;
    let booted: f64 = machine
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    Some(booted + ticks / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn the_figures_are_those_of_this_process() {
        let held: Vec<File> = (0..20).map(|_| File::open("/dev/null").unwrap()).collect();
        let process = Process::read();
        assert!(process.cpu_seconds.unwrap() > 0.0);
        // A test binary takes more than a MiB and less than a TiB.
        assert!((1 << 20..1 << 40).contains(&process.resident_bytes.unwrap()));
        assert!(process.open_descriptors.unwrap() >= held.len() as u64);
        assert!(process.most_descriptors.unwrap() >= process.open_descriptors.unwrap() as f64);
        assert!(process.threads.unwrap() >= 1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - process.start_seconds.unwrap();
        // `btime` is in whole seconds, and moves when the clock of the machine is set.
        assert!((-5.0..86_400.0).contains(&age), "{age}");
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_moves_no_field() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 2550 99";
        for name in ["cloudgate", "a b", "a) S 1 (b", ""] {
            let stat = format!("77 ({name}) {fields}\n");
            let start = start_seconds(&stat, "cpu 1 2\nbtime 1000\nprocesses 5\n");
            assert_eq!(start, Some(1025.5), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        for (stat, machine) in [
            ("", ""),
            ("1 (a) S 1", "btime 1"),
            ("1 (a) S", ""),
            ("x", "y"),
        ] {
            assert_eq!(start_seconds(stat, machine), None);
        }
        let status = "Name:\ta\nVmRSS:\t    1500 kB\nThreads:\tx\n";
        assert_eq!(field(status, "VmRSS:"), Some(1500));
        assert_eq!(field(status, "Threads:"), None);
        assert_eq!(field(status, "FDSize:"), None);
        let mut out = Exposition::default();
        Process {
            threads: Some(3),
            ..Process::default()
        }
        .tell(&mut out);
        assert_eq!(
            out.to_string(),
            "# HELP process_threads Threads of the process.\n\
             # TYPE process_threads gauge\n\
             process_threads 3\n"
        );
    }
}
