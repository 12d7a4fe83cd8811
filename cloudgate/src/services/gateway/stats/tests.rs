//! Do the numbers of a gateway add up?

use super::*;
use crate::message::metrics::gather;
use std::sync::mpsc;
use std::time::Instant;

fn told(part: &impl Collect) -> String {
    let mut out = Exposition::default();
    part.collect(&mut out);
    out.to_string()
}

#[track_caller]
fn holds(text: &str, samples: &[&str]) {
    for sample in samples {
        let line = format!("\ncloudgate_gateway_{sample}\n");
        assert!(text.contains(&line), "no {sample} in {text}");
    }
}

#[test]
fn a_request_counts_by_its_status_and_its_time() {
    let stats = ServiceStats::new("orders");
    let micro = Duration::from_micros;
    for (status, took) in [
        (200, micro(0)),
        (204, micro(500)),
        (304, micro(500) + Duration::from_nanos(1)),
        (404, micro(10_000_000)),
        (502, micro(10_000_001)),
        (101, Duration::MAX),
    ] {
        stats.record(status, took, 3, 0);
    }
    stats.record(200, micro(1_500), 0, 100);
    stats.retried();
    let text = told(&*stats);
    holds(
        &text,
        &[
            "requests_total{service=\"orders\",code=\"1xx\"} 1",
            "requests_total{service=\"orders\",code=\"2xx\"} 3",
            "requests_total{service=\"orders\",code=\"3xx\"} 1",
            "requests_total{service=\"orders\",code=\"4xx\"} 1",
            "requests_total{service=\"orders\",code=\"5xx\"} 1",
            "request_duration_seconds_bucket{service=\"orders\",le=\"0.0005\"} 2",
            "request_duration_seconds_bucket{service=\"orders\",le=\"0.001\"} 3",
            "request_duration_seconds_bucket{service=\"orders\",le=\"0.0025\"} 4",
            "request_duration_seconds_bucket{service=\"orders\",le=\"5\"} 4",
            "request_duration_seconds_bucket{service=\"orders\",le=\"10\"} 5",
            "request_duration_seconds_bucket{service=\"orders\",le=\"+Inf\"} 7",
            "request_duration_seconds_count{service=\"orders\"} 7",
            "request_bytes_total{service=\"orders\"} 18",
            "response_bytes_total{service=\"orders\"} 100",
            "retries_total{service=\"orders\"} 1",
            "requests_in_flight{service=\"orders\"} 0",
            "tunnels{service=\"orders\"} 0",
        ],
    );
}

#[test]
fn the_sum_of_times_is_in_seconds() {
    let stats = ServiceStats::new("a");
    stats.record(200, Duration::from_millis(250), 0, 0);
    stats.record(200, Duration::from_secs(1), 0, 0);
    holds(
        &told(&*stats),
        &["request_duration_seconds_sum{service=\"a\"} 1.25"],
    );
}

#[test]
fn a_status_that_is_none_counts_as_the_nearest() {
    let stats = ServiceStats::new("a");
    for status in [0, 99, 600, u16::MAX] {
        stats.record(status, Duration::ZERO, 0, 0);
    }
    holds(
        &told(&*stats),
        &[
            "requests_total{service=\"a\",code=\"1xx\"} 2",
            "requests_total{service=\"a\",code=\"5xx\"} 2",
        ],
    );
}

#[test]
fn what_is_under_way_counts_until_its_guard_is_dropped() {
    let stats = ServiceStats::new("a");
    let open = [stats.open(), stats.open()];
    let tunnel = stats.upgraded();
    let server = ServerStats::new("a", "http://127.0.0.1:3001");
    let count = Arc::new(AtomicU64::new(1));
    let theirs = Arc::clone(&count);
    server.look_by(move || {
        let count = theirs.load(Ordering::Relaxed) as usize;
        Now {
            up: count > 0,
            active: count,
            idle: count,
            queued: count,
        }
    });
    holds(
        &told(&*stats),
        &[
            "requests_in_flight{service=\"a\"} 2",
            "tunnels{service=\"a\"} 1",
        ],
    );
    let labels = "service=\"a\",server=\"http://127.0.0.1:3001\"";
    let connections =
        |state, count: u32| format!("upstream_connections{{{labels},state=\"{state}\"}} {count}");
    let queue = |count: u32| format!("upstream_queue{{{labels}}} {count}");
    let samples = |count| {
        [
            connections("active", count),
            connections("idle", count),
            queue(count),
        ]
    };
    holds(&told(&*server), &samples(1).each_ref().map(|text| &**text));
    drop((open, tunnel));
    count.store(0, Ordering::Relaxed);
    holds(
        &told(&*stats),
        &[
            "requests_in_flight{service=\"a\"} 0",
            "tunnels{service=\"a\"} 0",
        ],
    );
    holds(&told(&*server), &samples(0).each_ref().map(|text| &**text));
    holds(&told(&*server), &[&format!("upstream_up{{{labels}}} 0")]);
}

#[test]
fn each_end_of_a_request_to_a_server_has_its_count() {
    let stats = ServerStats::new("a", "unix:/run/b");
    for (index, (outcome, _)) in OUTCOMES.into_iter().enumerate() {
        // The cells go by the number of the case.
        assert_eq!(outcome as usize, index);
        for _ in 0..=index {
            stats.ended(outcome);
        }
    }
    stats.connected();
    stats.connected();
    stats.connect_failed();
    for _ in 0..3 {
        stats.reused();
    }
    let sample = |name: &str, more: &str, count: u32| {
        format!("upstream_{name}{{service=\"a\",server=\"unix:/run/b\"{more}}} {count}")
    };
    let text = told(&*stats);
    for want in [
        sample("up", "", 1),
        sample("requests_total", ",outcome=\"answered\"", 1),
        sample("requests_total", ",outcome=\"server_error\"", 2),
        sample("requests_total", ",outcome=\"broken\"", 3),
        sample("requests_total", ",outcome=\"timeout\"", 4),
        sample("requests_total", ",outcome=\"cancelled\"", 5),
        sample("connects_total", "", 2),
        sample("connect_errors_total", "", 1),
        sample("reused_total", "", 3),
    ] {
        holds(&text, &[&want]);
    }
}

#[test]
fn nothing_is_lost_between_workers_and_other_threads() {
    const EACH: u64 = 1000;
    let workers = home::start_for_tests();
    let stats = ServiceStats::new("a");
    let (done, results) = mpsc::channel();
    let work = |stats: &ServiceStats| {
        let mut open = Vec::new();
        for _ in 0..EACH {
            open.push(stats.open());
            stats.record(200, Duration::from_micros(1), 1, 2);
        }
        open
    };
    for worker in 0..workers {
        let (stats, done) = (Arc::clone(&stats), done.clone());
        home::spawn(worker, "test", move || {
            done.send(work(&stats)).unwrap();
        })
        .unwrap();
    }
    for _ in 0..2 {
        let (stats, done) = (Arc::clone(&stats), done.clone());
        std::thread::spawn(move || done.send(work(&stats)).unwrap());
    }
    let limit = Duration::from_secs(60);
    let all: Vec<_> = (0..workers + 2)
        .map(|_| results.recv_timeout(limit).unwrap())
        .collect();
    let count = EACH * (workers as u64 + 2);
    let in_flight = |count| format!("requests_in_flight{{service=\"a\"}} {count}");
    holds(
        &told(&*stats),
        &[
            &format!("requests_total{{service=\"a\",code=\"2xx\"}} {count}"),
            &format!("response_bytes_total{{service=\"a\"}} {}", 2 * count),
            &in_flight(count),
        ],
    );
    // They are dropped here, and not where they were made.
    drop(all);
    holds(&told(&*stats), &[&in_flight(0)]);
}

#[test]
fn two_services_of_one_name_are_one_in_the_metrics() {
    // Whoever gathers meanwhile in another test holds what is dropped for a moment.
    let wait_until = |fits: &dyn Fn(&str) -> bool| {
        let due = Instant::now() + Duration::from_secs(20);
        loop {
            let mut out = Exposition::default();
            gather(&mut out);
            let text = out.to_string();
            if fits(&text) {
                return;
            }
            assert!(Instant::now() < due, "{text}");
            std::thread::yield_now();
        }
    };
    let before = ServiceStats::new("of two generations");
    let after = ServiceStats::new("of two generations");
    let servers = [(); 2].map(|()| ServerStats::new("of two generations", "http://a"));
    before.retried();
    after.retried();
    let down = Now {
        up: false,
        ..Now::default()
    };
    servers[0].look_by(move || down);
    let retries = "retries_total{service=\"of two generations\"}";
    let up = "upstream_up{service=\"of two generations\",server=\"http://a\"}";
    wait_until(&|text| {
        text.contains(&format!("{retries} 2\n")) && text.contains(&format!("{up} 1\n"))
    });
    servers[1].look_by(move || down);
    drop(before);
    wait_until(&|text| {
        text.contains(&format!("{retries} 1\n")) && text.contains(&format!("{up} 0\n"))
    });
    drop((after, servers));
    wait_until(&|text| !text.contains("of two generations"));
}
