//! How much memory is resident once a server has come to rest?

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::measure::Tree;

/// After how long without a change a server is at rest; connections are parked after a second.
const REST: Duration = Duration::from_secs(3);

/// The longest wait for that.
const PATIENCE: Duration = Duration::from_secs(20);

/// The resident memory of a server's processes, in bytes, when it changes no more.
pub(crate) fn at_rest(tree: Tree) -> u64 {
    let began = Instant::now();
    let (mut last, mut since) = (resident(tree), Instant::now());
    while since.elapsed() < REST && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(200));
        let now = resident(tree);
        if now.abs_diff(last) > 64 << 10 {
            (last, since) = (now, Instant::now());
        }
    }
    resident(tree)
}

/// A page that two processes share counts in both.
fn resident(tree: Tree) -> u64 {
    tree.ids().into_iter().filter_map(resident_of).sum()
}

fn resident_of(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
