//! Do the fuzz targets' properties hold for their seeds and for mutations of them?
//!
//! A stable stand-in for `cargo fuzz`: the inputs are the same each time. `FUZZ_SECONDS=600` sets how
//! long each target is tried (1 by default), `FUZZ_START=7` where its generator begins.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and tells of it"
)]

#[path = "../fuzz/properties/mod.rs"]
mod properties;

use std::path::Path;
use std::time::{Duration, Instant};

use properties::mutate::{Random, mutation};

/// At least so many mutations are tried, however slow the machine.
const LEAST: u64 = 500;

/// Says which input it was when a property does not hold.
struct Told<'a>(&'a [u8]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was: b\"{}\"", self.0.escape_ascii());
        }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

fn check(target: &str, property: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target);
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no seeds in {}", folder.display());
    let seeds: Vec<Vec<u8>> = paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    let try_one = |input: &[u8]| {
        let _told = Told(input);
        property(input);
    };
    seeds.iter().for_each(|seed| try_one(seed));
    let mut random = Random::new(number("FUZZ_START", 1) << 8);
    let limit = Duration::from_secs(number("FUZZ_SECONDS", 1));
    let (began, mut count) = (Instant::now(), 0);
    while count < LEAST || began.elapsed() < limit {
        try_one(&mutation(&seeds, &mut random));
        count += 1;
    }
    eprintln!("{target}: {count} inputs in {:.1?}", began.elapsed());
}

#[test]
fn heads_have_one_meaning_however_they_arrive() {
    check("head", properties::head);
}

#[test]
fn bodies_end_in_one_place_however_they_arrive() {
    check("framing_decode", properties::framing_decode);
}

#[test]
fn a_request_that_is_passed_on_stays_one_request() {
    check("passed_on", properties::passed_on);
}

#[test]
fn answers_of_servers_have_one_meaning_however_they_arrive() {
    check("answer", properties::answer);
}

#[test]
fn targets_and_queries_keep_their_meaning() {
    check("query", properties::query);
}

#[test]
fn forms_keep_their_meaning() {
    check("multipart", properties::multipart);
}

#[test]
fn proxy_headers_name_one_address_however_they_arrive() {
    check("proxy", properties::proxy);
}

#[test]
fn ranges_are_there_and_what_was_asked_for() {
    check("range", properties::range);
}

#[test]
fn sockets_take_one_meaning_however_it_arrives_and_no_more_memory_than_they_may() {
    check("websocket", properties::websocket);
}

#[test]
fn handshakes_are_answered_as_the_client_wants_them() {
    check("handshake", properties::handshake);
}
