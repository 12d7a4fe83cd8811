//! How many connections can this machine hold?

use rustix::process::{Resource, getrlimit, setrlimit};

/// Descriptors that are kept for files, pipes and the program itself, at the least.
const SPARE_DESCRIPTORS: u64 = 64;

/// Which part of all descriptors is kept for what connections open besides themselves: files that are
/// sent, uploads that are spooled, connections to databases.
const SPARE_PART: u64 = 32;

/// Memory mappings that are kept for the program itself.
const SPARE_MAPPINGS: u64 = 2000;

/// How many connections fit, and how many of them may have something to do at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Each connection takes a descriptor.
    pub(crate) connections: usize,
    /// Each coroutine takes two memory mappings for its stack.
    pub(crate) active: usize,
}

/// Raises the soft limit of open descriptors to the hard one, and reckons from the limits.
pub(crate) fn of_this_process() -> Capacity {
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

fn reckon(descriptors: u64, mappings: u64) -> Capacity {
    let spare = (descriptors / SPARE_PART).max(SPARE_DESCRIPTORS);
    Capacity {
        connections: descriptors.saturating_sub(spare).max(16) as usize,
        active: (mappings.saturating_sub(SPARE_MAPPINGS) / 2).max(16) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_bound_connections_and_mappings_bound_coroutines() {
        assert_eq!(
            reckon(20_000, 65_530),
            Capacity {
                connections: 19_375,
                active: 31_765
            }
        );
        assert_eq!(
            reckon(1 << 20, 262_144),
            Capacity {
                connections: 1_015_808,
                active: 130_072
            }
        );
        assert_eq!(reckon(1024, 65_530).connections, 960);
        assert_eq!(
            reckon(40, 100),
            Capacity {
                connections: 16,
                active: 16
            }
        );
    }
}
