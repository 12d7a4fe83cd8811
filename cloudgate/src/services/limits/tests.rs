//! Does a limit let through what it should, to the request, and cannot be grown or reset?

use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn standing(mut limit: RateLimit) -> (RateLimit, Clock) {
    let clock = Clock::standing();
    limit.clock = clock.clone();
    // Off zero, which is what a new bucket holds.
    clock.advance(1000 * SECOND);
    (limit, clock)
}

fn from(address: &str) -> Request<'static> {
    Request::get("/").with_peer(SocketAddr::new(address.parse().unwrap(), 1))
}

fn passes(limit: &RateLimit, request: &Request<'_>) -> bool {
    matches!(limit.check(request), Verdict::Allowed { .. })
}

fn allowed(left: u64, full_in: Duration) -> Verdict {
    Verdict::Allowed { left, full_in }
}

#[test]
fn the_burst_passes_and_one_more_is_refused_until_its_time() {
    let (limit, clock) = standing(RateLimit::per_second(10).burst(3));
    let request = from("192.0.2.1");
    let step = SECOND / 10;
    for used in 1..=3 {
        assert_eq!(
            limit.check(&request),
            allowed(3 - u64::from(used), used * step)
        );
    }
    let retry_after = step;
    assert_eq!(limit.check(&request), Verdict::Refused { retry_after });
    clock.advance(step - Duration::from_nanos(1));
    let retry_after = Duration::from_nanos(1);
    assert_eq!(limit.check(&request), Verdict::Refused { retry_after });
    clock.advance(Duration::from_nanos(1));
    assert_eq!(limit.check(&request), allowed(0, 3 * step));
    assert!(!passes(&limit, &request));
    // A long pause fills the bucket, and not more than that.
    clock.advance(1000 * SECOND);
    assert_eq!((0..10).filter(|_| passes(&limit, &request)).count(), 3);
}

#[test]
fn odd_settings_have_a_meaning() {
    for (limit, at_once) in vec![
        (RateLimit::per_second(0), 1),
        (RateLimit::per_second(5).burst(0), 1),
        (RateLimit::per(7, Duration::ZERO), 7),
        (RateLimit::per(1, Duration::MAX), 1),
        (RateLimit::per(2, Duration::MAX).burst(u32::MAX), 100),
        (RateLimit::per_minute(60), 60),
        (RateLimit::per_second(1).most_keys(0), 1),
        (RateLimit::per_second(1).ipv6_bits(0), 1),
        (RateLimit::per_second(1).ipv6_bits(999), 1),
    ] {
        let (limit, _) = standing(limit);
        let passed = (0..100)
            .filter(|_| passes(&limit, &from("2001:db8::1")))
            .count();
        assert_eq!(passed, at_once, "{limit:?}");
    }
}

#[test]
fn all_threads_together_get_what_the_rate_gives() {
    const THREADS: usize = 4;
    let (limit, clock) = standing(RateLimit::per_second(1000).burst(50));
    let passed = AtomicU64::new(0);
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (limit, clock, passed, barrier) = (&limit, &clock, &passed, &barrier);
            scope.spawn(move || {
                let request = from("192.0.2.1");
                for _ in 0..50 {
                    if barrier.wait().is_leader() {
                        clock.advance(SECOND / 50);
                    }
                    barrier.wait();
                    let count = (0..100).filter(|_| passes(limit, &request)).count();
                    passed.fetch_add(count as u64, Ordering::SeqCst);
                }
            });
        }
    });
    // The first round finds the bucket full; each of the 49 others finds what 20 ms gave.
    assert_eq!(passed.into_inner(), 50 + 49 * 20);
}

#[test]
fn a_clock_that_moves_meanwhile_makes_no_difference() {
    let (limit, clock) = standing(RateLimit::per_second(1000));
    let passed = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let request = from("192.0.2.1");
                for _ in 0..20_000 {
                    clock.advance(Duration::from_micros(50));
                    if passes(&limit, &request) {
                        passed.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    // 80,000 steps of 50 µs are 4 seconds: 4000, and the 1000 of the burst. The last step may be short.
    let passed = passed.into_inner();
    assert!((4990..=5000).contains(&passed), "{passed}");
}

#[test]
fn an_ipv6_customer_is_one_client_and_ipv4_in_ipv6_is_ipv4() {
    let (limit, _) = standing(RateLimit::per_minute(1));
    assert!(passes(&limit, &from("2001:db8:1:2::1")));
    assert!(!passes(&limit, &from("2001:db8:1:2:ffff::2")));
    assert!(passes(&limit, &from("2001:db8:1:3::1")));
    assert!(passes(&limit, &from("192.0.2.1")));
    assert!(!passes(&limit, &from("::ffff:192.0.2.1")));
    assert!(passes(&limit, &from("192.0.2.2")));
    let (wide, _) = standing(RateLimit::per_minute(1).ipv6_bits(48));
    assert!(passes(&wide, &from("2001:db8:1:2::1")));
    assert!(!passes(&wide, &from("2001:db8:1:3::1")));
    assert!(passes(&wide, &from("2001:db8:2::1")));
}

#[test]
fn a_field_or_a_closure_says_who_the_client_is() {
    let with_key = |address: &str, key: &str| from(address).with_header("X-Api-Key", key);
    let by_closure =
        RateLimit::per_minute(1).by(|request| request.header("x-api-key").map(str::to_owned));
    for limit in [RateLimit::per_minute(1).by_header("x-api-key"), by_closure] {
        let (limit, _) = standing(limit);
        assert!(passes(&limit, &with_key("192.0.2.1", "a")));
        assert!(!passes(&limit, &with_key("192.0.2.2", "a")));
        assert!(passes(&limit, &with_key("192.0.2.1", "b")));
        assert!(!matches!(limit.check_key("b"), Verdict::Allowed { .. }));
        // Without the field it is the address, which no value of the field can stand for.
        assert!(passes(&limit, &with_key("192.0.2.1", "192.0.2.9")));
        assert!(passes(&limit, &from("192.0.2.9")));
        assert!(!passes(&limit, &from("192.0.2.9")));
        // As long as a head may be.
        let long = "k".repeat(64 << 10);
        assert!(passes(&limit, &with_key("192.0.2.1", &long)));
        assert!(!passes(&limit, &with_key("192.0.2.1", &long)));
    }
}

#[test]
fn lists_are_looked_at_first() {
    let network = |text: &str| text.parse::<Network>().unwrap();
    let (limit, _) = standing(
        RateLimit::per_minute(1)
            .allow(network("10.0.0.0/8"))
            .deny(network("10.9.0.0/16"))
            .deny(network("2001:db8::/32")),
    );
    for _ in 0..5 {
        assert_eq!(limit.check(&from("10.1.2.3")), Verdict::Unlimited);
        assert_eq!(limit.check(&from("10.9.2.3")), Verdict::Denied);
        assert_eq!(limit.check(&from("2001:db8::1")), Verdict::Denied);
    }
    let mut denied = from("10.9.2.3");
    let response = limit.answer(&mut denied, |_| panic!("not called"));
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    let response = limit.answer(&mut from("10.1.2.3"), |_| Response::html("a"));
    assert!(!response.headers().contains("ratelimit"));
}

#[test]
fn a_ban_begins_at_its_refusal_and_ends_in_its_time() {
    let (limit, clock) = standing(RateLimit::per_second(1).ban_after(3, 10 * SECOND, 60 * SECOND));
    let request = from("192.0.2.1");
    let refused = Verdict::Refused {
        retry_after: SECOND,
    };
    let banned = |seconds: u32| Verdict::Banned {
        remaining: seconds * SECOND,
    };
    assert!(passes(&limit, &request));
    assert_eq!(limit.check(&request), refused);
    assert_eq!(limit.check(&request), refused);
    // The third would come too late: the first two are forgotten.
    clock.advance(10 * SECOND);
    assert!(passes(&limit, &request));
    assert_eq!(limit.check(&request), refused);
    assert_eq!(limit.check(&request), refused);
    assert_eq!(limit.check(&request), banned(60));
    clock.advance(59 * SECOND);
    assert_eq!(limit.check(&request), banned(1));
    assert!(passes(&limit, &from("192.0.2.2")));
    clock.advance(SECOND);
    assert!(passes(&limit, &request));
    assert_eq!(limit.check(&request), refused);
}

#[test]
fn a_ban_can_be_put_on_by_hand_and_taken_off() {
    let (limit, _) = standing(RateLimit::per_minute(9));
    let address = "192.0.2.1".parse().unwrap();
    limit.ban_address(address, 5 * SECOND);
    let remaining = 5 * SECOND;
    assert_eq!(
        limit.check(&from("192.0.2.1")),
        Verdict::Banned { remaining }
    );
    limit.ban_address(address, Duration::ZERO);
    assert!(passes(&limit, &from("192.0.2.1")));
    limit.ban_key("k", 5 * SECOND);
    assert_eq!(limit.check_key("k"), Verdict::Banned { remaining });
}

#[test]
fn answers_say_what_is_left_and_when_to_come_again() {
    let (limit, clock) = standing(RateLimit::per_minute(2).named("a \"b\"\r\nX: y").ban_after(
        2,
        SECOND,
        90 * SECOND,
    ));
    let field = |response: &Response, name: &str| response.headers().get(name).map(str::to_owned);
    let mut request = from("192.0.2.1");
    let name = "\"a _b___X: y\"";
    let first = limit.answer(&mut request, |_| Response::html("a"));
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(
        field(&first, "ratelimit-policy"),
        Some(format!("{name};q=2;w=60"))
    );
    assert_eq!(field(&first, "ratelimit"), Some(format!("{name};r=1;t=30")));
    assert_eq!(field(&first, "retry-after"), None);
    limit.answer(&mut request, |_| Response::html("a"));
    clock.advance(Duration::from_millis(1));
    let refused = limit.answer(&mut request, |_| panic!("not called"));
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    // 29.999 seconds, rounded up.
    assert_eq!(field(&refused, "retry-after"), Some("30".to_owned()));
    assert_eq!(
        field(&refused, "ratelimit"),
        Some(format!("{name};r=0;t=30"))
    );
    let banned = limit.answer(&mut request, |_| panic!("not called"));
    assert_eq!(field(&banned, "retry-after"), Some("90".to_owned()));
    assert!(banned.text().contains("try again in 90 seconds"));
}

#[test]
fn limits_that_follow_each_other_both_say_what_is_left() {
    let outer = RateLimit::per_minute(60).named("address");
    let inner = RateLimit::per_minute(6).named("key").by_header("x-api-key");
    let silent = RateLimit::per_minute(600).without_fields().burst(5);
    let response = outer.answer(&mut from("192.0.2.1"), |request| {
        silent.answer(request, |request| {
            inner.answer(request, |_| Response::html("a"))
        })
    });
    let policies: Vec<_> = response.headers().get_all("ratelimit-policy").collect();
    assert_eq!(
        policies,
        [&b"\"key\";q=6;w=60"[..], b"\"address\";q=60;w=60"]
    );
}

#[test]
fn more_clients_than_places_never_take_more_memory() {
    let (limit, _) = standing(RateLimit::per_second(1).most_keys(1000));
    for number in 0..20_000_u128 {
        let address = IpAddr::from((0x2001_0db8_u128 << 96 | number << 64).to_be_bytes());
        limit.table.change(limit.hash_address(address), |bucket| {
            limit.take(bucket, limit.clock.now())
        });
    }
    assert_eq!(limit.table.places(), 2000);
    assert!(limit.table.len() <= 2000);
}

#[test]
fn as_many_clients_as_there_is_room_for_are_all_remembered() {
    let (limit, _) = standing(RateLimit::per_minute(1).most_keys(10_000));
    for number in 0..10_000 {
        assert!(matches!(
            limit.check_key(&number.to_string()),
            Verdict::Allowed { .. }
        ));
    }
    let forgotten = (0..10_000)
        .filter(|number| {
            matches!(
                limit.check_key(&number.to_string()),
                Verdict::Allowed { .. }
            )
        })
        .count();
    // A set that is full by chance forgets a few.
    assert!(forgotten < 100, "{forgotten} of 10,000 were forgotten");
}

#[test]
fn a_flood_of_new_clients_resets_neither_bans_nor_empty_buckets() {
    let (limit, _) = standing(RateLimit::per_minute(10).most_keys(1000));
    let banned: IpAddr = "192.0.2.1".parse().unwrap();
    limit.ban_address(banned, 600 * SECOND);
    let mut greedy = 0;
    while passes(&limit, &from("192.0.2.2")) {
        greedy += 1;
    }
    assert_eq!(greedy, 10);
    // 100 times as many clients as there is room for, each asking once or twice.
    for number in 0..100_000_u32 {
        limit.check_key(&number.to_string());
        limit.check_key(&(number / 2).to_string());
    }
    assert!(matches!(
        limit.check(&from("192.0.2.1")),
        Verdict::Banned { .. }
    ));
    assert!(matches!(
        limit.check(&from("192.0.2.2")),
        Verdict::Refused { .. }
    ));
}
