//! Does an event hold what the original's event held, over a real connection?

use std::sync::Mutex;

use cloudgate::{Event, Json, State, route};
use cloudgate_suite::{Answer, Wire, ask, start};
use serde_json::{Value, json};

#[route(GET, POST, PUT, DELETE, "/events/all")]
fn all(event: Event) -> Json<Event> {
    Json(event)
}

/// Events that outlive their requests.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Vec<Event>>);

#[route(POST, "/events/keep")]
fn keep(State(kept): State<Kept>, event: Event) {
    kept.0.lock().expect("no panic").push(event);
}

#[route("/events/kept")]
fn kept(State(kept): State<Kept>) -> Json<Vec<String>> {
    let events = kept.0.lock().expect("no panic");
    let text = |event: &Event| {
        let body = event.body().map(|body| body.to_vec()).unwrap_or_default();
        format!(
            "{} {} {}",
            event.query(),
            event.header("x").unwrap_or("?"),
            String::from_utf8_lossy(&body)
        )
    };
    Json(events.iter().map(text).collect())
}

#[track_caller]
fn post(server: &cloudgate::Running, content_type: &str, body: &str) -> Answer {
    let length = body.len();
    ask(
        server.addr(),
        format!(
            "POST /events/all?q=1 HTTP/1.1\r\nHost: h\r\nContent-Type: {content_type}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        ),
    )
}

#[test]
fn a_request_becomes_the_object_of_the_original() {
    let server = start(crate::app());
    let answer = ask(
        server.addr(),
        "GET /events/all?a=1&a=2&b=x%20y HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: 2\r\n\r\n",
    );
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!({
            "method": "GET",
            "path": "/events/all",
            "ip": "127.0.0.1",
            "query": "a=1&a=2&b=x%20y",
            "queryStringParameters": {"a": ["1", "2"], "b": "x y"},
            "headers": {"host": "h", "x-a": "1, 2"},
            "GET": {"a": "2", "b": "x y"},
            "body": null,
            "FILES": [],
        })
    );
}

#[test]
fn posted_data_is_parsed_by_its_type() {
    let server = start(crate::app());
    let multipart = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
        --b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"n.txt\"\r\n\
        Content-Type: text/x\r\n\r\nline\r\nline\r\n--b--\r\n";
    let file = json!([{"name": "f", "filename": "n.txt", "type": "text/x", "size": 10}]);
    let none = json!([]);
    for (content_type, body, params, files) in [
        (
            "application/json",
            r#"{"a":{"b":[1]}}"#,
            json!({"a": {"b": [1]}}),
            &none,
        ),
        (
            "application/x-www-form-urlencoded",
            "a=1&b=x+y%26&a=2",
            json!({"a": "2", "b": "x y&"}),
            &none,
        ),
        ("text/plain", "just text", json!({}), &none),
        ("application/json", "no json", json!({}), &none),
        (
            "multipart/form-data; boundary=b",
            multipart,
            json!({"a": "1"}),
            &file,
        ),
        (
            "multipart/form-data; boundary=b",
            "broken",
            json!({}),
            &none,
        ),
    ] {
        let event = post(&server, content_type, body).json();
        assert_eq!(event["POST"], params, "{content_type}");
        assert_eq!(event["FILES"], *files, "{content_type}");
        assert_eq!(event["body"], Value::String(body.to_owned()));
        assert_eq!(event["queryStringParameters"], json!({"q": "1"}));
    }
}

#[test]
fn a_chunked_body_is_the_same_to_a_handler() {
    let server = start(crate::app());
    let answer = ask(
        server.addr(),
        "PUT /events/all HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n",
    );
    assert_eq!(answer.json()["PUT"], json!({"a": 1}));
}

#[test]
fn an_event_that_is_kept_is_not_changed_by_later_requests() {
    let server = start(crate::app());
    let mut wire = Wire::open(server.addr());
    for number in 0..5 {
        let request = format!(
            "POST /events/keep?q={number} HTTP/1.1\r\nHost: h\r\nX: x{number}\r\n\
             Content-Length: 2\r\n\r\nb{number}"
        );
        assert_eq!(wire.send(request).answer().status, 204);
    }
    let want: Vec<_> = (0..5).map(|n| format!("q={n} x{n} b{n}")).collect();
    assert_eq!(wire.send_get("/events/kept").answer().json(), json!(want));
}
