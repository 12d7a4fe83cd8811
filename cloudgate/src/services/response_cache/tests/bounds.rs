//! Does the memory hold its limits, and any mixture of requests get what is theirs?

use super::super::store::{ENTRY_BYTES, MOST_KEY_BYTES};
use super::*;

#[test]
fn a_body_and_a_key_of_the_limit_are_kept_and_one_past_it_not() {
    let cache = standing(ResponseCache::for_seconds(10).most_entry_bytes(1000)).0;
    for (length, want) in [(1000, true), (1001, false)] {
        let target = format!("/{length}");
        let make = || Response::html(vec![b'x'; length]);
        is_hit(&cache, get(&target, &[]), make);
        assert_eq!(is_hit(&cache, get(&target, &[]), make), want);
    }
    for (length, want) in [(MOST_KEY_BYTES, true), (MOST_KEY_BYTES + 1, false)] {
        let target = format!("/{}", "a".repeat(length - 2));
        let request = || get(&target, &[("Host", "h")]);
        is_hit(&cache, request(), page);
        assert_eq!(is_hit(&cache, request(), page), want);
        // Fields that it varies by count as well: name and value.
        let value = "v".repeat(length - "h/vary".len() - 1);
        let request = || get("/vary", &[("Host", "h"), ("X", &value)]);
        let vary = || page().header("Vary", "x");
        is_hit(&cache, request(), vary);
        assert_eq!(is_hit(&cache, request(), vary), want);
    }
    let names = |count: usize| {
        (0..count)
            .map(|n| format!("x{n}"))
            .collect::<Vec<_>>()
            .join(",")
    };
    for (count, want) in [(16, true), (17, false)] {
        let vary = || page().header("Vary", &names(count));
        let target = format!("/names{count}");
        is_hit(&cache, get(&target, &[]), vary);
        assert_eq!(is_hit(&cache, get(&target, &[]), vary), want);
    }
}

#[test]
fn the_least_recently_used_goes_and_the_bytes_hold() {
    let cost = ENTRY_BYTES + 2 + 1000;
    let make = || Response::new(StatusCode::OK).with_body(vec![b'x'; 1000]);
    let cache = ResponseCache::for_seconds(10)
        .most_entry_bytes(1000)
        .most_bytes(3 * cost);
    let cache = standing(cache).0;
    for target in ["/1", "/2", "/3"] {
        is_hit(&cache, get(target, &[]), make);
    }
    assert_eq!(cache.store.size(), (3, 3 * cost));
    assert!(is_hit(&cache, get("/1", &[]), make));
    is_hit(&cache, get("/4", &[]), make);
    assert_eq!(cache.store.size(), (3, 3 * cost));
    assert!(is_hit(&cache, get("/1", &[]), make));
    assert!(is_hit(&cache, get("/3", &[]), make));
    assert!(!is_hit(&cache, get("/2", &[]), make));
    let small = standing(ResponseCache::for_seconds(10).most_bytes(cost - 1)).0;
    is_hit(&small, get("/1", &[]), make);
    assert_eq!(small.store.size(), (0, 0));
}

#[test]
fn a_flood_of_targets_and_variants_stays_within_the_bytes() {
    let cache = standing(ResponseCache::for_seconds(10).most_bytes(64 << 10)).0;
    for number in 0..5000 {
        is_hit(&cache, get(&format!("/?{number}"), &[]), page);
        let value = number.to_string();
        is_hit(&cache, get("/vary", &[("X", &value)]), || {
            page().header("Vary", "X")
        });
        let (entries, bytes) = cache.store.size();
        assert!(bytes <= 64 << 10 && entries <= 128, "{entries} {bytes}");
    }
    // Of one target no more than 16 are kept: the last ones.
    let cache = super::cache();
    for number in 0..17 {
        let value = number.to_string();
        is_hit(&cache, get("/vary", &[("X", &value)]), || {
            page().header("Vary", "X")
        });
    }
    assert_eq!(cache.store.size().0, 16);
    assert!(is_hit(&cache, get("/vary", &[("X", "1")]), page));
    assert!(!is_hit(&cache, get("/vary", &[("X", "0")]), page));
}

#[test]
fn any_mixture_of_requests_gets_what_the_handler_would_say() {
    let cache = ResponseCache::for_seconds(10)
        .most_entry_bytes(200)
        .most_bytes(20 * ENTRY_BYTES);
    let (cache, clock) = standing(cache);
    // A small generator of its own: the same run each time.
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    // Everything that the answer depends on is in it; what it varies by depends on the target.
    let say = |request: &Request<'_>| {
        let field = |name| request.header(name).unwrap_or("-");
        let who = [field("cookie"), field("authorization")].join(" ");
        let (host, target) = (request.host().unwrap_or("-"), request.target());
        match target {
            "/language" => format!("{host} {target} {who} {}", field("accept-language")),
            "/both" => format!(
                "{host} {target} {who} {} {}",
                field("accept-language"),
                field("x")
            ),
            _ => format!("{host} {target} {who}"),
        }
    };
    let mut hits = 0;
    for _ in 0..20_000 {
        let targets = ["/", "/?a", "/a", "/language", "/both", "/none", "/own"];
        let mut request = Request::get(targets[random(7) as usize]);
        let fields = [
            ("Host", ["a", "b", "A"]),
            ("Accept-Language", ["de", "en", ""]),
            ("X", ["1", "2", "1, 2"]),
            ("Cookie", ["u=1", "u=2", "u=3"]),
            ("Authorization", ["1", "2", "3"]),
        ];
        for (index, (name, values)) in fields.iter().enumerate() {
            // Host mostly, who it is seldom.
            if random(8) < [7, 5, 3, 1, 1][index] {
                request = request.with_header(name, values[random(3) as usize]);
            }
        }
        let want = say(&request).to_ascii_lowercase();
        let response = cache.answer(&mut request, |request| {
            let response = Response::html(say(request).to_ascii_lowercase());
            match request.target() {
                "/language" => response.header("Vary", "Accept-Language"),
                "/both" => response.header("Vary", "X, accept-language"),
                "/none" => response.header("Cache-Control", "no-cache"),
                "/own" => response.header("Set-Cookie", "a=b"),
                _ => response,
            }
        });
        hits += usize::from(response.headers().contains("age"));
        assert_eq!(response.text(), want);
        if random(100) == 0 {
            clock.advance(4 * SECOND);
        }
    }
    assert!(hits > 3000, "{hits}");
}
