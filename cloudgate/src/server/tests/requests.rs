//! What becomes of many requests at once, and of heads at their limits?

use super::script::{Case, check_with, echo};
use crate::message::{Request, Response};

/// A request with these lines behind the request line.
fn get(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

#[test]
fn more_requests_than_a_turn_takes_are_all_answered() {
    let input: String = (0..40)
        .map(|number| get(&format!("/{number}"), ""))
        .collect();
    let outcome = Case::new(echo).send(input).run();
    let want: Vec<_> = (0..40).map(|number| format!("200 /{number}")).collect();
    assert_eq!(outcome.brief(), want.join(", ") + "; open");
    assert_eq!(outcome.turns, 1);
}

#[test]
fn limits_on_heads_hold_at_the_limit_and_one_past_it() {
    let refused = |status: u16, rule: &str| format!("{status} close; Refused({rule})");
    let target = |length: usize| get(&format!("/{}", "a".repeat(length - 1)), "");
    let small = |case: Case| {
        case.with(|settings| {
            settings.limits.target = 20;
            settings.limits.head = 120;
            settings.limits.fields = 3;
        })
    };
    let answered = |length: usize| format!("200 /{}; open", "a".repeat(length - 1));
    check_with(small, target(20).as_bytes(), &answered(20));
    check_with(small, target(21).as_bytes(), &refused(414, "TargetTooLong"));
    let head = |length: usize| get("/a", &format!("A: {}\r\n", "b".repeat(length - 33)));
    assert_eq!(head(120).len(), 120);
    check_with(small, head(120).as_bytes(), "200 /a; open");
    check_with(small, head(121).as_bytes(), &refused(431, "HeadTooLarge"));
    let fields = |count: usize| get("/a", &"A: b\r\n".repeat(count - 1));
    check_with(small, fields(3).as_bytes(), "200 /a; open");
    check_with(small, fields(4).as_bytes(), &refused(431, "TooManyFields"));

    // The defaults: 8 KiB, 64 KiB, 100 fields.
    let brief = |input: String| Case::new(echo).send(input).run().brief();
    assert_eq!(brief(target(8 << 10)), answered(8 << 10));
    assert_eq!(brief(target((8 << 10) + 1)), refused(414, "TargetTooLong"));
    assert_eq!(brief(head(64 << 10)), "200 /a; open");
    assert_eq!(brief(head((64 << 10) + 1)), refused(431, "HeadTooLarge"));
    assert_eq!(brief(fields(100)), "200 /a; open");
    assert_eq!(brief(fields(101)), refused(431, "TooManyFields"));
    // A head that never ends is refused at its limit too.
    assert_eq!(
        brief(head(1 << 20)[..1 << 19].to_owned()),
        refused(431, "HeadTooLarge")
    );
    assert_eq!(
        brief(format!("GET /{}", "a".repeat(1 << 19))),
        refused(414, "TargetTooLong")
    );
}

#[test]
fn buffers_of_a_large_request_do_not_reach_the_next_one() {
    let large = get("/large", &format!("A: {}\r\n", "b".repeat(60 << 10)));
    let outcome = Case::new(|request: &mut Request<'_>| {
        let a = request.header("a").map_or(0, str::len);
        Response::text_plain(format!("{} {a}", request.path()))
    })
    .send(large)
    .advance(2000)
    .send(get("/small", ""))
    .run();
    assert_eq!(outcome.brief(), "200 /large 61440, 200 /small 0; open");
}
