//! Is nothing lost or counted twice, and does the memory stay within its limits?

use std::thread;
use std::time::Duration;

use super::store::{COLLECTION_BYTES, ENTRY_BYTES, TEXT_BYTES, TIMED_BYTES};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn limited(limits: SharedLimits) -> (SharedMemory, Clock) {
    let clock = Clock::standing();
    (SharedMemory::at(limits, clock.clone()), clock)
}

fn standing() -> (SharedMemory, Clock) {
    limited(SharedLimits::default())
}

fn sorted(keys: Vec<Arc<str>>) -> Vec<String> {
    let mut keys: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
    keys.sort();
    keys
}

/// Runs `work` on `threads` threads at once, with their numbers.
fn on_threads(threads: usize, work: impl Fn(usize) + Sync) {
    let barrier = std::sync::Barrier::new(threads);
    thread::scope(|scope| {
        for number in 0..threads {
            let (work, barrier) = (&work, &barrier);
            scope.spawn(move || {
                barrier.wait();
                work(number);
            });
        }
    });
}

#[test]
fn threads_that_increment_at_once_lose_nothing() {
    let memory = SharedMemory::new();
    on_threads(8, |number| {
        let integers = memory.integers("count");
        for round in 0..10_000 {
            integers.increment("all", 1).unwrap();
            integers
                .increment_for(&format!("own{number}"), 2, 1000 * SECOND)
                .unwrap();
            if round % 100 == 0 {
                integers
                    .increment(&format!("some{}", round % 300), 1)
                    .unwrap();
            }
        }
    });
    let integers = memory.integers("count");
    assert_eq!(integers.get("all"), Some(80_000));
    for number in 0..8 {
        assert_eq!(integers.get(&format!("own{number}")), Some(20_000));
    }
    let some: i64 = ["some0", "some100", "some200"]
        .iter()
        .filter_map(|key| integers.get(key))
        .sum();
    assert_eq!(some, 800);
    assert_eq!(memory.entries(), 12);
}

#[test]
fn every_value_of_an_increment_is_given_to_one_thread() {
    let memory = SharedMemory::new();
    let seen = std::sync::Mutex::new(Vec::new());
    on_threads(4, |_| {
        let own: Vec<i64> = (0..5000)
            .map(|_| memory.integers("a").increment("n", 1).unwrap())
            .collect();
        assert!(own.is_sorted());
        seen.lock().unwrap().extend(own);
    });
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(1..=20_000));
}

#[test]
fn loops_of_compare_and_set_lose_nothing() {
    let memory = SharedMemory::new();
    on_threads(4, |_| {
        let (integers, strings) = (memory.integers("cas"), memory.strings("cas"));
        for _ in 0..1000 {
            loop {
                let old = integers.get("n");
                let new = old.unwrap_or(0) + 1;
                if integers.compare_and_set("n", old, new).unwrap() {
                    break;
                }
            }
            loop {
                let old = strings.get("n");
                let number: u32 = old.as_deref().map_or(0, |text| text.parse().unwrap());
                let new = (number + 1).to_string();
                if strings.compare_and_set("n", old.as_deref(), &new).unwrap() {
                    break;
                }
            }
        }
    });
    assert_eq!(memory.integers("cas").get("n"), Some(4000));
    assert_eq!(memory.strings("cas").get("n").as_deref(), Some("4000"));
}

#[test]
fn one_of_many_gets_a_lease() {
    let memory = SharedMemory::new();
    let winners = std::sync::atomic::AtomicUsize::new(0);
    on_threads(8, |number| {
        let leases = memory.strings("leases");
        if leases
            .compare_and_set("job", None, &number.to_string())
            .unwrap()
        {
            winners.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
    });
    assert_eq!(winners.into_inner(), 1);
}

#[test]
fn integers_strings_and_collections_are_apart() {
    let memory = SharedMemory::new();
    memory.integers("a").set("k", 1).unwrap();
    memory.integers("b").set("k", 2).unwrap();
    memory.strings("a").set("k", "three").unwrap();
    memory.strings("").set("", "four").unwrap();
    assert_eq!(memory.integers("a").get("k"), Some(1));
    assert_eq!(memory.integers("b").get("k"), Some(2));
    assert_eq!(memory.strings("a").get("k").as_deref(), Some("three"));
    assert_eq!(memory.strings("").get("").as_deref(), Some("four"));
    assert_eq!(memory.integers("a").delete("k"), Some(1));
    assert_eq!(memory.integers("a").delete("k"), None);
    assert_eq!(memory.integers("a").get("k"), None);
    assert_eq!(memory.entries(), 3);
}

#[test]
fn keys_are_those_of_the_collection_and_clear_removes_them() {
    let (memory, clock) = standing();
    let texts = memory.strings("a");
    let keys: Vec<String> = (100..300).map(|number| format!("key{number}")).collect();
    for (number, key) in keys.iter().enumerate() {
        if number % 2 == 0 {
            texts.set(key, "x").unwrap();
        } else {
            texts.set_for(key, "x", 5 * SECOND).unwrap();
        }
    }
    memory.strings("b").set("other", "y").unwrap();
    assert_eq!(sorted(texts.keys()), keys);
    clock.advance(5 * SECOND);
    let lasting: Vec<String> = keys.iter().step_by(2).cloned().collect();
    assert_eq!(sorted(texts.keys()), lasting);
    assert_eq!(texts.clear(), 100);
    assert!(texts.keys().is_empty());
    assert_eq!(memory.entries(), 1);
    memory.strings("b").delete("other");
    assert_eq!((memory.entries(), memory.bytes()), (0, 0));
}

#[test]
fn an_entry_is_there_for_its_time_and_not_longer() {
    let (memory, clock) = standing();
    let integers = memory.integers("a");
    integers.set_for("k", 1, 2 * SECOND).unwrap();
    clock.advance(2 * SECOND - Duration::from_nanos(1));
    assert_eq!(integers.get("k"), Some(1));
    // An increment, or a change of the value, does not make it live longer.
    assert_eq!(integers.increment_for("k", 1, 9 * SECOND).unwrap(), 2);
    assert!(integers.compare_and_set("k", Some(2), 3).unwrap());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(integers.get("k"), None);
    assert_eq!((memory.entries(), memory.bytes()), (0, 0));
    // It begins anew, and set takes a time limit away.
    assert_eq!(integers.increment_for("k", 5, SECOND).unwrap(), 5);
    integers.set("k", 6).unwrap();
    clock.advance(9 * SECOND);
    assert_eq!(integers.get("k"), Some(6));
    integers.set_for("k", 7, SECOND).unwrap();
    integers.set_for("k", 8, 3 * SECOND).unwrap();
    clock.advance(2 * SECOND);
    assert_eq!(integers.get("k"), Some(8));
    // No time at all, and more than there is.
    integers.set_for("k", 9, Duration::ZERO).unwrap();
    assert_eq!(integers.get("k"), None);
    integers.set_for("k", 9, Duration::MAX).unwrap();
    clock.advance(1_000_000 * SECOND);
    assert_eq!(integers.get("k"), Some(9));
}

#[test]
fn what_is_over_counts_as_absent_for_comparisons() {
    let (memory, clock) = standing();
    let strings = memory.strings("a");
    assert!(
        strings
            .compare_and_set_for("k", None, "one", SECOND)
            .unwrap()
    );
    assert!(!strings.compare_and_set("k", None, "two").unwrap());
    clock.advance(SECOND);
    assert!(!strings.compare_and_delete("k", "one"));
    assert!(!strings.compare_and_set("k", Some("one"), "two").unwrap());
    assert!(strings.compare_and_set("k", None, "two").unwrap());
}

#[test]
fn writes_drop_what_is_over_in_small_steps() {
    let (memory, clock) = standing();
    let integers = memory.integers("a");
    for number in 0..10_000 {
        integers.set_for(&number.to_string(), 1, SECOND).unwrap();
    }
    clock.advance(SECOND);
    assert_eq!(memory.entries(), 10_000);
    memory.strings("b").set("k", "v").unwrap();
    // Strings and integers have shards of their own, so nothing of these has gone.
    assert_eq!(memory.entries(), 10_001);
    for number in 0..10_000 {
        let before = memory.entries();
        integers.set(&format!("new{}", number % 2000), 1).unwrap();
        assert!(memory.entries() + 4 >= before);
    }
    // Nobody asked for any of them by name, and the writes came to every shard.
    assert_eq!(memory.entries(), 2001);
}

#[test]
fn the_last_entry_fits_and_one_more_is_refused() {
    let (memory, clock) = limited(SharedLimits {
        entries: 3,
        ..SharedLimits::default()
    });
    let integers = memory.integers("a");
    integers.set("1", 1).unwrap();
    memory.strings("a").set("2", "x").unwrap();
    integers.set_for("3", 1, SECOND).unwrap();
    let full = SharedError::TooManyEntries { limit: 3 };
    assert_eq!(integers.set("4", 1), Err(full.clone()));
    assert_eq!(integers.increment("4", 1), Err(full.clone()));
    assert_eq!(memory.strings("b").set("4", "x"), Err(full));
    assert_eq!(memory.entries(), 3);
    // What is there can still be changed, and what is over makes room wherever it is.
    assert_eq!(integers.increment("1", 1).unwrap(), 2);
    clock.advance(SECOND);
    memory.strings("b").set("4", "x").unwrap();
    assert_eq!(memory.entries(), 3);
}

#[test]
fn bytes_are_counted_to_the_last_one() {
    let one = |key: &str, value: usize| ENTRY_BYTES + TEXT_BYTES + key.len() + value;
    let limit = COLLECTION_BYTES + 4 + one("key", 100) + TIMED_BYTES;
    let (memory, clock) = limited(SharedLimits {
        bytes: limit,
        ..SharedLimits::default()
    });
    let strings = memory.strings("name");
    let full = Err(SharedError::TooManyBytes { limit });
    strings.set_for("key", &"x".repeat(100), SECOND).unwrap();
    assert_eq!(memory.bytes(), limit);
    assert_eq!(strings.set_for("key", &"x".repeat(101), SECOND), full);
    // Without the time limit there is room for as much more.
    let more = 100 + TIMED_BYTES;
    assert_eq!(strings.set("key", &"x".repeat(more + 1)), full);
    assert_eq!(strings.get("key").map(|text| text.len()), Some(100));
    strings.set("key", &"x".repeat(more)).unwrap();
    assert_eq!(memory.bytes(), limit);
    clock.advance(2 * SECOND);
    assert_eq!(strings.get("key").map(|text| text.len()), Some(more));
    strings.set("key", "").unwrap();
    assert_eq!(memory.bytes(), limit - more);
    assert_eq!(strings.clear(), 1);
    assert_eq!(memory.bytes(), 0);
}

#[test]
fn threads_fill_the_memory_exactly_to_its_limit() {
    let (memory, _) = limited(SharedLimits {
        entries: 1000,
        ..SharedLimits::default()
    });
    let made = std::sync::atomic::AtomicUsize::new(0);
    on_threads(8, |thread| {
        for number in 0..500 {
            let key = format!("{thread}-{number}");
            if memory.integers("a").set(&key, 1).is_ok() {
                made.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
    });
    assert_eq!(made.into_inner(), 1000);
    assert_eq!(memory.entries(), 1000);
    assert_eq!(memory.integers("a").keys().len(), 1000);
    assert_eq!(memory.integers("a").clear(), 1000);
    assert_eq!((memory.entries(), memory.bytes()), (0, 0));
}

#[test]
fn entries_with_a_time_limit_make_room_if_so_chosen() {
    let (memory, _) = limited(SharedLimits {
        entries: 3,
        when_full: WhenFull::DropSoonest,
        ..SharedLimits::default()
    });
    let integers = memory.integers("a");
    integers.set("lasting", 1).unwrap();
    integers.set_for("later", 1, 9 * SECOND).unwrap();
    memory.strings("a").set_for("soon", "x", SECOND).unwrap();
    integers.set("4", 1).unwrap();
    assert_eq!(memory.strings("a").get("soon"), None);
    assert_eq!(integers.get("later"), Some(1));
    integers.set("5", 1).unwrap();
    assert_eq!(integers.get("later"), None);
    // What was set for good is never dropped.
    assert!(integers.set("6", 1).is_err());
    assert_eq!(sorted(integers.keys()), ["4", "5", "lasting"]);
}

#[test]
fn a_string_that_never_fits_drives_nobody_out() {
    let (memory, _) = limited(SharedLimits {
        bytes: 4000,
        when_full: WhenFull::DropSoonest,
        ..SharedLimits::default()
    });
    let strings = memory.strings("a");
    strings.set_for("k", "x", SECOND).unwrap();
    assert!(strings.set("big", &"x".repeat(4001)).is_err());
    assert_eq!(strings.get("k").as_deref(), Some("x"));
    strings.set("big", &"x".repeat(2000)).unwrap();
    assert_eq!(strings.get("k").as_deref(), Some("x"));
    strings.set("big", &"x".repeat(3300)).unwrap();
    assert_eq!(strings.get("k"), None);
}

#[test]
fn long_keys_and_values_are_refused_at_one_past_the_limit() {
    let memory = SharedMemory::new();
    let (fits, too_long) = ("k".repeat(1 << 10), "k".repeat((1 << 10) + 1));
    memory.integers(&fits).set(&fits, 1).unwrap();
    let want = SharedError::KeyTooLong {
        length: 1025,
        limit: 1024,
    };
    assert_eq!(memory.integers("a").set(&too_long, 1), Err(want.clone()));
    assert_eq!(
        memory.integers(&too_long).increment("a", 1),
        Err(want.clone())
    );
    assert_eq!(memory.strings("a").set(&too_long, ""), Err(want));
    assert_eq!(memory.integers("a").get(&too_long), None);
    assert_eq!(memory.integers("a").delete(&too_long), None);
    let (fits, too_long) = ("v".repeat(1 << 20), "v".repeat((1 << 20) + 1));
    memory.strings("a").set("k", &fits).unwrap();
    let want = SharedError::ValueTooLong {
        length: (1 << 20) + 1,
        limit: 1 << 20,
    };
    assert_eq!(memory.strings("a").set("k", &too_long), Err(want));
}

#[test]
fn a_sum_that_is_no_integer_is_an_error_and_changes_nothing() {
    let memory = SharedMemory::new();
    let integers = memory.integers("a");
    integers.set("k", i64::MAX - 1).unwrap();
    assert_eq!(integers.increment("k", 1).unwrap(), i64::MAX);
    let want = SharedError::Overflow {
        value: i64::MAX,
        by: 1,
    };
    assert_eq!(integers.increment("k", 1), Err(want));
    assert_eq!(integers.get("k"), Some(i64::MAX));
    integers.set("k", i64::MIN).unwrap();
    assert!(integers.increment("k", -1).is_err());
}

#[test]
fn what_was_counted_is_what_is_there_after_any_mixture() {
    let (memory, clock) = limited(SharedLimits {
        entries: 40,
        bytes: 16 << 10,
        ..SharedLimits::default()
    });
    // A small generator of its own: the same run each time.
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..20_000 {
        let key = format!("k{}", random(60));
        let name = ["a", "b"][random(2) as usize];
        let (integers, strings) = (memory.integers(name), memory.strings(name));
        let text = "x".repeat(random(300) as usize);
        let time = random(5) as u32 * SECOND;
        match random(9) {
            0 => drop(integers.set(&key, 1)),
            1 => drop(integers.set_for(&key, 1, time)),
            2 => drop(integers.increment_for(&key, 1, time)),
            3 => drop(strings.set(&key, &text)),
            4 => drop(strings.set_for(&key, &text, time)),
            5 => drop((integers.delete(&key), strings.delete(&key))),
            6 => drop(strings.get(&key)),
            7 => clock.advance(SECOND / 8),
            _ if random(100) == 0 => drop(strings.clear()),
            _ => {}
        }
        assert!(memory.entries() <= 40 && memory.bytes() <= 16 << 10);
    }
    clock.advance(100 * SECOND);
    for name in ["a", "b"] {
        memory.integers(name).clear();
        memory.strings(name).clear();
    }
    assert_eq!((memory.entries(), memory.bytes()), (0, 0));
    assert_eq!(memory.0.integers.soonest(), None);
    assert_eq!(memory.0.strings.soonest(), None);
}
