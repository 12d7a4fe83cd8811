//! What this application promises. Most tests call it in process: no port, no network. `test::serve` puts it
//! on a free port and asks over a real connection, with the same client.

use cloudgate::test::{self, Client};
use serde_json::json;

/// A client of a fresh app.
fn client() -> Client {
    test::client(super::app()).with_header("accept", "application/json")
}

#[test]
fn the_page_and_its_picture_are_served() {
    let client = client();
    let page = client.get("/").send();
    page.assert_status(200);
    assert!(page.text().contains("<!doctype html>"));
    client
        .get("/cloudgate128.png")
        .send()
        .assert_header("content-type", "image/png");
}

#[test]
fn every_file_of_api_has_its_route() {
    // What `cargo run -- --routes` prints.
    let table = super::app().routes_table();
    for path in ["simple", "full", "template"] {
        assert!(table.contains(&format!("/api/tests/{path} ")), "{table}");
    }
}

#[test]
fn simple_says_hello() {
    let reply = client().get("/api/tests/simple").send();
    reply.assert_status(200);
    assert_eq!(reply.text(), "Hello World!");
}

#[test]
fn full_shows_the_query() {
    let reply = client()
        .get("/api/tests/full")
        .query(&[("color", "sky blue")])
        .send();
    let answer = reply.json_value();
    assert_eq!(answer["method"], "GET");
    assert_eq!(answer["path"], "/api/tests/full");
    assert_eq!(
        answer["queryStringParameters"],
        json!({"color": "sky blue"})
    );
}

#[test]
fn full_shows_a_posted_form() {
    let form = [("name", "Ada Lovelace"), ("city", "London")];
    let answer = client()
        .post("/api/tests/full")
        .form(&form)
        .send()
        .json_value();
    assert_eq!(
        answer["POST"],
        json!({"name": "Ada Lovelace", "city": "London"})
    );
}

#[test]
fn full_counts_the_visits_of_all_requests() {
    let client = client();
    for visit in 1..=3 {
        let answer = client.get("/api/tests/full").send().json_value();
        assert_eq!(answer["visits"], visit);
    }
}

#[test]
fn full_escapes_what_the_client_sent() {
    let page = client()
        .get("/api/tests/full")
        .query(&[("a", "<script>alert(1)</script>")])
        .header("accept", "text/html")
        .send();
    page.assert_header("content-type", "text/html; charset=utf-8");
    assert!(!page.text().contains("<script>"));
}

#[test]
fn template_fills_in_the_visitor() {
    let page = client()
        .get("/api/tests/template")
        .query(&[("name", "<Ada>")])
        .send();
    page.assert_status(200);
    let text = page.text();
    assert!(text.contains("Hello, &lt;Ada&gt;!"), "{text}");
    assert!(!text.contains("name }"), "a variable was left open: {text}");
}

#[test]
fn the_chat_wants_a_name_and_a_websocket() {
    let client = client();
    client.get("/chat.html").send().assert_status(200);
    client.get("/api/chat?name=Ada").send().assert_status(426);
    let opening = |target| {
        client
            .get(target)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .send()
    };
    opening("/api/chat?name=Ada").assert_status(101);
    opening("/api/chat?name=%20").assert_status(422);
    opening("/api/chat").assert_status(400);
}

#[test]
fn people_in_the_chat_hear_each_other() {
    let client = test::serve(super::app());
    let said = |text: String| -> serde_json::Value { serde_json::from_str(&text).unwrap() };
    let mut ada = client.get("/api/chat?name=Ada").websocket();
    assert_eq!(said(ada.text())["kind"], "hello");
    assert_eq!(said(ada.text())["kind"], "joined");
    let mut bob = client.get("/api/chat?name=Bob").websocket();
    assert_eq!(said(bob.text())["people"], 2);
    assert_eq!(said(ada.text())["name"], "Bob");
    bob.send("hello");
    let hello = said(ada.text());
    assert_eq!(hello["text"], "hello");
    ada.send("hello Bob");
    // The page leaves out what has no higher number than what it has shown.
    assert!(said(ada.text())["id"].as_u64() > hello["id"].as_u64());
}

#[test]
fn mistakes_have_their_status() {
    let client = client();
    client.get("/nothing-here").send().assert_status(404);
    client.delete("/api/tests/simple").send().assert_status(405);
}

#[test]
fn it_works_over_a_real_connection() {
    let client = test::serve(super::app());
    let reply = client.get("/api/tests/simple").send();
    reply
        .assert_status(200)
        .assert_header("content-length", "12");
}
