//! Does every wait end with its limit, and leave nothing behind?

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc;

use super::*;
use crate::net::home::{self, Notify, blocking, catch_panic, channel, sleep, yield_now};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

/// Runs `body` on a coroutine of this worker; the receiver gets what it gives.
fn run<T: Send + 'static>(
    worker: usize,
    body: impl FnOnce() -> T + Send + 'static,
) -> mpsc::Receiver<T> {
    home::start_for_tests();
    let (done, result) = mpsc::channel();
    // The receiver may be gone after a test that failed.
    home::spawn(worker, "test", move || drop(done.send(body()))).unwrap();
    result
}

#[track_caller]
fn get<T>(result: &mpsc::Receiver<T>) -> T {
    result.recv_timeout(LONG).unwrap()
}

#[track_caller]
fn coroutine<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> T {
    get(&run(0, body))
}

fn until(mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < LONG, "waited too long");
        thread::yield_now();
    }
}

struct Counted(&'static AtomicUsize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn every_kind_of_wait_ends_and_destructors_run() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let (release, gate) = mpsc::channel::<()>();
    let waits: Vec<Box<dyn FnOnce() + Send>> = vec![
        Box::new(|| sleep(Duration::MAX)),
        Box::new(|| sleep(LONG * 2)),
        Box::new(|| {
            loop {
                yield_now();
            }
        }),
        Box::new(|| Notify::new().wait()),
        Box::new(|| assert!(Notify::new().wait_timeout(LONG * 2))),
        Box::new(|| {
            let (_sender, receiver) = channel::<()>(1);
            receiver.recv();
        }),
        Box::new(|| {
            let (sender, _receiver) = channel(1);
            for number in 0..2 {
                sender.send(number).unwrap();
            }
        }),
        Box::new(move || assert!(blocking(move || gate.recv()).is_err())),
    ];
    let count = waits.len();
    let begin = Instant::now();
    for wait in waits {
        let outcome = coroutine(move || {
            within(SHORT, || {
                let _counted = Counted(&DROPPED);
                wait();
            })
        });
        assert_eq!(outcome, Err(Late));
    }
    assert_eq!(DROPPED.load(Ordering::Relaxed), count);
    assert!(begin.elapsed() >= SHORT * count as u32);
    assert!(begin.elapsed() < LONG);
    assert_eq!(home::thread_changes(), 0);
    drop(release);
}

#[test]
fn what_is_in_time_is_given_back_and_waits_on_without_a_limit() {
    let result = coroutine(|| {
        let result = within(LONG, || {
            sleep(Duration::from_millis(1));
            blocking(|| 7)
        });
        let short = within(SHORT, || 8);
        // The limits are over: nothing ends this wait.
        sleep(SHORT * 2);
        (result, short)
    });
    assert_eq!(result, (Ok(7), Ok(8)));
}

#[test]
fn work_without_a_wait_is_not_cut_but_its_next_wait_is() {
    let burn = || {
        let begin = Instant::now();
        while begin.elapsed() < SHORT {
            std::hint::spin_loop();
        }
    };
    assert_eq!(
        coroutine(move || within(SHORT / 2, || {
            burn();
            7
        })),
        Ok(7)
    );
    let next = coroutine(move || {
        within(SHORT / 2, || {
            burn();
            yield_now();
        })
    });
    assert_eq!(next, Err(Late));
}

#[test]
fn of_nested_limits_the_earlier_counts() {
    let inner_earlier = coroutine(|| {
        within(LONG, || {
            let inner = within(SHORT, || sleep(LONG * 2));
            // The outer one has time left.
            sleep(Duration::from_millis(1));
            inner
        })
    });
    assert_eq!(inner_earlier, Ok(Err(Late)));
    let outer_earlier = coroutine(|| within(SHORT, || within(LONG, || sleep(LONG * 2))));
    assert_eq!(outer_earlier, Err(Late));
    let both = coroutine(|| {
        within(SHORT * 2, || {
            let inner = within(SHORT, || sleep(LONG * 2));
            assert_eq!(inner, Err(Late));
            sleep(LONG * 2);
        })
    });
    assert_eq!(both, Err(Late));
}

#[test]
fn unlimited_work_is_not_cut_and_the_limit_holds_after_it() {
    let outcome = coroutine(|| {
        let mut unlimited_ended = false;
        let outcome = within(SHORT, || {
            unlimited(|| sleep(SHORT * 3));
            unlimited_ended = true;
            unwind_if_late();
        });
        (outcome, unlimited_ended)
    });
    assert_eq!(outcome, (Err(Late), true));
}

#[test]
fn a_panic_passes_and_so_does_lateness_past_whoever_catches_panics() {
    let payload = coroutine(|| {
        catch_panic(|| within(LONG, || panic::resume_unwind(Box::new("boom"))))
            .map(|_: Result<(), Late>| ())
            .unwrap_err()
            .downcast_ref()
            .copied()
    });
    assert_eq!(payload, Some("boom"));
    let late = coroutine(|| within(SHORT, || catch_panic(|| sleep(LONG * 2)).is_err()));
    assert_eq!(late, Err(Late));
}

#[test]
fn who_catches_the_unwinding_is_unwound_in_the_next_wait() {
    let (outcome, caught) = coroutine(|| {
        let mut caught = 0;
        let outcome = within(SHORT, || {
            for _ in 0..3 {
                assert!(panic::catch_unwind(|| sleep(LONG * 2)).is_err());
                caught += 1;
            }
            sleep(LONG * 2);
        });
        (outcome, caught)
    });
    assert_eq!((outcome, caught), (Err(Late), 3));
}

#[test]
fn destructors_wait_as_long_as_they_need() {
    struct Patient(mpsc::Sender<Duration>);
    impl Drop for Patient {
        fn drop(&mut self) {
            let begin = Instant::now();
            sleep(AGAIN * 4);
            blocking(|| thread::sleep(AGAIN));
            self.0.send(begin.elapsed()).unwrap();
        }
    }
    // On worker 1, for its thread counts as panicking meanwhile: the tests on the other one do not mind.
    let (told, tells) = mpsc::channel();
    let panicking = told.clone();
    let late = get(&run(1, move || {
        within(SHORT, || {
            let _patient = Patient(told);
            sleep(LONG * 2);
        })
    }));
    assert_eq!(late, Err(Late));
    assert!(get(&tells) >= AGAIN * 5);
    // The limit passes while a panic unwinds the stack.
    let caught = get(&run(1, move || {
        catch_panic(|| {
            within(SHORT, || {
                let _patient = Patient(panicking);
                panic::resume_unwind(Box::new("boom"))
            })
        })
        .map(|_: Result<(), Late>| ())
        .is_err()
    }));
    assert!(caught);
    assert!(get(&tells) >= AGAIN * 5);
}

#[test]
fn a_limit_holds_although_another_coroutine_waits_while_it_unwinds() {
    static RELEASED: AtomicBool = AtomicBool::new(false);
    struct Stubborn(mpsc::Sender<()>);
    impl Drop for Stubborn {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
            while !RELEASED.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(1));
            }
        }
    }
    let (told, tells) = mpsc::channel();
    let stubborn = run(1, move || {
        catch_panic(|| {
            let _stubborn = Stubborn(told);
            panic::resume_unwind(Box::new("boom"))
        })
        .is_err()
    });
    get(&tells);
    // Here the thread counts as panicking, though this coroutine is not.
    let late = run(1, || within(SHORT, || Notify::new().wait()));
    thread::sleep(SHORT * 2);
    RELEASED.store(true, Ordering::Relaxed);
    assert_eq!(get(&late), Err(Late));
    assert!(get(&stubborn));
}

/// Holds worker 0 until the closure is called.
fn hold_worker() -> impl FnOnce() {
    let held = Arc::new(AtomicBool::new(true));
    let theirs = Arc::clone(&held);
    let (began, begins) = mpsc::channel();
    home::spawn(0, "test", move || {
        began.send(()).unwrap();
        while theirs.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    })
    .unwrap();
    get(&begins);
    move || held.store(false, Ordering::Relaxed)
}

/// Lets `first`, on worker 0, become late while it is chosen by `choose`.
fn chosen_when_late(
    first: impl FnOnce() + Send + 'static,
    waits: impl Fn() -> bool,
    choose: impl FnOnce(),
) {
    const LIMIT: Duration = Duration::from_millis(50);
    let outcome = run(0, move || within(LIMIT, first));
    until(waits);
    let release = hold_worker();
    thread::sleep(LIMIT);
    choose();
    release();
    assert_eq!(get(&outcome), Err(Late));
}

#[test]
fn a_value_that_came_for_one_who_is_late_goes_to_the_next() {
    home::start_for_tests();
    let (sender, receiver) = channel(1);
    let (first, second) = (receiver.clone(), receiver.clone());
    let next = std::cell::OnceCell::new();
    chosen_when_late(
        move || assert_eq!(first.recv(), None),
        || receiver.waiting().1 == 1,
        || {
            next.get_or_init(|| run(1, move || second.recv()));
            until(|| receiver.waiting().1 == 2);
            sender.send(7).unwrap();
        },
    );
    assert_eq!(get(next.get().unwrap()), Some(7));
    assert_eq!(receiver.waiting(), (0, 0));
}

#[test]
fn room_that_came_for_one_who_is_late_goes_to_the_next() {
    home::start_for_tests();
    let (sender, receiver) = channel(1);
    sender.send(1).unwrap();
    let (first, second) = (sender.clone(), sender);
    let next = std::cell::OnceCell::new();
    chosen_when_late(
        move || assert!(first.send(2).is_err()),
        || receiver.waiting().0 == 1,
        || {
            next.get_or_init(|| run(1, move || second.send(3)));
            until(|| receiver.waiting().0 == 2);
            assert_eq!(receiver.recv(), Some(1));
        },
    );
    assert_eq!(get(next.get().unwrap()), Ok(()));
    assert_eq!(receiver.recv(), Some(3));
    assert_eq!(receiver.waiting(), (0, 0));
}

#[test]
fn a_word_that_came_for_one_who_is_late_goes_to_the_next() {
    home::start_for_tests();
    let notify = Arc::new(Notify::new());
    let (first, second) = (Arc::clone(&notify), Arc::clone(&notify));
    let next = std::cell::OnceCell::new();
    chosen_when_late(
        move || first.wait(),
        || notify.waiting() == 1,
        || {
            next.get_or_init(|| run(1, move || second.wait()));
            until(|| notify.waiting() == 2);
            notify.notify_one();
        },
    );
    get(next.get().unwrap());
    // With nobody in the line it is kept; one that all heard is not.
    for (all, kept) in [(false, true), (true, false)] {
        let first = Arc::clone(&notify);
        chosen_when_late(
            move || first.wait(),
            || notify.waiting() == 1,
            || {
                if all {
                    notify.notify_all();
                } else {
                    notify.notify_one();
                }
            },
        );
        assert_eq!(notify.wait_timeout(Duration::from_millis(1)), kept);
    }
    assert_eq!(notify.waiting(), 0);
}

#[test]
fn who_is_late_without_a_word_leaves_the_line() {
    home::start_for_tests();
    let notify = Arc::new(Notify::new());
    let (sender, receiver) = channel::<u8>(1);
    let (theirs, theirs_too) = (Arc::clone(&notify), receiver.clone());
    let late = coroutine(move || {
        (
            within(SHORT, || theirs.wait()),
            within(SHORT, || theirs_too.recv()),
        )
    });
    assert_eq!(late, (Err(Late), Err(Late)));
    assert_eq!((notify.waiting(), receiver.waiting()), (0, (0, 0)));
    notify.notify_one();
    assert!(notify.wait_timeout(Duration::ZERO));
    sender.send(1).unwrap();
    assert_eq!(receiver.recv(), Some(1));
}

#[test]
fn a_thousand_limits_at_once_all_hold() {
    let all: Vec<_> = (0..1000_u32)
        .map(|number| {
            let limit = Duration::from_millis(u64::from(20 + number % 50));
            run(number as usize % 2, move || {
                let begin = Instant::now();
                let outcome = within(limit, || match number % 3 {
                    0 => sleep(LONG * 2),
                    1 => Notify::new().wait(),
                    _ => {
                        let (_sender, receiver) = channel::<()>(1);
                        receiver.recv();
                    }
                });
                (outcome, begin.elapsed() >= limit)
            })
        })
        .collect();
    for one in &all {
        assert_eq!(get(one), (Err(Late), true));
    }
    assert_eq!(home::thread_changes(), 0);
}

#[test]
fn on_a_thread_work_runs_to_its_end() {
    let work = || {
        sleep(Duration::from_millis(5));
        7
    };
    assert_eq!(within(Duration::from_millis(1), work), Ok(7));
    assert_eq!(unlimited(|| 8), 8);
    unwind_if_late();
}
