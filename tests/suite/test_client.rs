//! Does the test client get the same in process and over a connection?

use std::io::{Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cloudgate::test::{self, Client};
use cloudgate::{App, Body, Event, Json, Method, Request, Response, Status};
use serde_json::json;

fn app() -> App {
    App::new()
        .get("/hello", || "hello")
        .get("/empty", || ())
        .get("/panics", panics)
        .get("/interim", || Response::new(Status::CONTINUE))
        .get("/upgrades", || {
            // It goes on until the client ends it.
            Response::switching_protocols("x", |connection| {
                std::io::copy(connection, &mut std::io::sink()).map(drop)
            })
        })
        .get("/long", || "x".repeat(1000))
        .get("/moved", || moved(Status::FOUND, "/hello"))
        .get("/elsewhere", || {
            moved(Status::FOUND, "http://other.example/shown")
        })
        .get("/round", || moved(Status::FOUND, "round"))
        .get("/nowhere", || moved(Status::FOUND, "mailto:a@b"))
        .post("/made", || moved(Status::SEE_OTHER, "shown"))
        .post("/again", || moved(Status::TEMPORARY_REDIRECT, "/shown"))
        .get("/set", || {
            let mut response = Response::text_plain("set");
            for cookie in ["a=1; Path=/", "b=2; Path=/sub", "gone=; Max-Age=0"] {
                assert!(response.headers_mut().append("Set-Cookie", cookie).is_ok());
            }
            response
        })
        .get("/unset", || {
            Response::text_plain("").header("Set-Cookie", "a=; Path=/; Max-Age=0")
        })
        .get("/reader", || {
            Response::default().with_body(Body::Reader {
                reader: Box::new(&b"abcdef"[..]),
                length: Some(3),
            })
        })
        .get("/stream", || {
            Response::stream(|out| {
                write!(out, "first ")?;
                out.flush()?;
                write!(out, "second")
            })
        })
        .get("/broken", || {
            Response::stream(|out| {
                write!(out, "first ")?;
                out.flush()?;
                Err(std::io::Error::other("out of luck"))
            })
        })
        .get("/ticks", || {
            let ticks = Response::stream(|out| {
                for number in 0.. {
                    write!(out, "event: tick\ndata: {number}\n\n")?;
                    out.flush()?;
                }
                Ok(())
            });
            ticks.header("Content-Type", "text/event-stream")
        })
        .route(Method::PUT, "/shown", shown)
        .route(Method::GET, "/shown", shown)
        .post("/shown", shown)
        .get("/sub/shown", shown)
        .post("/event", |request: &mut Request<'_>| {
            match <Event as cloudgate::FromRequest>::from_request(request) {
                Ok(event) => {
                    let files = event.files().iter().map(|file| {
                        json!([file.name, file.filename, file.content_type, file.len()])
                    });
                    Response::json(&json!({
                        "params": event.params(),
                        "files": files.collect::<Vec<_>>(),
                    }))
                }
                Err(_) => Response::new(Status::BAD_REQUEST),
            }
        })
}

#[allow(clippy::panic, reason = "this is what is tested")]
fn panics() {
    panic!("on purpose")
}

fn moved(status: Status, location: &str) -> Response {
    Response::new(status).header("Location", location)
}

/// What has arrived of a request.
fn shown(request: &mut Request<'_>) -> Json<serde_json::Value> {
    let mut body = String::new();
    // What comes of the body shows.
    let _ = request.body().read_to_string(&mut body);
    Json(json!({
        "method": request.method().as_str(),
        "target": request.target(),
        "host": request.host(),
        "length": request.header("content-length"),
        "type": request.header("content-type"),
        "cookie": request.header("cookie"),
        "x": request.header("x"),
        "authorization": request.header("authorization"),
        "body": body,
    }))
}

/// Runs the test in process and over a connection.
fn both(test: impl Fn(&Client)) {
    test(&test::client(app()));
    test(&test::serve(app()));
}

/// What a failing test says.
fn failure(test: impl FnOnce()) -> String {
    let payload = panic::catch_unwind(AssertUnwindSafe(test)).expect_err("a test that fails");
    payload
        .downcast_ref::<String>()
        .expect("a panic with a text")
        .clone()
}

#[test]
fn answers_are_the_same_both_ways() {
    both(|client| {
        let reply = client.get("/hello").send();
        reply
            .assert_status(200)
            .assert_header("Content-Length", "5")
            .assert_header("content-type", "text/plain; charset=utf-8");
        assert_eq!((reply.text(), reply.bytes().len()), ("hello".to_owned(), 5));
        let head = client.head("/hello").send();
        head.assert_status(200).assert_header("content-length", "5");
        assert_eq!(head.text(), "");
        assert_eq!(client.get("/empty").send().status(), 204);
        assert_eq!(client.delete("/hello").send().status(), 405);
        assert_eq!(client.get("/panics").send().status(), 500);
        assert_eq!(client.get("/interim").send().status(), 500);
        assert_eq!(client.get("/stream").send().text(), "first second");
        assert_eq!(client.get("/reader").send().text(), "abc");
    });
}

#[test]
fn an_upgrade_is_seen_as_one_both_ways() {
    both(|client| {
        let upgrade = client.get("/upgrades").header("upgrade", "x");
        let reply = upgrade.header("connection", "upgrade").send();
        reply.assert_status(101).assert_header("upgrade", "x");
        assert_eq!(
            (reply.text().len(), reply.header("content-length")),
            (0, None)
        );
        client.get("/hello").send().assert_status(200);
    });
}

#[test]
fn requests_arrive_the_same_both_ways() {
    both(|client| {
        let got = client
            .get("/shown?a=b")
            .query(&[("c d", "é&")])
            .header("X", "1")
            .send()
            .json_value();
        assert_eq!(got["target"], "/shown?a=b&c+d=%C3%A9%26");
        assert_eq!((&got["x"], &got["length"]), (&json!("1"), &json!(null)));
        let host = client
            .address()
            .map_or("localhost".to_owned(), |at| at.to_string());
        assert_eq!(got["host"], host);
        let got = client.post("/shown").send().json_value();
        assert_eq!((&got["length"], &got["body"]), (&json!("0"), &json!("")));
        let got = client
            .put("/shown")
            .json(&json!({"a": 1}))
            .send()
            .json_value();
        assert_eq!(got["type"], "application/json");
        assert_eq!(
            (&got["method"], &got["body"]),
            (&json!("PUT"), &json!("{\"a\":1}"))
        );
        // A body of more than what fits into the socket's buffers.
        let long = "y".repeat(1 << 20);
        let got = client.post("/shown").body(long.clone()).send().json_value();
        assert_eq!(got["body"], long);
        let got = client
            .get("http://Api.Example.com:81/shown")
            .send()
            .json_value();
        assert_eq!(got["host"], "api.example.com:81");
    });
}

#[test]
fn forms_arrive_with_fields_and_files() {
    both(|client| {
        let form = client
            .post("/event")
            .form(&[("name", "Ada L."), ("a&b", "=")]);
        assert_eq!(
            form.send().json_value(),
            json!({"params": {"name": "Ada L.", "a&b": "="}, "files": []})
        );
        let files = client.post("/event").multipart(|form| {
            form.text("name", "Ada")
                .file("picture", "a.png", "image/png", [0, 13, 10, 255])
        });
        assert_eq!(
            files.send().json_value(),
            json!({"params": {"name": "Ada"}, "files": [["picture", "a.png", "image/png", 4]]})
        );
    });
}

#[test]
fn cookies_are_kept_until_they_end() {
    both(|client| {
        let cookie = |target: &str| client.get(target).send().json_value()["cookie"].clone();
        assert_eq!(cookie("/shown"), json!(null));
        client.get("/set").send();
        assert_eq!(cookie("/shown"), "a=1");
        assert_eq!(cookie("/sub/shown"), "b=2; a=1");
        assert_eq!(cookie("http://other.example/shown"), json!(null));
        let own = client.get("/shown").header("Cookie", "own=1").send();
        assert_eq!(own.json_value()["cookie"], "own=1");
        assert_eq!(client.cookie("a").as_deref(), Some("1"));
        client.get("/unset").send();
        assert_eq!((cookie("/shown"), client.cookie("a")), (json!(null), None));
        client.set_cookie("c", "3");
        assert_eq!(cookie("/sub/shown"), "b=2; c=3");
        client.clear_cookies();
        assert_eq!(cookie("/sub/shown"), json!(null));
    });
}

#[test]
fn redirects_are_followed_where_that_is_asked_for() {
    both(|client| {
        client
            .get("/moved")
            .send()
            .assert_status(302)
            .assert_header("location", "/hello");
        assert_eq!(
            client.get("/moved").follow_redirects().send().text(),
            "hello"
        );
        let made = client.post("/made").json(&1).follow_redirects().send();
        let made = made.json_value();
        assert_eq!(
            (&made["method"], &made["body"]),
            (&json!("GET"), &json!(""))
        );
        assert_eq!(made["type"], json!(null));
        let again = client.post("/again").body("text").follow_redirects().send();
        let again = again.json_value();
        assert_eq!(
            (&again["method"], &again["body"]),
            (&json!("POST"), &json!("text"))
        );
        let other = client.get("/elsewhere").header("Authorization", "secret");
        let other = other.follow_redirects().send().json_value();
        assert_eq!(other["host"], "other.example");
        assert_eq!(other["authorization"], json!(null));
        let text = failure(|| drop(client.get("/round").follow_redirects().send()));
        assert!(text.contains("the 11th redirect"), "{text}");
        let text = failure(|| drop(client.get("/nowhere").follow_redirects().send()));
        assert!(text.contains("mailto:a@b"), "{text}");
    });
}

#[test]
fn streams_are_taken_as_far_as_wanted() {
    both(|client| {
        let reply = client.get("/ticks").until_events(3).send();
        let events = reply.events();
        assert_eq!(events.len(), 3);
        assert_eq!((&*events[2].event, &*events[2].data), ("tick", "2"));
        assert_eq!(
            client.get("/ticks").until_bytes(9).send().text(),
            "event: ti"
        );
        assert_eq!(client.get("/hello").send().text(), "hello");
    });
}

#[test]
fn the_limit_of_a_body_is_held_at_it_and_one_past_it() {
    for serve in [false, true] {
        let with_limit = |limit| {
            let client = if serve {
                test::serve(app())
            } else {
                test::client(app())
            };
            client.with_body_limit(limit)
        };
        assert_eq!(with_limit(1000).get("/long").send().bytes().len(), 1000);
        let text = failure(|| drop(with_limit(999).get("/long").send()));
        assert!(text.contains("longer than the 999 bytes"), "{text}");
        let text = failure(|| drop(with_limit(5000).get("/ticks").send()));
        assert!(text.contains("longer than the 5000 bytes"), "{text}");
    }
}

#[test]
fn failures_say_what_was_asked_and_what_came() {
    both(|client| {
        let text = failure(|| drop(client.post("/hello?x=1").send().assert_status(200).text()));
        for part in [
            "POST /hello?x=1",
            "405 Method Not Allowed",
            "not the status 200",
            "allow: ",
        ] {
            assert!(
                text.to_lowercase().contains(&part.to_lowercase()),
                "{part}: {text}"
            );
        }
        let text = failure(|| drop(client.get("/hello").send().json::<u32>().to_string()));
        assert!(
            text.contains("no JSON of u32") && text.ends_with("\nhello"),
            "{text}"
        );
        let text = failure(|| drop(client.get("/hello").send().assert_header("X", "y").text()));
        assert!(text.contains("no X, which should be \"y\""), "{text}");
        let text = failure(|| drop(client.get("/broken").send()));
        assert!(text.starts_with("GET /broken has no answer: "), "{text}");
        let text = failure(|| drop(client.get("/a b").send()));
        assert!(
            text.contains("GET /a b") && text.contains("percent-encode"),
            "{text}"
        );
        let text = failure(|| drop(client.get("hello")));
        assert!(text.contains("\"hello\" is no target"), "{text}");
        let text = failure(|| drop(client.get("/hello").header("a b", "c")));
        assert!(text.contains("\"a b\" cannot be sent"), "{text}");
    });
    let text = failure(|| {
        drop(
            test::client(app())
                .get("/panics")
                .send()
                .assert_status(200)
                .text(),
        );
    });
    assert!(text.contains("the handler panicked: on purpose"), "{text}");
    for start in [|| test::client(App::new()), || test::serve(App::new())] {
        let text = failure(|| drop(start()));
        assert!(text.contains("start"), "{text}");
    }
}

#[test]
fn a_connection_is_kept_and_replaced_when_it_is_gone() {
    let peers = |client: &Client| client.get("/peer").send().text();
    let app = || {
        App::new()
            .get("/peer", |request: &mut Request<'_>| {
                request.peer().to_string()
            })
            .get("/close", panics)
    };
    let client = test::serve(app()).with_header("X", "1");
    let first = peers(&client);
    assert_eq!(peers(&client), first);
    client.get("/close").send().assert_status(500);
    assert_ne!(peers(&client), first);
}

#[test]
fn one_client_serves_several_threads() {
    let count = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&count);
    let client = test::serve(App::new().get("/", move || {
        theirs.fetch_add(1, Ordering::Relaxed).to_string()
    }));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    client.get("/").send().assert_status(200);
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), 100);
}
