//! How many connections can this machine hold?

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors that are kept for files, pipes and the program itself.
const SPARE_DESCRIPTORS: u64 = 64;

/// Memory mappings that are kept for the program itself.
const SPARE_MAPPINGS: u64 = 2000;

/// Raises the soft limit of open descriptors to the hard one, and reckons the largest number of
/// connections: each takes a descriptor, and while it is active two memory mappings for its stack.
pub(crate) fn max_connections() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum || limit.maximum.is_none() {
        limit.current = limit.maximum.or(Some(1 << 20));
        // Where it is refused the old limit stays in force, and is what counts below.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    let mappings = std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65_530);
    reckon(descriptors, mappings)
}

fn reckon(descriptors: u64, mappings: u64) -> usize {
    let by_descriptors = descriptors.saturating_sub(SPARE_DESCRIPTORS);
    let by_mappings = mappings.saturating_sub(SPARE_MAPPINGS) / 2;
    by_descriptors.min(by_mappings).max(16) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tighter_limit_counts() {
        assert_eq!(reckon(20_000, 65_530), 19_936);
        assert_eq!(reckon(1_000_000, 65_530), 31_765);
        assert_eq!(reckon(40, 65_530), 16);
    }
}
