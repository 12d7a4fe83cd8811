//! Is the template's chat room one in which people can talk, also by two pages of a browser?
//!
//! The pages need Chromium, so their test is left out unless it is asked for:
//!
//! ```text
//! cargo test --test chat -- --ignored --nocapture            # CHROMIUM=/path/to/it, CHAT_PICTURES=folder for pictures
//! ```

#![allow(clippy::panic, reason = "a test fails by panicking")]

#[path = "chat/browser.rs"]
mod browser;
#[path = "../template/api/chat.rs"]
mod room;

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use browser::{Browser, Page};
use cloudgate::{App, Running, Server, Settings};
use cloudgate_suite::{Client, LIMIT, client, start};
use serde_json::{Value, json};

fn app() -> App {
    let public = concat!(env!("CARGO_MANIFEST_DIR"), "/template/public");
    App::gather().state(room::Chat::default()).files(public)
}

/// What comes next.
fn next(client: &mut Client) -> Value {
    serde_json::from_str(&client.text()).expect("JSON")
}

/// Somebody who has come in, and what the room said to that.
fn join(server: &Running, name: &str) -> (Client, Value) {
    let mut client = client(server.addr(), &format!("/api/chat?name={name}"));
    let hello = next(&mut client);
    assert_eq!(hello["kind"], "hello");
    (client, hello)
}

#[test]
fn people_hear_each_other_come_talk_and_go() {
    let server = start(app());
    let (mut ada, hello) = join(&server, "Ada");
    assert_eq!(
        (&hello["name"], &hello["people"]),
        (&json!("Ada"), &json!(1))
    );
    assert_eq!(next(&mut ada)["kind"], "joined");
    let (mut other, hello) = join(&server, "Ada");
    assert_eq!(
        (&hello["name"], &hello["people"]),
        (&json!("Ada 2"), &json!(2))
    );
    for client in [&mut ada, &mut other] {
        let joined = next(client);
        assert_eq!(
            (&joined["kind"], &joined["name"]),
            (&json!("joined"), &json!("Ada 2"))
        );
    }
    other.say("  100 % <b>of</b> it\nin two lines  ");
    for client in [&mut ada, &mut other] {
        let said = next(client);
        assert_eq!(
            (&said["kind"], &said["name"]),
            (&json!("said"), &json!("Ada 2"))
        );
        assert_eq!(said["text"], "100 % <b>of</b> it\nin two lines");
    }
    // Nothing is said by silence.
    other.say("   ");
    assert_eq!(other.close(1000, ""), 1000);
    let left = next(&mut ada);
    assert_eq!(
        (&left["kind"], &left["people"]),
        (&json!("left"), &json!(1))
    );
    // The name is free again, and who comes later sees what was said.
    let (mut late, hello) = join(&server, "Ada");
    assert_eq!(hello["name"], "Ada 2");
    assert_eq!(next(&mut late)["kind"], "said");
}

#[test]
fn too_much_is_refused_kindly() {
    let server = start(app());
    let (mut ada, _) = join(&server, "Ada");
    assert_eq!(next(&mut ada)["kind"], "joined");
    ada.say(&"x".repeat(2000));
    assert_eq!(next(&mut ada)["kind"], "said");
    ada.say(&"x".repeat(2001));
    assert_eq!(next(&mut ada)["kind"], "refused");
    for _ in 0..7 {
        ada.say("quick");
        assert_eq!(next(&mut ada)["kind"], "said");
    }
    ada.say("too quick");
    let refused = next(&mut ada);
    assert_eq!(
        (&refused["kind"], &refused["text"]),
        (&json!("refused"), &json!("too quick"))
    );
}

/// What the page relies on: what has no higher number than the last that it showed, it has shown.
#[test]
fn in_a_busy_room_numbers_only_rise_on_every_socket() {
    const PEOPLE: usize = 24;
    const EACH: usize = 8;
    let server = start(app());
    // Who comes in the later rounds also hears what was said in the one before.
    for round in 0..10 {
        let words = format!("round {round}");
        let all_are_in = Barrier::new(PEOPLE);
        let talk = |number: usize| {
            let name = format!("{round}-{number}");
            let (mut client, _) = join(&server, &name);
            // The greeting comes before it has subscribed, and what is said between the two may be more than is kept.
            let mut last = 0;
            loop {
                let news = next(&mut client);
                last = news["id"].as_u64().unwrap_or(last);
                if news["name"] == *name {
                    break;
                }
            }
            all_are_in.wait();
            for _ in 0..EACH {
                client.say(&words);
            }
            let mut heard = 0;
            while heard < PEOPLE * EACH {
                let news = next(&mut client);
                if let Some(id) = news["id"].as_u64() {
                    assert!(id > last, "{id} comes behind {last}");
                    last = id;
                    heard += usize::from(news["text"] == *words);
                }
            }
        };
        std::thread::scope(|scope| {
            for number in 0..PEOPLE {
                let talk = &talk;
                scope.spawn(move || talk(number));
            }
        });
    }
}

/// A server at an address that was used before.
fn serve_at(address: SocketAddr) -> Running {
    let began = Instant::now();
    loop {
        let server = Server::bind(address)
            .map(|server| server.with_settings(Settings::default()))
            .and_then(|server| server.serve(app()));
        match server {
            Ok(server) => return server,
            Err(error) => assert!(began.elapsed() < LIMIT, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Gives a name and comes in.
fn come_in(page: &mut Page, name: &str) {
    page.wait_for("document.getElementById('entry')");
    page.run(&format!(
        "document.getElementById('name').value = {name:?}; document.querySelector('#entry button').click()"
    ));
    page.wait_for("document.getElementById('state').dataset.state === 'up'");
}

fn say(page: &mut Page, words: &str) {
    page.run(&format!(
        "document.getElementById('text').value = {words:?}"
    ));
    page.press_enter("#text");
}

fn shows(page: &mut Page, words: &str) {
    page.wait_for(&format!(
        "[...document.querySelectorAll('#lines li')].some(line => line.textContent.includes({words:?}))"
    ));
}

#[test]
#[ignore = "needs Chromium"]
fn two_pages_talk_and_come_back_after_the_server_was_away() {
    let server = start(app());
    let address = server.addr();
    let browser = Browser::start();
    let url = format!("http://{address}/chat.html");
    let (mut ada, mut bob) = (browser.open(&url), browser.open(&url));
    come_in(&mut ada, "Ada");
    come_in(&mut bob, "Bob");
    shows(&mut ada, "Bob joined");
    ada.wait_for("document.getElementById('people').textContent === '2 people'");
    say(&mut ada, "Hello, <b>Bob</b> & all");
    shows(&mut bob, "Hello, <b>Bob</b> & all");
    say(
        &mut bob,
        "Hi Ada! This one is a little longer, so that it has to be broken into lines on a phone.",
    );
    shows(&mut ada, "Hi Ada!");
    assert_eq!(ada.run("document.getElementById('entry').offsetHeight"), 0);
    // What was typed is empty again, and own lines are marked.
    assert_eq!(ada.run("document.getElementById('text').value"), "");
    assert_eq!(ada.run("document.querySelectorAll('.said.mine').length"), 1);
    assert_eq!(ada.run("document.querySelectorAll('#lines b b').length"), 0);
    for (name, width, height, dark) in [
        ("phone-light", 390, 844, false),
        ("phone-dark", 390, 844, true),
        ("small-light", 360, 500, false),
        ("desk-light", 1280, 800, false),
        ("desk-dark", 1280, 800, true),
    ] {
        ada.look(name, width, height, dark);
        assert_eq!(
            ada.run("document.documentElement.scrollWidth <= innerWidth"),
            true,
            "{name}"
        );
    }

    assert_eq!(server.shutdown(LIMIT), 0);
    ada.wait_for("document.getElementById('state').dataset.state !== 'up'");
    say(&mut ada, "kept");
    assert_eq!(ada.run("document.getElementById('text').value"), "kept");
    ada.look("away", 390, 844, false);
    let _again = serve_at(address);
    for page in [&mut ada, &mut bob] {
        page.wait_for("document.getElementById('state').dataset.state === 'up'");
        // What was there is still there, once.
        assert_eq!(page.run("document.querySelectorAll('.said').length"), 2);
    }
    ada.press_enter("#text");
    shows(&mut bob, "kept");
    bob.close();
    shows(&mut ada, "Bob left");
}
