//! Is what is kept right, bounded, and brought once?

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use super::*;
use crate::message::clock::Clock;
use crate::net::home;

mod files;

/// A disk of names and numbers, and what was asked of it.
#[derive(Default)]
struct Disk {
    files: Mutex<HashMap<String, u64>>,
    loads: AtomicUsize,
    comparisons: AtomicUsize,
    cost: u64,
    /// What loading waits for, where there is something.
    gate: Option<Mutex<mpsc::Receiver<()>>>,
}

impl Disk {
    fn write(&self, name: &str, content: u64) {
        self.files.lock().unwrap().insert(name.to_owned(), content);
    }

    fn loads(&self) -> usize {
        self.loads.load(Ordering::SeqCst)
    }
}

impl Load for Disk {
    /// `None` for a name that is not there.
    type Value = Option<u64>;

    fn load(&self, key: Key<'_>) -> io::Result<Option<u64>> {
        assert_eq!(home::current(), None, "on a worker");
        self.loads.fetch_add(1, Ordering::SeqCst);
        if let Some(gate) = &self.gate {
            let _ = gate.lock().unwrap().recv();
        }
        match key.name {
            "denied" => Err(io::ErrorKind::PermissionDenied.into()),
            "panics" => std::panic::resume_unwind(Box::new("quietly")),
            name => Ok(self.files.lock().unwrap().get(name).copied()),
        }
    }

    fn is_current(&self, key: Key<'_>, value: &Option<u64>) -> bool {
        assert_eq!(home::current(), None, "on a worker");
        self.comparisons.fetch_add(1, Ordering::SeqCst);
        self.files.lock().unwrap().get(key.name).copied() == *value
    }

    fn cost(&self, value: &Option<u64>) -> u64 {
        value.map_or(0, |_| self.cost)
    }

    fn for_worker(&self, value: &Option<u64>) -> Option<u64> {
        *value
    }
}

fn key(name: &str) -> Key<'_> {
    Key { name, form: 0 }
}

/// Calls `body` on a worker and waits for what it gives.
fn on_worker<T: Send + 'static>(worker: usize, body: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, results) = mpsc::channel();
    home::spawn(worker, "test", move || done.send(body()).unwrap()).unwrap();
    results.recv_timeout(Duration::from_secs(60)).unwrap()
}

#[track_caller]
fn wait_until(mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn an_entry_is_compared_in_the_background_from_half_a_second_on_and_first_past_a_second() {
    home::start_for_tests();
    let clock = Clock::standing();
    let cache = Arc::new(Cache::with_clock(Disk::default(), 1 << 20, clock.clone()));
    let get = |worker: usize| {
        let cache = Arc::clone(&cache);
        on_worker(worker, move || *cache.get(key("a")).unwrap())
    };
    let compared = || cache.loader().comparisons.load(Ordering::SeqCst);
    cache.loader().write("a", 1);
    assert_eq!((get(0), get(1), get(0)), (Some(1), Some(1), Some(1)));
    assert_eq!(cache.loader().loads(), 1);

    clock.advance(499 * MILLISECOND);
    get(0);
    assert_eq!(compared(), 0);

    clock.advance(MILLISECOND);
    assert_eq!(get(0), Some(1));
    wait_until(|| compared() == 1);
    // It is fresh again.
    wait_until(|| cache.is_fresh(key("a")));
    clock.advance(499 * MILLISECOND);
    get(1);
    assert_eq!((compared(), cache.loader().loads()), (1, 1));

    // Nobody waits for the comparison, but what it finds is seen by all.
    cache.loader().write("a", 2);
    clock.advance(500 * MILLISECOND);
    assert_eq!(get(0), Some(1));
    wait_until(|| get(0) == Some(2));
    assert_eq!(get(1), Some(2));
    assert_eq!((compared(), cache.loader().loads()), (2, 2));

    // Past a second the answer is right at once.
    cache.loader().write("a", 3);
    clock.advance(1000 * MILLISECOND);
    assert_eq!(get(1), Some(3));
    assert_eq!((compared(), cache.loader().loads()), (3, 3));
    cache.age(Duration::from_secs(1));
    assert_eq!((get(1), get(0)), (Some(3), Some(3)));
    assert_eq!((compared(), cache.loader().loads()), (4, 3));

    cache.loader().files.lock().unwrap().clear();
    clock.advance(1000 * MILLISECOND);
    assert_eq!((get(0), get(1)), (None, None));
    // That it is not there is kept as well.
    assert_eq!(cache.loader().loads(), 4);
}

#[test]
fn many_requests_for_one_cold_name_load_it_once_and_hold_no_threads() {
    home::start_for_tests();
    let (release, gate) = mpsc::channel();
    let disk = Disk {
        gate: Some(Mutex::new(gate)),
        ..Disk::default()
    };
    disk.write("a", 1);
    let cache = Arc::new(Cache::with_clock(disk, 1 << 20, Clock::standing()));
    let (done, results) = mpsc::channel();
    let (asked, questions) = mpsc::channel();
    // More than there are threads that may block.
    for number in 0..300 {
        let (cache, done, asked) = (Arc::clone(&cache), done.clone(), asked.clone());
        home::spawn(number % 2, "test", move || {
            asked.send(()).unwrap();
            done.send(*cache.get(key("a")).unwrap()).unwrap();
        })
        .unwrap();
    }
    for _ in 0..4 {
        let (cache, done, asked) = (Arc::clone(&cache), done.clone(), asked.clone());
        std::thread::spawn(move || {
            asked.send(()).unwrap();
            done.send(*cache.get(key("a")).unwrap()).unwrap();
        });
    }
    for _ in 0..304 {
        questions.recv_timeout(Duration::from_secs(60)).unwrap();
    }
    // Both workers and the threads have room for others.
    assert_eq!(on_worker(0, || home::blocking(|| 7)), 7);
    assert_eq!(on_worker(1, || home::blocking(|| 7)), 7);
    assert!(results.try_recv().is_err());
    drop(release);
    for _ in 0..304 {
        assert_eq!(
            results.recv_timeout(Duration::from_secs(60)).unwrap(),
            Some(1)
        );
    }
    assert_eq!(cache.loader().loads(), 1);
}

#[test]
fn threads_that_may_block_do_the_work_themselves_where_all_of_them_ask() {
    home::start_for_tests();
    let cache = Arc::new(Cache::new(Disk::default(), 1 << 20));
    let (done, results) = mpsc::channel();
    for number in 0..500 {
        let (cache, done) = (Arc::clone(&cache), done.clone());
        home::spawn(number % 2, "test", move || {
            let name = (number / 2 % 50).to_string();
            let value = if number % 4 < 3 {
                home::blocking(move || cache.get(key(&name)).map(|value| *value))
            } else {
                cache.get(key(&name)).map(|value| *value)
            };
            done.send(value.unwrap()).unwrap();
        })
        .unwrap();
    }
    for _ in 0..500 {
        let value = results.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(value, None);
    }
}

#[test]
fn errors_and_panics_are_not_kept_and_come_to_all_who_wait() {
    home::start_for_tests();
    let cache = Arc::new(Cache::new(Disk::default(), 1 << 20));
    for (name, want) in [
        ("denied", io::ErrorKind::PermissionDenied),
        ("panics", io::ErrorKind::Other),
    ] {
        for worker in [0, 1] {
            let cache = Arc::clone(&cache);
            let error = on_worker(worker, move || cache.get(key(name)).unwrap_err());
            assert_eq!(error.kind(), want);
        }
        assert_eq!(cache.get(key(name)).unwrap_err().kind(), want);
    }
    assert_eq!(cache.loader().loads(), 6);
    assert_eq!(cache.size().0, 0);
}

#[test]
fn a_name_is_forgotten_in_all_forms_by_all_workers() {
    home::start_for_tests();
    let cache = Arc::new(Cache::with_clock(
        Disk::default(),
        1 << 20,
        Clock::standing(),
    ));
    let get_all = || {
        for form in 0..8 {
            for name in ["a", "b"] {
                for worker in [0, 1] {
                    let cache = Arc::clone(&cache);
                    on_worker(worker, move || cache.get(Key { name, form }).unwrap());
                }
                cache.get(Key { name, form }).unwrap();
            }
        }
    };
    get_all();
    assert_eq!((cache.loader().loads(), cache.held()), (16, 48));
    cache.forget("a");
    assert_eq!((cache.size().0, cache.held()), (8, 24));
    get_all();
    assert_eq!((cache.loader().loads(), cache.held()), (24, 48));
}

#[test]
fn bytes_are_bounded_for_all_workers_together() {
    home::start_for_tests();
    let cost = 1000;
    let each = cost + store::ENTRY_BYTES + 1 + 2 * store::SHARE_BYTES;
    let disk = Disk {
        cost,
        ..Disk::default()
    };
    let cache = Arc::new(Cache::with_clock(disk, 8 * each, Clock::standing()));
    let get = |name: &'static str| {
        for worker in [0, 1] {
            let cache = Arc::clone(&cache);
            on_worker(worker, move || *cache.get(key(name)).unwrap());
        }
    };
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        cache.loader().write(name, 1);
        get(name);
    }
    assert_eq!((cache.size().0, cache.size().1), (8, 8 * each));
    cache.loader().write("i", 1);
    get("i");
    assert_eq!((cache.size().0, cache.size().1), (8, 8 * each));
    assert_eq!((cache.held(), cache.loader().loads()), (16, 9));
}

#[test]
fn a_value_of_more_than_a_quarter_of_the_room_is_given_out_but_not_kept() {
    for (cost, loads) in [(2500, 1), (2501, 3)] {
        let disk = Disk {
            cost,
            ..Disk::default()
        };
        disk.write("a", 1);
        let cache = Cache::with_clock(disk, 10_000, Clock::standing());
        for _ in 0..3 {
            assert_eq!(*cache.get(key("a")).unwrap(), Some(1));
        }
        assert_eq!(cache.loader().loads(), loads, "{cost}");
    }
}

#[test]
fn a_stream_of_names_that_are_not_there_pushes_nothing_out_that_is_in_use() {
    let disk = Disk {
        cost: 10_000,
        ..Disk::default()
    };
    let names: Vec<String> = (0..50).map(|number| format!("hot/{number}")).collect();
    for name in &names {
        disk.write(name, 1);
    }
    let cache = Cache::with_clock(disk, 1 << 20, Clock::standing());
    for round in 0..100_000 {
        // Each of them comes once in a thousand.
        if round % 20 == 0 {
            let name = &names[round / 20 % 50];
            assert_eq!(*cache.get(key(name)).unwrap(), Some(1));
        }
        let name = format!("missing/{round}");
        assert_eq!(*cache.get(key(&name)).unwrap(), None);
        assert!(cache.size().1 <= 1 << 20);
    }
    assert_eq!(cache.loader().loads(), 100_000 + 50);
    // Once it is not in use any more it makes room.
    let names: Vec<String> = (0..50).map(|number| format!("later/{number}")).collect();
    for name in names.iter().cycle().take(10_000) {
        cache.loader().write(name, 1);
        cache.get(key(name)).unwrap();
        cache.get(key(name)).unwrap();
    }
    let before = cache.loader().loads();
    for name in names.iter().cycle().take(1000) {
        cache.get(key(name)).unwrap();
    }
    assert_eq!(cache.loader().loads(), before);
}

#[test]
fn ten_thousand_names_are_loaded_once_each_and_less_room_costs_little_more() {
    let names: Vec<String> = (0..10_000)
        .map(|number| format!("folder/{number:05}"))
        .collect();
    let each = 100 + store::ENTRY_BYTES + 12 + store::SHARE_BYTES;
    for (part, most_loads) in [(100, 10_000), (90, 18_000), (50, 40_000)] {
        let disk = Disk {
            cost: 100,
            ..Disk::default()
        };
        for name in &names {
            disk.write(name, 1);
        }
        let cache = Cache::with_clock(disk, each * 100 * part, Clock::standing());
        let mut state = 7_u64;
        for _ in 0..100_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Half of all requests are for a quarter of the names.
            let random = (state >> 33) as f64 / f64::from(1_u32 << 31);
            let name = &names[(random * random * 10_000.0) as usize % 10_000];
            assert_eq!(*cache.get(key(name)).unwrap(), Some(1));
        }
        let loads = cache.loader().loads();
        assert!(loads <= most_loads, "{part} %: {loads}");
    }
}

#[test]
fn what_is_forgotten_and_loaded_again_leaves_nothing_behind() {
    let cache = Cache::new(Disk::default(), 1 << 20);
    for _ in 0..10_000 {
        cache.get(key("a")).unwrap();
        cache.forget("a");
    }
    let (entries, bytes, places) = cache.size();
    assert_eq!((entries, bytes, cache.held()), (0, 0, 0));
    assert!(places <= 100, "{places}");
}
