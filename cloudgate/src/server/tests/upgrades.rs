//! Which requests may change what the connection speaks, and what do those get that may not?

use crate::message::{After, Protocol, Request, Response, Service, Upgrade, Upgraded};
use crate::server::tests::script::Case;

/// A protocol that keeps its coroutine, or does not.
struct Speaks {
    keeps_coroutine: bool,
}

impl Protocol for Speaks {
    fn run(&mut self, _connection: &mut Upgraded<'_>) -> After {
        After::Over
    }

    fn keeps_coroutine(&self) -> bool {
        self.keeps_coroutine
    }
}

fn upgrades(keeps_coroutine: bool) -> impl Service {
    move |request: &mut Request<'_>| match request.path() {
        "/plain" => Response::text_plain("plain"),
        "/mistake" => {
            Response::switching_protocols("x", |_| Ok(())).with_status(200.try_into().unwrap())
        }
        _ => Response::upgrade(Upgrade(Box::new(Speaks { keeps_coroutine })))
            .header("Upgrade", "x")
            // What belongs to the connection is the server's.
            .header("Connection", "close")
            .header("Content-Length", "7"),
    }
}

fn asking(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\nConnection: upgrade\r\n{fields}\r\n")
}

#[test]
fn what_comes_behind_the_request_is_left_to_the_protocol() {
    let input = format!("{}leftover", asking("/", ""));
    let outcome = Case::new(upgrades(true)).send(input).run();
    let text = String::from_utf8(outcome.received).unwrap();
    assert!(
        text.starts_with(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\nDate: "
        ),
        "{text}"
    );
    assert!(
        text.ends_with("GMT\r\n\r\n") && !text.contains("Content-Length"),
        "{text}"
    );
    assert_eq!(
        outcome.end,
        format!("Upgraded(Upgrade, {:?})", b"leftover".to_vec())
    );
    assert!(!outcome.lingered);
}

#[test]
fn answers_to_earlier_requests_go_out_first() {
    let input = format!("GET /plain HTTP/1.1\r\nHost: h\r\n\r\n{}", asking("/", ""));
    let outcome = Case::new(upgrades(true)).send(input).run();
    let text = String::from_utf8(outcome.received).unwrap();
    let (first, second) = (text.find("plain").unwrap(), text.find("101 ").unwrap());
    assert!(first < second && outcome.end.starts_with("Upgraded"));
}

#[test]
fn who_did_not_ask_for_it_is_told_what_to_ask_for() {
    for input in [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\n\r\n".to_owned(),
        asking("/", "").replace("HTTP/1.1", "HTTP/1.0"),
        asking("/", "").replace("GET", "HEAD"),
    ] {
        let outcome = Case::new(upgrades(true)).send(&input).run();
        let text = String::from_utf8(outcome.received).unwrap();
        assert!(
            text.starts_with("HTTP/1.1 426 ") && text.contains("Upgrade: x\r\n"),
            "{input}: {text}"
        );
        assert!(!outcome.end.starts_with("Upgraded"), "{input}");
    }
}

#[test]
fn a_body_is_no_part_of_the_protocol() {
    let input = asking("/", "Content-Length: 5\r\n") + "helloleftover";
    let outcome = Case::new(upgrades(true)).send(input).run();
    assert_eq!(
        outcome.end,
        format!("Upgraded(Upgrade, {:?})", b"leftover".to_vec())
    );
    // One that does not come whole.
    let case = Case::new(upgrades(true)).send(asking("/", "Content-Length: 50000000\r\n"));
    let text = String::from_utf8(case.run().received).unwrap();
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
}

#[test]
fn a_status_other_than_101_is_a_mistake_of_the_handler() {
    let outcome = Case::new(upgrades(true)).send(asking("/mistake", "")).run();
    assert_eq!(outcome.brief(), "500; open");
}

#[test]
fn coroutines_that_are_kept_have_a_limit_and_others_do_not() {
    for (keeps_coroutine, kept, upgraded) in [(true, 0, true), (true, 1, false), (false, 1, true)] {
        let case = Case::new(upgrades(keeps_coroutine)).kept(kept);
        let outcome = case.send(asking("/", "")).run();
        let text = String::from_utf8(outcome.received).unwrap();
        let (status, field) = if upgraded {
            ("HTTP/1.1 101 ", "Upgrade: x\r\n")
        } else {
            ("HTTP/1.1 503 ", "Retry-After: 1\r\n")
        };
        assert!(text.starts_with(status) && text.contains(field), "{text}");
        assert_eq!(outcome.end.starts_with("Upgraded"), upgraded);
    }
}

#[test]
fn a_server_that_stops_upgrades_nothing() {
    let case = Case::new(upgrades(true)).send("G").stop_server();
    let outcome = case.send(&asking("/", "")[1..]).run();
    let text = String::from_utf8(outcome.received).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 503 ") && text.contains("Connection: close\r\n"),
        "{text}"
    );
}
