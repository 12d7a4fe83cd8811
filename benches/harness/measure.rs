//! How much processor time and memory did a process tree use, and how much the rest of the machine?

use std::fs;
use std::time::Duration;

/// A process and its descendants.
#[derive(Clone, Copy)]
pub(crate) struct Tree {
    root: u32,
    counts_root: bool,
}

impl Tree {
    pub(crate) fn from(root: u32) -> Self {
        Self {
            root,
            counts_root: true,
        }
    }

    /// The descendants only: what a guard runs, without the guard.
    pub(crate) fn below(root: u32) -> Self {
        Self {
            root,
            counts_root: false,
        }
    }

    pub(crate) fn ids(self) -> Vec<u32> {
        let all: Vec<(u32, u32)> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(|id: u32| Some((id, ProcessStat::of(id)?.parent)))
            .collect();
        let mut ids = vec![self.root];
        let mut seen = 0;
        while let Some(&parent) = ids.get(seen) {
            ids.extend(
                all.iter()
                    .filter(|(_, its_parent)| *its_parent == parent)
                    .map(|(id, _)| id),
            );
            seen += 1;
        }
        ids.drain(..usize::from(!self.counts_root));
        ids
    }

    /// User and system time so far, of all threads of all its processes.
    pub(crate) fn cpu(self) -> Duration {
        self.ids()
            .into_iter()
            .filter_map(ProcessStat::of)
            .map(|stat| stat.own)
            .sum()
    }

    /// The sum of its processes' peaks, in bytes. A page that two processes share counts in both.
    pub(crate) fn peak_memory(self) -> u64 {
        self.ids().into_iter().filter_map(peak_of).sum()
    }
}

/// The time of this process and of the children it has waited for: the load generator's, around one run of it.
pub(crate) fn own_cpu() -> Duration {
    ProcessStat::of(std::process::id()).map_or(Duration::ZERO, |stat| stat.own + stat.waited_for)
}

/// The time that all processors together spent on anything so far, what the hypervisor took away included.
pub(crate) fn machine_cpu() -> Duration {
    fs::read_to_string("/proc/stat")
        .ok()
        .and_then(|text| busy(&text))
        .unwrap_or_default()
}

/// proc_stat(5): user nice system idle iowait irq softirq steal; the guest times after them are part of user and nice.
pub(crate) fn busy(stat: &str) -> Option<Duration> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .filter_map(|field| field.parse().ok())
        .collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = fields[..] else {
        return None;
    };
    Some(ticks(user + nice + system + irq + softirq + steal))
}

pub(crate) struct ProcessStat {
    pub(crate) parent: u32,
    pub(crate) own: Duration,
    pub(crate) waited_for: Duration,
}

impl ProcessStat {
    fn of(id: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    /// proc_pid_stat(5). The second field is the program's name in brackets, and may hold spaces and brackets of its own.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            parent: u32::try_from(number(4)?).ok()?,
            own: ticks(number(14)? + number(15)?),
            waited_for: ticks(number(16)? + number(17)?),
        })
    }
}

fn peak_of(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn ticks(count: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / per_second))
}
