//! Does the harness read wrk's reports, `/proc` and answers rightly?
//!
//! A program without the test harness cannot hold `#[test]`s; `cargo test --benches` runs this instead.

use std::time::Duration;

use super::{ask, load, measure, table};

const REPORT: &str = "Running 5s test @ http://127.0.0.1:4000/
  2 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   513.79us    1.02ms  20.01ms   93.30%
    Req/Sec   101.30k     8.64k  121.52k    65.00%
  Latency Distribution
     50%  251.00us
     75%  361.00us
     90%    0.90ms
     99%    5.12ms
  1010512 requests in 5.02s, 120.46MB read
Requests/sec: 201297.23
Transfer/sec:     24.00MB
";

pub(crate) fn run() {
    wrk_reports();
    proc_files();
    answers();
    figures();
}

fn wrk_reports() {
    let load = load::parse(REPORT).expect("a report of a good run");
    assert_eq!(
        (load.requests, load.per_second, load.p50_ms, load.p99_ms),
        (1_010_512, 201_297.23, 0.251, 5.12)
    );
    for bad in [
        "  Socket errors: connect 0, read 3, write 0, timeout 1\n",
        "  Non-2xx or 3xx responses: 7\n",
    ] {
        assert!(
            load::parse(&REPORT.replace("Requests/sec", &format!("{bad}Requests/sec"))).is_err(),
            "{bad}"
        );
    }
    let counted = load::parse(&format!("{REPORT}received 126308122 bytes in 5020000 us\n"));
    assert_eq!(
        counted.expect("a report with a count").received,
        Some((126_308_122.0, 5_020_000.0))
    );
    assert!(load.received.is_none());
    assert!(load::parse("unable to connect to 127.0.0.1:1 Connection refused\n").is_err());
    assert_eq!(load::milliseconds("1.50s"), Some(1_500.0));
    assert_eq!(load::milliseconds("12"), None);
    let heard = load::Load::hear(&load.tell()).expect("what was told");
    assert_eq!(
        (heard.requests, heard.per_second, heard.p50_ms, heard.p99_ms),
        (load.requests, load.per_second, load.p50_ms, load.p99_ms)
    );
    assert!(load::Load::hear("tls: no answer").is_err());
}

fn proc_files() {
    let stat = measure::ProcessStat::parse(
        "7 (a) b (c) S 3 7 7 0 -1 4194560 1 0 0 0 100 50 20 5 20 0 1 0",
    )
    .expect("proc_pid_stat(5)");
    let tick = Duration::from_nanos(1_000_000_000 / rustix::param::clock_ticks_per_second());
    assert_eq!(
        (stat.parent, stat.own, stat.waited_for),
        (3, tick * 150, tick * 25)
    );
    assert_eq!(
        measure::busy("cpu  10 1 5 900 9 1 2 3 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"),
        Some(tick * 22)
    );
}

fn answers() {
    let plain = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n";
    for whole in [&plain[..], &chunked[..]] {
        for end in 0..whole.len() {
            assert!(
                matches!(ask::parse(&whole[..end]), Ok(None)),
                "{end} bytes are not an answer yet"
            );
        }
        let answer = ask::parse(whole).expect("an answer").expect("a whole one");
        assert_eq!(
            (answer.status, &answer.body[..], &answer.raw[..]),
            (200, &b"hi"[..], whole)
        );
    }
    let unchanged = ask::parse(b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n")
        .expect("an answer")
        .expect("a whole one");
    assert_eq!(
        (
            unchanged.status,
            unchanged.field("etag"),
            unchanged.body.len()
        ),
        (304, Some("\"a\""), 0)
    );
    assert!(
        ask::parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err(),
        "without a length wrk cannot find the end"
    );
}

fn figures() {
    assert_eq!(table::median(vec![3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(table::median(vec![4.0, 1.0]), Some(2.5));
    assert_eq!(table::median(Vec::new()), None);
    assert_eq!(table::grouped(1.256), "1.26");
    assert_eq!(
        [999.0, 1_000.0, 1_234_567.4].map(table::grouped),
        ["999", "1,000", "1,234,567"]
    );
}
